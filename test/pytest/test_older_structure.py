"""Programs of older dialects run: numbers from outside a cell, yields of loops, numbers by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects import scf, stencil

import timetile
from timetile.passes.diagnostics import CompileError
from timetile.runtime.loading.modules import load_text
from timetile.runtime.loading.names import ARGUMENT_NAMES
from timetile.runtime.program.compiled_program import Executor

pytestmark = pytest.mark.usefixtures("chosen_among_few")

Array = NDArray[np.float64]

OUTSIDE = """
!field = !stencil.field<[-1,9]xf64>
!temp = !stencil.temp<?xf64>
func.func @grow(%A: !field, %B: !field, %rate: f64, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %half = arith.constant 0.5 : f64
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A, %b = %B) -> (!field, !field) {
    %u = stencil.load %a : !field -> !temp
    %v = stencil.apply(%x = %u : !temp) -> (!temp) {
      %l = stencil.access %x[-1] : !temp
      %h = arith.mulf %l, %half : f64
      %g = arith.mulf %h, %rate : f64
      TIME
      %s = arith.addf %g, %now : f64
      stencil.return %s : f64
    }
    stencil.store %v to %b(<[0], [8]>) : !temp to !field
    scf.yield %b, %a : !field, !field
  }
  return
}
"""
OF_TIME = """%ti = arith.index_cast %t : index to i64
      %now = arith.sitofp %ti : i64 to f64"""
OF_NO_TIME = "%now = arith.addf %half, %half : f64"


def grown(a: Array, rate: float, steps: int, *, timed: bool) -> list[Array]:
    """The program's two fields, with NumPy."""
    fields = [a.copy(), a.copy()]
    for t in range(steps):
        old, new = fields[t % 2], fields[1 - t % 2]
        new[1:-1] = old[:-2] * 0.5 * rate + (t if timed else 1.0)
    return fields


@pytest.mark.covering
@pytest.mark.parametrize("executor", ["numpy", "cpu", "planes"])
@pytest.mark.parametrize("timed", [False, True])
def test_a_cell_may_read_numbers_from_outside(timed: bool, executor: Executor):
    text = OUTSIDE.replace("TIME", OF_TIME if timed else OF_NO_TIME)
    program = timetile.compile(text, executor=executor, fp_contract="off", cache=False)
    start = np.random.default_rng(3).random(10)
    found = [start.copy(), start.copy()]
    program(*found, 0.75, 5)
    right = grown(start, 0.75, 5, timed=timed)
    assert [f.tobytes() for f in found] == [f.tobytes() for f in right]


def test_a_constant_from_outside_is_a_constant_of_the_cell():
    """The other number, and no constant, becomes an operand: constants of a cell are folded."""
    module = load_text(OUTSIDE.replace("TIME", OF_NO_TIME))
    apply = next(op for op in module.walk() if isinstance(op, stencil.ApplyOp))
    assert [str(operand.type) for operand in apply.args] == ["!stencil.temp<?xf64>", "f64"]


def test_a_loop_around_a_cell_from_outside_advances_several_steps(
    caplog: pytest.LogCaptureFixture,
):
    timetile.compile(OUTSIDE.replace("TIME", OF_NO_TIME), executor="cpu", cache=False)
    assert "a step at a time" not in caplog.text


POINTS = """
func.func @points(%A: !stencil.field<[0,6]xf32>, %at: memref<2xf32>, %wave: memref<3x2xf32>,
    %wave_1: memref<3x2xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %spacing = arith.constant 0.5 : f32
  %minus = arith.constant -1 : i64
  %m = builtin.unrealized_conversion_cast %A : !stencil.field<[0,6]xf32> to memref<6xf32>
  scf.for %t = %c0 to %n step %c1 {
    "scf.parallel"(%c0, %c2, %c1) <{operandSegmentSizes = array<i32: 1, 1, 1, 0>}> ({
    ^0(%p : index):
      %x = memref.load %at[%p] : memref<2xf32>
      %per = "math.fpowi"(%spacing, %minus) : (f32, i64) -> f32
      %cells = arith.mulf %x, %per : f32
      %whole = arith.fptosi %cells : f32 to i64
      %i = arith.index_cast %whole : i64 to index
      %w = memref.load %wave[%t, %p] : memref<3x2xf32>
      %v = memref.load %wave_1[%t, %p] : memref<3x2xf32>
      %sum = arith.addf %w, %v : f32
      %old = "memref.atomic_rmw"(%sum, %m, %i) <{kind = 0 : i64}>
        : (f32, memref<6xf32>, index) -> f32
      "scf.yield"() : () -> ()
    }) : (index, index, index) -> ()
  }
  return
}
"""
"""Sources alone: no cell is stored by stencil.store."""


@pytest.mark.parametrize("executor", ["numpy", "cpu", "planes", "ptx"])
def test_a_program_of_sources_alone_runs(executor: Executor):
    program = timetile.compile(POINTS, executor=executor, cache=False)
    field, at = np.zeros(6, np.float32), np.array([0.5, 2.0], np.float32)
    wave = np.arange(6, dtype=np.float32).reshape(3, 2)
    program(field, at, wave, 10 * wave, 3)
    assert field.tolist() == [0, 66, 0, 0, 99, 0]


