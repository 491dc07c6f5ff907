"""
Reads at wrapped, clamped and chosen places are those of a boundary: kernels of several steps have
the bits of `numpy.pad`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import timetile

pytestmark = pytest.mark.usefixtures("chosen_among_few")

ROWS, COLUMNS = 9, 40

PROGRAM = """
!f = !stencil.field<[0,9]x[0,40]xf64>
!t = !stencil.temp<?x?xf64>
func.func @f(%U: !f, %V: !f, %n: index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  scf.for %s = %zero to %n step %one iter_args(%a = %U, %b = %V) -> (!f, !f) {
    %x = stencil.load %a : !f -> !t
    %y = stencil.apply(%p = %x : !t) -> (!t) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c8 = arith.constant 8 : index
      %c9 = arith.constant 9 : index
      %c39 = arith.constant 39 : index
      %c40 = arith.constant 40 : index
      %w = arith.constant -0.5 : f64
      %i = stencil.index 0 <[0, 0]>
      %j = stencil.index 1 <[0, 0]>
      %before = arith.subi %i, %c1 : index
      %behind = arith.addi %i, %c1 : index
      %left = arith.addi %j, %c39 : index
      %right = arith.addi %j, %c1 : index
      PLACES
      %s0 = arith.addf %n0, %n1 : f64
      %s1 = arith.addf %n2, %n3 : f64
      %s2 = arith.addf %s0, %s1 : f64
      %q = arith.constant 0.25 : f64
      %o = arith.mulf %s2, %q : f64
      stencil.return %o : f64
    }
    stencil.store %y to %b(<[0, 0], [9, 40]>) : !t to !f
    scf.yield %b, %a : !f, !f
  }
  func.return
}
"""

TORUS = """
%k = arith.addi %i, %c8 : index
%up = arith.remui %k, %c9 : index
%down = arith.remui %behind, %c9 : index
%west = arith.remui %left, %c40 : index
%is_last = arith.cmpi eq, %j, %c39 : index
%east = arith.select %is_last, %c0, %right : index
%n0 = stencil.dyn_access %p[%up, %west] in <[-8, -39]> : <[8, 39]> : !t
%n1 = stencil.dyn_access %p[%down, %j] in <[-8, 0]> : <[8, 0]> : !t
%n2 = stencil.dyn_access %p[%i, %west] in <[0, -39]> : <[0, 39]> : !t
%n3 = stencil.dyn_access %p[%i, %east] in <[0, -39]> : <[0, 39]> : !t
"""

WALLS = """
%up = arith.maxsi %before, %c0 : index
%down = arith.minsi %behind, %c8 : index
%n0 = stencil.dyn_access %p[%up, %j] in <[-1, 0]> : <[1, 0]> : !t
%n1 = stencil.dyn_access %p[%down, %j] in <[-1, 0]> : <[1, 0]> : !t
%is_first = arith.cmpi eq, %j, %c0 : index
%is_inside = arith.cmpi slt, %j, %c39 : index
%l = stencil.access %p[0, -1] : !t
%n2 = arith.select %is_first, %w, %l : f64
%n3 = scf.if %is_inside -> (f64) {
  %r = stencil.access %p[0, 1] : !t
  scf.yield %r : f64
} else {
  scf.yield %w : f64
}
"""

Array = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


def torus(u: Array) -> Array:
    around = np.pad(u, 1, "wrap")
    sums = around[:-2, :-2] + around[2:, 1:-1], around[1:-1, :-2] + around[1:-1, 2:]
    return (sums[0] + sums[1]) * 0.25


def walls(u: Array) -> Array:
    rows = np.pad(u, ((1, 1), (0, 0)), "edge")
    columns = np.pad(u, ((0, 0), (1, 1)), constant_values=-0.5)
    return ((rows[:-2] + rows[2:]) + (columns[:, :-2] + columns[:, 2:])) * 0.25


@pytest.mark.parametrize(
    ("places", "step"), [(TORUS, torus), (WALLS, walls)], ids=["torus", "walls"]
)
def test_chosen_places_are_a_boundary(places: str, step: Callable[[Array], Array]):
    program = timetile.compile(
        PROGRAM.replace("PLACES", places), executor="planes", fp_contract="off", cache=False
    )
    assert max(fact.steps for fact in program.kernels.facts[0]) > 1
    u = np.random.default_rng(4).random((ROWS, COLUMNS))
    arrays = u.copy(), u.copy()
    program(*arrays, steps=5)
    for _ in range(5):
        u = step(u)
    assert np.array_equal(arrays[1], u)
