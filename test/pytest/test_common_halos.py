"""
Rotating buffers with equal cells outside the bounds: kernels of several steps that read a single
buffer's halo end like the unfused program, and run only for halos of equal bits.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import timetile
from support.catalogue import entry
from support.compare import assert_as_unfused
from support.description import Array, Program, random_inputs
from support.executors import kernel_executors
from support.programs import program_text
from support.schedules import (
    Schedule,
    block_plane,
    block_row,
    cluster_plane,
    device_plane,
    warp_row,
)
from timetile import CompiledProgram
from timetile.dialects.tile import Form, Guards, LoadOp, Storage, Sync
from timetile.lowering.comparing_kernels import WARPS_OF_A_BLOCK, comparing_name
from timetile.passes.loops.common_halos import CommonHalosPass
from timetile.passes.tiling.multi_queue_buffering import MultiQueueBufferingPass
from timetile.passes.tiling.register_streaming import RegisterStreamingPass
from timetile.runtime.device.gpu import Device, device
from timetile.runtime.executors.ptx.machine import PtxLaunch
from timetile.runtime.executors.ptx.parse import parse_module
from timetile.runtime.executors.ptx.program import Program as PtxProgram
from timetile.runtime.executors.ptx.runner import FieldOfPtx
from timetile.runtime.host.halos import HaloFrame, halos_differ
from timetile.runtime.kernels.options import Halos
from timetile.runtime.kernels.reducing import comparing_text
from timetile.runtime.machine.driver import gpu_is_available
from timetile.runtime.program.compiled_program import Executor

pytestmark = pytest.mark.covering

ARRIVING = RegisterStreamingPass(sync=Sync.MBARRIER, delay=1)

SCHEDULES = [
    ("heat-2d", (29, 131), 4, Schedule("warp", warp_row())),
    (
        "heat-2d",
        (29, 131),
        3,
        Schedule("late", block_row(), streaming=RegisterStreamingPass(delay=1)),
    ),
    (
        "heat-2d",
        (29, 67),
        2,
        Schedule("shared", warp_row(), MultiQueueBufferingPass(Storage.SHARED), None),
    ),
    ("box-2d", (23, 67), 3, Schedule("rows", warp_row(), form=Form.ROWS)),
    ("coupled-2d", (19, 71), 2, Schedule("two-fields", warp_row())),
    ("wave-2d", (19, 71), 3, Schedule("two-versions", warp_row())),
    ("nested-boxes-2d", (19, 71), 2, Schedule("boxes", warp_row())),
    (
        "heat-3d",
        (7, 13, 66),
        4,
        Schedule("plane", block_plane((4, 2), (3, 1)), streaming=ARRIVING, planes=5),
    ),
    ("heat-3d", (7, 13, 37), 3, Schedule("barrier", block_plane((3, 2), (3, 1)), planes=5)),
    (
        "box-3d",
        (7, 9, 37),
        2,
        Schedule("sums", block_plane((3, 2), (3, 1)), form=Form.ROWS, planes=5),
    ),
    ("heat-3d", (7, 23, 37), 2, Schedule("cluster", cluster_plane((4, 2), 2, 2), planes=5)),
    ("heat-3d", (7, 13, 37), 2, Schedule("device", device_plane((3, 2), 2, 2), planes=5)),
]


def compiled_for(program: Program, executor: Executor, **how: Any) -> CompiledProgram:
    text = program_text(program)
    return timetile.compile(text, executor=executor, fp_contract="off", cache=False, **how)


def used_common(compiled: CompiledProgram) -> bool:
    """Kernels for halos in common were made."""
    return "common_once" in vars(compiled.kernels)


def test_kernels_for_own_halos_are_not_made_for_a_run_with_equal_halos():
    program = entry("heat-2d").make((19, 67))
    compiled = compiled_for(program, "planes")
    assert_as_unfused(compiled, program, random_inputs(program, 5, common_halos=True), 5)
    assert used_common(compiled) and "tiled" not in vars(compiled.kernels)
    assert_as_unfused(compiled, program, random_inputs(program, 1, common_halos=True), 1)
    assert "tiled" in vars(compiled.kernels)


@pytest.mark.covering(every=2)
@pytest.mark.parametrize("executor", kernel_executors())
@pytest.mark.parametrize("guards", [Guards.RIM, Guards.ALL])
@pytest.mark.parametrize(
    ("name", "domain", "depth", "schedule"), SCHEDULES, ids=lambda v: getattr(v, "name", None)
)
def test_schedules_of_every_kind_keep_their_bits_where_halos_are_common(
    name: str,
    domain: tuple[int, ...],
    depth: int,
    schedule: Schedule,
    guards: Guards,
    executor: Executor,
):
    program = entry(name).make(domain)
    *passes, peel = schedule.passes(depth)
    peel = replace(peel, guards=guards)
    compiled = compiled_for(program, executor, passes=(*passes, peel))
    for steps in (depth, 2 * depth + 1):
        assert_as_unfused(
            compiled, program, random_inputs(program, steps, common_halos=True), steps
        )
    assert used_common(compiled)
    variants = str(compiled.kernels.common.tiled).count("axes []")
    assert bool(variants) == (guards == "rim")


@pytest.mark.parametrize("name", ["gray-scott-2d", "coupled-2d"])
def test_cells_outside_the_bounds_are_carried_from_levels_of_their_own_field(name: str):
    """Two fields with different halos: a level of the other field has other cells there."""
    program = entry(name).make((17, 37))
    schedule = Schedule("carried", warp_row(), planes=5)
    compiled = compiled_for(program, "planes", passes=schedule.passes(3), halos="common")
    for steps in (3, 7):
        inputs = random_inputs(program, steps, common_halos=True)
        assert_as_unfused(compiled, program, inputs, steps)
    text = str(compiled.kernels.tiled)
    (fused,) = (part for part in text.split("tile.kernel ") if part.startswith("@run_d3"))
    assert fused.count(" else ") > fused.count("tile.load halo"), "levels carry cells"


@pytest.mark.parametrize("executor", kernel_executors())
def test_each_run_has_the_kernels_for_its_halos(executor: Executor):
    """Runs with halos in common and apart may follow each other."""
    program = entry("heat-2d").make((17, 71))
    compiled = compiled_for(program, executor, depth=3)
    for seed, common in enumerate((False, True, False, True)):
        assert_as_unfused(compiled, program, random_inputs(program, seed, common_halos=common), 7)
        assert used_common(compiled) == (seed > 0)


@pytest.mark.parametrize("executor", kernel_executors())
@pytest.mark.parametrize(
    ("first", "second", "same"), [(np.nan, np.nan, True), (0.0, -0.0, False), (0.0, 0.0, True)]
)
def test_halos_are_the_same_bit_for_bit(
    first: float, second: float, same: bool, executor: Executor
):
    program = entry("heat-2d").make((9, 67))
    inputs = random_inputs(program, 1, common_halos=True)
    for name, value in zip(program.carried, (first, second), strict=True):
        inputs.arrays[name][0, 3] = value
    compiled = compiled_for(program, executor, depth=2)
    assert_as_unfused(compiled, program, inputs, 5)
    assert used_common(compiled) == same


def test_the_caller_may_promise_that_halos_are_common():
    program = entry("heat-2d").make((9, 67))
    inputs = random_inputs(program, 1, common_halos=True)
    promised = compiled_for(program, "planes", depth=2, halos="common")
    assert_as_unfused(promised, program, inputs, 5)
    assert "common_halos" in str(promised.module) and not used_common(promised)
    apart = compiled_for(program, "planes", depth=2, halos="apart")
    assert_as_unfused(apart, program, inputs, 5)
    assert "common_halos" not in str(apart.module) and not used_common(apart)


@pytest.mark.parametrize("executor", kernel_executors())
@pytest.mark.parametrize("name", ["wave-2d", "multistep-1d"])
def test_several_live_versions_find_their_halos_in_the_buffers_read(name: str, executor: Executor):
    """With halos apart, each version would need a buffer more."""
    program = entry(name).make((19, 23) if name == "wave-2d" else (29,))
    compiled = compiled_for(program, executor, depth=2)
    for common in (False, True):
        inputs = random_inputs(program, 1, common_halos=common)
        assert_as_unfused(compiled, program, inputs, 9)
        assert used_common(compiled) == common
    apart, together = compiled.kernels.tiled, compiled.kernels.common.tiled
    assert any(load.data and load.halo for load in apart.walk() if isinstance(load, LoadOp))
    assert not any(load.data and load.halo for load in together.walk() if isinstance(load, LoadOp))


@pytest.mark.parametrize("executor", kernel_executors())
@pytest.mark.parametrize("halos", ["compared", "common", "apart"])
def test_common_halos_may_be_promised_in_given_passes(halos: Halos, executor: Executor):
    program = entry("heat-2d").make((19, 71))
    passes = (CommonHalosPass(), *Schedule("warp", warp_row()).passes(2))
    compiled = compiled_for(program, executor, passes=passes, halos=halos)
    for steps in (5, 9):
        assert_as_unfused(
            compiled, program, random_inputs(program, steps, common_halos=True), steps
        )


FRAMES = [
    HaloFrame((37,), (2,), (30,), 8),
    HaloFrame((7, 41), (1, 3), (6, 40), 4),
    HaloFrame((5, 9, 70), (1, 2, 1), (4, 9, 66), 8),
    HaloFrame((4, 6, 67), (0, 0, 0), (4, 6, 67), 4),
]


def positions(frame: HaloFrame) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
    """Cells around the frame's box, and cells inside."""
    inside = np.zeros(frame.sizes, bool)
    inside[tuple(slice(a, b) for a, b in zip(frame.low, frame.high, strict=True))] = True
    around = [tuple(map(int, at)) for at in np.argwhere(~inside)]
    return around, [tuple(map(int, at)) for at in np.argwhere(inside)]


