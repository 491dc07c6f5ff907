"""
Branches that keep cells from reading outside a field: the code has no such read, at any depth.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import timetile
from timetile.passes.diagnostics import CompileError
from timetile.runtime.program.compiled_program import Executor

ROOM = """
!field = !stencil.field<[0,9]x[0,7]xf64>
!temp = !stencil.temp<?x?xf64>
func.func @room(%A: !field, %B: !field, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A, %b = %B) -> (!field, !field) {
    %u = stencil.load %a : !field -> !temp
    %v = stencil.apply(%x = %u : !temp) -> (!temp) {
      %i = stencil.index 0 <[0, 0]>
      %j = stencil.index 1 <[0, 0]>
      %zero = arith.constant 0 : index
      %last = arith.constant 6 : index
      %top = arith.cmpi eq, %i, %zero : index
      %right = arith.cmpi eq, %j, %last : index
      %c = stencil.access %x[0, 0] : !temp
      %d = scf.if %top -> (f64) {
        scf.yield %c : f64
      } else {
        %up = stencil.access %x[-1, 0] : !temp
        %e = scf.if %right -> (f64) {
          scf.yield %up : f64
        } else {
          %far = stencil.access %x[-1, 1] : !temp
          scf.yield %far : f64
        }
        scf.yield %e : f64
      }
      %half = arith.constant 0.5 : f64
      %s = arith.addf %c, %d : f64
      %m = arith.mulf %s, %half : f64
      stencil.return %m : f64
    }
    stencil.store %v to %b(<[0, 0], [9, 7]>) : !temp to !field
    scf.yield %b, %a : !field, !field
  }
  return
}
"""


def step(a: Any) -> Any:
    b = a.copy()
    for i in range(9):
        for j in range(7):
            d = a[i, j] if i == 0 else a[i - 1, j] if j == 6 else a[i - 1, j + 1]
            b[i, j] = (a[i, j] + d) * 0.5
    return b


@pytest.mark.parametrize("executor", ["cpu", "planes", "simt"])
def test_branches_keep_a_room_without_halo_from_reading_outside(executor: Executor):
    program = timetile.compile(ROOM, executor=executor, fp_contract="off", cache=False)
    a = np.random.default_rng(4).random((9, 7))
    right = a
    for _ in range(4):
        right = step(right)
    b = a.copy()
    program(a, b, 4)
    assert a.tobytes() == right.tobytes()


def test_a_read_in_no_branch_is_refused_outside():
    text = ROOM.replace(
        "%half =", "%out = stencil.access %x[-1, 0] : !temp\n      %half ="
    ).replace("arith.addf %c, %d", "arith.addf %out, %d")
    with pytest.raises(
        CompileError, match=r"outside the field's .* give the field these cells, or store fewer$"
    ):
        timetile.compile(text, executor="cpu", cache=False)


VALUE = """
!field = !stencil.field<[0,10]xf64>
!temp = !stencil.temp<?xf64>
func.func @ends(%A: !field, %B: !field) {
  %u = stencil.load %A : !field -> !temp
  %v = stencil.apply(%x = %u : !temp) -> (!temp) {
    %l = stencil.access %x[0] : !temp
    %m = arith.mulf %l, %l : f64
    stencil.return %m : f64
  }
  %w = stencil.apply(%x = %v : !temp) -> (!temp) {
    %i = stencil.index 0 <[0]>
    %last = arith.constant 9 : index
    %inside = arith.cmpi slt, %i, %last : index
    %z = arith.constant 0.25 : f64
    %d = scf.if %inside -> (f64) {
      %r = stencil.access %x[1] : !temp
      scf.yield %r : f64
    } else {
      scf.yield %z : f64
    }
    stencil.return %d : f64
  }
  stencil.store %w to %B(<[0], [10]>) : !temp to !field
  return
}
"""


@pytest.mark.parametrize("executor", ["cpu", "planes", "simt"])
def test_branches_guard_reads_of_a_value_of_another_apply(executor: Executor):
    """The value exists for cells of the field alone, and the guarded read stays within them."""
    a, b = np.random.default_rng(5).random(10), np.zeros(10)
    timetile.compile(VALUE, executor=executor, fp_contract="off", cache=False)(a, b)
    assert b.tobytes() == np.append(a[1:] * a[1:], 0.25).tobytes()
