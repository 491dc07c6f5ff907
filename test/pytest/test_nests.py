"""Loops over memrefs end with the cells of the loops, run one cell after the other."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import timetile
from support.nest_semantics import run_nests
from timetile.dialects.temporal import LoopOp, UpdateOp
from timetile.passes.diagnostics import collected_remarks
from timetile.runtime.cli import main
from timetile.runtime.loading import load_text
from timetile.runtime.program.compiled_program import Executor

pytestmark = pytest.mark.usefixtures("chosen_among_few")

CONSTANTS = "\n".join(f"  %c{n} = arith.constant {n} : index" for n in range(13))

SWAPPED = f"""
func.func @heat(%A: memref<10x12xf64>, %B: memref<10x12xf64>, %n: index) {{
{CONSTANTS}
  %q = arith.constant 0.25 : f64
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A, %b = %B)
      -> (memref<10x12xf64>, memref<10x12xf64>) {{
    scf.for %i = %c1 to %c9 step %c1 {{
      %im = arith.subi %i, %c1 : index
      %ip = arith.addi %c1, %i : index
      scf.for %j = %c1 to %c11 step %c1 {{
        %jm = arith.subi %j, %c1 : index
        %jp = arith.addi %j, %c1 : index
        %1 = memref.load %a[%im, %j] : memref<10x12xf64>
        %2 = memref.load %a[%ip, %j] : memref<10x12xf64>
        %3 = memref.load %a[%i, %jm] : memref<10x12xf64>
        %4 = memref.load %a[%i, %jp] : memref<10x12xf64>
        %s = arith.addf %1, %2 : f64
        %s1 = arith.addf %s, %3 : f64
        %s2 = arith.addf %s1, %4 : f64
        %m = arith.mulf %s2, %q : f64
        memref.store %m, %b[%i, %j] : memref<10x12xf64>
      }}
    }}
    scf.yield %b, %a : memref<10x12xf64>, memref<10x12xf64>
  }}
  return
}}
"""

POLYBENCH = """
func.func @jacobi(%tsteps: i32, %A: memref<?x12xf64>, %B: memref<?x12xf64>) {
  %q = arith.constant 0.2 : f64
  %n = arith.index_cast %tsteps : i32 to index
  affine.for %t = 0 to %n {
    affine.for %i = 1 to 9 {
      affine.for %j = 1 to 11 {
        %1 = affine.load %A[%i, %j] : memref<?x12xf64>
        %2 = affine.load %A[%i, %j - 1] : memref<?x12xf64>
        %3 = affine.load %A[%i + 1, %j] : memref<?x12xf64>
        %s = arith.addf %1, %2 : f64
        %s1 = arith.addf %s, %3 : f64
        %m = arith.mulf %s1, %q : f64
        affine.store %m, %B[%i, %j] : memref<?x12xf64>
      }
    }
    affine.for %i = 1 to 9 {
      affine.for %j = 1 to 11 {
        %1 = affine.load %B[%i, %j] : memref<?x12xf64>
        %2 = affine.load %B[%i - 1, %j] : memref<?x12xf64>
        %s = arith.addf %1, %2 : f64
        affine.store %s, %A[%i, %j] : memref<?x12xf64>
      }
    }
  }
  return
}
"""

EDGES_AND_PROFILE = f"""
func.func @damped(%u: memref<10x12xf64>, %v: memref<10x12xf64>, %w: memref<12xf64>,
    %wave: memref<9xf64>, %k: f64, %n: index) {{
{CONSTANTS}
  %four = arith.constant 4 : i32
  scf.for %t = %c0 to %n step %c1 {{
    %amp = memref.load %wave[%t] : memref<9xf64>
    scf.for %i = %c1 to %c9 step %c1 {{
      scf.for %j = %c0 to %c12 step %c1 {{
        %im = arith.subi %i, %c1 : index
        %1 = memref.load %u[%im, %j] : memref<10x12xf64>
        %2 = memref.load %w[%j] : memref<12xf64>
        %3 = memref.load %v[%i, %j] : memref<10x12xf64>
        %at = arith.index_cast %i : index to i32
        %near = arith.cmpi slt, %at, %four : i32
        %4 = scf.if %near -> (f64) {{
          scf.yield %1 : f64
        }} else {{
          %e = memref.load %u[%i, %j] : memref<10x12xf64>
          %f = arith.addf %e, %k : f64
          scf.yield %f : f64
        }}
        %5 = arith.mulf %4, %2 : f64
        %6 = arith.addf %5, %3 : f64
        %7 = arith.addf %6, %amp : f64
        memref.store %7, %v[%i, %j] : memref<10x12xf64>
      }}
    }}
    scf.for %j = %c0 to %c12 step %c1 {{
      %1 = memref.load %v[%c1, %j] : memref<10x12xf64>
      memref.store %1, %v[%c0, %j] : memref<10x12xf64>
      %2 = memref.load %v[%c8, %j] : memref<10x12xf64>
      memref.store %2, %u[%c9, %j] : memref<10x12xf64>
    }}
    "scf.parallel"(%c0, %c0, %c10, %c12, %c1, %c1)
        <{{operandSegmentSizes = array<i32: 2, 2, 2, 0>}}> ({{
    ^bb0(%i: index, %j: index):
      %1 = memref.load %v[%i, %j] : memref<10x12xf64>
      memref.store %1, %u[%i, %j] : memref<10x12xf64>
      scf.reduce
    }}) : (index, index, index, index, index, index) -> ()
  }}
  return
}}
"""

IN_TURN = f"""
func.func @shifted(%A: memref<9x10x11xf64>, %B: memref<9x10x11xf64>, %n: index) {{
{CONSTANTS}
  scf.for %t = %c0 to %n step %c1 {{
    scf.for %i = %c1 to %c8 step %c1 {{
      scf.for %j = %c0 to %c9 step %c1 {{
        scf.for %k = %c0 to %c11 step %c1 {{
          %ip = arith.addi %i, %c1 : index
          %jp = arith.addi %j, %c1 : index
          %im = arith.subi %i, %c1 : index
          %1 = memref.load %A[%ip, %j, %k] : memref<9x10x11xf64>
          %2 = memref.load %A[%i, %jp, %k] : memref<9x10x11xf64>
          %s = arith.subf %1, %2 : f64
          memref.store %s, %B[%im, %j, %k] : memref<9x10x11xf64>
          %3 = memref.load %B[%im, %j, %k] : memref<9x10x11xf64>
          %4 = memref.load %B[%im, %jp, %k] : memref<9x10x11xf64>
          %d = arith.subf %3, %4 : f64
          memref.store %d, %A[%i, %j, %k] : memref<9x10x11xf64>
        }}
      }}
    }}
  }}
  return
}}
"""

CELL_LOOP = f"""
func.func @summed(%A: memref<10x12xf64>, %B: memref<10x12xf64>, %n: index) {{
{CONSTANTS}
  %zero = arith.constant 0.0 : f64
  scf.for %t = %c0 to %n step %c1 {{
    scf.for %i = %c1 to %c9 step %c1 {{
      scf.for %j = %c1 to %c11 step %c1 {{
        %s = scf.for %k = %c0 to %c3 step %c1 iter_args(%sum = %zero) -> (f64) {{
          %d = arith.subi %k, %c1 : index
          %at = arith.addi %j, %d : index
          %v = memref.load %A[%i, %at] : memref<10x12xf64>
          %next = arith.addf %sum, %v : f64
          scf.yield %next : f64
        }}
        memref.store %s, %B[%i, %j] : memref<10x12xf64>
      }}
    }}
  }}
  return
}}
"""

PROGRAMS = {
    "a loop in a cell": CELL_LOOP,
    "swapped": SWAPPED,
    "polybench": POLYBENCH,
    "edges": EDGES_AND_PROFILE,
    "in turn": IN_TURN,
}


def arguments(text: str, steps: int, seed: int) -> dict[str, Any]:
    """Random arrays and numbers for the arguments of a program."""
    random = np.random.default_rng(seed)
    made: dict[str, Any] = {}
    for parameter in timetile.compile(text, executor="numpy", cache=False).parameters:
        assert parameter.name is not None
        if parameter.name in ("n", "tsteps"):
            made[parameter.name] = steps
        else:
            made[parameter.name] = (
                random.uniform(-1, 1, parameter.shape) if parameter.shape else 0.5
            )
    return made


def check(text: str, executor: Executor, steps: int, seed: int = 1) -> timetile.CompiledProgram:
    """A program, after its arrays were found to be the evaluated program's, bit for bit."""
    given = arguments(text, steps, seed)
    expected = copy.deepcopy(given)
    run_nests(load_text(text), list(expected.values()))
    program = timetile.compile(text, executor=executor, fp_contract="off", cache=False)
    program(**given)
    for name, value in expected.items():
        np.testing.assert_array_equal(given[name], value, name)
    return program


