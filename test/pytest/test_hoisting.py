"""Fields constant in time are computed once a run, with equal bits on every executor."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, f64
from xdsl.ir import Block, SSAValue

import timetile
from timetile.dialects.temporal import LoopOp
from timetile.passes.analysis.cells.cell_functions import cell_function
from timetile.passes.loops.hoist_invariants import values_of_places
from timetile.runtime.program.compiled_program import Executor

pytestmark = pytest.mark.usefixtures("chosen_among_few")

FIELD, LINE = "!stencil.field<[-1,41]x[-1,33]xf64>", "!stencil.field<[0,40]x[0,32]xf64>"
TEMP = "!stencil.temp<?x?xf64>"
TILTED = f"""
func.func @tilted(%A: {FIELD}, %B: {FIELD}, %tilt: {LINE}, %rate: f64, %n: index) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A, %b = %B) -> ({FIELD}, {FIELD}) {{
    %u = stencil.load %a : {FIELD} -> {TEMP}
    %p = stencil.load %tilt : {LINE} -> {TEMP}
    %v = stencil.apply(%x = %u : {TEMP}, %q = %p : {TEMP}, %k = %rate : f64) -> ({TEMP}) {{
      %l = stencil.access %x[-1, 0] : {TEMP}
      %r = stencil.access %x[0, 1] : {TEMP}
      %angle = stencil.access %q[0, 0] : {TEMP}
      %s = math.sin %angle : f64
      %e = math.exp %k : f64
      %w = arith.mulf %s, %e : f64
      %d = arith.subf %r, %l : f64
      %m = arith.mulf %w, %d : f64
      stencil.return %m : f64
    }}
    stencil.store %v to %b(<[0, 0], [40, 32]>) : {TEMP} to {FIELD}
    scf.yield %b, %a : {FIELD}, {FIELD}
  }}
  return
}}
"""
STEPS = 5


def left(executor: Executor) -> list[Any]:
    rng = np.random.default_rng(5)
    a, b, tilt = rng.random((42, 34)), rng.random((42, 34)), rng.random((40, 32))
    timetile.compile(TILTED, executor=executor, cache=False)(a, b, tilt, -0.25, STEPS)
    return [a, b, tilt]


def test_a_function_of_constants_stands_in_a_sweep_before_the_loop():
    program = timetile.compile(TILTED, executor="cpu", cache=False)
    once, loop = (op for op in program.module.walk() if isinstance(op, LoopOp))
    assert once.sweep is not None and loop.sweep is None
    (update,) = loop.updates
    assert len(update.tap_list) == 3, "the tilt gives its place to what is made of it"


@pytest.mark.parametrize("executor", ["numpy", "planes"])
def test_executors_agree_on_hoisted_functions(executor: Executor):
    for right, found in zip(left("cpu"), left(executor), strict=True):
        assert right.tobytes() == found.tobytes()


def test_a_hoisted_function_gives_the_result_of_numpy():
    rng = np.random.default_rng(5)
    a, b, tilt = rng.random((42, 34)), rng.random((42, 34)), rng.random((40, 32))
    for _ in range(STEPS):
        weight = np.sin(tilt) * np.exp(-0.25)
        b[1:-1, 1:-1] = weight * (a[1:-1, 2:] - a[:-2, 1:-1])
        a, b = b, a
    found = left("cpu")
    latest = found[STEPS % 2]
    np.testing.assert_allclose(latest, a, rtol=1e-13)


TURNED = """
!cells = !stencil.field<[-1,41]x[-1,33]xf64>
func.func private @turned(%u: f64, %left: f64, %right: f64, %up: f64) -> f64 {
  %s = math.sin %left : f64
  %t = math.sin %right : f64
  %w = math.sin %up : f64
  %d = arith.mulf %u, %s : f64
  %e = arith.addf %d, %t : f64
  %r = arith.mulf %e, %w : f64
  func.return %r : f64
}
func.func @run(%A: !cells, %B: !cells, %C: !cells, %T: !cells, %n: index) {
  temporal.loop %n (%a = %A, %b = %B, %c = %C) rotate [1, 0, 2] {
    temporal.update %b = @turned(%a[0, 1], %T[-1, 0], %T[1, 0], %T[0, 1]) in <[0, 0], [40, 32]>
    temporal.update %c = @turned(%b[0, 0], %T[0, -1], %T[0, 1], %T[1, 0]) in <[0, 0], [40, 31]>
  } : !cells, !cells, !cells
  func.return
}
"""


@pytest.mark.parametrize("executor", ["numpy", "cpu", "planes"])
def test_functions_at_several_places_are_cells_of_one_field(executor: Executor):
    rng = np.random.default_rng(6)
    a, b, c, tilt = (rng.random((42, 34)) for _ in range(4))
    found = [array.copy() for array in (a, b, c)]
    program = timetile.compile(TURNED, executor=executor, cache=False, fp_contract="off")
    assert len([op for op in program.module.walk() if isinstance(op, LoopOp)]) == 2
    program(*found, tilt, 3)
    sine = np.vectorize(math.sin)(tilt)
    for _ in range(3):
        s, t, w = sine[:-2, 1:-1], sine[2:, 1:-1], sine[1:-1, 2:]
        b[1:-1, 1:-1] = (a[1:-1, 2:] * s + t) * w
        s, t, w = sine[1:-1, :-3], sine[1:-1, 2:-1], sine[2:, 1:-2]
        c[1:-1, 1:-2] = (b[1:-1, 1:-2] * s + t) * w
        a, b = b, a
    for right, array in zip((b, a, c), found, strict=True):
        np.testing.assert_allclose(array, right, rtol=1e-13)


DIVIDED = """
!cells = !stencil.field<[0,8]xi32>
!phase = !stencil.field<[0,8]xf64>
func.func private @divided(%u: i32, %k: f64) -> i32 {
  %e = math.exp %k : f64
  %d = arith.fptosi %e : f64 to i32
  %q = arith.divsi %u, %d : i32
  func.return %q : i32
}
func.func @run(%A: !cells, %B: !cells, %K: !phase, %n: index) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    temporal.update %b = @divided(%a[0], %K[0]) in <[0], [8]>
  } : !cells, !cells
  func.return
}
"""


@pytest.mark.parametrize("executor", ["numpy", "cpu", "planes", "simt"])
def test_a_quotient_keeps_the_test_of_a_divisor_constant_in_time(executor: Executor):
    cells, result = np.arange(-4, 4, dtype=np.int32) * 100, np.zeros(8, np.int32)
    divisors = np.array([0, 1, 2, 3, 0, 5, 6, 7])
    phase = np.where(divisors == 0, -9.0, np.log(np.maximum(divisors, 1) + 0.5))
    timetile.compile(DIVIDED, executor=executor, cache=False)(cells, result, phase, 1)
    assert result.tolist() == [0, -300, -100, -33, 0, 20, 33, 42]


def test_given_passes_without_expand_cells_are_refused():
    with pytest.raises(timetile.CompileError, match="run expand-cells before"):
        timetile.compile(DIVIDED, executor="numpy", passes="raise-time-loop", cache=False)


def test_a_sum_may_be_longer_than_the_interpreters_stack():
    """Each value of 2000 sums, one of the other, is computed from the argument."""
    block = Block(arg_types=[f64])
    value: SSAValue = block.args[0]
    constant = arith.ConstantOp(FloatAttr(1.0, f64))
    block.add_op(constant)
    for _ in range(2000):
        block.add_op(added := arith.AddfOp(value, constant))
        value = added.result
    placed = values_of_places(block)
    assert value in placed and constant.result not in placed
    assert len(placed) == 2001


STEPPED = TILTED.replace(
    f"    scf.yield %b, %a : {FIELD}, {FIELD}",
    f"""\
    %m = builtin.unrealized_conversion_cast %b : {FIELD} to memref<42x34xf64>
    %w = builtin.unrealized_conversion_cast %tilt : {LINE} to memref<40x32xf64>
    %old = memref.load %m[%t, %c1] : memref<42x34xf64>
    %new = arith.addf %old, %rate : f64
    memref.store %new, %STORED : memref<4SIZExf64>
    scf.yield %b, %a : {FIELD}, {FIELD}""",
)
"""The host changes a cell after each step: of the field, or of the tilt."""


@pytest.mark.parametrize("stored", ["field", "tilt"])
def test_a_field_that_the_host_writes_between_steps_is_not_hoisted(stored: str):
    names = {"field": ("m[%t, %c1]", "2x34"), "tilt": ("w[%t, %c1]", "0x32")}[stored]
    text = STEPPED.replace("STORED", names[0]).replace("SIZE", names[1])
    rng = np.random.default_rng(6)
    a, b, tilt = rng.random((42, 34)), rng.random((42, 34)), rng.random((40, 32))
    found = [a.copy(), b.copy(), tilt.copy()]
    program = timetile.compile(text, executor="planes", cache=False)
    program(*found, -0.25, STEPS)
    for t in range(STEPS):
        weight = np.sin(tilt) * np.exp(-0.25)
        b[1:-1, 1:-1] = weight * (a[1:-1, 2:] - a[:-2, 1:-1])
        (b if stored == "field" else tilt)[t, 1] = b[t, 1] - 0.25
        a, b = b, a
    np.testing.assert_allclose(found[STEPS % 2], a, rtol=1e-12, atol=1e-16)
    *_, in_steps = (op for op in program.module.walk() if isinstance(op, LoopOp))
    (update,) = in_steps.updates
    function = cell_function(program.module, update)
    has_sine = any(op.name == "math.sin" for op in function.walk())
    assert has_sine == (stored == "tilt")
