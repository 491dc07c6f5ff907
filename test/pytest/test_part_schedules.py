"""Steps that read memory: work shared by a thread's cells, and the choice with the assembler."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import IntAttr

import timetile
from timetile import Field
from timetile.dialects.decomposition import Decomposition
from timetile.dialects.tile import KernelOp
from timetile.dialects.tile.kinds import TileLevel
from timetile.dialects.tile.schedule import Schedule, ScheduleAttr
from timetile.frontend.values import Value
from timetile.lowering.pipelines import tile_passes
from timetile.passes.analysis.geometry import block_reads
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.cost.memory_reads import loads_of_thread, part_cost
from timetile.passes.cost.shared_work import PlacedWork
from timetile.passes.cost.spills import spilled_parts
from timetile.passes.diagnostics import CompileError
from timetile.passes.loops.cut_domain import Domain, cut
from timetile.passes.loops.split_regions import StepInRegions
from timetile.passes.scheduling.assembled import AssembledCandidate, AssembledKernel
from timetile.passes.scheduling.assembled_parts import (
    AssembledPart,
    best_parts,
    tiles_and_parts,
)
from timetile.passes.scheduling.candidates import Candidate
from timetile.passes.scheduling.choose_schedule import ChooseSchedulePass
from timetile.passes.scheduling.memory_schedules import PartTrials
from timetile.passes.targets.target import target_named
from timetile.passes.tiling.device_tiling import DeviceTilingPass
from timetile.passes.tiling.step_parts import (
    cuts_of,
    fused_parts,
    is_wide_part,
    parts_by_width,
    parts_of,
    wide_parts,
)
from timetile.runtime.kernels.assembled_choice import LoopAssembler
from timetile.runtime.kernels.loops import loops_of
from timetile.runtime.ranks.loop_schedules import LoopSchedule, computed_by

SHAPE = (24, 40, 64)
H100 = target_named("h100-sxm")


def slope(u: Field, at: tuple[int, int, int]) -> Value:
    """A difference of four cells along the first axis, around a cell."""
    i, j, k = at
    return 0.7 * (u[i + 1, j, k] - u[i - 1, j, k]) - 0.1 * (u[i + 2, j, k] - u[i - 2, j, k])


@timetile.stencil
def carried(u: Field, v: Field):
    """The second update reads results of the first at two places."""
    v.next = v[0, 0, 0] + slope(u, (0, 0, 0)) * u[0, 0, 0]
    u.next[3:-3, :, :] = u[0, 0, 0] - 0.1 * (v.next[1, 0, 0] - v.next[-1, 0, 0])


def memory(cells: tuple[int, ...], blocks: int = 2) -> Schedule:
    """A schedule that reads memory."""
    return Schedule(
        tile=TileLevel.BLOCK, cells=cells, lanes=(1, 1, 32), warps=(1, 8, 1), pack=1, ahead=0,
        occupancy=blocks, resident=True, reads_memory=True,
    )  # fmt: skip


@cache
def trials() -> PartTrials:
    """The trials of the step in parts."""
    module = carried.module(SHAPE, "float32")
    program = timetile.compile(module, executor="numpy", cache=False)
    source = program.kernels.source
    return PartTrials(StepInRegions(loops_of(source)[0]), source)


def test_results_at_the_places_of_a_threads_cells_are_computed_once():
    """Of four cells side by side, results at -1, 0 and 1 lie at six places, not at twelve."""
    parts = trials()
    found: list[float] = []
    for cells in ((1, 1, 1), (4, 1, 1)):
        (kernel,) = parts.kernels(memory(cells))
        geometry, work = Geometry(kernel), PlacedWork(kernel)
        places = [len(places) for _, places in work.results.values()]
        assert places == [3, 1]
        found.append(sum(loads_of_thread(geometry, work).values()))
    # u at -3 to 3, and v at -1 to 1.
    assert found == [7 + 3, 10 + 6]


def test_a_thread_of_a_few_cells_computes_less_for_a_cell_than_a_thread_of_one():
    parts = trials()
    cycles: list[float] = []
    for cells in ((1, 1, 1), (4, 1, 1)):
        (kernel,) = parts.kernels(memory(cells))
        cycles.append(part_cost(kernel, parts.module, H100).cycles.issue)
    assert cycles[1] < 0.8 * cycles[0]


def test_a_block_alone_on_a_multiprocessor_is_slower():
    parts = trials()
    (kernel,) = parts.kernels(memory((1, 1, 1)))
    beside = part_cost(kernel, parts.module, H100).memory_seconds
    kernel.occupancy = IntAttr(1)
    alone = part_cost(kernel, parts.module, H100).memory_seconds
    assert alone == pytest.approx(beside / H100.parameters.reading.one_block)


def test_tiles_go_in_turn_where_many_planes_are_read_again():
    """Of two planes, taps reach six more; of 32 planes, too. Short launches take tiles apart."""
    (kernel,) = trials().kernels(memory((2, 1, 1)))
    for planes, blocks, turn in ((2, 4, 4), (32, 4, 1), (2, 1, 1)):
        tiles = blocks * block_reads.LEAST_BLOCKS
        assert block_reads.tiles_in_turn(kernel, (planes, 8, 32), 8, tiles) == turn


def candidates(*schedules: Schedule) -> list[Candidate]:
    """Candidates of equal predictions, the given order first."""
    parts = trials()
    cost = parts.cost(memory((1, 1, 1)), H100)
    speed = cost.gcells_per_second
    return [Candidate(each, 1, cost, speed - 1e-6 * k) for k, each in enumerate(schedules)]


def test_a_schedule_that_spills_gives_way_to_fewer_blocks_or_cells():
    asked: list[tuple[tuple[int, ...], int]] = []

    def assemble(candidate: Candidate) -> AssembledPart:
        schedule = candidate.schedule
        asked.append((schedule.cells, schedule.occupancy))
        room = H100.isa.registers_for(schedule.layout().threads * schedule.occupancy)
        needed = 60 + 40 * prod(schedule.cells)
        return AssembledPart(min(needed, room), 4 * max(0, needed - room))

    given = candidates(
        *(memory((4, 1, 1), blocks) for blocks in (4, 3, 2, 1)), memory((2, 1, 1), 2)
    )
    best, *_ = best_parts(given, assemble, H100)
    assert (best.candidate.schedule.cells, best.candidate.schedule.occupancy) == ((4, 1, 1), 1)
    # After four blocks, three and two are known to be too many.
    assert asked == [((4, 1, 1), 4), ((4, 1, 1), 1)]


@pytest.mark.parametrize("speed, taken", [(1.2, True), (1.3, False)])
def test_a_spilling_tile_gives_way_to_a_kernel_that_reads_memory(speed: float, taken: bool):
    """
    Two blocks of a memory kernel spill little, one block nothing: predicted behind the spilling
    kernel, and assembled all the same, the one block is taken within a quarter of the tile.
    """

    def assemble(candidate: Candidate) -> AssembledPart:
        return AssembledPart(128, 8 * (candidate.schedule.occupancy - 1))

    given = candidates(memory((1, 1, 1), 2), memory((1, 1, 1), 1))
    given[1] = replace(given[1], worth=0.95 * given[0].worth)
    streamed = Schedule(tile=TileLevel.BLOCK, cells=(2, 1), lanes=(1, 32), warps=(8, 1))
    tile = replace(given[0], schedule=streamed, worth=speed * given[1].worth)
    spilling = AssembledCandidate(tile, AssembledKernel(255, 9.0), tile.cost)
    best, *_ = tiles_and_parts([spilling], given, assemble, H100)
    assert best.candidate is (given[1] if taken else tile)


def test_a_step_that_spills_says_nothing_of_the_step_in_parts():
    def assemble(candidate: Candidate) -> AssembledPart:
        return AssembledPart(128, 0 if candidate.schedule.cuts else 400)

    cut = memory((1, 1, 1)).but(cuts=(1,))
    best, *_ = best_parts(candidates(memory((1, 1, 1)), cut), assemble, H100)
    assert best.candidate.schedule is cut


@timetile.stencil
def damped(u: Field, v: Field, f: Field, g: Field):
    """Two updates of 75 cells, and a memory behind each."""

    def box(w: Field) -> Value:
        places = product(range(-2, 3), range(-2, 3), range(-1, 2))
        return sum((w[at] for at in places if any(at)), 0.5 * w[0, 0, 0])

    far, near = (box(u), box(v)), (u[1, 0, 0] - u[-1, 0, 0], v[0, 1, 0] - v[0, -1, 0])
    u.next, f.next = 0.01 * far[0] + f[0, 0, 0], f[0, 0, 0] - near[0]
    v.next, g.next = 0.01 * far[1] + g[0, 0, 0], g[0, 0, 0] - near[1]


def test_wide_updates_have_a_part_of_their_own_with_kept_planes():
    module = damped.module((256, 256, 256), "float32")
    source = timetile.compile(module, executor="numpy", cache=False).kernels.source
    (loop,) = loops_of(source)
    assert [len(update.tap_list) > 64 for update in loop.updates] == [True, True, False, False]
    assert parts_by_width(loop) == (2,) and wide_parts(loop) == ()
    parted = memory((1, 1, 1)).but(cuts=(2,))
    plain = PartTrials(StepInRegions(loop), source).cost(parted, H100)
    for share, faster in ((0.1, True), (1.0, False)):
        tile = replace(plain, steps=share)
        kept = PartTrials(StepInRegions(loop), source, lambda _, tile=tile: tile)
        assert (kept.cost(parted, H100).seconds < plain.seconds) == faster


@timetile.stencil
def walled(u: Field):
    """A wave between two walls."""
    u.next[8:-8, :, :] = u[0, 0, 0] + slope(u, (0, 0, 0))
    for wall in (slice(2, 8), slice(-8, -2)):
        u.next[wall, :, :] = 0.9 * u[0, 0, 0] + slope(u, (0, 0, 0))


def test_layers_around_kept_planes_are_compared_by_the_time_of_the_layers():
    module = walled.module((256, 256, 256), "float32")
    source = timetile.compile(module, executor="numpy", cache=False).kernels.source
    (loop,) = loops_of(source)
    schedules = [memory(cells).but(cuts=fused_parts(loop)) for cells in ((1, 1, 1), (4, 1, 1))]
    plain = PartTrials(StepInRegions(loop), source)
    tile = replace(plain.cost(schedules[0], H100), steps=0.5)
    kept = PartTrials(StepInRegions(loop), source, lambda _: tile)
    for each in schedules:
        assert kept.cost(each, H100).exposed_seconds == tile.seconds
        layers = kept.cost(each, H100).seconds - tile.seconds
        assert 0 < layers < 0.2 * plain.cost(each, H100).seconds


def test_spilled_words_beyond_the_first_level_cache_cost_more():
    cost = trials().cost(memory((1, 1, 1)), H100)
    none = spilled_parts(cost, 0, 1 << 20, 512, H100)
    few = spilled_parts(cost, 64, 1 << 20, 512, H100)
    many = spilled_parts(cost, 64, 1 << 20, 1 << 14, H100)
    assert none.seconds < few.seconds < many.seconds


def test_a_tile_is_chosen_where_kernels_that_read_memory_spill(monkeypatch: pytest.MonkeyPatch):
    """The model's choice reads memory, and the assembler is made to say that all such spill."""
    module = carried.module((256, 256, 256), "float32")
    options: Any = {"executor": "planes", "arch": "sm_90", "depth": 1, "cache": False}
    (loop,) = loops_of(timetile.compile(module.clone(), **options).kernels.tiled)
    assert loop.decisions.reads_memory
    slowest = LoopAssembler.slowest_part

    def spilling(self: LoopAssembler, candidate: Candidate) -> AssembledPart:
        return AssembledPart(slowest(self, candidate).registers, 4000)

    monkeypatch.setattr(LoopAssembler, "slowest_part", spilling)
    (loop,) = loops_of(timetile.compile(module, **options).kernels.tiled)
    assert not loop.decisions.reads_memory


