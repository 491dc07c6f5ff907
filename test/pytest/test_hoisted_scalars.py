"""Quotients and roots of scalars are computed by the host, with the bits of the cells."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects import arith, math

import timetile
from support.ranks import Ranks
from timetile.passes.analysis.cells.cell_functions import cell_functions
from timetile.passes.loops.hoist_scalars import HoistScalarsPass
from timetile.passes.time_loops import temporal_passes
from timetile.runtime.program.compiled_program import CompiledProgram, Executor

pytestmark = pytest.mark.usefixtures("chosen_among_few")

EXECUTORS: tuple[Executor, ...] = ("numpy", "cpu", "planes", "simt", "ptx")
STEPS = 5


def text_of(element: str) -> str:
    """A step with a quotient, a root, a fused sum and a shared quotient of three scalars."""
    field, temp = f"!stencil.field<[-1,38]x[-1,30]x{element}>", f"!stencil.temp<?x?x{element}>"
    return f"""
func.func @step(%A: {field}, %B: {field}, %k: {element}, %h: {element}, %a: {element}, %n: index) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%u = %A, %v = %B) -> ({field}, {field}) {{
    %x = stencil.load %u : {field} -> {temp}
    %y = stencil.apply(%w = %x : {temp}, %k1 = %k : {element}, %h1 = %h : {element},
        %a1 = %a : {element}) -> ({temp}) {{
      %c = stencil.access %w[0, 0] : {temp}
      %e = stencil.access %w[1, 0] : {temp}
      %l = stencil.access %w[0, -1] : {temp}
      %hh = arith.mulf %h1, %h1 : {element}
      %q = arith.divf %k1, %hh : {element}
      %s = arith.addf %hh, %k1 : {element}
      %p = math.sqrt %s : {element}
      %o = arith.divf %a1, %p : {element}
      %z = arith.mulf %q, %e : {element}
      %y = arith.mulf %o, %l : {element}
      %f = arith.addf %z, %y : {element}
      %d = arith.divf %f, %h1 : {element}
      %g = arith.addf %c, %d : {element}
      stencil.return %g : {element}
    }}
    stencil.store %y to %v(<[0, 0], [37, 29]>) : {temp} to {field}
    scf.yield %v, %u : {field}, {field}
  }}
  return
}}
"""


def without_hoisting(contract: Any) -> tuple[Any, ...]:
    """The passes to time loops without the pass."""
    return tuple(p for p in temporal_passes(contract) if not isinstance(p, HoistScalarsPass))


def slow_operations(program: CompiledProgram) -> list[str]:
    """The quotients and roots left in the cells of a program."""
    return [
        op.name
        for function in cell_functions(program.module)
        for op in function.body.block.ops
        if isinstance(op, arith.DivfOp | math.SqrtOp)
    ]


def left(program: CompiledProgram, kind: type[Any], scalars: tuple[Any, ...]) -> list[Any]:
    """The fields after a run on random cells."""
    a = np.random.default_rng(5).random((39, 31)).astype(kind)
    fields = [a, a.copy()]
    program(*fields, *scalars, STEPS)
    return fields


def expected(kind: type[Any], scalars: tuple[Any, ...]) -> list[Any]:
    """The fields after the steps, by NumPy, each operation rounded."""
    a = np.random.default_rng(5).random((39, 31)).astype(kind)
    u, v = a, a.copy()
    k, h, rate = (kind(number) for number in scalars)
    for _ in range(STEPS):
        q, o = k / (h * h), rate / np.sqrt(h * h + k)
        v[1:-1, 1:-1] = u[1:-1, 1:-1] + (q * u[2:, 1:-1] + o * u[1:-1, :-2]) / h
        u, v = v, u
    return [v, u] if STEPS % 2 else [u, v]


@pytest.mark.covering
@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("executor", EXECUTORS)
def test_every_executor_has_the_bits_of_numpy(executor: Executor, kind: type[Any]):
    text = text_of("f64" if kind is np.float64 else "f32")
    scalars = (0.0137, 0.71, 1e-3)
    program = timetile.compile(text, executor=executor, fp_contract="off", cache=False)
    assert slow_operations(program) == ["arith.divf"]
    for made, wanted in zip(left(program, kind, scalars), expected(kind, scalars), strict=True):
        assert np.array_equal(made, wanted)


@pytest.mark.covering
@pytest.mark.parametrize("contract", ["fast", "off"])
@pytest.mark.parametrize("executor", ["cpu", "planes"])
def test_bits_are_equal_to_quotients_computed_in_cells(executor: Any, contract: Any):
    """Scalars are drawn, and zeros, infinities and tiny numbers, too."""
    text, random = text_of("f64"), np.random.default_rng(3)
    hoisted = timetile.compile(text, executor=executor, fp_contract=contract, cache=False)
    own = timetile.compile(text, executor=executor, passes=without_hoisting(contract), cache=False)
    assert len(slow_operations(own)) == 4
    drawn = [tuple(random.lognormal(size=3)) for _ in range(5)]
    special = [(1.0, 0.0, 1.0), (0.0, 0.0, 1.0), (5e-324, 1e-160, 1.0), (np.inf, 2.0, np.nan)]
    for scalars in [*drawn, *special]:
        for made, wanted in zip(
            left(hoisted, np.float64, scalars), left(own, np.float64, scalars), strict=True
        ):
            assert np.array_equal(made, wanted, equal_nan=True)


@pytest.mark.parametrize("as_given", [float, np.float64, np.float32])
def test_a_scalar_has_the_type_of_the_program(as_given: type[Any]):
    scalars = tuple(as_given(number) for number in (0.25, 0.7, 1e-3))
    program = timetile.compile(text_of("f64"), executor="cpu", fp_contract="off", cache=False)
    plain = tuple(float(number) for number in scalars)
    for made, wanted in zip(
        left(program, np.float64, scalars), expected(np.float64, plain), strict=True
    ):
        assert np.array_equal(made, wanted)


def test_ranks_compute_the_numbers_of_the_host_alike():
    scalars = (0.0137, 0.71, 1e-3)
    a = np.random.default_rng(5).random((39, 31))
    found, _ = Ranks(3).run(text_of("f64"), [a, a.copy(), *scalars, STEPS])
    for own in found:
        for made, wanted in zip(own[:2], expected(np.float64, scalars), strict=True):
            assert np.array_equal(made, wanted)


def test_a_step_in_python_computes_a_quotient_of_scalars_once():
    @timetile.stencil
    def heat(u: timetile.Field, k: timetile.Scalar, h: timetile.Scalar):
        u.next = u[0, 0] + k / (h * h) * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u[0, 0])

    program = timetile.compile(heat.module((21, 34)), executor="cpu", cache=False)
    assert slow_operations(program) == []
