"""Sweeps along the last axis: lines pass through shared memory, with the bits of the loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import bf16, f16, i8, i32

import timetile
from support.steps import noise
from support.swept import thomas_text
from timetile import Field, coordinate, sweep
from timetile.dialects.temporal import SweepOp
from timetile.lowering import sweep_staging
from timetile.lowering.sweep_frames import SweepFrame
from timetile.lowering.sweep_staging import MOST_SHARED, LineStaging
from timetile.runtime.arithmetic.cells import dtype_of
from timetile.runtime.kernels.assembler import assemble, assembler_version
from timetile.runtime.kernels.reducing import OLDEST_ARCH
from timetile.runtime.kernels.sweeping import sweep_module, sweep_text
from timetile.runtime.program.compiled_program import Executor

STORED_OR_CELL = {"f16": f16, "bf16": bf16, "i8": i8, "i32": i32}

KERNELS: list[Executor] = ["simt", "ptx"]


def staging_of(text: str, number: int = 0) -> LineStaging:
    """How the lines of a sweep of a program pass through shared memory."""
    program = timetile.compile(text, executor="numpy", cache=False)
    found = SweepFrame.of([op for op in program.module.walk() if isinstance(op, SweepOp)][number])
    assert found.staging is not None
    return found.staging


def swept(u: Any, a: Any, k: Any, *, is_descending: bool) -> Any:
    """The obvious loop of `mixed`, cell after cell."""
    u, a = (x[..., ::-1] if is_descending else x for x in (u.copy(), a))
    way = slice(1, -1)
    for p in range(2, u.shape[-1] - 3):
        old = u[way, p] + u[way, p + 1]
        coefficients = a[:-2, p] * a[2:, p + 3] - a[way, p - 2]
        u[way, p] = k * (u[way, p - 1] - u[way, p - 2]) + (old + coefficients)
    return u[..., ::-1] if is_descending else u


def mixed(shape: tuple[int, int], element: str, *, is_descending: bool) -> str:
    """
    A recurrence of two places before, with old cells ahead, and coefficients of neighbouring
    lines and of cells before and behind.
    """
    field = f"!stencil.field<[0,{shape[0]}]x[0,{shape[1]}]x{element}>"
    s, way = (-1, "descending") if is_descending else (1, "ascending")
    low, high = (3, shape[1] - 2) if is_descending else (2, shape[1] - 3)
    names = ["%p", "%q", "%u", "%v", "%a", "%b", "%c", "%k"]
    return f"""
func.func private @mixed({", ".join(f"{name}: {element}" for name in names)}) -> {element} {{
  %0 = arith.subf %p, %q : {element}
  %1 = arith.mulf %k, %0 : {element}
  %2 = arith.addf %u, %v : {element}
  %3 = arith.mulf %a, %b : {element}
  %4 = arith.subf %3, %c : {element}
  %5 = arith.addf %2, %4 : {element}
  %6 = arith.addf %1, %5 : {element}
  func.return %6 : {element}
}}
func.func @filtered(%u: {field}, %a: {field}, %k: {element}) {{
  temporal.sweep %u = @mixed(%u[0, {-s}], %u[0, {-2 * s}], %u[0, 0], %u[0, {s}], %a[-1, 0],
    %a[1, {3 * s}], %a[0, {-2 * s}]) scalars(%k)
    along 1 {way} in <[1, {low}], [{shape[0] - 1}, {high}]>
  func.return
}}
"""


@pytest.mark.covering(times=2)
@pytest.mark.parametrize("executor", KERNELS)
@pytest.mark.parametrize("is_descending", [False, True])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(3, 7), (6, 64), (5, 67), (41, 96), (35, 33)], ids=str)
def test_staged_lines_read_lines_beside_and_cells_before_and_behind(
    shape: tuple[int, int], kind: Any, is_descending: bool, executor: Executor
):
    u, a = noise(*shape).astype(kind), noise(*shape).astype(kind) + kind(1)
    wanted = swept(u, a, kind(0.25), is_descending=is_descending)
    text = mixed(shape, {4: "f32", 8: "f64"}[u.itemsize], is_descending=is_descending)
    timetile.compile(text, executor=executor, fp_contract="off", cache=False)(u, a, 0.25)
    assert np.array_equal(u, wanted)


@pytest.mark.covering
@pytest.mark.parametrize("executor", KERNELS)
@pytest.mark.parametrize("element", ["f16", "bf16", "i8", "i32"])
@pytest.mark.parametrize("length", [64, 80, 128])
def test_fields_of_several_types_have_vectors_of_several_lengths(
    length: int, element: str, executor: Executor
):
    number, word = ("i32", "sitofp") if element[0] == "i" else ("f32", "extf")
    row = f"[0,3]x[0,{length}]"
    text = f"""