@timetile.stencil
def staggered(e: Field, x: Field, y: Field):
    """Fields at the edges and faces of cells."""
    x.next = x[0, 0] + e[0, 1] - e[0, 0]
    y.next = y[0, 0] + e[1, 0] - e[0, 0]
    e.next[1:-1, 1:-1] = e[0, 0] + y.next[0, 0] - y.next[-1, 0] - x.next[0, 0] + x.next[0, -1]


@pytest.mark.parametrize("counts", [(2, 1), (1, 2)])
def test_a_schedule_serves_parts_with_boxes_for_the_cuts_of_a_step(counts: tuple[int, int]):
    """Before a cut, one update ends a cell before its reader: the step is no single kernel."""
    module = timetile.compile(staggered.module((20, 30)), executor="numpy", cache=False).module
    domain = Domain.of(module)
    assert domain is not None
    parts = [cut(module, Decomposition.evenly(domain.box, counts), rank, 3) for rank in range(2)]
    (before,), (behind,) = map(loops_of, parts)
    assert computed_by(before) == computed_by(behind)
    whole = ScheduleAttr(Schedule(tile=TileLevel.BLOCK, resident=True, reads_memory=True))
    chosen = LoopSchedule((1,), str(whole))
    assert not chosen.serves(before, computed_by(behind)) and chosen.serves(
        behind, computed_by(behind)
    )
    with pytest.raises(CompileError, match="update 2 cannot share a kernel"):
        parts_of(before, ())


