"""Allocations of programs: allowed memory, and refusals before any array changes."""

from __future__ import annotations

import pytest

import timetile
from timetile.passes.diagnostics import CompileError

LOOP = """
!field = !stencil.field<[0,8]xf64>
!temp = !stencil.temp<?xf64>
func.func @f(%A: !field, %data: memref<2xmemref<?xf64>>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %u = stencil.load %A : !field -> !temp
  stencil.store %u to %A(<[0], [8]>) : !temp to !field
  BODY
  func.return
}
"""
CARRIED = """%r = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A) -> (!field) {
    %m = stencil.alloc : !field
    scf.yield %m : !field
  }"""
REFUSED = {
    "%m = memref.alloc(%n) : memref<?xf64>": "the operation allocates memref<?xf64> of unknown "
    "extents; give the memref static extents",
    "%m = stencil.alloc : !stencil.field<?xf64>": "the operation allocates !stencil.field<?xf64> "
    "of unknown extents; give the field static bounds",
    "%m = memref.alloc() : memref<4xf16>": "the operation allocates cells of f16; use f64, f32, "
    "i64, i32, i1 or index",
    CARRIED: "a loop carries memory allocated in the loop; allocate the memory before the loop",
    "%m = memref.load %data[%c0] : memref<2xmemref<?xf64>>": "the function reads the memory to use "
    "from memory; make each buffer an argument, and carry the buffers in the loop",
}


@pytest.mark.parametrize("body", REFUSED)
def test_an_impossible_allocation_is_refused(body: str):
    with pytest.raises(CompileError) as caught:
        timetile.compile(LOOP.replace("BODY", body), executor="cpu", cache=False)
    assert str(caught.value).endswith(REFUSED[body])
