"""Fields of i1 take arrays of NumPy's bool, and end with the cells of a loop on truth values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import timetile
from timetile.runtime.cli import main
from timetile.runtime.program.compiled_program import Executor

pytestmark = pytest.mark.usefixtures("chosen_among_few")

STEPS = 5

GROWTH = """
!field = !stencil.field<[0,14]x[0,11]xf64>
!temp = !stencil.temp<?x?xf64>
!mask = !stencil.field<[0,14]x[0,11]xi1>
!truth = !stencil.temp<?x?xi1>
func.func @growth(%U: !field, %V: !field, %M: !mask, %N: !mask, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:4 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %U, %b = %V, %m = %M, %o = %N)
      -> (!field, !field, !mask, !mask) {
    %u = stencil.load %a : !field -> !temp
    %w = stencil.load %m : !mask -> !truth
    %v, %q = stencil.apply(%x = %u : !temp, %y = %w : !truth) -> (!temp, !truth) {
      %c = stencil.access %x[0, 0] : !temp
      %l = stencil.access %x[-1, 0] : !temp
      %here = stencil.access %y[0, 0] : !truth
      %right = stencil.access %y[0, 1] : !truth
      %half = arith.constant 0.5 : f64
      %mean = arith.mulf %l, %half : f64
      %new = arith.select %here, %mean, %c : f64
      %low = arith.cmpf olt, %new, %half : f64
      %next = arith.xori %low, %right : i1
      stencil.return %new, %next : f64, i1
    }
    stencil.store %v to %b(<[1, 0], [14, 10]>) : !temp to !field
    stencil.store %q to %o(<[1, 0], [14, 10]>) : !truth to !mask
    scf.yield %b, %a, %o, %m : !field, !field, !mask, !mask
  }
  return
}
"""

NEST = """
func.func @masked(%A: memref<12xf64>, %M: memref<12xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c12 = arith.constant 12 : index
  %zero = arith.constant 0.0 : f64
  scf.for %i = %c0 to %c12 step %c1 {
    %m = memref.load %M[%i] : memref<12xi1>
    %v = memref.load %A[%i] : memref<12xf64>
    %s = arith.select %m, %v, %zero : f64
    memref.store %s, %A[%i] : memref<12xf64>
  }
  return
}
"""


def grown(u: np.ndarray, m: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The buffers of the program, by NumPy."""
    fields, masks = [u.copy(), u.copy()], [m.copy(), m.copy()]
    inside = np.s_[1:14, 0:10]
    for step in range(STEPS):
        now, new = step % 2, (step + 1) % 2
        a, b = fields[now], masks[now]
        value = np.where(b[inside], a[0:13, 0:10] * 0.5, a[inside])
        fields[new][inside] = value
        masks[new][inside] = (value < 0.5) ^ b[1:14, 1:11]
    return fields, masks


@pytest.mark.parametrize("executor", ["numpy", "cpu", "planes", "simt"])
def test_fields_of_truth_values_end_with_the_cells_of_numpy(executor: Executor):
    rng = np.random.default_rng(4)
    u, m = rng.random((14, 11)), rng.random((14, 11)) < 0.5
    fields, masks = [u.copy(), u.copy()], [m.copy(), m.copy()]
    timetile.compile(GROWTH, executor=executor, cache=False)(*fields, *masks, STEPS)
    expected_fields, expected_masks = grown(u, m)
    for found, expected in zip([*fields, *masks], [*expected_fields, *expected_masks]):
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


def test_a_memref_of_truth_values_is_a_mask_of_a_nest():
    rng = np.random.default_rng(5)
    values, mask = rng.random(12), rng.random(12) < 0.5
    expected = np.where(mask, values, 0.0)
    timetile.compile(NEST, executor="numpy", cache=False)(values, mask)
    np.testing.assert_array_equal(values, expected)


def test_a_file_of_masks_runs_on_the_command_line(tmp_path: Path):
    rng = np.random.default_rng(6)
    u, m = rng.random((14, 11)), rng.random((14, 11)) < 0.5
    (tmp_path / "growth.mlir").write_text(GROWTH)
    np.savez(tmp_path / "in.npz", U=u, V=u, M=m, N=m)
    out = tmp_path / "out.npz"
    words = ["--args", str(tmp_path / "in.npz"), "--out", str(out), "--no-cache"]
    command = ["run", str(tmp_path / "growth.mlir"), "--steps", str(STEPS), "--executor", "cpu"]
    assert main([*command, *words]) == 0
    with np.load(out) as written:
        np.testing.assert_array_equal(written["arg2"], grown(u, m)[1][0])