func.func private @add(%u: f64, %a: {number}) -> f64 {{
  %b = arith.{word} %a : {number} to f64
  %s = arith.addf %u, %b : f64
  func.return %s : f64
}}
func.func @sums(%u: !stencil.field<{row}xf64>, %a: !stencil.field<{row}x{element}>) {{
  temporal.sweep %u = @add(%u[0, -1], %a[0, 0]) along 1 ascending in <[0, 1], [3, {length}]>
  func.return
}}
"""
    results: list[Any] = []
    for chosen in (executor, "numpy"):
        u = noise(3, length)
        program = timetile.compile(text, executor=chosen, cache=False)
        cells = np.random.default_rng(3).integers(-9, 9, (3, length))
        program(u, cells.astype(dtype_of(STORED_OR_CELL[element])))
        results.append(u)
    assert results[0].tobytes() == results[1].tobytes()


@pytest.mark.parametrize("executor", KERNELS)
@pytest.mark.parametrize("length", [66, 67])
def test_fields_with_unequal_bounds_are_copied_from_their_own_corners(
    length: int, executor: Executor
):
    text = f"""
func.func private @add(%u: f32, %a: f32, %i: index) -> f32 {{
  %n = arith.index_cast %i : index to i32
  %f = arith.sitofp %n : i32 to f32
  %s = arith.addf %u, %a : f32
  %t = arith.addf %s, %f : f32
  func.return %t : f32
}}
func.func @sums(
  %u: !stencil.field<[-1,3]x[-2,{length}]xf32>, %a: !stencil.field<[0,4]x[-1,{length + 3}]xf32>
) {{
  temporal.sweep %u = @add(%u[0, -1], %a[1, 2]) indices [1]
    along 1 ascending in <[0, -1], [3, {length}]>
  func.return
}}
"""
    u, a = noise(4, length + 2).astype(np.float32), noise(4, length + 4).astype(np.float32)
    wanted = u.copy()
    for k in range(1, length + 2):
        wanted[1:, k] = wanted[1:, k - 1] + a[1:, k + 1] + np.float32(k - 2)
    timetile.compile(text, executor=executor, cache=False)(u, a)
    assert np.array_equal(u, wanted)


@pytest.mark.parametrize("executor", KERNELS)
def test_a_staged_sweep_may_read_nothing_but_its_results(executor: Executor):
    """The sweep reads nothing but its results: only results pass through shared memory."""

    @timetile.stencil
    def counted(u: Field):
        with sweep(axis=1):
            u.next = 0.5 * u.next[0, -1] + (coordinate(0) - coordinate(1))

    u = noise(5, 70)
    found = counted.on(executor=executor, fp_contract="off", cache=False).advance({"u": u})["u"]
    for p in range(1, 70):
        u[:, p] = 0.5 * u[:, p - 1] + (np.arange(5) - p)
    assert np.array_equal(found, u)


@pytest.mark.parametrize("executor", KERNELS)
def test_long_segments_keep_the_bits(executor: Executor, monkeypatch: pytest.MonkeyPatch):
    """Segments of 256 bytes of a line, as for very many lines."""
    monkeypatch.setattr(sweep_staging, "FEW_GROUPS", 1)
    text = thomas_text((32, 133), 1)
    staging = staging_of(text, 1)
    assert (staging.lines, staging.places, staging.segments) == (32, 32, 5)
    runs: list[list[bytes]] = []
    for each in (executor, "numpy"):
        fields = [noise(32, 133) + k for k in range(3)]
        timetile.compile(text, executor=each, cache=False)(*fields, 0.25)
        runs.append([field.tobytes() for field in fields])
    assert runs[0] == runs[1]


def test_many_lines_are_groups_of_a_warp_and_few_lines_have_longer_segments():
    many, few = staging_of(thomas_text((20000, 600), 1)), staging_of(thomas_text((40, 600), 1))
    assert (many.lines, many.places, few.lines, few.places) == (32, 32, 1, 512)
    # A line has fewer than four long segments.
    beside = staging_of(thomas_text((20000, 90), 1))
    assert (beside.lines, beside.places) == (32, 16)
    short = staging_of(thomas_text((40, 5), 1, "f32"))
    assert (short.lines, short.places, short.slots, short.segments) == (32, 32, 2, 1)
    single = staging_of(thomas_text((1 << 16,), 0))
    assert single.lines == 1 and single.slots == 6 and single.shared_bytes <= MOST_SHARED


def test_lines_of_whole_vectors_are_copied_by_16_bytes_and_others_cell_by_cell():
    even, odd = thomas_text((20000, 640), 1, "f32"), thomas_text((20000, 641), 1, "f32")
    for text, size in ((even, 16), (odd, 4)):
        staging = staging_of(text)
        code = str(sweep_module(SweepFrame(staging.op, 0, staging), OLDEST_ARCH))
        # Before the first segment, and behind each; 32 copies of a lane are a loop of 8.
        assert code.count(f"bytes {size} ") == code.count("simt.copy_async") == 2 * 8


def test_results_take_the_place_of_cells_read():
    up, down = (staging_of(thomas_text((20000, 640), 1), number) for number in (0, 1))
    assert not up.keeps_results and [len(up.streams), len(up.rings)] == [1, 3]
    assert not down.keeps_results and [len(down.streams), len(down.rings)] == [2, 3]
    text = """
