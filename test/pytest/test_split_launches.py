"""Launches in pieces end with the bits of whole launches, on streams that run in any order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import timetile
from support.catalogue import entry
from support.driver import BookKeeper
from support.few_schedules import few_schedules
from support.programs import program_text
from support.simulated import SimulatedSite, World
from support.simulated_runs import arguments_of, ends_as_one, waits_of_some_streams
from test_parts_of_a_step import BlockShape, passes_of
from timetile.runtime.program.parted_program import PartedProgram
from timetile.runtime.ranks import split_kernels
from timetile.runtime.ranks.gpu_sites import GpuSite
from timetile.runtime.ranks.part_kernels import PartKernels

pytestmark = pytest.mark.usefixtures("printed_alone")


def no_launches(*_: object, common: bool) -> None:
    """No launch has rims first."""


def reaches_nothing(*_: object) -> bool:
    """GPUs do not reach each other's memory."""
    return False


@pytest.fixture(autouse=True)
def every_launch_has_waves(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Launches of few blocks are split, too."""
    monkeypatch.setattr(split_kernels, "LEAST_WAVES", 0.0)
    monkeypatch.setattr(PartKernels, "rims_first", no_launches)
    with few_schedules():
        yield


def run(text: str, count: int, seed: int, steps: int, **options: Any) -> tuple[bool, World]:
    """Whether a run in pieces ends with the bits of one device, and the streams."""
    arguments = arguments_of(text, steps)
    return ends_as_one(text, arguments, count, seed, **(options or {"depth": 2}))


@pytest.mark.covering
@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("name, shape", [("heat-3d", (96, 3, 7)), ("heat-2d", (96, 11))])
def test_launches_in_pieces_keep_all_bits(name: str, shape: tuple[int, ...], count: int):
    same, world = run(program_text(entry(name).make(shape)), count, 3, 7)
    assert same
    streams = {stream for stream, kernel in world.launched if kernel.endswith("d2")}
    assert streams == set(range(2 * count)), "rims run on streams of their own"


@pytest.mark.covering
@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize(
    "name, cuts", [("heat-2d", None), ("two-boxes-2d", (1,)), ("accumulated-2d", None)]
)
def test_the_first_kernel_of_a_step_that_reads_memory_runs_in_pieces(
    name: str, cuts: tuple[int, ...] | None, count: int
):
    passes = passes_of(BlockShape((2, 1), (1, 2)), cuts)
    same, world = run(program_text(entry(name).make((48, 9))), count, 3, 7, passes=passes)
    assert same
    pieces = {kernel for stream, kernel in world.launched if stream >= count}
    assert pieces in ({"loop0_step"}, {"loop0_step_0"})


def test_seeded_missing_waits_of_pieces_are_found(monkeypatch: pytest.MonkeyPatch):
    text = program_text(entry("heat-2d").make((45, 12)))
    assert run(text, 2, 0, 9)[0]
    for second, waits in waits_of_some_streams().items():
        monkeypatch.setattr(SimulatedSite, "wait", waits)
        assert not all(run(text, 2, seed, 9)[0] for seed in range(8)), f"{second=}"


@pytest.mark.usefixtures("cache_of_file")
def test_a_run_in_pieces_on_two_gpus_gives_back_everything(
    driver: BookKeeper, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(GpuSite, "reaches", reaches_nothing)
    text = program_text(entry("heat-2d").make((90, 131)))
    program = timetile.compile(text, gpus=2, depth=2, exchange_every=2, halos="common")
    assert isinstance(program, PartedProgram)
    arguments = arguments_of(text, 9)
    program(*arguments)
    assert program.placed.present is not None
    assert len(program.placed.present.seconds) == 2, "a launch was in pieces"
    assert {"stream", "module", "event"} <= set(driver.left)
    program.close()
    assert not driver.left
