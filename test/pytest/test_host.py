"""Work of a program's function beside the time loops, and allowed uses of memory."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import timetile
from timetile.passes.diagnostics import CompileError
from timetile.runtime.program.compiled_program import Executor

pytestmark = pytest.mark.usefixtures("chosen_among_few")

FIELDS = """
!field = !stencil.field<[0,12]xf64>
!temp = !stencil.temp<?xf64>
"""

STEP = """
    %u = stencil.load %a : !field -> !temp
    %v = stencil.apply(%x = %u : !temp, %w = %k : f64) -> (!temp) {
      %0 = stencil.access %x[0] : !temp
      %1 = arith.addf %0, %w : f64
      stencil.return %1 : f64
    }
    stencil.store %v to %b(<[0], [12]>) : !temp to !field
    scf.yield %b, %a : !field, !field
"""


def run(text: str, *arguments: Any, executor: Executor = "cpu", steps: int | None = None) -> None:
    timetile.compile(FIELDS + text, executor=executor, cache=False)(*arguments, steps=steps)


@pytest.mark.covering
@pytest.mark.parametrize("executor", ["cpu", "simt"])
@pytest.mark.parametrize(
    ("low", "high", "step"), [(3, 10, 1), (0, 7, 2), (5, 5, 1), (9, 2, 4), (-4, 11, 3), (1, 2, 5)]
)
def test_time_loops_start_and_step_as_they_like(low: int, high: int, step: int, executor: Executor):
    """As many steps as Python's range has, also none."""
    text = f"""
func.func @count(%A: !field, %B: !field, %k: f64, %low: index, %high: index, %by: index) {{
  %r:2 = scf.for %t = %low to %high step %by
      iter_args(%a = %A, %b = %B) -> (!field, !field) {{{STEP}  }}
  func.return
}}"""
    start = np.random.default_rng(5).random(12)
    buffers = start.copy(), start.copy()
    run(text, *buffers, 1.0, low, high, step, executor=executor)
    steps = len(range(low, high, step))
    expected = start.copy()
    for _ in range(steps):
        expected = expected + 1.0
    assert np.array_equal(buffers[steps % 2], expected)


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ("math.exp %s", math.exp(0.75)),
        ("math.sin %s", math.sin(0.75)),
        ("math.sqrt %s", math.sqrt(0.75)),
        ("math.absf %s", 0.75),
        ("math.floor %s", 0.0),
        ("math.powf %s, %s", 0.75**0.75),
    ],
)
def test_scalars_may_be_made_by_functions_that_cells_have_not(operation: str, expected: float):
    text = f"""
func.func @scaled(%A: !field, %B: !field, %s: f64) {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %k = {operation} : f64
  %r:2 = scf.for %t = %zero to %one step %one
      iter_args(%a = %A, %b = %B) -> (!field, !field) {{{STEP}  }}
  func.return
}}"""
    start = np.random.default_rng(6).random(12)
    target = np.zeros(12)
    run(text, start.copy(), target, 0.75)
    assert target == pytest.approx(start + expected, rel=1e-15)


@pytest.mark.parametrize(("operation", "expected"), [
    ("arith.floordivsi %n, %m", 2), ("arith.ceildivsi %n, %m", 3), ("arith.shrsi %n, %m", 0),
])  # fmt: skip
def test_whole_numbers_are_divided_and_shifted(operation: str, expected: int):
    text = f"""
func.func @count(%A: !field, %B: !field, %k: f64, %n: index, %m: index) {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %steps = {operation} : index
  %r:2 = scf.for %t = %zero to %steps step %one
      iter_args(%a = %A, %b = %B) -> (!field, !field) {{{STEP}  }}
  func.return
}}"""
    start = np.random.default_rng(7).random(12)
    buffers = start.copy(), start.copy()
    run(text, *buffers, 0.5, 7, 3)
    assert buffers[expected % 2] == pytest.approx(start + 0.5 * expected)


MEMORY = f"""
func.func @memory(%M: memref<12xf64>, %N: memref<12xf64>, %k: f64, %steps: index) {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %A = stencil.external_load %M : memref<12xf64> -> !field
  %B = stencil.external_load %N : memref<12xf64> -> !field
  %r:2 = scf.for %t = %zero to %steps step %one
      iter_args(%a = %A, %b = %B) -> (!field, !field) {{{STEP}  }}
  stencil.external_store %r#0 to %M : !field to memref<12xf64>
  func.return
}}"""


