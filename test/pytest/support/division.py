"""Programs for quotients and roots of two fields' cells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import timetile
from support.compare import bits_of
from timetile.dialects import simt
from timetile.dialects.tile import LANES
from timetile.runtime.arithmetic import cells as arithmetic
from timetile.runtime.executors.simt import interpreter
from timetile.runtime.program.compiled_program import Executor

Array = NDArray[Any]

KINDS: dict[str, type[np.floating[Any]]] = {"f64": np.float64, "f32": np.float32}


TILE = 128
"""Cells of a warp's tile: 4 a lane, in FP32."""


@dataclass(frozen=True)
class Body:
    """A cell of `%a` and `%b` with result `%r`, and NumPy's result."""

    text: str
    expected: Callable[[Array, Array], Array]


SINGLE = {
    "quotient": Body("%r = arith.divf %a, %b", lambda a, b: a / b),
    "reciprocal": Body("%r = arith.divf %one, %b", lambda a, b: np.divide(b.dtype.type(1), b)),
    "root": Body("%r = math.sqrt %a", lambda a, b: np.sqrt(a)),
    "reciprocal root": Body(
        "%r = math.rsqrt %a", lambda a, b: np.divide(a.dtype.type(1), np.sqrt(a))
    ),
}
"""Bodies of a single quotient or root."""


def points(body: str, element: str, cells: int) -> str:
    """Every cell of the third field is made of the first two's."""
    field, temp = f"!stencil.field<[0,{cells}]x{element}>", f"!stencil.temp<?x{element}>"
    return f"""
    func.func @points(%A: {field}, %B: {field}, %C: {field}, %n: index) {{
      %zero = arith.constant 0 : index
      %step = arith.constant 1 : index
      scf.for %t = %zero to %n step %step {{
        %x = stencil.load %A : {field} -> {temp}
        %y = stencil.load %B : {field} -> {temp}
        %z = stencil.apply(%u = %x : {temp}, %v = %y : {temp}) -> ({temp}) {{
          %a = stencil.access %u[0] : {temp}
          %b = stencil.access %v[0] : {temp}
          %one = arith.constant 1.0 : {element}
          {body.replace("TYPE", element)} : {element}
          stencil.return %r : {element}
        }}
        stencil.store %z to %C(<[0], [{cells}]>) : {temp} to {field}
      }}
      func.return
    }}"""


def compare(element: str, body: Body, executor: Executor, a: Array, b: Array) -> None:
    """The program's cells are NumPy's cells, bit for bit; all NaNs count as equal."""
    result = np.zeros_like(a)
    compiled = timetile.compile(points(body.text, element, len(a)), executor=executor, cache=False)
    compiled(a.copy(), b.copy(), result, 1, steps=1)
    with np.errstate(all="ignore"):
        wanted = body.expected(a, b)
    wrong = (bits_of(result) != bits_of(wanted)) & ~(np.isnan(result) & np.isnan(wanted))
    assert not wrong.any(), (a[wrong][:3], b[wrong][:3], result[wrong][:3], wanted[wrong][:3])


def guess_off_by(share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    In the SIMT interpreter, the FP64 start of Newton's method is off by a share of the value, and
    has the upper word's bits only, like the hardware's.
    """

    def off(guess: Callable[[Array], Array]) -> Callable[[Array], Array]:
        def apply(a: Array) -> Array:
            about = guess(a)
            if about.dtype != np.float64:
                return about
            with np.errstate(all="ignore"):
                moved = about * (1 + share)
            return (moved.view(np.uint64) & ~np.uint64(0xFFFFFFFF)).view(np.float64)

        return apply

    for op in (simt.ReciprocalOp, simt.ReciprocalRootOp):
        monkeypatch.setitem(arithmetic.MACHINE, op, off(arithmetic.MACHINE[op]))


@dataclass
class Votes:
    """How many warps took each side of a branch of `expand-division`."""

    quick: int = 0
    exact: int = 0


def counted_votes(monkeypatch: pytest.MonkeyPatch) -> Votes:
    """The branch sides of the SIMT interpreter during a test."""
    counted = Votes()
    original = interpreter.HANDLERS[simt.AllOp]

    def count(launch: interpreter.SimtLaunch, op: simt.AllOp, active: Array) -> None:
        original(launch, op, active)
        sides = launch.spread(op.result)[active][::LANES]
        counted.quick += int(sides.sum())
        counted.exact += int((~sides).sum())

    monkeypatch.setitem(interpreter.HANDLERS, simt.AllOp, count)
    return counted
