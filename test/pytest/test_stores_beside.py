"""Launches that store ghosts of other parts end with the bits of launches and copies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import timetile
from support.catalogue import entry
from support.driver import BookKeeper
from support.few_schedules import few_schedules
from support.programs import program_text
from support.simulated import SimulatedSite, World, on_simulated
from support.simulated_runs import arguments_of, run_beside_one
from test_split_launches import no_launches
from test_store_box import arrays_of, kernels_of, run_planes, run_threads, tiled
from timetile.dialects.boxes import CellBox
from timetile.dialects.tile import RoleKind
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.tiling.peel_boundaries import PeelBoundariesPass
from timetile.runtime.kernels.of_program import ProgramKernels
from timetile.runtime.program.parted_program import PartedProgram
from timetile.runtime.ranks import beside_kernels
from timetile.runtime.ranks.beside_kernels import with_stores_beside
from timetile.runtime.ranks.moved_rims import MovedRims
from timetile.runtime.ranks.part_kernels import PartKernels

pytestmark = pytest.mark.usefixtures("printed_alone")


def never_more(*_: object) -> bool:
    """No kernel spills more."""
    return False


def always_more(*_: object) -> bool:
    """Each kernel spills more."""
    return True


def nothing_waits(*_: object) -> None:
    """Parts do not wait for each other."""


@pytest.fixture(autouse=True)
def kernels_store_beside(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Kernels store to buffers of other sites, whatever they spill."""
    monkeypatch.setattr(SimulatedSite, "stores_beside", True)
    monkeypatch.setattr(beside_kernels, "spills_more", never_more)
    monkeypatch.setattr(PartKernels, "rims_first", no_launches)
    with few_schedules():
        yield


def run(
    name: str, shape: tuple[int, ...], count: int, seed: int, steps: int
) -> tuple[bool, World, PartedProgram]:
    """Whether a run ends with the bits of one device, and the streams."""
    text = program_text(entry(name).make(shape))
    return run_beside_one(text, arguments_of(text, steps), count, seed, depth=2)


@pytest.mark.covering
@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize(
    "name, shape",
    [
        ("heat-3d", (36, 3, 7)), ("heat-2d", (40, 11)), ("wave-2d", (40, 9)),
        ("two-boxes-2d", (40, 9)), ("skewed-1d", (601,)), ("heat-1d", (211,)),
    ],
)  # fmt: skip
def test_launches_that_store_beside_keep_all_bits(name: str, shape: tuple[int, ...], count: int):
    same, world, program = run(name, shape, count, 3, 13)
    assert same
    if name != "heat-2d":
        program.close()
        return
    often = len(world.pulled)
    program.close()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(SimulatedSite, "stores_beside", False)
        patched.setattr("timetile.runtime.ranks.split_kernels.LEAST_WAVES", 1e9)
        same, world, program = run(name, shape, count, 3, 13)
    assert same and len(world.pulled) > often, "rims are not copied"
    program.close()


@pytest.mark.covering
@pytest.mark.parametrize(
    "execute, fewest", [(run_planes, 1), (run_threads, 1), (run_threads, 1000)]
)
@pytest.mark.parametrize(
    "name, shape, depth",
    [("heat-3d", (26, 9, 35), 2), ("heat-2d", (44, 67), 3), ("two-boxes-2d", (46, 67), 2)],
)
def test_kernels_store_rims_in_both_fields_and_nothing_else(
    name: str,
    shape: tuple[int, ...],
    depth: int,
    execute: Any,
    fewest: int,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr("timetile.lowering.tile_to_gpu.storing.FEWEST_IN_BRANCH", fewest)
    kernels, kernel_name = kernels_of(name, shape, depth)
    whole = tiled(kernels, kernel_name)
    expected, bounds = arrays_of(whole), CellBox.of(whole.bounds)
    execute(kernels, kernel_name, expected)

    def planes(first: int, last: int) -> CellBox:
        return CellBox((first, *bounds.lower[1:]), (last, *bounds.upper[1:]))

    own, low, high = planes(5, 14), planes(5, 8), planes(10, 14)
    made = with_stores_beside(kernels, own, [low, high])
    assert made is not None
    arrays = arrays_of(tiled(made, kernel_name))
    execute(made, kernel_name, arrays)
    targets = [k for k, role in enumerate(whole.roles) if role.role[0] is RoleKind.TARGET]
    for number, target in enumerate(targets):
        beside = arrays[len(expected) + 2 * number :]
        for cells, box in zip((arrays[target], *beside), (own, low, high)):
            place = tuple(slice(a, b) for a, b in zip(box.lower, box.upper))
            assert np.array_equal(cells[place], expected[target][place])
            cells[place] = 0
            assert not cells.any()


def in_chunks(kernels: ProgramKernels, planes: int) -> ProgramKernels:
    """Kernels with chunks of some planes."""
    passes = [
        replace(each, planes=planes) if isinstance(each, PeelBoundariesPass) else each
        for each in kernels.options.passes or ()
    ]
    options = replace(kernels.options, passes=tuple(passes))
    return ProgramKernels(kernels.source, options, None)


@pytest.mark.covering
def test_chunks_with_the_last_planes_start_first_and_store_all_cells():
    kernels, name = kernels_of("heat-2d", (60, 40), 2)
    kernels = in_chunks(kernels, 4)
    expected = arrays_of(tiled(kernels, name))
    run_threads(kernels, name, expected)
    own = CellBox((3, 1), (27, 41))
    for rim, at_end in ((CellBox((3, 1), (5, 41)), False), (CellBox((22, 1), (27, 41)), True)):
        made = with_stores_beside(kernels, own, [rim])
        assert made is not None
        geometry = Geometry(tiled(made, name))
        assert geometry.chunks(4) == 6 and not geometry.joins_columns
        assert geometry.begins_with_last_chunk == at_end
        arrays = arrays_of(tiled(made, name))
        run_threads(made, name, arrays)
        for cells, box in ((arrays[1], own), (arrays[-1], rim)):
            place = tuple(slice(a, b) for a, b in zip(box.lower, box.upper))
            assert np.array_equal(cells[place], expected[1][place])


def test_exchanges_are_chosen_again_where_kernels_would_spill(monkeypatch: pytest.MonkeyPatch):
    text = program_text(entry("heat-3d").make((800, 512, 512)))
    stored = on_simulated(text, 2, 0, None, None, halos="common")[0]
    assert stored.exchange is not None and stored.exchange.way == "stored"
    monkeypatch.setattr(beside_kernels, "spills_more", always_more)
    copied = on_simulated(text, 2, 0, None, None, halos="common")[0]
    assert copied.exchange is not None and copied.exchange.way == "copied"
    ways = {cost.way for cost in copied.exchange.others}
    assert "stored" not in ways, "no kernel stores rims"


def test_missing_waits_around_stores_beside_are_found(monkeypatch: pytest.MonkeyPatch):
    assert run("heat-2d", (40, 11), 3, 0, 9)[0]
    monkeypatch.setattr(MovedRims, "meet", nothing_waits)
    assert not all(run("heat-2d", (40, 11), 3, seed, 9)[0] for seed in range(8))


@pytest.mark.usefixtures("cache_of_file")
def test_two_gpus_store_to_each_other(driver: BookKeeper):
    text = program_text(entry("heat-2d").make((90, 131)))
    program = timetile.compile(text, gpus=2, depth=2, exchange_every=2, halos="common")
    program(*arguments_of(text, 8))
    assert driver.reached
    # The first launch copies the rims of a buffer of unknown cells.
    assert len(driver.copied) <= 2
    program.close()
    assert not driver.left