def pair(frame: HaloFrame) -> tuple[Array, Array]:
    """Two buffers with differences only in the box."""
    kind = {4: np.float32, 8: np.float64}[frame.cell_bytes]
    a = np.random.default_rng(5).uniform(0.5, 1.5, frame.sizes).astype(kind)
    b = a.copy()
    for at in positions(frame)[1]:
        b[at] += 1
    return a, b


@pytest.mark.parametrize("frame", FRAMES, ids=lambda f: "x".join(map(str, f.sizes)))
def test_every_cell_around_the_box_counts(frame: HaloFrame):
    a, b = pair(frame)
    assert not halos_differ(frame, a, b.reshape(-1))
    for at in positions(frame)[0]:
        before = b[at]
        b[at] = -before
        assert halos_differ(frame, a, b), at
        b[at] = before


WIDE = HaloFrame((3, 4501), (1, 2), (2, 4498), 4)
"""Rows outside the box take several warps, and several turns of each."""


@pytest.mark.parametrize("frame", [*FRAMES, WIDE], ids=lambda f: "x".join(map(str, f.sizes)))
def test_the_comparing_kernel_finds_a_difference_in_any_halo_cell(frame: HaloFrame):
    """The kernel loads every word around the box, and no word inside or beyond the buffers."""
    size = frame.word_bytes
    program = PtxProgram(parse_module(comparing_text(size))[comparing_name(size)])
    around, _ = positions(frame)
    inside = tuple(slice(a, b) for a, b in zip(frame.low, frame.high, strict=True))
    cells, numbers = pair(frame), [n for axis in frame.words() for n in axis]

    def differs() -> bool:
        fields = [FieldOfPtx(each) for each in cells]
        for field in fields:
            field.unset.reshape(*frame.sizes, -1)[inside] = True
        answer = FieldOfPtx(np.zeros(1, np.int32))
        given = [*fields, answer, *map(np.asarray, np.array([*numbers, frame.segments], np.uint32))]
        PtxLaunch(program, frame.blocks, 32 * WARPS_OF_A_BLOCK, 0, given).run()
        return bool(answer.data[0])

    assert not differs()
    for at in (*around[:: max(1, len(around) // 8)], *around[-1:]):
        before = cells[1][at]
        cells[1][at] = -before
        assert differs(), at
        cells[1][at] = before


@pytest.mark.skipif(not gpu_is_available(), reason="needs a GPU")
@pytest.mark.parametrize("frame", FRAMES, ids=lambda f: "x".join(map(str, f.sizes)))
def test_the_gpu_finds_a_difference_in_any_halo_cell(frame: HaloFrame):
    a, b = pair(frame)
    on: Device = device()
    with on.current():
        first, other = on.allocate(a.nbytes), on.allocate(b.nbytes)

        def differs() -> bool:
            on.upload(other, b)
            return on.halos_differ(frame, first, other, 0)

        on.upload(first, a)
        assert not differs()
        for at in positions(frame)[0][::7]:
            before = b[at]
            b[at] = -before
            assert differs(), at
            b[at] = before
        assert not differs()
        on.free(first)
        on.free(other)


TWO_LOOPS = """
!field = !stencil.field<[-1,20]xf64>
func.func @two(%A: !field, %B: !field, %n: index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  LOOPS
  func.return
}
"""

LOOP = """
  %NAME:2 = scf.for %t = %zero to %n step %one iter_args(%a = %A, %b = %B) -> (!field, !field) {
    %l = stencil.load %a : !field -> !stencil.temp<?xf64>
    %u = stencil.apply(%x = %l : !stencil.temp<?xf64>) -> (!stencil.temp<?xf64>) {
      %low = stencil.access %x[-1] : !stencil.temp<?xf64>
      %high = stencil.access %x[1] : !stencil.temp<?xf64>
      %s = arith.addf %low, %high : f64
      stencil.return %s : f64
    }
    stencil.store %u to %b(<[FIRST], [LAST]>) : !stencil.temp<?xf64> to !field
    scf.yield %b, %a : !field, !field
  }
"""


@pytest.mark.parametrize("executor", kernel_executors())
@pytest.mark.parametrize(("first", "then"), [((0, 19), (4, 12)), ((4, 12), (0, 19))])
def test_halos_that_a_loop_before_wrote_are_not_taken_for_common(
    first: tuple[int, int], then: tuple[int, int], executor: Executor
):
    """The caller promises the halos of the call: the cells written by the first loop differ."""
    loops = ""
    for number, (low, high) in enumerate((first, then)):
        loop = LOOP.replace("NAME", f"r{number}").replace("FIRST", str(low))
        loops += loop.replace("LAST", str(high))
    text = TWO_LOOPS.replace("LOOPS", loops)
    low, high = (max(first[0], then[0]), min(first[1], then[1]))
    cells = np.random.default_rng(1).uniform(0.5, 1.5, 21)
    other = cells.copy()
    other[low + 1 : high + 1] = 1.0
    judge = timetile.compile(text, executor="cpu", cache=False)
    promised = timetile.compile(text, executor=executor, depth=3, halos="common", cache=False)
    for steps in range(1, 7):
        expected, found = [cells.copy(), other.copy()], [cells.copy(), other.copy()]
        judge(*expected, steps)
        promised(*found, steps)
        for a, b in zip(expected, found, strict=True):
            assert np.array_equal(a, b)


SWEEP = """
  %NAMEl = stencil.load FROM : !field -> !stencil.temp<?xf64>
  %NAMEu = stencil.apply(%x = %NAMEl : !stencil.temp<?xf64>) -> (!stencil.temp<?xf64>) {
    %c = stencil.access %x[0] : !stencil.temp<?xf64>
    %h = arith.mulf %c, %c : f64
    stencil.return %h : f64
  }
  stencil.store %NAMEu to TO(<[FIRST], [LAST]>) : !stencil.temp<?xf64> to !field
"""


def part(text: str, name: str, first: int, last: int, **names: str) -> str:
    """A loop or a sweep over a box, from and to fields."""
    text = text.replace("NAME", name).replace("FIRST", str(first)).replace("LAST", str(last))
    source, target = names.get("source", "%A"), names.get("target", "%B")
    text = text.replace("FROM", source).replace("TO", target)
    return text.replace("%a = %A", f"%a = {source}").replace("%b = %B", f"%b = {target}")


BEFORE = {
    "a sweep beyond the box": part(SWEEP, "s", 0, 19) + part(LOOP, "r", 4, 12),
    "a sweep over all cells in place": part(SWEEP, "s", -1, 20, target="%A")
    + part(LOOP, "r", 4, 12),
    "a sweep of halo cells alone": part(SWEEP, "s", -1, 2) + part(LOOP, "r", 2, 18),
    "a sweep between two loops": part(LOOP, "r", 2, 18)
    + part(SWEEP, "s", -1, 3, source="%r#0", target="%r#1")
    + part(LOOP, "q", 3, 18, source="%r#0", target="%r#1"),
    "a loop on the turned results": part(LOOP, "r", 0, 19)
    + part(LOOP, "q", 4, 12, source="%r#1", target="%r#0"),
    "a third loop": part(LOOP, "r", 4, 12)
    + part(LOOP, "q", 0, 19, source="%B", target="%A")
    + part(LOOP, "p", 6, 9),
}


@pytest.mark.parametrize("name", BEFORE)
def test_a_promise_on_halos_is_not_used_where_the_program_breaks_it(name: str):
    text = TWO_LOOPS.replace("LOOPS", BEFORE[name])
    cells = np.random.default_rng(1).uniform(0.5, 0.9, 21)
    promised = timetile.compile(text, executor="planes", depth=3, halos="common", cache=False)
    judge = timetile.compile(text, executor="cpu", cache=False)
    for steps in (1, 5, 6):
        expected, found = [cells.copy(), cells.copy()], [cells.copy(), cells.copy()]
        judge(*expected, steps)
        promised(*found, steps)
        for a, b in zip(expected, found, strict=True):
            assert np.array_equal(a, b)