func.func private @add(%a: f64, %b: f64) -> f64 {
  %s = arith.addf %a, %b : f64
  func.return %s : f64
}
func.func @sums(%u: !stencil.field<[0,9]x[0,64]xf64>) {
  temporal.sweep %u = @add(%u[0, -1], %u[0, 0]) along 1 ascending in <[0, 1], [9, 64]>
  func.return
}
"""
    sums = staging_of(text)
    assert sums.keeps_results and len(sums.rings) == 1
    code = str(sweep_module(SweepFrame(sums.op, 0, sums), OLDEST_ARCH))
    assert code.count("nvvm.bar.warp.sync") == 4  # the lines; read, computed, stored


def test_taps_too_far_for_shared_memory_read_memory():
    text = """
func.func private @add(%a: f64, %b: f64) -> f64 {
  %s = arith.addf %a, %b : f64
  func.return %s : f64
}
func.func @sums(%u: !stencil.field<[0,9]x[0,70000]xf64>, %v: !stencil.field<[0,9]x[0,70000]xf64>) {
  temporal.sweep %u = @add(%u[0, -1], %v[0, 60000]) along 1 ascending in <[0, 1], [9, 9000]>
  func.return
}
"""
    program = timetile.compile(text, executor="numpy", cache=False)
    (op,) = (op for op in program.module.walk() if isinstance(op, SweepOp))
    assert SweepFrame.of(op).staging is None and SweepFrame.of(op).slots == 0


@pytest.mark.covering
@pytest.mark.parametrize("element", ["f32", "f64"])
@pytest.mark.parametrize("shape", [(512, 512, 512), (8192, 8192), (999, 1001), (1 << 20,)], ids=str)
def test_staged_kernels_spill_no_register(shape: tuple[int, ...], element: str):
    if assembler_version() is None:
        pytest.skip("no assembler")
    for number in (0, 1):
        staging = staging_of(thomas_text(shape, len(shape) - 1, element), number)
        kernel = assemble(sweep_text(SweepFrame(staging.op, 0, staging), "sm_90"), "sm_90")
        assert kernel.spill_bytes == 0 and kernel.registers < 255
