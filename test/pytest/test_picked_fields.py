"""
Fields picked by a condition: the memory is known when the program runs, and no memory is taken for
another.
"""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.func import FuncOp

import timetile
from support.stencil_semantics import run
from timetile.runtime.loading.modules import load_text
from timetile.runtime.program.compiled_program import Executor

pytestmark = pytest.mark.usefixtures("chosen_among_few")


PICKS = {
    "select": """%a = arith.select %even, %A, %B : !field
    %b = arith.select %even, %B, %A : !field""",
    "branches": """%a, %b = scf.if %even -> (!field, !field) {
      scf.yield %A, %B : !field, !field
    } else {
      scf.yield %B, %A : !field, !field
    }""",
    # The two names are the same memory in every second step.
    "one": """%a = arith.select %even, %A, %B : !field
    %b = builtin.unrealized_conversion_cast %B : !field to !field""",
    "three": """%c = arith.select %even, %A, %B : !field
    %a = arith.select %odd, %c, %C : !field
    %b = arith.select %odd, %C, %B : !field""",
}
BODIES = {
    "step": """%v = stencil.apply(%x = %u : !temp) -> (!temp) {
      %l = stencil.access %x[-1] : !temp
      %r = stencil.access %x[1] : !temp
      %s = arith.subf %l, %r : f64
      stencil.return %s : f64
    }
    stencil.store %v to %b(<[0], [12]>) : !temp to !field""",
    # Loaded cells are read after a store to a possibly equal field.
    "after": """stencil.store %w to %B(<[2], [9]>) : !temp to !field
    %v = stencil.apply(%x = %u : !temp, %y = %w : !temp) -> (!temp) {
      %l = stencil.access %x[-1] : !temp
      %r = stencil.access %y[0] : !temp
      %s = arith.subf %l, %r : f64
      stencil.return %s : f64
    }
    stencil.store %v to %C(<[0], [12]>) : !temp to !field
    stencil.store %u to %b(<[4], [12]>) : !temp to !field""",
}
TEXT = """
!field = !stencil.field<[-1,13]xf64>
!temp = !stencil.temp<?xf64>
func.func @step(%A: !field, %B: !field, %C: !field, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  scf.for %t = %c0 to %n step %c1 {
    %p = arith.remui %t, %c2 : index
    %q = arith.remui %t, %c3 : index
    %even = arith.cmpi eq, %p, %c0 : index
    %odd = arith.cmpi eq, %q, %c1 : index
    PICK
    %u = stencil.load %a : !field -> !temp
    %w = stencil.load %C : !field -> !temp
    BODY
  }
  return
}
"""


@pytest.mark.covering
@pytest.mark.parametrize("executor", ["numpy", "cpu", "planes"])
@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("pick", PICKS)
def test_picked_fields_are_what_the_dialect_says(pick: str, body: str, executor: Executor):
    text = TEXT.replace("PICK", PICKS[pick]).replace("BODY", BODIES[body])
    program = timetile.compile(text, executor=executor, fp_contract="off", cache=False)
    found, right = ([np.random.default_rng(k).random(14) for k in range(3)] for _ in range(2))
    program(*found, 5)
    run(next(op for op in load_text(text).ops if isinstance(op, FuncOp)), [*right, 5])
    for a, b in zip(found, right, strict=True):
        assert a.tobytes() == b.tobytes()


AFTER = """
!field = !stencil.field<[-1,13]xf64>
!temp = !stencil.temp<?xf64>
func.func private @other(%A: !field, %B: !field) -> !field {
  func.return %B : !field
}
func.func @step(%A: !field, %B: !field, %C: !field, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %z:2 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A, %b = %B) -> (!field, !field) {
    LOOP
    scf.yield %b, %a : !field, !field
  }
  %k = func.call @other(%A, %B) : (!field, !field) -> !field
  %u = stencil.load NAME : !field -> !temp
  %w = stencil.load %C : !field -> !temp
  stencil.store %w to %B(<[0], [12]>) : !temp to !field
  %v = stencil.apply(%x = %u : !temp) -> (!temp) {
    %l = stencil.access %x[-1] : !temp
    %r = stencil.access %x[1] : !temp
    %s = arith.subf %l, %r : f64
    stencil.return %s : f64
  }
  stencil.store %v to %C(<[0], [12]>) : !temp to !field
  stencil.store %v to NAME(<[3], [6]>) : !temp to !field
  return
}
"""
LOOPS = {
    "loop": """%f = stencil.load %a : !field -> !temp
    stencil.store %f to %b(<[1], [12]>) : !temp to !field""",
    "host": """%f = stencil.load %a : !field -> !temp
    stencil.store %f to %b(<[1], [12]>) : !temp to !field
    %m = builtin.unrealized_conversion_cast %b : !field to memref<14xf64>
    %ti = arith.index_cast %t : index to i64
    %td = arith.sitofp %ti : i64 to f64
    memref.store %td, %m[%t] : memref<14xf64>""",
}


@pytest.mark.covering
@pytest.mark.parametrize("executor", ["numpy", "planes"])
@pytest.mark.parametrize("name", ["%z#0", "%z#1", "%k"])
@pytest.mark.parametrize("loop", LOOPS)
def test_results_of_loops_and_calls_are_fields_of_before(loop: str, name: str, executor: Executor):
    text = AFTER.replace("LOOP", LOOPS[loop]).replace("NAME", name)
    program = timetile.compile(
        text, executor=executor, function="step", fp_contract="off", cache=False
    )
    found, right = ([np.random.default_rng(k).random(14) for k in range(3)] for _ in range(2))
    program(*found, 5)
    a, b, c = right
    for t in range(5):
        b[2:13] = a[2:13]
        if loop == "host":
            b[t] = t
        a, b = b, a
    named = {"%z#0": a, "%z#1": b, "%k": right[1]}[name]
    loaded = named.copy()
    right[1][1:13] = c[1:13]
    c[1:13] = loaded[0:12] - loaded[2:14]
    named[4:7] = c[4:7]
    for x, y in zip(found, right, strict=True):
        assert x.tobytes() == y.tobytes()