def test_results_that_only_later_updates_of_a_part_read_are_not_stored():
    """A value computed at eight places is a scratch field: a part with its reader stores none."""

    @timetile.stencil
    def spread(u: Field, m: Field):
        def flux(at: int) -> Value:
            total = u[at, 0, 0] * m[at, 0, 0]
            for k in range(1, 5):
                total = total + 0.1 * k * (u[at + k, 0, 0] - u[at - k, 0, 0]) * m[at, 0, 0]
            return total

        u.next = u[0, 0, 0] + 0.01 * sum(
            (flux(k) - flux(-k) for k in range(2, 5)), flux(1) - flux(-1)
        )

    shape = (37, 2, 33)
    arrays = {
        name: np.random.default_rng(k).random(shape, dtype=np.float32)
        for k, name in enumerate(("u", "m"))
    }
    program = timetile.compile(spread.module(shape, "float32"), executor="numpy", cache=False)
    (loop,) = loops_of(program.kernels.source)
    assert len(loop.updates) == 2 and wide_parts(loop) == cuts_of(loop, is_wide_part) == ()
    (kernel,) = PartTrials(StepInRegions(loop), program.kernels.source).kernels(memory((1, 1, 1)))
    assert len(Geometry(kernel).stored_fields) == 1
    exact = spread.on(executor="numpy").advance(arrays, steps=2)["u"]
    ptx = spread.on(executor="ptx", arch="sm_90", cache=False).advance(arrays, steps=2)["u"]
    assert np.array_equal(exact, ptx)


