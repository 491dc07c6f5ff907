"""Memrefs of time levels, picked by the number of the step, end with the cells of their loops."""

from __future__ import annotations

import numpy as np
import pytest

import timetile
from support.nest_semantics import run_nests
from timetile.dialects.temporal import LoopOp
from timetile.runtime.loading import load_text
from timetile.runtime.program.compiled_program import Executor

pytestmark = pytest.mark.usefixtures("chosen_among_few")

CONSTANTS = "\n".join(f"  %c{n} = arith.constant {n} : index" for n in range(13))

NEST = """
    scf.for %i = %c1 to %c9 step %c1 {{
      %im = arith.subi %i, %c1 : index
      scf.for %j = %c0 to %c12 step %c1 {{
        %1 = memref.load %U[{0}, %im, %j] : {kind}
        %2 = memref.load %U[{1}, %i, %j] : {kind}
        %s = arith.subf %1, %2 : f64
        memref.store %s, %U[{2}, %i, %j] : {kind}
      }}
    }}
"""

TWO = f"""
func.func @two(%U: memref<2x10x12xf64>, %n: index) {{
{CONSTANTS}
  scf.for %t = %c0 to %n step %c1 {{
    %t1 = arith.addi %t, %c1 : index
    %now = arith.remui %t, %c2 : index
    %next = arith.remui %t1, %c2 : index
{NEST.format("%now", "%now", "%next", kind="memref<2x10x12xf64>")}
  }}
  return
}}
"""

THREE_OF_C = f"""
func.func @three(%U: memref<?x10x12xf64>, %n: index) {{
{CONSTANTS}
  %one = arith.constant 1 : i32
  %two = arith.constant 2 : i32
  %three = arith.constant 3 : i32
{NEST.format("%c0", "%c2", "%c1", kind="memref<?x10x12xf64>")}
  scf.for %t = %c2 to %n step %c1 {{
    %step = arith.index_cast %t : index to i32
    %a = arith.subi %step, %two : i32
    %b = arith.subi %step, %one : i32
    %ra = arith.remsi %a, %three : i32
    %rb = arith.remsi %b, %three : i32
    %rc = arith.remsi %step, %three : i32
    %old = arith.index_cast %ra : i32 to index
    %now = arith.index_cast %rb : i32 to index
    %next = arith.index_cast %rc : i32 to index
{NEST.format("%now", "%old", "%next", kind="memref<?x10x12xf64>")}
  }}
  return
}}
"""

AFFINE = """
func.func @affine(%U: memref<2x10x12xf64>, %n: index) {
  affine.for %t = 0 to %n {
    affine.for %i = 1 to 9 {
      affine.for %j = 0 to 11 {
        %1 = affine.load %U[%t mod 2, %i - 1, %j] : memref<2x10x12xf64>
        %2 = affine.load %U[(%t + 1) mod 2, %i, %j + 1] : memref<2x10x12xf64>
        %s = arith.subf %1, %2 : f64
        affine.store %s, %U[(%t + 1) mod 2, %i, %j] : memref<2x10x12xf64>
      }
    }
  }
  return
}
"""

PROGRAMS = {"two": (TWO, 2), "three of C": (THREE_OF_C, 3), "affine": (AFFINE, 2)}


@pytest.mark.parametrize("executor", ["numpy", "cpu", "planes"])
@pytest.mark.parametrize("steps", [0, 5, 6])
@pytest.mark.parametrize("name", PROGRAMS)
def test_levels_end_with_the_cells_of_their_loops(name: str, steps: int, executor: Executor):
    text, count = PROGRAMS[name]
    given = np.random.default_rng(count).uniform(-1, 1, (count, 10, 12))
    expected = given.copy()
    run_nests(load_text(text), [expected, steps])
    program = timetile.compile(text, executor=executor, fp_contract="off", cache=False)
    assert [p.name for p in program.parameters] == [*(f"U{k}" for k in range(count)), "n"]
    program(*given, steps)
    np.testing.assert_array_equal(given, expected)


@pytest.mark.parametrize("name", ["two", "affine"])
def test_levels_take_turns_in_one_time_loop(name: str):
    program = timetile.compile(PROGRAMS[name][0], executor="numpy", cache=False)
    (loop,) = [op for op in program.module.walk() if isinstance(op, LoopOp)]
    assert loop.sweep is None
    assert list(loop.rotation)[:2] == [1, 0]
