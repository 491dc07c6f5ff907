"""Loops over a part of a column inside a cell: sums from and to the cell's own place."""

from __future__ import annotations

import numpy as np
import pytest

import timetile
from support.steps import noise
from timetile.passes.diagnostics import CompileError
from timetile.runtime.program.compiled_program import Executor

FIELD, TEMP = "!stencil.field<[0,4]x[0,6]xf64>", "!stencil.temp<?x?xf64>"


def column(begin: str, end: str, place: str = "%l") -> str:
    """A sum of a column's cells from a place to another; `place` names the cell that is read."""
    return f"""
func.func @column(%a: {FIELD}, %b: {FIELD}) {{
  %u = stencil.load %a : {FIELD} -> {TEMP}
  %r = stencil.apply(%x = %u : {TEMP}) -> ({TEMP}) {{
    %i = stencil.index 0 <[0, 0]>
    %k = stencil.index 1 <[0, 0]>
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c6 = arith.constant 6 : index
    %next = arith.addi %k, %c1 : index
    %z = arith.constant 0.0 : f64
    %s = scf.for %l = {begin} to {end} step %c1 iter_args(%y = %z) -> (f64) {{
      %m = arith.subi %l, %c1 : index
      %e = stencil.dyn_access %x[%i, {place}] in <[0, -5]> : <[0, 5]> : {TEMP}
      %n = arith.addf %y, %e : f64
      scf.yield %n : f64
    }}
    stencil.return %s : f64
  }}
  stencil.store %r to %b(<[0, 0], [4, 6]>) : {TEMP} to {FIELD}
  return
}}
"""


@pytest.mark.covering
@pytest.mark.parametrize("executor", ["numpy", "cpu", "ptx"])
@pytest.mark.parametrize(("begin", "end"), [("%k", "%c6"), ("%c0", "%next"), ("%c0", "%k")])
def test_a_sum_of_a_part_of_the_column(begin: str, end: str, executor: Executor):
    program = timetile.compile(column(begin, end), executor=executor, cache=False)
    a, b = noise(4, 6), np.zeros((4, 6))
    program(a, b)
    for k in range(6):
        first = k if begin == "%k" else 0
        last = {"%c6": 6, "%next": k + 1, "%k": k}[end]
        wanted = np.zeros(4)
        for place in range(first, last):
            wanted = wanted + a[:, place]
        assert b[:, k].tobytes() == wanted.tobytes()


def test_a_place_computed_from_the_iteration_is_refused():
    with pytest.raises(CompileError) as raised:
        timetile.compile(column("%k", "%c6", "%m"), executor="numpy", cache=False)
    assert "its bounds are constants or places of the stored cells" in str(raised.value)
