"""
A sweep after a loop reads the loop's results, in any buffer, also if the sweep writes the buffer.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import timetile
from timetile.runtime.program.compiled_program import Executor

F, T = "!stencil.field<[-1,17]xf64>", "!stencil.temp<?xf64>"

AFTER = f"""
func.func @step(%u: {F}, %v: {F}, %n: index) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %u, %b = %v) -> ({F}, {F}) {{
    %x = stencil.load %a : {F} -> {T}
    %y = stencil.apply(%p = %x : {T}) -> ({T}) {{
      %q = stencil.access %p[-1] : {T}
      stencil.return %q : f64
    }}
    stencil.store %y to %b(<[0], [16]>) : {T} to {F}
    scf.yield %b, %a : {F}, {F}
  }}
  %x2 = stencil.load %r#0 : {F} -> {T}
  %y2 = stencil.apply(%p = %x2 : {T}) -> ({T}) {{
    %q = stencil.access %p[OFFSET] : {T}
    stencil.return %q : f64
  }}
  stencil.store %y2 to %v(<[0], [16]>) : {T} to {F}
  func.return
}}"""


def expected(u: Any, v: Any, steps: int, offset: int) -> None:
    """The program, cell by cell: a load takes all cells before a store writes any."""
    first, second = u, v
    for _ in range(steps):
        second[1:17] = first[0:16].copy()
        first, second = second, first
    v[1:17] = first[1 + offset : 17 + offset].copy()


@pytest.mark.covering
@pytest.mark.parametrize("executor", ["cpu", "numpy", "planes", "simt"])
@pytest.mark.parametrize("offset", [-1, 0, 1])
def test_a_sweep_may_read_and_write_one_buffer_by_two_names(offset: int, executor: Executor):
    text = AFTER.replace("OFFSET", str(offset))
    program = timetile.compile(text, executor=executor, depth=2, cache=False)
    # A program on its second call has the copy of the first call.
    for steps in (0, 1, 2, 3, 3, 4):
        u, v = (np.random.default_rng(k).random(18) for k in range(2))
        first, second = u.copy(), v.copy()
        program(u, v, steps)
        expected(first, second, steps, offset)
        assert np.array_equal(u, first) and np.array_equal(v, second), steps
