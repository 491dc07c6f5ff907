"""Forms that programs of other tools have, each refused in a sentence with a way out and a line."""

from __future__ import annotations

import pytest

import timetile
from timetile.passes.diagnostics import CompileError

HEAD = """
!field = !stencil.field<[0,16]xf64>
!temp = !stencil.temp<?xf64>
"""

POINTER = """
func.func @f(%z: f64) {
  %p = arith.constant 140000000 : i64
  %ptr = llvm.inttoptr %p : i64 to !llvm.ptr
  %A = stencil.external_load %ptr : !llvm.ptr -> !field
  stencil.apply(%x = %z : f64) outs (%A : !field) {
    stencil.return %x : f64
  } to <[0], [16]>
  return
}
"""

REDUCED = """
func.func @f(%A: !field, %B: !field, %z: f64) {
  %u = stencil.load %A : !field -> !temp
  %v = stencil.apply(%x = %u : !temp, %i = %z : f64) -> (!temp) {
    %l = stencil.access %x[0] : !temp
    stencil.reduce %l init %i {
    ^bb0(%p: f64, %q: f64):
      %s = arith.addf %p, %q : f64
      stencil.yield %s : f64
    } : f64
    stencil.return %l : f64
  }
  stencil.store %v to %B(<[0], [16]>) : !temp to !field
  return
}
"""

VIEW = """
!part = memref<16xf64, strided<[1], offset: ?>>
func.func @f(%d: memref<4x16xf64>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %k = %c0 to %n step %c1 {
    %dk = memref.subview %d[%k, 0] [1, 16] [1, 1] : memref<4x16xf64> to !part
    %fk = stencil.external_load %dk : !part -> !field
    %x = stencil.load %fk : !field -> !temp
    %r = stencil.apply(%y = %x : !temp) -> (!temp) {
      %v = stencil.access %y[0] : !temp
      stencil.return %v : f64
    }
    stencil.store %r to %fk(<[0], [16]>) : !temp to !field
  }
  return
}
"""

BOUNDS = """
func.func @f(%A: !stencil.field<?xf64>, %B: !field) {
  %u = stencil.load %A : !stencil.field<?xf64> -> !temp
  %v = stencil.apply(%x = %u : !temp) -> (!temp) {
    %l = stencil.access %x[-1] : !temp
    stencil.return %l : f64
  }
  stencil.store %v to %B(<[1], [16]>) : !temp to !field
  return
}
"""

PARALLEL = """
func.func @f(%A: memref<18xf64>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    scf.reduce
  }
  return
}
"""

RESULTS = """
func.func @f(%A: !field, %B: !field) {
  %u = stencil.load %A : !field -> !temp
  %v, %w = stencil.apply(%x = %u : !temp) -> (!temp, !temp) {
    %l = stencil.access %x[0] : !temp
    %r = stencil.access %x[1] : !temp
    stencil.return %l, %r : f64, f64
  }
  %s = stencil.apply(%x = %v : !temp, %y = %w : !temp) -> (!temp) {
    %l = stencil.access %x[1] : !temp
    %r = stencil.access %y[0] : !temp
    %q = arith.addf %l, %r : f64
    stencil.return %q : f64
  }
  stencil.store %s to %B(<[0], [15]>) : !temp to !field
  return
}
"""

REFUSED = {
    "a number taken for a pointer": (
        POINTER,
        "llvm.inttoptr in @f (<program>:7): it makes a pointer of a number, and the memory behind "
        "is unknown; make the memory an argument: a field, a memref or a pointer",
    ),
    "cells reduced to a number": (
        REDUCED,
        "stencil.reduce in @f (<program>:9): the operation is left unchanged: cells are not "
        "reduced to a number; store the values in a field, leave out the operation, and reduce the "
        "field after the run",
    ),
    "a view of a memref": (
        VIEW,
        "memref.subview in @f (<program>:10): it makes a view of a part of a memref, and fields "
        "are whole memrefs; make the part an argument, or the levels an axis of a field",
    ),
    "unknown bounds": (
        BOUNDS,
        "<program>:6: a field here has unknown bounds; give them, as in "
        "!stencil.field<[0,64]x[0,64]xf64>",
    ),
    "a form of MLIR that xDSL does not read": (
        PARALLEL,
        "<program>:8: scf.parallel is read in its generic form only; print the program with "
        "`mlir-opt --mlir-print-op-generic`",
    ),
    "results with boxes of their own": (
        RESULTS,
        "stencil.apply in @f (<program>:7): the operation is left unchanged: box and offset [1] "
        "reach [1, 17) along axis 0, outside the field's [0, 16); the results of a stencil.apply "
        "are computed over one box: compute them in an apply each, give the field these cells, or "
        "store fewer",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_form_is_refused_with_its_line_and_a_way_out(name: str):
    text, said = REFUSED[name]
    with pytest.raises(CompileError) as caught:
        timetile.compile(HEAD + text, cache=False)
    assert str(caught.value) == said