@timetile.stencil
def stacked(u: Field, v: Field):
    """A sum, and in a smaller box a second one that reads the first beside the own cell."""
    v.next[2:-2, 4:-4] = 0.5 * v[0, 0] + u[0, 2] - u[0, -2]
    u.next[3:-3, 6:-6] = u[0, 0] + 0.1 * (v.next[0, 1] - v.next[-1, 0])


def test_rows_that_end_between_threads_are_read_without_masks():
    passes = [
        DeviceTilingPass(
            reads="memory", tile=TileLevel.BLOCK, cells=(1, 2), lanes=(1, 32), warps=(4, 1), pack=1,
            cuts=(),
        )
        if isinstance(each, DeviceTilingPass) else each
        for each in tile_passes(depth=1) if not isinstance(each, ChooseSchedulePass)
    ]  # fmt: skip
    shape = (11, 76)
    module = stacked.module(shape, "float32")
    random = np.random.default_rng(1)
    start = [random.random(shape, dtype=np.float32) for _ in range(2)]
    ends: list[list[np.ndarray]] = []
    for executor in ("numpy", "simt", "ptx"):
        fields = [each.copy() for each in start for _ in range(2)]
        options: Any = {} if executor == "numpy" else {"passes": passes, "arch": "sm_90"}
        program = timetile.compile(module, executor=executor, cache=False, **options)
        program(*fields, steps=2)
        ends.append(fields)
        kernels = [op for op in program.kernels.tiled.ops if isinstance(op, KernelOp)]
        if executor != "numpy":
            assert [Geometry(each).rows_end_between_threads for each in kernels] == [True]
    for other in ends[1:]:
        assert all(np.array_equal(one, two) for one, two in zip(ends[0], other, strict=True))