def test_a_parallel_loop_that_yields_ends_with_a_reduction():
    loop = next(op for op in load_text(POINTS).walk() if isinstance(op, scf.ParallelOp))
    assert isinstance(loop.body.block.last_op, scf.ReduceOp)


@pytest.mark.parametrize(("first", "second"), [("wave", "wave_1"), ("w_1", "w_2"), ("w_0", "z")])
def test_arguments_have_the_names_of_the_text(first: str, second: str):
    """xDSL drops numbers at the end of names, and no name may then be another argument's."""
    text = POINTS.replace("%wave_1", f"%{second}").replace("%wave", f"%{first}")
    program = timetile.compile(text, executor="cpu", cache=False)
    assert [p.name for p in program.parameters] == ["A", "at", first, second, "n"]


def test_arguments_of_a_module_are_numbered_as_xdsl_prints_them():
    module = load_text(POINTS)
    for function in module.ops:
        function.attributes.pop(ARGUMENT_NAMES)
    program = timetile.compile(module, executor="cpu", cache=False)
    assert [p.name for p in program.parameters] == ["A", "at", "wave", "wave_1", "n"]


NAMED = """
!field = !stencil.field<[0,8]xf64>
!temp = !stencil.temp<?xf64>
func.func @Kernel(%A: !field) {
  %first = "devito.load_symbolic"() {"symbol_name" = "first"} : () -> index
  %last = "devito.load_symbolic"() {"symbol_name" = "last"} : () -> index
  %c1 = arith.constant 1 : index
  %end = arith.addi %last, %c1 : index
  scf.for %t = %first to %end step %c1 {
    %u = stencil.load %A : !field -> !temp
    %v = stencil.apply(%x = %u : !temp) -> (!temp) {
      %c = stencil.access %x[0] : !temp
      %dt = "devito.load_symbolic"() {"symbol_name" = "dt"} : () -> f64
      %again = "devito.load_symbolic"() {"symbol_name" = "dt"} : () -> f64
      %d = arith.addf %c, %dt : f64
      %e = arith.addf %d, %again : f64
      stencil.return %e : f64
    }
    stencil.store %v to %A(<[0], [8]>) : !temp to !field
  }
  return
}
"""


@pytest.mark.parametrize("executor", ["numpy", "cpu", "planes"])
def test_numbers_read_by_name_are_arguments(executor: Executor):
    program = timetile.compile(NAMED, executor=executor, cache=False)
    assert [p.name for p in program.parameters] == ["A", "first", "last", "dt"]
    field: Any = np.zeros(8)
    program(field, first=2, last=4, dt=0.25)
    assert field.tolist() == [1.5] * 8


def test_a_number_read_under_two_types_is_refused():
    text = NAMED.replace(
        '%again = "devito.load_symbolic"() {"symbol_name" = "dt"} : () -> f64',
        '%again = "devito.load_symbolic"() {"symbol_name" = "dt"} : () -> f32',
    ).replace("%d, %again : f64", "%d, %d : f64")
    with pytest.raises(CompileError) as caught:
        load_text(text)
    assert str(caught.value) == (
        "devito.load_symbolic in @Kernel (<program>:14): it reads 'dt' as f32, and an earlier "
        "operation as f64; read one type, and convert it with arith"
    )


def test_numbers_read_by_name_keep_numbered_names():
    """xDSL drops `_1` of a name, and numbers equal names when printing."""
    text = NAMED.replace('"first"', '"t_1"').replace('"last"', '"t"')
    program = timetile.compile(text, executor="cpu", cache=False)
    assert [p.name for p in program.parameters] == ["A", "t_1", "t", "dt"]


def test_numbers_are_read_by_name_in_inner_modules():
    types, function = NAMED.split("func.func")
    text = f"{types}builtin.module {{\nbuiltin.module {{\nfunc.func{function}}}\n}}"
    program = timetile.compile(text, executor="cpu", cache=False)
    assert [p.name for p in program.parameters] == ["A", "first", "last", "dt"]


@pytest.mark.parametrize(
    ("symbol", "reason"),
    [
        (
            "A",
            "it reads 'A', and an argument of the function has the name, too; rename the argument",
        ),
        ("1x", "'1x' is no name of an argument; use letters, digits and _"),
    ],
)
def test_a_number_without_a_name_of_its_own_is_refused(symbol: str, reason: str):
    with pytest.raises(CompileError) as caught:
        load_text(NAMED.replace('"first"', f'"{symbol}"'))
    assert str(caught.value) == f"devito.load_symbolic in @Kernel (<program>:5): {reason}"


def test_a_function_of_several_blocks_is_a_valid_program():
    load_text('func.func @f(%n: index) {\n  "cf.br"() [^bb1] : () -> ()\n^bb1:\n  return\n}')
