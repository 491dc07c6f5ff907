"""
Programs of frontends with views of memrefs, carried memrefs and values, addresses, and parallel
loops in MLIR's own form: all end with the cells of the program read operation by operation.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import timetile
from timetile.dialects.temporal import LoopOp
from timetile.runtime.program.compiled_program import Executor

pytestmark = pytest.mark.usefixtures("chosen_among_few")

CONSTANTS = "\n".join(f"  %c{n} = arith.constant {n} : index" for n in (0, 1, 2, 5, 9, 11))
PART = "memref<10x12xf64, strided<[12, 1], offset: ?>>"

NEST = """
    scf.parallel (%i, %j) = (%c1, %c1) to (%c9, %c11) step (%c1, %c1) {{
      %im = arith.subi %i, %c1 : index
      %x = memref.load {a}[%im, %j] : {kind}
      %y = memref.load {a}[%i, %j] : {kind}
      %s = arith.subf %y, %x : f64
      memref.store %s, {b}[%i, %j] : {kind}
      scf.reduce
    }}
"""

VIEWED = f"""
func.func @viewed(%U: memref<2x10x12xf64>, %n: index) {{
{CONSTANTS}
  scf.for %t = %c0 to %n step %c1 {{
    %p = arith.remui %t, %c2 : index
    %q = arith.subi %c1, %p : index
    %a = memref.subview %U[%p, 0, 0] [1, 10, 12] [1, 1, 1] : memref<2x10x12xf64> to {PART}
    %b = memref.subview %U[%q, 0, 0] [1, 10, 12] [1, 1, 1] : memref<2x10x12xf64> to {PART}
{NEST.format(a="%a", b="%b", kind=PART)}
  }}
  return
}}
"""

CARRIED_VIEWS = f"""
func.func @carried(%U: memref<2x10x12xf64>, %n: index) {{
{CONSTANTS}
  %u = memref.subview %U[0, 0, 0] [1, 10, 12] [1, 1, 1] : memref<2x10x12xf64> to {PART}
  %v = memref.subview %U[1, 0, 0] [1, 10, 12] [1, 1, 1] : memref<2x10x12xf64> to {PART}
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %u, %b = %v) -> ({PART}, {PART}) {{
{NEST.format(a="%a", b="%b", kind=PART)}
    scf.yield %b, %a : {PART}, {PART}
  }}
  return
}}
"""

FIELDS = f"""
!memref = memref<10x12xf64>
!field = !stencil.field<[-1,9]x[-1,11]xf64>
!temp = !stencil.temp<?x?xf64>
func.func @fields(%U: i64, %V: !llvm.ptr, %n: index) {{
{CONSTANTS}
  %pu = llvm.inttoptr %U : i64 to !llvm.ptr
  %u = builtin.unrealized_conversion_cast %pu : !llvm.ptr to !memref
  %at = memref.extract_aligned_pointer_as_index %u : !memref -> index
  %number = arith.index_cast %at : index to i64
  %again = llvm.inttoptr %number : i64 to !llvm.ptr
  %w = builtin.unrealized_conversion_cast %again : !llvm.ptr to !memref
  %v = builtin.unrealized_conversion_cast %V : !llvm.ptr to !memref
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %w, %b = %v) -> (!memref, !memref) {{
    %fa = stencil.external_load %a : !memref -> !field
    %fb = stencil.external_load %b : !memref -> !field
    %c = stencil.load %fa : !field -> !temp
    %d = stencil.apply(%x = %c : !temp) -> (!temp) {{
      %l = stencil.access %x[-1, 0] : !temp
      %m = stencil.access %x[0, 0] : !temp
      %s = arith.subf %m, %l : f64
      stencil.return %s : f64
    }}
    stencil.store %d to %fb(<[0, 0], [8, 10]>) : !temp to !field
    scf.yield %b, %a : !memref, !memref
  }}
  return
}}
"""

PROGRAMS = {"views": VIEWED, "carried views": CARRIED_VIEWS, "fields": FIELDS}


@pytest.mark.parametrize("name", PROGRAMS)
def test_views_carried_memrefs_and_addresses_are_their_memory(name: str):
    given = np.random.default_rng(3).uniform(-1, 1, (2, 10, 12))
    right = given.copy()
    for step in range(5):
        old, new = right[step % 2], right[1 - step % 2]
        new[1:9, 1:11] = old[1:9, 1:11] - old[0:8, 1:11]
    program = timetile.compile(PROGRAMS[name], executor="planes", cache=False)
    (loop,) = [op for op in program.module.walk() if isinstance(op, LoopOp)]
    assert list(loop.rotation) == [1, 0]
    program(*given, 5)
    assert given.tobytes() == right.tobytes()


PICKED = """
!memref = memref<12xf64>
!field = !stencil.field<[0,12]xf64>
!temp = !stencil.temp<?xf64>
func.func @picked(%A: !memref, %B: !memref, %C: !memref, %first: i1) {
  %m = PICK
  %f = stencil.external_load %m : !memref -> !field
  %g = stencil.external_load %C : !memref -> !field
  %u = stencil.load %f : !field -> !temp
  stencil.store %u to %g(<[1], [9]>) : !temp to !field
  return
}
"""

PICKS = {
    "select": "arith.select %first, %A, %B : !memref",
    "branch": """scf.if %first -> (!memref) {
        scf.yield %A : !memref
      } else {
        scf.yield %B : !memref
      }""",
}


@pytest.mark.parametrize("pick", PICKS)
def test_a_memref_picked_by_a_condition_is_a_field(pick: str):
    text = PICKED.replace("PICK", PICKS[pick])
    program = timetile.compile(text, executor="planes", cache=False)
    for first in (True, False):
        a, b, c = np.arange(36.0).reshape(3, 12)
        program(a, b, c, first)
        assert c[1:9].tolist() == (a if first else b)[1:9].tolist()


VALUE = """
!field = !stencil.field<[-3,15]xf64>
!temp = !stencil.temp<{bounds}xf64>
func.func @carry(%A: !field, %B: !field{arguments}) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  {count}
  %old = stencil.load %A : !field -> !temp
  %now = stencil.load %B : !field -> !temp
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%u = %old, %v = %now) -> (!temp, !temp) {{
    %w = stencil.apply(%x = %v : !temp, %y = %u : !temp) -> (!temp) {{
      %c = stencil.access %x[{shift}] : !temp
      %o = stencil.access %y[0] : !temp
      %s = arith.subf %c, %o : f64
      stencil.return %s : f64
    }}
    scf.yield %v, %w : !temp, !temp
  }}
  stencil.store %r#0 to %A(<[0], [12]>) : !temp to !field
  stencil.store %r#1 to %B(<[0], [12]>) : !temp to !field
  return
}}
"""

VALUES: dict[str, tuple[str, dict[str, str]]] = {
    "bounds of a type": ("0", {"bounds": "[0,12]", "arguments": ", %n: index", "count": ""}),
    "bounds of stores": ("0", {"bounds": "?", "arguments": ", %n: index", "count": ""}),
    "few steps": (
        "1",
        {"bounds": "?", "arguments": "", "count": "%n = arith.constant 3 : index"},
    ),
}


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("executor", ["planes", "cpu"])
def test_carried_values_are_values_of_the_step_before(name: str, executor: Executor):
    shift, parts = VALUES[name]
    a, b = np.random.default_rng(4).uniform(-1, 1, (2, 18))
    old, now = a.copy(), b.copy()
    for _ in range(3):
        old, now = now, np.append(now[int(shift) :], [np.nan] * int(shift)) - old
    program = timetile.compile(VALUE.format(shift=shift, **parts), executor=executor, cache=False)
    program(a, b, *([3] if parts["arguments"] else []))
    assert a[3:15].tobytes() == old[3:15].tobytes()
    assert b[3:15].tobytes() == now[3:15].tobytes()


REDUCED = f"""
func.func @reduced(%A: memref<10x12xf64>, %B: memref<10x12xf64>, %S: memref<5xf64>) {{
{CONSTANTS}
  %zero = arith.constant 0.0 : f64
  scf.for %t = %c0 to %c5 step %c1 {{
{NEST.format(a="%A", b="%B", kind="memref<10x12xf64>")}
    memref.copy %B, %A : memref<10x12xf64> to memref<10x12xf64>
    %s, %m = scf.parallel (%i, %j) = (%c1, %c1) to (%c9, %c11) step (%c1, %c1)
        init (%zero, %zero) -> (f64, f64) {{
      %x = memref.load %B[%i, %j] : memref<10x12xf64>
      %y = arith.mulf %x, %x : f64
      scf.reduce(%y, %x : f64, f64) {{
      ^bb0(%l: f64, %r: f64):
        %q = arith.addf %l, %r : f64
        scf.reduce.return %q : f64
      }}, {{
      ^bb0(%l: f64, %r: f64):
        %q = arith.maximumf %l, %r : f64
        scf.reduce.return %q : f64
      }}
    }}
    %p = arith.addf %s, %m : f64
    %o = memref.atomic_rmw addf %p, %S[%t] : (f64, memref<5xf64>) -> f64
  }}
  return
}}
"""


def test_a_parallel_loop_with_results_is_a_reduction():
    a, b = np.random.default_rng(5).uniform(-1, 1, (2, 10, 12))
    sums: Any = np.zeros(5)
    old, new, right = a.copy(), b.copy(), list[float]()
    for _ in range(5):
        new[1:9, 1:11] = old[1:9, 1:11] - old[0:8, 1:11]
        old = new.copy()
        right.append((new[1:9, 1:11] ** 2).sum() + max(new[1:9, 1:11].max(), 0))
    program = timetile.compile(REDUCED, executor="planes", fp_contract="off", cache=False)
    program(a, b, sums)
    assert b.tobytes() == new.tobytes()
    np.testing.assert_allclose(sums, right, rtol=1e-13)
