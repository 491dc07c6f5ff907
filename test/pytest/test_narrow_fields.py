"""Fields of fewer axes: every executor reads in place a field that no operation writes."""

from __future__ import annotations

import numpy as np
import pytest

import timetile
from timetile.dialects.temporal import BroadcastOp
from timetile.dialects.tile import KernelOp, LoadOp
from timetile.runtime.host.memory import ArrayMemory, ViewMemory
from timetile.runtime.program.compiled_program import Executor

pytestmark = pytest.mark.usefixtures("chosen_among_few")


WRITTEN = """
!field = !stencil.field<[0,6]x[0,8]xf64>
!temp = !stencil.temp<?x?xf64>
!line = !stencil.field<[0,8]xf64>
!values = !stencil.temp<?xf64>
func.func @faded(%A: !field, %w: !line, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %t = %c0 to %n step %c1 {
    %u = stencil.load %A : !field -> !temp
    %d = stencil.load %w : !line -> !values
    BEFORE
    %v = stencil.apply(%x = %u : !temp, %e = %d : !values) -> (!temp) {
      %c = stencil.access %x[0, 0] : !temp
      %r = stencil.access %e[_, 0] : !values
      %m = arith.mulf %c, %r : f64
      stencil.return %m : f64
    }
    stencil.store %v to %A(<[0, 0], [6, 8]>) : !temp to !field
  }
  return
}
"""
FADE = """%f = stencil.apply(%y = %d : !values) -> (!values) {
      %c = stencil.access %y[0] : !values
      %h = arith.constant 0.5 : f64
      %s = arith.mulf %c, %h : f64
      stencil.return %s : f64
    }
    stencil.store %f to %w(<[0], [8]>) : !values to !line"""


@pytest.mark.parametrize("executor", ["cpu", "numpy", "planes", "simt", "ptx"])
@pytest.mark.parametrize("before", ["", FADE], ids=["constant", "written"])
def test_loaded_cells_are_read(executor: Executor, before: str):
    program = timetile.compile(WRITTEN.replace("BEFORE", before), executor=executor, cache=False)
    rng = np.random.default_rng(3)
    a, w = rng.random((6, 8)), rng.random(8)
    right, line = a.copy(), w.copy()
    for _ in range(3):
        right = right * line
        line = line * (0.5 if before else 1.0)
    program(a, w, 3)
    assert a.tobytes() == right.tobytes() and w.tobytes() == line.tobytes()


AHEAD = """%ahead = stencil.load %w : !line -> !values
  FADE
  scf.for"""


@pytest.mark.parametrize("executor", ["cpu", "numpy", "planes", "ptx"])
def test_cells_stored_ahead_of_the_loop_are_read(executor: Executor):
    ahead = AHEAD.replace("FADE", FADE.replace("= %d", "= %ahead"))
    text = WRITTEN.replace("BEFORE", "").replace("scf.for", ahead)
    program = timetile.compile(text, executor=executor, cache=False)
    a, w = np.full((6, 8), 2.0), np.arange(8.0)
    right = a * (w / 2) ** 3
    program(a, w, 3)
    assert a.tobytes() == right.tobytes() and w.tolist() == list(np.arange(8.0) / 2)


@pytest.mark.parametrize(("axis", "access"), [(0, "1, _"), (1, "_, 1")])
@pytest.mark.parametrize("executor", ["cpu", "numpy", "planes", "simt", "ptx"])
def test_a_field_may_have_more_cells_than_the_domain(executor: Executor, axis: int, access: str):
    text = WRITTEN.replace("BEFORE", "").replace("_, 0", access)
    text = text.replace("!line = !stencil.field<[0,8]", "!line = !stencil.field<[-30,40]")
    program = timetile.compile(text, executor=executor, cache=False)
    rng = np.random.default_rng(4)
    a, w = rng.random((6, 8)), rng.random(70)
    read = w[31:37][:, None] if axis == 0 else w[31:39]
    right = a * read * read
    program(a, w, 2)
    assert a.tobytes() == right.tobytes()


FORGOTTEN = """
!field = !stencil.field<[0,6]x[0,8]xf64>
!temp = !stencil.temp<?x?xf64>
!line = !stencil.field<[0,8]xf64>
!values = !stencil.temp<?xf64>
func.func @forgotten(%A: !field, %B: !field, %C: !field, %D: !field, %w: !line, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:4 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A, %b = %B, %c = %C, %d = %D)
      -> (!field, !field, !field, !field) {
    %u = stencil.load %a : !field -> !temp
    %e = stencil.load %w : !line -> !values
    %v = stencil.apply(%x = %u : !temp) -> (!temp) {
      %l = stencil.access %x[0, 0] : !temp
      %m = arith.addf %l, %l : f64
      stencil.return %m : f64
    }
    stencil.store %v to %b(<[0, 0], [6, 8]>) : !temp to !field
    %s = stencil.apply(%y = %e : !values) -> (!temp) {
      %k = stencil.access %y[_, 0] : !values
      stencil.return %k : f64
    }
    stencil.store %s to %d(<[0, 0], [6, 8]>) : !temp to !field
    scf.yield %b, %a, %d, %c : !field, !field, !field, !field
  }
  return
}
"""
"""Launches of several steps store no result that reads the profile: the next step overwrites it."""


@pytest.mark.parametrize("executor", ["planes", "simt", "ptx"])
def test_a_kernel_may_read_no_cell_of_a_field_of_fewer_axes(executor: Executor):
    program = timetile.compile(FORGOTTEN, executor=executor, depth=2, cache=False)
    fields = [np.ones((6, 8)) for _ in range(4)]
    w = np.arange(8.0)
    program(*fields, w, 4)
    assert fields[0].tolist() == np.full((6, 8), 16.0).tolist()
    assert all(field.tolist() == [list(w)] * 6 for field in fields[2:])


@pytest.mark.parametrize(("before", "is_view"), [("", True), (FADE, False)])
def test_a_field_that_nothing_writes_is_not_copied(before: str, is_view: bool):
    module = timetile.compile(WRITTEN.replace("BEFORE", before), executor="cpu", cache=False).module
    op = next(op for op in module.walk() if isinstance(op, BroadcastOp))
    w = np.arange(8.0)
    assert np.shares_memory(ViewMemory().spread(op, w), w) == is_view
    assert (ArrayMemory().spread(op, w) is w) == is_view


@pytest.mark.parametrize("before", ["", FADE], ids=["constant", "written"])
def test_kernels_take_an_unwritten_field_with_its_own_axes(before: str):
    program = timetile.compile(WRITTEN.replace("BEFORE", before), executor="planes", cache=False)
    kernels = [op for op in program.kernels.tiled.ops if isinstance(op, KernelOp)]
    assert kernels
    for kernel in kernels:
        loads = [stage for stage in kernel.stages if isinstance(stage, LoadOp)]
        narrow = [load for load in loads if load.axes is not None]
        assert [load.axes for load in narrow] == ([] if before else [(1,)])
