"""
Sources and receivers on distant memory: cells of a nest move together, with the results of single
cells.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import timetile
from timetile.runtime.executors.ptx.runner import FieldMemory
from timetile.runtime.host import point_loops
from timetile.runtime.host.cell_nests import FarMemory
from timetile.runtime.program.compiled_program import Executor

pytestmark = pytest.mark.usefixtures("chosen_among_few")

POINTS = """
!field = !stencil.field<[-1,9]x[-1,9]xf32>
!temp = !stencil.temp<?x?xf32>
func.func @shot(%A: !field, %B: !field, %at: memref<3x2xi64>, %wave: memref<8x3xf32>,
    %trace: memref<8x3xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A, %b = %B) -> (!field, !field) {
    %u = stencil.load %a : !field -> !temp
    %v = stencil.apply(%x = %u : !temp) -> (!temp) {
      %l = stencil.access %x[-1, 0] : !temp
      %r = stencil.access %x[0, 1] : !temp
      %s = arith.addf %l, %r : f32
      %h = arith.constant 0.5 : f32
      %m = arith.mulf %s, %h : f32
      stencil.return %m : f32
    }
    stencil.store %v to %b(<[0, 0], [8, 8]>) : !temp to !field
    %cells = builtin.unrealized_conversion_cast %b : !field to memref<10x10xf32>
    scf.for %p = %c0 to %c3 step %c1 {
      %i0 = memref.load %at[%p, %c0] : memref<3x2xi64>
      %j0 = memref.load %at[%p, %c1] : memref<3x2xi64>
      %i1 = arith.index_cast %i0 : i64 to index
      %j1 = arith.index_cast %j0 : i64 to index
      %w = memref.load %wave[%t, %p] : memref<8x3xf32>
      "scf.parallel"(%c0, %c0, %c2, %c2, %c1, %c1)
          <{operandSegmentSizes = array<i32: 2, 2, 2, 0>}> ({
      ^bb0(%di: index, %dj: index):
        %i = arith.addi %i1, %di : index
        %j = arith.addi %j1, %dj : index
        %old = memref.load %cells[%i, %j] : memref<10x10xf32>
        %sum = arith.addf %old, %w : f32
        memref.store %sum, %cells[%i, %j] : memref<10x10xf32>
        scf.reduce
      }) : (index, index, index, index, index, index) -> ()
    }
    scf.for %p = %c0 to %c3 step %c1 {
      %i0 = memref.load %at[%p, %c0] : memref<3x2xi64>
      %i1 = arith.index_cast %i0 : i64 to index
      %seen = memref.load %cells[%i1, %c1] : memref<10x10xf32>
      memref.store %seen, %trace[%t, %p] : memref<8x3xf32>
    }
    scf.yield %b, %a : !field, !field
  }
  return
}
"""


def arguments() -> list[Any]:
    """Two of the points share cells."""
    rng = np.random.default_rng(7)
    fields = [rng.random((10, 10), np.float32) for _ in range(2)]
    at = np.array([[3, 4], [4, 4], [7, 2]])
    return [*fields, at, rng.random((8, 3), np.float32), np.zeros((8, 3), np.float32), 4]


def run(executor: Executor) -> list[Any]:
    values = arguments()
    timetile.compile(POINTS, executor=executor, fp_contract="off", cache=False)(*values)
    return values


def expected() -> list[Any]:
    a, b, at, wave, trace, steps = arguments()
    first, second = a, b
    for t in range(steps):
        second[1:9, 1:9] = (first[0:8, 1:9] + first[1:9, 2:10]) * np.float32(0.5)
        for p, (i, j) in enumerate(at):
            for di in range(2):
                for dj in range(2):
                    second[i + di, j + dj] += wave[t, p]
        trace[t] = [second[i, 1] for i, _ in at]
        first, second = second, first
    return [a, b, at, wave, trace, steps]


@pytest.mark.parametrize("executor", ["cpu", "planes", "simt", "ptx"])
def test_points_are_added_and_noted(executor: Executor):
    for found, right in zip(run(executor), expected(), strict=True):
        assert np.asarray(found).tobytes() == np.asarray(right).tobytes()


def test_cells_of_a_nest_move_together(monkeypatch: pytest.MonkeyPatch):
    """
    From the second step on, each nest reads a field once; the writing nest puts all cells back at
    once.
    """
    fetched: list[int] = []
    put: list[int] = []
    fetch, store = FieldMemory.fetch, FieldMemory.put

    def counted_fetch(self: FieldMemory, buffer: Any, places: Any, dtype: Any) -> Any:
        fetched.append(len(places))
        return fetch(self, buffer, places, dtype)

    def counted_put(self: FieldMemory, buffer: Any, places: Any, cells: Any) -> None:
        put.append(len(places))
        store(self, buffer, places, cells)

    # Kernels with lists move no cells.
    monkeypatch.setattr(point_loops, "FEWEST_STEPS", 1 << 40)
    monkeypatch.setattr(FieldMemory, "fetch", counted_fetch)
    monkeypatch.setattr(FieldMemory, "put", counted_put)
    run("ptx")
    # Three groups of four cells, with two shared groups; then three cells of receivers.
    first = 10 + 3
    assert fetched[:first] == [1] * first
    assert fetched[first:] == [10, 3] * 3
    assert put == [10] * 4


def test_a_failing_nest_leaves_written_cells():
    """The results of single cells."""
    values = arguments()
    values[2][2, 0] = 9
    program = timetile.compile(POINTS, executor="ptx", cache=False)
    with pytest.raises(timetile.CompileError, match="keep indices within the memref"):
        program(*values)


ROW = """
!field = !stencil.field<[-1,9]xf32>
!temp = !stencil.temp<?xf32>
func.func @scaled(%A: !field, %B: !field, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %numbers = builtin.unrealized_conversion_cast %A : !field to memref<10xf32>
  %w0 = memref.load %numbers[%c1] : memref<10xf32>
  %w1 = memref.load %numbers[%c3] : memref<10xf32>
  %sum = arith.addf %w0, %w1 : f32
  memref.store %sum, %numbers[%c3] : memref<10xf32>
  %w2 = memref.load %numbers[%c3] : memref<10xf32>
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A, %b = %B) -> (!field, !field) {
    %u = stencil.load %a : !field -> !temp
    %v = stencil.apply(%x = %u : !temp, %w = %w2 : f32) -> (!temp) {
      %l = stencil.access %x[-1] : !temp
      %m = arith.mulf %l, %w : f32
      stencil.return %m : f32
    }
    stencil.store %v to %b(<[0], [8]>) : !temp to !field
    scf.yield %b, %a : !field, !field
  }
  func.return
}
"""
"""Numbers of a field are read in a row, and again where the host has written a number."""


def test_loads_in_a_row_take_one_copy_until_a_cell_is_written(monkeypatch: pytest.MonkeyPatch):
    fetched: list[list[int]] = []
    fetch = FieldMemory.fetch

    def noted_fetch(self: Any, buffer: Any, places: Any, dtype: Any) -> Any:
        fetched.append(list(places))
        return fetch(self, buffer, places, dtype)

    monkeypatch.setattr(FieldMemory, "fetch", noted_fetch)
    results: list[Any] = []
    for executor in ("numpy", "ptx"):
        program = timetile.compile(ROW, executor=executor, cache=False)
        for _ in range(2):
            a, b = np.arange(10, dtype=np.float32), np.zeros(10, np.float32)
            program(a, b, 1)
            results.append((a.tolist(), b.tolist()))
    assert results == [results[0]] * 4 and results[0][0][3] == 4
    assert fetched == [[1, 3], [3]] * 2


def test_far_memory_leaves_every_method_to_its_users():
    memory = FarMemory()
    for call in (
        lambda: memory.is_far(None),
        lambda: memory.fetch(None, np.array([0]), np.dtype(float)),
        lambda: memory.put(None, np.array([0]), np.array([0.0])),
    ):
        with pytest.raises(NotImplementedError):
            call()
