"""
Cells at computed places: read from memory, the nearest cell where a place is outside, on every
executor.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import timetile
from timetile.runtime.cache.store import Cache
from timetile.runtime.kernels import reducing
from timetile.runtime.kernels.assembler import assemble
from timetile.runtime.kernels.reducing import gather_text
from timetile.runtime.program.compiled_program import Executor

EXECUTORS = ["cpu", "numpy", "planes", "simt", "ptx"]

PLANE = """
!field = !stencil.field<[-1,9]x[-2,7]x{cell}>
!temp = !stencil.temp<?x?x{cell}>
!places = !stencil.field<[0,8]x[0,5]xi64>
func.func @step(%A: !field, %B: !field, %P: !places) {{
  %u = stencil.load %A : !field -> !temp
  %p = stencil.load %P : !places -> !stencil.temp<?x?xi64>
  %v = stencil.apply(%x = %u : !temp, %y = %p : !stencil.temp<?x?xi64>) -> (!temp) {{
    %i = stencil.index 0 <[0, 0]>
    %j = stencil.index 1 <[0, 0]>
    %n = stencil.access %y[0, 0] : !stencil.temp<?x?xi64>
    %d = arith.index_cast %n : i64 to index
    %k = arith.addi %i, %d : index
    %l = arith.subi %j, %d : index
    %a = stencil.dyn_access %x[%k, %l] in <[-1, -2]> : <[1, 2]> : !temp
    %b = stencil.dyn_access %x[%l, %k] in <[-1, -2]> : <[1, 2]> : !temp
    %c = stencil.access %x[1, 0] : !temp
    %s = arith.subf %a, %b : {cell}
    %t = arith.addf %s, %c : {cell}
    stencil.return %t : {cell}
  }}
  stencil.store %v to %B(<[0, 0], [8, 5]>) : !temp to !field
  return
}}
"""


@pytest.mark.covering
@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("cell", ["f32", "f64"])
def test_places_of_a_field_are_read(executor: Executor, cell: str):
    program = timetile.compile(
        PLANE.format(cell=cell), executor=executor, fp_contract="off", cache=False
    )
    rng, kind = np.random.default_rng(1), {"f32": np.float32, "f64": np.float64}[cell]
    a, b = rng.random((10, 9)).astype(kind), np.zeros((10, 9), kind)
    # Some places are outside the field, along either axis.
    p = rng.integers(-6, 7, (8, 5))
    right = b.copy()
    for i in range(8):
        for j in range(5):
            k, m = i + p[i, j], j - p[i, j]
            first = a[min(max(k, -1), 8) + 1, min(max(m, -2), 6) + 2]
            second = a[min(max(m, -1), 8) + 1, min(max(k, -2), 6) + 2]
            right[i + 1, j + 2] = (first - second) + a[i + 2, j + 2]
    program(a, b, p)
    assert b.tobytes() == right.tobytes()


LIST = """
!field = !stencil.field<[0,12]xi64>
!temp = !stencil.temp<?xi64>
func.func @jump(%A: !field, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %t = %c0 to %n step %c1 {
    %u = stencil.load %A : !field -> !temp
    %v = stencil.apply(%x = %u : !temp) -> (!temp) {
      %o = stencil.access %x[0] : !temp
      %k = arith.index_cast %o : i64 to index
      %c = stencil.dyn_access %x[%k] in <[0]> : <[0]> : !temp
      stencil.return %c : i64
    }
    stencil.store %v to %A(<[0], [12]>) : !temp to !field
  }
  return
}
"""


@pytest.mark.parametrize("executor", EXECUTORS)
def test_pointers_jump_in_place(executor: Executor):
    """Every step each cell points to the earlier target of its target: all cells find the root."""
    program = timetile.compile(LIST, executor=executor, cache=False)
    found = np.maximum(np.arange(12) - 1, 0)
    program(found, 4)
    assert (found == np.maximum(np.arange(12) - 16, 0)).all()


SHIFTED = """
!field = !stencil.field<[-4,16]xf64>
!temp = !stencil.temp<?xf64>
func.func @shift(%A: !field, %B: !field, %d: f64) {
  %u = stencil.load %A : !field -> !temp
  %v = stencil.apply(%x = %u : !temp, %s = %d : f64) -> (!temp) {
    %i = stencil.index 0 <[0]>
    %one = arith.constant 1 : i64
    %zero = arith.constant 0.0 : f64
    %down = arith.cmpf olt, %s, %zero : f64
    %n = arith.fptosi %s : f64 to i64
    %m = arith.subi %n, %one : i64
    %whole = arith.select %down, %m, %n : i64
    %o = arith.index_cast %whole : i64 to index
    %k = arith.addi %i, %o : index
    %c = stencil.dyn_access %x[%k] in <[-4]> : <[4]> : !temp
    stencil.return %c : f64
  }
  stencil.store %v to %B(<[0], [12]>) : !temp to !field
  return
}
"""


@pytest.mark.parametrize("shift", [-3.5, -0.5, 0.0, 2.75])
def test_a_place_computed_from_numbers_is_a_choice(shift: float):
    program = timetile.compile(SHIFTED, executor="cpu", cache=False)
    assert "temporal.gather" not in str(program.module)
    a, b = np.random.default_rng(2).random(20), np.zeros(20)
    program(a, b, shift)
    at = 4 + (int(shift) - 1 if shift < 0 else int(shift))
    assert (b[4:16] == a[at : at + 12]).all()


@pytest.mark.parametrize("scatter", [False, True], ids=["gather", "scatter"])
@pytest.mark.parametrize("cell_bytes", [4, 8])
def test_the_kernels_of_a_gpu_assemble(cell_bytes: int, scatter: bool):
    for arch in ("sm_80", "sm_90"):
        assert assemble(gather_text(cell_bytes, scatter=scatter), arch).registers > 0


def test_a_time_loop_that_gathers_runs_a_step_at_a_time(caplog: pytest.LogCaptureFixture):
    timetile.compile(LIST, executor="cpu", cache=False)
    assert any(
        "the time loop runs a step at a time: the step reads cells at computed places, unlike "
        "kernels of several steps; read at constant offsets" in r.getMessage()
        for r in caplog.records
    )


def test_the_text_of_a_small_kernel_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Another process takes the text from the cache."""
    cache, made = Cache(tmp_path / "cache"), gather_text(4)
    monkeypatch.setattr(reducing, "TEXTS", {})
    assert gather_text(4, cache) == made
    monkeypatch.setattr(reducing, "TEXTS", {})
    monkeypatch.setattr(reducing, "kernel_text", None)
    assert gather_text(4, cache) == made
