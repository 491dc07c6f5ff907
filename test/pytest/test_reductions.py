"""Reductions: the fixed order of `temporal.reduce`, on every executor and number of threads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import f32, f64
from xdsl.ir import Attribute

import timetile
from support.executors import compiled_on
from support.fixed_order import JOIN, in_order
from timetile.dialects.temporal import ReduceOp, Reduction
from timetile.lowering.reduction_kernels import Round, computed_round
from timetile.passes.analysis.reduced_cells import reduced_cells
from timetile.runtime.kernels.assembler import assemble, assembler_version
from timetile.runtime.kernels.reducing import OLDEST_ARCH, round_code, round_text
from timetile.runtime.program.compiled_program import Executor


def reducing(kind: str, shape: Sequence[int], element: str) -> str:
    """A program that reduces the cells of an array without its rim."""
    field = f"!stencil.field<{'x'.join(f'[-1,{size - 1}]' for size in shape)}x{element}>"
    high = ", ".join(str(size - 2) for size in shape)
    low = ", ".join("0" for _ in shape)
    return f"""
func.func @reduced(%u: {field}) -> {element} {{
  %r = temporal.reduce {kind} %u in <[{low}], [{high}]> : {field} -> {element}
  return %r : {element}
}}
"""


SHAPES = [(3,), (34,), (67,), (1030,), (3000,), (5, 9), (7, 1100), (6, 5, 41), (4, 40, 70)]

DTYPES = {"f64": np.float64, "f32": np.float32}


def drawn(shape: Sequence[int], element: str) -> Any:
    """Cells of both signs and of many sizes."""
    draws = np.random.default_rng(len(shape) + sum(shape))
    return (draws.normal(size=shape) * 10 ** draws.uniform(-6, 6, shape)).astype(DTYPES[element])


@pytest.mark.covering(times=2)
@pytest.mark.parametrize("executor", ["numpy", "cpu", "planes", "simt", "ptx"])
@pytest.mark.parametrize("kind", JOIN)
@pytest.mark.parametrize("element", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_order_is_fixed(shape: tuple[int, ...], element: str, kind: str, executor: Executor):
    cells = drawn(shape, element)
    program = timetile.compile(reducing(kind, shape, element), executor=executor, cache=False)
    (found,) = program(cells).returned
    wanted = in_order(kind, cells[tuple(slice(1, -1) for _ in shape)])
    assert found.dtype == cells.dtype and found == wanted


@pytest.mark.covering
@pytest.mark.parametrize("threads", [1, 2, 3, 7])
@pytest.mark.parametrize("kind", ["total", "maximum"])
@pytest.mark.parametrize("shape", [(1 << 20,), (1500, 1700), (40, 3, 20000)], ids=str)
def test_the_number_of_threads_changes_no_bit(shape: tuple[int, ...], kind: str, threads: int):
    cells = drawn(shape, "f64")
    text = reducing(kind, shape, "f64")
    program = timetile.compile(text, executor="cpu", threads=threads, cache=False)
    judge = timetile.compile(text, executor="numpy", cache=False)
    assert program(cells).returned == judge(cells).returned


@pytest.mark.parametrize("executor", ["numpy", "cpu", "planes", "simt", "ptx"])
def test_zeros_and_numbers_that_are_none(executor: Executor):
    """The greatest of zeros is 0.0, a NaN stays, and a sum of -0.0 is -0.0."""

    def number(kind: str, *cells: float) -> Any:
        text = reducing(kind, (len(cells) + 2,), "f64")
        program = timetile.compile(text, executor=executor, cache=False)
        return program(np.array([7.0, *cells, 7.0])).returned[0]

    assert str(number("maximum", -0.0, 0.0, -0.0)) == "0.0"
    assert str(number("minimum", 0.0, 0.0, -0.0)) == "-0.0"
    assert str(number("total", -0.0, -0.0)) == "-0.0"
    assert np.isnan(number("maximum", 1.0, np.nan, 2.0))
    assert number("maximum", -np.inf, -np.inf) == -np.inf


@pytest.mark.parametrize("kind", list(Reduction))
@pytest.mark.parametrize("element", [f32, f64], ids=str)
def test_kernels_are_assembled(kind: Reduction, element: Attribute):
    if assembler_version() is None:
        pytest.skip("no assembler")
    made = Round(kind, element, 3000, (7, 5), (40000, 3001), 3, 7 * 40000)
    kernel = assemble(round_text(made, OLDEST_ARCH), "sm_90")
    assert kernel.spill_bytes == 0 and made.blocks == 7 * 5 * 3


def test_a_warp_reads_whole_lines_and_writes_one_number():
    """A kernel on a field beyond 2^31 cells has indices of 64 bits."""
    made = Round(Reduction.TOTAL, f64, 70, (3, 5), (400, 80), 7, 3000)
    text = str(round_code(made))
    assert text.count("simt.override") == 3 and text.count("simt.shuffle") == 5
    assert "[%30 + 7]" in text and "[%30 + 71]" in text and text.count("simt.store") == 1
    far = Round(Reduction.TOTAL, f64, 70, (3, 5), (2**30, 80), 7, 2**32)
    assert "arith.extsi" in str(round_code(far)) and "arith.extsi" not in text


@pytest.mark.parametrize("executor", ["simt", "ptx"])
def test_a_kernel_that_reads_an_unset_cell_is_reported(executor: Executor):
    """Of a scratch field with nine cells a sweep writes eight."""
    field = "!stencil.field<[0,9]xf64>"
    text = f"""