def test_fields_are_stored_to_their_own_memory():
    """After an even number of steps the first field is in the first memory again."""
    start = np.random.default_rng(8).random(12)
    buffers = start.copy(), np.zeros(12)
    run(MEMORY, *buffers, 1.0, 2)
    assert np.array_equal(buffers[0], start + 1.0 + 1.0)
    before = [each.copy() for each in buffers]
    with pytest.raises(
        CompileError, match="the function stores a field to other memory than the field's own"
    ):
        run(MEMORY, *buffers, 1.0, 1)
    assert all(np.array_equal(a, b) for a, b in zip(buffers, before)), "the loop has run"


def test_buffers_of_a_second_loop_are_not_one_field():
    """The fields after the first loop, under another name."""
    text = f"""
func.func @twice(%A: !field, %B: !field, %k: f64, %steps: index) {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r:2 = scf.for %t = %zero to %steps step %one
      iter_args(%a = %A, %b = %B) -> (!field, !field) {{{STEP}  }}
  %s:2 = scf.for %t = %zero to %steps step %one
      iter_args(%a = %r#0, %b = %B) -> (!field, !field) {{{STEP}  }}
  func.return
}}"""
    start = np.random.default_rng(9).random(12)
    odd = start.copy(), start.copy()
    with pytest.raises(
        CompileError, match="two buffers of the loop are one field; give each buffer a field"
    ):
        run(text, *odd, 1.0, 1)
    assert all(np.array_equal(each, start) for each in odd), "the first loop has run"
    even = start.copy(), start.copy()
    run(text, *even, 1.0, 2)
    assert np.array_equal(even[0], start + 1.0 + 1.0 + 1.0 + 1.0)


@pytest.mark.parametrize("executor", ["cpu", "simt"])
def test_negative_numbers_without_a_sign_are_large(executor: Executor):
    text = """
func.func @unsigned(%A: !field, %B: !field) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r:2 = scf.for %t = %zero to %one step %one iter_args(%a = %A, %b = %B) -> (!field, !field) {
    %u = stencil.load %a : !field -> !temp
    %v = stencil.apply(%x = %u : !temp) -> (!temp) {
      %0 = stencil.access %x[0] : !temp
      %1 = arith.fptosi %0 : f64 to i32
      %2 = arith.extui %1 : i32 to i64
      %3 = arith.sitofp %2 : i64 to f64
      %4 = arith.uitofp %1 : i32 to f64
      %5 = arith.addf %3, %4 : f64
      stencil.return %5 : f64
    }
    stencil.store %v to %b(<[0], [12]>) : !temp to !field
    scf.yield %b, %a : !field, !field
  }
  func.return
}"""
    start = np.random.default_rng(10).integers(-9, 9, 12).astype(np.float64)
    target = np.zeros(12)
    run(text, start, target, executor=executor)
    assert np.array_equal(target, 2.0 * (start.astype(np.int64) % 2**32))


@pytest.mark.parametrize("executor", ["cpu", "simt"])
def test_a_field_may_be_cast_at_each_use(executor: Executor):
    """A buffer read at the cell itself under one name and stored under another name."""
    text = """
func.func @grown(%K: !stencil.field<?xf64>, %steps: index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %P = stencil.cast %K : !stencil.field<?xf64> -> !field
  %Q = stencil.cast %K : !stencil.field<?xf64> -> !field
  scf.for %t = %zero to %steps step %one {
    %u = stencil.load %P : !field -> !temp
    %v = stencil.apply(%x = %u : !temp) -> (!temp) {
      %0 = stencil.access %x[0] : !temp
      %1 = arith.addf %0, %0 : f64
      stencil.return %1 : f64
    }
    stencil.store %v to %Q(<[0], [12]>) : !temp to !field
  }
  func.return
}"""
    start = np.random.default_rng(11).random(12)
    field = start.copy()
    run(text, field, 3, executor=executor)
    assert np.array_equal(field, 8.0 * start)


