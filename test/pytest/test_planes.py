"""
Faults found by the planes executor: lags, depths and slots with reads of missing planes, and unset
cells. Passes make each kernel; the kernel runs unchanged, and is then spoiled.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser
from xdsl.passes import ModulePass

import timetile
from support import reference
from support.catalogue import entry, sum_program
from support.compare import assert_same_bits
from support.description import Program, random_inputs
from support.programs import program_text
from support.schedules import Schedule, block_plane, block_row, warp_row
from timetile.dialects.tile import (
    Addressing,
    ApplyOp,
    ExchangeOp,
    KernelOp,
    LoadOp,
    Published,
    RegistersAttr,
    Storage,
)
from timetile.lowering.lower_tile_to_gpu import LowerTileToGpuPass
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.diagnostics import CompileError
from timetile.passes.tiling.multi_queue_buffering import MultiQueueBufferingPass as Buffering
from timetile.passes.tiling.register_streaming import RegisterStreamingPass as Streaming
from timetile.runtime.executors.homes import MarkedCells, PlaneError
from timetile.runtime.executors.planes import PlanesLaunch
from timetile.runtime.loading.modules import make_context
from timetile.runtime.program.compiled_program import CompiledProgram, Executor


def shared(addressing: Addressing) -> Schedule:
    return Schedule(
        f"shared-{addressing}",
        block_row(),
        Buffering(storage=Storage.SHARED, addressing=addressing),
        streaming=None,
    )


REGISTERS = Schedule("registers", warp_row())
EDGES = Schedule("edges", block_plane((3, 2), (4, 1)), streaming=Streaming(delay=1))
DOMAINS = {1: (29, 67), 2: (7, 13, 37)}


def program_of(schedule: Schedule) -> Program:
    domain = DOMAINS[len(schedule.tiling.cells or ())]
    return entry(f"heat-{len(domain)}d").make(domain)


def compiled(schedule: Schedule, before: str = "", after: str = "") -> CompiledProgram:
    """
    The program under a schedule, two steps a launch, with a replaced text in the placed kernels.
    """
    compiled = timetile.compile(
        program_text(program_of(schedule)),
        executor="planes",
        passes=schedule.passes(2),
        fp_contract="off",
        cache=False,
    )
    text = str(compiled.kernels.tiled)
    assert re.search(before, text), f"{before} is not in {text}"
    # The first kernel is the deep kernel.
    spoiled = re.sub(before, after, text, count=1)
    compiled.kernels.tiled = Parser(make_context(), spoiled).parse_module()
    return compiled


def run(schedule: Schedule, before: str = "", after: str = "") -> None:
    program = program_of(schedule)
    expected = random_inputs(program, seed=5)
    found = expected.copy()
    reference.run(program, expected, 5)
    compiled(schedule, before, after)(*found.arguments(program, 5))
    assert_same_bits(program, expected, found, schedule.name)


@dataclass(frozen=True)
class Case:
    """
    A replaced text in a kernel (a regular expression), the finder of the fault, and the report.
    """

    name: str
    schedule: Schedule
    before: str
    after: str
    finder: str
    message: str


CASES = [
    Case(
        "depth-of-registers",
        REGISTERS,
        "(tile.load %src .*)depth 2",
        r"\1depth 1",
        "tile.apply",
        "the plane of age 2 that it reads is not kept: the home has place for 2",
    ),
    Case(
        "depth-of-a-later-level",
        REGISTERS,
        "(else .*)depth 2",
        r"\1depth 1",
        "tile.apply",
        "the plane of age 2 that it reads is not kept: the home has place for 2",
    ),
    Case(
        "lag-too-small",
        REGISTERS,
        "(tile.load %src .*)lag 0",
        r"\1lag -1",
        "tile.apply",
        "the plane of age 3 that it reads is not kept: the home has place for 3",
    ),
    Case(
        "lag-too-large",
        REGISTERS,
        "(tile.load %src .*)lag 0",
        r"\1lag 1",
        "tile.apply",
        "the plane of age -1 that it reads has not arrived yet",
    ),
    Case(
        "lag-of-a-halo",
        REGISTERS,
        "(tile.load halo .*)lag 1",
        r"\1lag 2",
        "tile.apply",
        "the plane of age -1 that it reads has not arrived yet",
    ),
    Case(
        "slots-of-a-ring",
        shared(Addressing.FIXED),
        "slots 4",
        "slots 2",
        "tile.apply",
        "the plane of age 2 that it reads is not kept: the home has place for 2",
    ),
    Case(
        "windows-that-overlap",
        shared(Addressing.COMPUTED),
        "base 3",
        "base 6",
        "tile.apply",
        "the plane of age 2 that it reads is not kept: another queue of the ring has overwritten "
        "it",
    ),
    Case(
        "slots-of-edges",
        EDGES,
        "slots 2",
        "slots 1",
        "tile.apply",
        "the plane of age 1 that it reads is not kept: the home has place for 1",
    ),
    Case(
        "slots-of-copies",
        EDGES,
        "slots 5",
        "slots 4",
        "tile.apply",
        "the plane of age 1 that it reads is not kept: the home has place for 1",
    ),
    Case(
        "no-slot-for-what-arrives",
        EDGES,
        "slots 5",
        "slots 3",
        "tile.exchange",
        "its slots hold no plane that has arrived",
    ),
    Case(
        "edges-that-are-on-their-way",
        EDGES,
        "(what edges delay )1(.*)lag 2",
        r"\g<1>2\2lag 3",
        "tile.apply",
        "the plane of age -1 that it reads has not arrived yet",
    ),
    Case(
        "no-halo",
        REGISTERS,
        " else %[0-9a-z_]+",
        "",
        "tile.store",
        "stores a value that was never set to cell [0, 0]",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_schedule_that_loses_a_plane_is_found(case: Case):
    with pytest.raises(PlaneError) as caught:
        run(case.schedule, case.before, case.after)
    assert caught.value.op.name == case.finder
    assert f": {case.message}" in str(caught.value)


LEGAL_OTHERWISE = {"no-halo"}
"""Cases with kernels of another program: the launch alone leaves the stored cells unset."""


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.name not in LEGAL_OTHERWISE], ids=lambda case: case.name
)
def test_no_threads_are_made_of_what_is_wrong(case: Case):
    """A thread would read another plane from an equal slot, without a report."""
    module = compiled(case.schedule, case.before, case.after).kernels.tiled
    with pytest.raises(CompileError) as caught:
        LowerTileToGpuPass().apply(make_context(), module)
    assert any(sentence in str(caught.value) for sentence in REFUSED), str(caught.value)


REFUSED = (
    "older planes, and readers ask for",
    "planes are on the way or still read; use slots",
    "another queue of the ring overwrites a plane before the last read",
    "reads a plane that has not arrived",
    "slots are overwritten before",
    "is below the source's",
)


@pytest.mark.parametrize(
    "schedule",
    [REGISTERS, shared(Addressing.FIXED), shared(Addressing.COMPUTED), EDGES],
    ids=lambda s: s.name,
)
def test_schedules_that_lose_no_plane_pass(schedule: Schedule):
    run(schedule)


@pytest.mark.parametrize(("before", "after"), [("depth 2", "depth 5"), ("ahead 3", "ahead 1")])
def test_more_place_than_needed_changes_nothing(before: str, after: str):
    run(REGISTERS, before, after)


def test_a_missing_plane_is_reported_with_the_reading_stage():
    with pytest.raises(PlaneError) as caught:
        run(REGISTERS, "(tile.load %src .*)depth 2", r"\1depth 1")
    stage, plane = str(caught.value).split("; the plane is of ")
    assert "tile.apply @run_cell0(" in stage
    assert "= tile.load " in plane
    assert "home #tile.registers<depth 1, period 2>" in plane


def test_a_stream_that_starts_too_late_is_found(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Geometry, "fill", 0)
    with pytest.raises(PlaneError, match="was never made: step -1 is before the first, 0"):
        run(REGISTERS)


def test_cells_unset_by_a_launch_are_not_stored():
    """A scratch buffer holds nothing: dependent results may not be stored."""
    kernel = deep_kernel(REGISTERS)
    u, v = (
        MarkedCells.of(a, known=True)
        for a in random_inputs(program_of(REGISTERS), 1).arrays.values()
    )
    scratch = MarkedCells.of(np.zeros_like(u.data), known=False)
    with pytest.raises(PlaneError, match=r"stores a value that was never set to cell \[0, 0\]"):
        PlanesLaunch(kernel, [scratch, v, u, v]).run()
    PlanesLaunch(kernel, [u, v, u, v]).run()


def test_a_buffer_is_not_loaded_and_stored_in_one_launch():
    kernel = deep_kernel(REGISTERS)
    u, v = (
        MarkedCells.of(a, known=True)
        for a in random_inputs(program_of(REGISTERS), 1).arrays.values()
    )
    with pytest.raises(PlaneError, match="its buffer is loaded or stored by another stage, too"):
        PlanesLaunch(kernel, [u, u, u, v]).run()


def deep_kernel(schedule: Schedule) -> KernelOp:
    module = compiled(schedule).kernels.tiled
    return next(op for op in module.ops if isinstance(op, KernelOp))


def test_a_queue_without_a_home_is_refused():
    kernel = deep_kernel(REGISTERS)
    load = next(op for op in kernel.walk() if isinstance(op, LoadOp))
    del load.properties["home"]
    u, v = (
        MarkedCells.of(a, known=True)
        for a in random_inputs(program_of(REGISTERS), 1).arrays.values()
    )
    with pytest.raises(CompileError, match="its queue has no home; run multi-queue-buffering"):
        PlanesLaunch(kernel, [u, v, u, v])


def test_a_ring_has_one_size():
    with pytest.raises(CompileError, match="its ring has 16 and 8 slots; give it one size"):
        run(shared(Addressing.COMPUTED), "slots 8(, computed, ring 0 base 3)", r"slots 16\1")
    module = compiled(
        shared(Addressing.COMPUTED), "slots 8(, computed, ring 0 base 3)", r"slots 16\1"
    ).kernels.tiled
    with pytest.raises(CompileError, match="homes of 16 and 8 slots; give the ring one size"):
        LowerTileToGpuPass().apply(make_context(), module)


def test_a_kernel_without_a_layout_is_refused():
    with pytest.raises(CompileError, match="the kernel has no layout; run device-tiling first"):
        run(REGISTERS, r"layout #tile.layout<.*, pack 2> ", "")


def test_own_cells_beside_edges_are_kept_by_the_source():
    """A tap of an exchange of edges finds the own warp's cells in the source's home."""
    program = sum_program("f64", [(-1, 1), (0, 0)])(DOMAINS[1])
    schedule = Schedule(
        "edges", block_row(), Buffering(ahead=0), Streaming(what=Published.EDGES, delay=0)
    )
    passes = (*schedule.passes(2), ShallowSources())
    text = program_text(program)
    compiled = timetile.compile(text, executor="planes", passes=passes, cache=False)
    with pytest.raises(
        PlaneError, match="age 1 that it reads is not kept: the home has place for 1"
    ):
        compiled(*random_inputs(program, seed=1).arguments(program, 5))


class ShallowSources(ModulePass):
    """Lets the sources of exchanges keep no older planes."""

    name = "shallow-sources"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for exchange in [inner for inner in op.walk() if isinstance(inner, ExchangeOp)]:
            source = exchange.queue.owner
            assert isinstance(source, LoadOp | ApplyOp)
            source.home = RegistersAttr(0, 1)


@pytest.mark.parametrize("executor", ["cpu", "planes", "simt"])
def test_progress_ends_with_the_last_step(executor: Executor):
    program = entry("heat-2d").make((17, 23))
    seen: list[tuple[int, int]] = []
    compiled = timetile.compile(program_text(program), executor=executor, depth=2, cache=False)
    inputs = random_inputs(program, seed=1)
    compiled(*inputs.arguments(program, 7), progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (7, 7)
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})
    assert {total for _, total in seen} == {7}