func.func @unset(%u: {field}) -> f64 {{
  %s = stencil.alloc : {field}
  %a = stencil.load %u : {field} -> !stencil.temp<?xf64>
  stencil.store %a to %s(<[0], [8]>) : !stencil.temp<?xf64> to {field}
  %r = temporal.reduce total %s in <[0], [9]> : {field} -> f64
  return %r : f64
}}
"""
    program = timetile.compile(text, executor=executor, cache=False)
    with pytest.raises(Exception, match="stores a value that was never set"):
        program(np.arange(9.0))


def test_a_reduction_reads_the_sweeps_before():
    """Sweeps keep their place: the first reduction sees the cells before the second store."""
    field = "!stencil.field<[0,9]xf64>"
    text = f"""
func.func @twice(%u: {field}) -> (f64, f64) {{
  %a = stencil.load %u : {field} -> !stencil.temp<?xf64>
  %v = stencil.apply(%x = %a : !stencil.temp<?xf64>) -> (!stencil.temp<?xf64>) {{
    %c = stencil.access %x[0] : !stencil.temp<?xf64>
    %s = arith.addf %c, %c : f64
    stencil.return %s : f64
  }}
  stencil.store %v to %u(<[0], [9]>) : !stencil.temp<?xf64> to {field}
  %r = temporal.reduce total %u in <[0], [9]> : {field} -> f64
  %b = stencil.load %u : {field} -> !stencil.temp<?xf64>
  %w = stencil.apply(%x = %b : !stencil.temp<?xf64>) -> (!stencil.temp<?xf64>) {{
    %c = stencil.access %x[0] : !stencil.temp<?xf64>
    %s = arith.mulf %c, %c : f64
    stencil.return %s : f64
  }}
  stencil.store %w to %u(<[0], [9]>) : !stencil.temp<?xf64> to {field}
  %q = temporal.reduce total %u in <[0], [9]> : {field} -> f64
  return %r, %q : f64, f64
}}
"""
    for program in compiled_on(("numpy", "cpu", "planes", "simt"), text, cache=False):
        cells = np.arange(9.0)
        assert program(cells).returned == (72.0, 816.0)


CHANGE = """
func.func @change(%u: !field, %v: !field) -> KIND {
  %c = stencil.alloc : !box
  %a = stencil.load %u : !field -> !temp
  %b = stencil.load %v : !field -> !temp
  %w = stencil.apply(%x = %a : !temp, %y = %b : !temp) -> (!temp) {
    %p = stencil.access %x[0, 1] : !temp
    %q = stencil.access %y[-1, 0] : !temp
    %d = arith.subf %p, %q : KIND
    %e = arith.mulf %d, %d : KIND
    stencil.return %e : KIND
  }
  stencil.store %w to %c(<[0, 0], [5, 1100]>) : !temp to !box
  %r = temporal.reduce total %c in <[0, 0], [5, 1100]> : !box -> KIND
  return %r : KIND
}
"""


def change(element: str, behind: str = "") -> str:
    """A program to sum squared differences of two fields with rims of their own."""
    field, box = (
        f"!stencil.field<{sizes}x{element}>" for sizes in ("[-1,6]x[-2,1102]", "[0,5]x[0,1100]")
    )
    names = {
        "!field": field,
        "!box": box,
        "!temp": f"!stencil.temp<?x?x{element}>",
        "KIND": element,
    }
    text = CHANGE.replace("  return", behind + "  return")
    for name, written in names.items():
        text = text.replace(name, written)
    return text


@pytest.mark.parametrize("element", DTYPES)
def test_cells_that_nothing_else_reads_are_computed_by_the_reduction(element: str):
    program = timetile.compile(change(element), executor="ptx", cache=False)
    judge = timetile.compile(change(element), executor="numpy", cache=False)
    u, v = drawn((7, 1104), element), drawn((7, 1104), element)[::-1].copy()
    assert program(u, v).returned[0].tobytes() == judge(u, v).returned[0].tobytes()
    assert not program.kernels.made
    # Programs with equal cells have one text, which keeps neither module in memory.
    rounds = [
        computed_round(op, cells)
        for module in (program.module, judge.module)
        for op in module.walk()
        if isinstance(op, ReduceOp) and (cells := reduced_cells(op))
    ]
    texts = [round_text(made, OLDEST_ARCH) for made in rounds]
    assert len(texts) == 2 and texts[0] is texts[1]
    assert all(made.function.parent is None for made in rounds)


@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (0, 2), (1, 2)], ids=str)
def test_computed_cells_read_fields_of_fewer_axes_where_they_lie(axes: tuple[int, ...]):
    shape = (3, 4, 37)
    sizes = [shape[axis] for axis in axes]
    narrow = f"!stencil.field<{'x'.join(f'[-1,{size}]' for size in sizes)}xf64>"
    text = f"""