@pytest.mark.parametrize("executor", ["numpy", "cpu", "planes"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_nests_end_with_the_cells_of_their_loops(name: str, executor: Executor):
    with collected_remarks() as remarks:
        program = check(PROGRAMS[name], executor, steps=5)
    assert not [each for each in remarks if "cell by cell" in each.reason]
    assert any(isinstance(op, UpdateOp) for op in program.module.walk())


@pytest.mark.parametrize("name", ["swapped", "polybench", "in turn"])
def test_a_time_loop_over_nests_is_one_time_loop(name: str):
    program = timetile.compile(PROGRAMS[name], executor="numpy", cache=False)
    (loop,) = [op for op in program.module.walk() if isinstance(op, LoopOp)]
    assert loop.sweep is None


def test_an_open_extent_is_what_the_nests_reach():
    program = timetile.compile(POLYBENCH, executor="numpy", cache=False)
    assert [p.shape for p in program.parameters] == [(), (10, 12), (10, 12)]


def test_nests_run_from_the_command_line(tmp_path: Path):
    file, out = tmp_path / "heat.mlir", tmp_path / "out.npz"
    file.write_text(SWAPPED)
    given = arguments(SWAPPED, 6, seed=3)
    np.savez(tmp_path / "in.npz", A=given["A"], B=given["B"])
    words = ("--fp-contract", "off", "--no-cache", "--executor", "cpu")
    command = ["run", str(file), "--steps", "6", "--args", str(tmp_path / "in.npz")]
    assert main([*command, *words, "--out", str(out)]) == 0
    run_nests(load_text(SWAPPED), list(given.values()))
    with np.load(out) as written:
        np.testing.assert_array_equal(written["arg0"], given["A"])
        np.testing.assert_array_equal(written["arg1"], given["B"])


# Nests drawn at random: raised or left to the host, the cells are the loops'.

Shift = tuple[int, int]
Statement = tuple[list[tuple[str, Shift]], str, Shift]
"""The cells read by a sum, the memory of the sum, and the place written there."""

SHIFTS = st.tuples(st.integers(-1, 1), st.integers(-1, 1))
LOADS = st.lists(st.tuples(st.sampled_from("AB"), SHIFTS), min_size=1, max_size=3)
STATEMENTS = st.lists(
    st.tuples(LOADS, st.sampled_from("AB"), st.tuples(st.integers(-1, 0), st.integers(0, 1))),
    min_size=1,
    max_size=3,
)


def drawn(nests: list[list[Statement]]) -> str:
    """A time loop with a nest for each list of statements."""
    lines = [
        f"func.func @drawn(%A: memref<7x8xf64>, %B: memref<7x8xf64>, %n: index) {{\n{CONSTANTS}"
    ]
    lines += ["  %m1 = arith.constant -1 : index", "  %q = arith.constant 0.375 : f64"]
    lines += ["  scf.for %t = %c0 to %n step %c1 {"]
    count = 0

    def name() -> str:
        nonlocal count
        count += 1
        return f"%v{count}"

    def moved(number: str, by: int) -> str:
        made = name()
        constant = {-1: "%m1", 0: "%c0", 1: "%c1"}[by]
        lines.append(f"    {made} = arith.addi {number}, {constant} : index")
        return made

    for statements in nests:
        lines.append("    scf.for %i = %c1 to %c6 step %c1 {")
        lines.append("    scf.for %j = %c1 to %c7 step %c1 {")
        for loads, target, at in statements:
            total = "%q"
            for memory, shift in loads:
                place = f"{moved('%i', shift[0])}, {moved('%j', shift[1])}"
                cell, scaled, added = name(), name(), name()
                lines.append(f"    {cell} = memref.load %{memory}[{place}] : memref<7x8xf64>")
                lines.append(f"    {scaled} = arith.mulf {cell}, %q : f64")
                lines.append(f"    {added} = arith.addf {total}, {scaled} : f64")
                total = added
            place = f"{moved('%i', at[0])}, {moved('%j', at[1])}"
            lines.append(f"    memref.store {total}, %{target}[{place}] : memref<7x8xf64>")
        lines += ["    }", "    }"]
    return "\n".join([*lines, "  }", "  return", "}"])


@given(nests=st.lists(STATEMENTS, min_size=1, max_size=2))
def test_drawn_nests_end_with_the_cells_of_their_loops(nests: list[list[Statement]]):
    check(drawn(nests), "numpy", steps=3)