AGAIN = """
!field = !stencil.field<[-1,13]xf64>
!temp = !stencil.temp<?xf64>
func.func @step(%A: !field, %B: !field, %C: !field, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %z:2 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A, %b = %B) -> (!field, !field) {
    %f = stencil.load %a : !field -> !temp
    stencil.store %f to %b(<[1], [12]>) : !temp to !field
    scf.yield %b, %a : !field, !field
  }
  scf.for %t = %c0 to %n step %c1 iter_args(%d = %z#0) -> (!field) {
    %u = stencil.load %A : !field -> !temp
    %w = stencil.load %C : !field -> !temp
    stencil.store %w to %d(<[0], [12]>) : !temp to !field
    %m = builtin.unrealized_conversion_cast %C : !field to memref<14xf64>
    %ti = arith.index_cast %t : index to i64
    %td = arith.sitofp %ti : i64 to f64
    memref.store %td, %m[%t] : memref<14xf64>
    %v = stencil.apply(%x = %u : !temp) -> (!temp) {
      %l = stencil.access %x[-1] : !temp
      %r = stencil.access %x[1] : !temp
      %s = arith.subf %l, %r : f64
      stencil.return %s : f64
    }
    stencil.store %v to %C(<[0], [12]>) : !temp to !field
    scf.yield %d : !field
  }
  return
}
"""


@pytest.mark.parametrize("executor", ["numpy", "planes"])
@pytest.mark.parametrize("steps", [1, 2])
def test_a_loop_may_carry_a_field_of_outside(steps: int, executor: Executor):
    """After one step the second loop carries B, after two A; the loop reads A by name, too."""
    program = timetile.compile(AGAIN, executor=executor, fp_contract="off", cache=False)
    found, right = ([np.random.default_rng(k).random(14) for k in range(3)] for _ in range(2))
    program(*found, steps)
    a, b, c = right
    for _ in range(steps):
        b[2:13] = a[2:13]
        a, b = b, a
    for t in range(steps):
        loaded = right[0].copy()
        a[1:13] = c[1:13]
        c[t] = t
        c[1:13] = loaded[0:12] - loaded[2:14]
    for x, y in zip(found, right, strict=True):
        assert x.tobytes() == y.tobytes()


NUMBERS = """
!field = !stencil.field<[0,8]xf64>
func.func @scaled(%A: !field, %saved: memref<8xf64>, %m: memref<8xf64>, %factor: !llvm.ptr) {
  %f = "llvm.load"(%factor) <{ordering = 0 : i64}> : (!llvm.ptr) -> f64
  %own = builtin.unrealized_conversion_cast %A : !field to memref<8xf64>
  "memref.copy"(%own, %saved) : (memref<8xf64>, memref<8xf64>) -> ()
  %u = stencil.load %A : !field -> !stencil.temp<?xf64>
  %v = stencil.apply(%x = %u : !stencil.temp<?xf64>, %s = %f : f64) -> (!stencil.temp<?xf64>) {
    %c = stencil.access %x[0] : !stencil.temp<?xf64>
    %p = arith.mulf %c, %s : f64
    stencil.return %p : f64
  }
  stencil.store %v to %A(<[0], [8]>) : !stencil.temp<?xf64> to !field
  "gpu.memcpy"(%m, %own) {operandSegmentSizes = array<i32: 0, 1, 1>}
    : (memref<8xf64>, memref<8xf64>) -> ()
  return
}
"""


@pytest.mark.parametrize("executor", ["numpy", "cpu", "planes", "simt", "ptx"])
def test_numbers_are_read_by_reference_and_copies_keep_their_places(executor: Executor):
    """
    A pointer that is only loaded is a number of the caller; copies keep their places among the
    sweeps.
    """
    program = timetile.compile(NUMBERS, executor=executor, cache=False)
    a, saved, m = np.arange(8.0), np.zeros(8), np.zeros(8)
    program(a, saved, m, 3.0)
    assert (saved == np.arange(8.0)).all()
    assert (a == 3 * np.arange(8.0)).all() and (m == a).all()


def test_other_pointers_are_refused():
    text = NUMBERS.replace(
        "%own =",
        '"llvm.store"(%f, %factor) <{ordering = 0 : i64}> : (f64, !llvm.ptr) -> ()\n  %own =',
    )
    with pytest.raises(
        timetile.CompileError, match="through a pointer; give the pointer as a field or a memref"
    ):
        timetile.compile(text, executor="cpu", cache=False)


def test_a_module_of_modules_is_one():
    field = "!stencil.field<[0,8]xf64>"
    text = NUMBERS.replace(f"!field = {field}", "").replace("!field", field)
    inner = f"builtin.module {{\n{text}\n}}\n"
    program = timetile.compile(f"builtin.module {{\n{inner}}}", executor="cpu", cache=False)
    assert program.name == "@scaled"
    other = inner.replace("@scaled", "@other")
    two = timetile.compile(inner + other, executor="cpu", function="other", cache=False)
    assert two.name == "@other"
    with pytest.raises(
        timetile.CompileError,
        match="several of its modules define @scaled; give it one module of them",
    ):
        timetile.compile(inner + inner, executor="cpu", cache=False)
