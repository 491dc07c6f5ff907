"""Launches with rims first end with the bits of whole launches, on streams in any order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import numpy as np
import pytest

import timetile
from support.catalogue import entry
from support.few_schedules import few_schedules
from support.programs import program_text
from support.ranks import copies
from support.simulated import SimulatedRank, SimulatedSite, simulated_rank
from support.simulated_runs import arguments_of, ends_as_one, waits_of_some_streams
from support.simulated_streams import SimulatedMeetings, World
from support.thread_ranks import ThreadPeers, on_threads
from timetile.dialects.boxes import CellBox
from timetile.runtime.program.ranked_program import on_ranks
from timetile.runtime.ranks import cycles, part_kernels
from timetile.runtime.ranks.first_kernels import slabs_of

pytestmark = pytest.mark.usefixtures("printed_alone")

GRAPHED = 29
"""Steps of a run with a graph."""


@pytest.fixture(autouse=True)
def rims_are_first(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Launches of few blocks have rims first, too, and few launches are a graph."""
    monkeypatch.setattr(part_kernels, "MOST_LONGER", 1e9)
    monkeypatch.setattr(cycles, "LAUNCHES_OF_A_GRAPH", 2)
    monkeypatch.setattr(cycles, "LAUNCHES_AHEAD", 0)
    monkeypatch.setattr(cycles, "FEWEST_LAUNCHES", 4)
    with few_schedules():
        yield


def run(name: str, shape: tuple[int, ...], count: int, seed: int, steps: int) -> tuple[bool, World]:
    """Whether a run ends with the bits of one device, and the streams."""
    text = program_text(entry(name).make(shape))
    return ends_as_one(text, arguments_of(text, steps), count, seed, depth=2)


@pytest.mark.covering
@pytest.mark.parametrize("counts", [False, True])
@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize(
    "name, shape",
    [
        ("heat-3d", (36, 3, 7)),
        ("heat-2d", (40, 11)),
        ("wave-2d", (40, 9)),
        ("two-boxes-2d", (40, 9)),
    ],
)
def test_launches_with_rims_first_keep_all_bits(
    name: str, shape: tuple[int, ...], count: int, counts: bool, monkeypatch: pytest.MonkeyPatch
):
    """Sites that count have graphs of their own, others share one."""
    monkeypatch.setattr(SimulatedSite, "counts", counts)
    same, world = run(name, shape, count, 3, GRAPHED)
    assert same
    streams = {stream for stream, kernel in world.launched if kernel.endswith("d2")}
    assert streams == set(range(2 * count)), "rims run on streams of their own"


def test_seeded_missing_waits_of_rims_are_found(monkeypatch: pytest.MonkeyPatch):
    assert run("heat-2d", (45, 12), 2, 0, 9)[0]
    for second, waits in waits_of_some_streams().items():
        monkeypatch.setattr(SimulatedSite, "wait", waits)
        assert not all(run("heat-2d", (45, 12), 2, seed, 9)[0] for seed in range(8)), f"{second=}"


def test_a_missing_meeting_behind_rims_is_found(monkeypatch: pytest.MonkeyPatch):
    def nothing(*_: Any) -> None:
        return

    monkeypatch.setattr(SimulatedSite, "counts", True)
    monkeypatch.setattr(SimulatedMeetings, "meet", nothing)
    assert not all(run("heat-2d", (45, 12), 2, seed, GRAPHED)[0] for seed in range(4))


@pytest.mark.parametrize("every, streams", [(2, {0, 1}), (4, {0})])
def test_ranks_with_a_gpu_each_have_rims_first(every: int, streams: set[int]):
    """
    Many launches are a graph on each rank. Rims have streams of their own; rims of several launches
    are pulled.
    """
    steps = 33
    text = program_text(entry("heat-2d").make((45, 12)))
    arguments = arguments_of(text, steps)
    expected = copies(arguments)
    timetile.compile(text, executor="numpy", fp_contract="off", cache=False)(*expected)
    options: Any = {"executor": "planes", "fp_contract": "off", "cache": False, "depth": 2}
    worlds: list[World] = []

    def work(peers: ThreadPeers) -> list[Any]:
        def alone() -> timetile.CompiledProgram:
            return timetile.compile(text, halos="common", **options)

        program = on_ranks(peers, alone, make=simulated_rank, exchange_every=every)
        assert isinstance(program, SimulatedRank)
        own = copies(arguments)
        program(*own)
        runner = program.placed.present
        assert runner is not None
        worlds.append(cast(SimulatedSite, runner.sites[0]).world)
        program.close()
        return own

    for own in on_threads(3, work):
        assert all(np.array_equal(a, b) for a, b in zip(own, expected))
    for world in worlds:
        used = {stream for stream, kernel in world.launched if kernel.endswith("d2")}
        assert used == streams
        assert len(streams) < 2 * (steps // 2) - 20, "many launches are of a graph"


def test_rims_are_slabs_at_the_ends_of_a_part():
    own = CellBox((4, 0), (24, 9))
    low, high = CellBox((4, 0), (7, 9)), CellBox((22, 0), (24, 9))
    assert slabs_of(own, [low, high], 0) == [CellBox((7, 0), (22, 9)), low, high]
    assert slabs_of(own, [CellBox((9, 0), (12, 9))], 0) == [], "no rim at an end"
    assert slabs_of(own, [CellBox((4, 0), (15, 9))], 0) == [], "half of the part"
