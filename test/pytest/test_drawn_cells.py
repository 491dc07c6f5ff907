"""
Every cell function that verifies passes every level: drawn cells leave equal bits on all executors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from random import Random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.passes import ModulePass

import timetile
from support.drawn_cells import anything, program_of, sums
from support.executors import compiled_on, kernel_executors
from support.printed_kernels import made_kernels_of
from support.schedules import Schedule, warp_row
from support.sizes import seeds
from timetile.dialects.tile import ApplyOp, Form
from timetile.runtime.program.compiled_program import Executor

pytestmark = [pytest.mark.covering, pytest.mark.usefixtures("chosen_among_few")]

Arrays = list[NDArray[Any]]


def inputs(results: int) -> Arrays:
    random = np.random.default_rng(3)
    arrays = [random.uniform(-1, 1, (14, 70)) for _ in range(results)]
    return [copy for array in arrays for copy in (array, array.copy())]


def run(program: timetile.CompiledProgram, results: int, steps: int) -> Arrays:
    """The fields after some steps."""
    arrays = inputs(results)
    program(*arrays, 0.5, steps)
    return arrays


def programs(
    text: str, executors: Iterable[Executor], passes: tuple[ModulePass, ...] | None = None
) -> Iterator[timetile.CompiledProgram]:
    """The program on each executor."""
    options: Any = {"arch": "sm_90", "cache": False, "passes": passes, "halos": "common"}
    yield from compiled_on(executors, text, **options)


def expected_of(text: str, results: int, steps: int) -> Arrays:
    """The fields after some steps of the NumPy executor, without kernels."""
    (program,) = programs(text, ["numpy"])
    return run(program, results, steps)


def assert_same(found: Arrays, expected: Arrays) -> None:
    """Raise AssertionError for cells with different bits; all NaNs count as equal."""
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other, strict=True)
        numbers = ~np.isnan(other)
        np.testing.assert_array_equal(np.signbit(one)[numbers], np.signbit(other)[numbers])


@pytest.mark.parametrize("results", [1, 2])
@pytest.mark.parametrize("seed", seeds(6))
@pytest.mark.parametrize("form", [Form.ROWS, Form.HALVES, Form.LANES])
def test_sums_of_any_weights_are_split_without_a_change_of_bits(
    form: Form, seed: int, results: int
):
    text = program_of(sums(Random(seed), results, columns=form is Form.LANES), results)
    expected = expected_of(text, results, 5)
    passes = Schedule("drawn", warp_row(cells=2), form=form, planes=5).passes(2, 1)
    for program in programs(text, kernel_executors(), passes):
        assert_same(run(program, results, 5), expected)
        cells = [
            op.cell.string_value() for op in program.kernels.tiled.walk() if isinstance(op, ApplyOp)
        ]
        assert all(f"_{form}" in cell for cell in cells)


@pytest.mark.parametrize("seed", seeds(12))
@pytest.mark.parametrize("form", Form)
def test_cells_of_any_operations_pass_every_level(form: Form, seed: int):
    text = program_of(anything(Random(seed), 60))
    expected = expected_of(text, 1, 3)
    passes = Schedule("drawn", warp_row(cells=1), form=form, planes=5).passes(2, 1)
    (program,) = programs(text, ["planes"], passes)
    assert_same(run(program, 1, 3), expected)
    assert all(kernel.registers > 0 for kernel in made_kernels_of(program))


@pytest.mark.parametrize("seed", seeds(8))
def test_drawn_cells_pass_every_level_of_the_default_pipeline(seed: int):
    text = program_of(anything(Random(100 + seed), 40))
    expected = expected_of(text, 1, 3)
    for program in programs(text, ("cpu", "planes", "simt")):
        assert_same(run(program, 1, 3), expected)