def test_indices_of_loops_are_numbers_of_the_host():
    text = f"""
func.func @outer(%A: !field, %B: !field, %k: f64) {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %three = arith.constant 3 : index
  scf.for %i = %zero to %three step %one {{
    %steps = arith.divui %i, %one : index
    %r:2 = scf.for %t = %zero to %steps step %one
        iter_args(%a = %A, %b = %B) -> (!field, !field) {{{STEP}    }}
  }}
  func.return
}}"""
    start = np.random.default_rng(12).random(12)
    buffers = start.copy(), start.copy()
    run(text, *buffers, 1.0)
    assert np.array_equal(buffers[0], start + 1.0 + 1.0)


@pytest.mark.parametrize("executor", ["cpu", "simt"])
def test_two_results_of_one_cast_are_two_fields(executor: Executor):
    """A cast of one value to one value is another name; a cast to two values makes two fields."""
    text = f"""
func.func @pair(%A: !field, %B: !field, %k: f64, %steps: index) {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %P, %Q = builtin.unrealized_conversion_cast %A, %B : !field, !field to !field, !field
  %r:2 = scf.for %t = %zero to %steps step %one
      iter_args(%a = %P, %b = %Q) -> (!field, !field) {{{STEP}  }}
  func.return
}}"""
    start = np.random.default_rng(13).random(12)
    buffers = start.copy(), start.copy()
    run(text, *buffers, 1.0, 2, executor=executor)
    assert np.array_equal(buffers[0], start + 1.0 + 1.0)


READS_A_SERIES = """
func.func @driven(%u: !stencil.field<[-1,17]xf64>, %v: !stencil.field<[-1,17]xf64>,
    %series: memref<3xf64>, %place: index, %n: index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r:2 = scf.for %t = %zero to %n step %one iter_args(%a = %u, %b = %v)
      -> (!stencil.field<[-1,17]xf64>, !stencil.field<[-1,17]xf64>) {
    %x = stencil.load %a : !stencil.field<[-1,17]xf64> -> !stencil.temp<?xf64>
    %y = stencil.apply(%p = %x : !stencil.temp<?xf64>) -> (!stencil.temp<?xf64>) {
      %q = stencil.access %p[-1] : !stencil.temp<?xf64>
      stencil.return %q : f64
    }
    stencil.store %y to %b(<[0], [16]>) : !stencil.temp<?xf64> to !stencil.field<[-1,17]xf64>
    scf.yield %b, %a : !stencil.field<[-1,17]xf64>, !stencil.field<[-1,17]xf64>
  }
  %s = memref.load %series[%place] : memref<3xf64>
  memref.store %s, %series[%zero] : memref<3xf64>
  func.return
}
"""


@pytest.mark.parametrize("executor", ["cpu", "numpy", "planes"])
def test_a_refusal_in_the_middle_of_a_run_says_that_fields_have_changed(executor: Executor):
    program = timetile.compile(READS_A_SERIES, executor=executor, cache=False)
    fields = [np.random.default_rng(k).random(18) for k in range(2)]
    with pytest.raises(CompileError) as refused:
        program(*fields, np.zeros(3), 7, steps=2)
    said = (
        "the operation reads or writes index 7 along axis 0, and there are 3; keep indices within "
        "the memref"
    )
    assert refused.value.reason == said
    assert str(refused.value).endswith(
        f"{said}. The fields have changed: 1 loop ran before the refusal"
    )


CAST_TWICE = """
func.func @doubled(%u: memref<?xf64>, %n: index) -> f64 {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %cast = memref.cast %u : memref<?xf64> to memref<10xf64>
  %f = stencil.external_load %cast : memref<10xf64> -> !stencil.field<[0,10]xf64>
  scf.for %t = %zero to %n step %one {
    %a = stencil.load %f : !stencil.field<[0,10]xf64> -> !stencil.temp<?xf64>
    %b = stencil.apply(%x = %a : !stencil.temp<?xf64>) -> (!stencil.temp<?xf64>) {
      %c = stencil.access %x[0] : !stencil.temp<?xf64>
      %d = arith.addf %c, %c : f64
      stencil.return %d : f64
    }
    stencil.store %b to %f(<[0], [10]>) : !stencil.temp<?xf64> to !stencil.field<[0,10]xf64>
  }
  %r = memref.load %u[%one] : memref<?xf64>
  return %r : f64
}
"""


def test_extents_of_memory_are_found_by_all_names():
    """The field is made of a cast of the memory that the host reads behind the loop."""
    program = timetile.compile(CAST_TWICE, executor="simt", cache=False)
    assert program(np.arange(10.0), 3).returned == (8.0,)