func.func @product(%a: f64, %b: f64) -> f64 {{
  %c = arith.mulf %a, %b : f64
  return %c : f64
}}
func.func @change(%u: !field, %p: {narrow}) -> f64 {{
  %one = arith.constant 1 : index
  %c = stencil.alloc : !field
  %wide = temporal.broadcast %p axes {list(axes)} : {narrow} to !field
  %n = temporal.loop %one (%now = %c) rotate [0] sweep {{
    temporal.update %now = @product(%u[0, 0, -1], %wide[0, 0, -1]) in <[0, 0, 1], [3, 4, 37]>
  }} : !field
  %r = temporal.reduce total %c in <[0, 0, 1], [3, 4, 37]> : !field -> f64
  return %r : f64
}}
""".replace("!field", f"!stencil.field<{'x'.join(f'[0,{size}]' for size in shape)}xf64>")
    program = timetile.compile(text, executor="ptx", cache=False)
    u, p = drawn(shape, "f64"), drawn([size + 1 for size in sizes], "f64")
    judge = timetile.compile(text, executor="numpy", cache=False)
    assert program(u, p).returned == judge(u, p).returned
    assert not program.kernels.made


def test_cells_that_something_else_reads_are_stored():
    again = "  %s = temporal.reduce maximum %c in <[0, 0], [5, 8]> : !box -> KIND\n"
    program = timetile.compile(change("f32", again), executor="ptx", cache=False)
    u, v = drawn((7, 1104), "f32"), drawn((7, 1104), "f32")[::-1].copy()
    assert (
        program(u, v).returned[0]
        == timetile.compile(change("f32"), executor="ptx", cache=False)(u, v).returned[0]
    )
    assert program.kernels.made
