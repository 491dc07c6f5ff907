"""Factored sums are near the exact sums, and have equal bits on every executor and schedule."""

from __future__ import annotations

from fractions import Fraction
from math import exp
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects import arith
from xdsl.dialects import math as xmath

import timetile
from support.executors import executors
from test_sorted_sums import Leaf, Node, Offset, Scaled, Total, model_of, sums, total_reach
from timetile import Field, Model
from timetile.passes.analysis.cells.sums import FpReassoc

pytestmark = pytest.mark.usefixtures("chosen_among_few")

Array = np.ndarray[Any, Any]

Weights = dict[Offset, float]

UNIT = {"float64": 2.0**-53, "float32": 2.0**-24}
"""The largest relative error of a rounding."""


def line(cells: int) -> list[float]:
    """Weights of a Gaussian along one axis."""
    found = [exp(-(((place - cells // 2) / (cells / 4)) ** 2)) for place in range(cells)]
    return [weight / sum(found) for weight in found]


def grid(rows: int, columns: int) -> Weights:
    """Rounded products of the weights along two axes."""
    return {
        (y - rows // 2, x - columns // 2): a * b
        for y, a in enumerate(line(rows))
        for x, b in enumerate(line(columns))
    }


def model_of_weights(weights: Weights) -> Model:
    """The step of a weighted sum."""

    def step(u: Field) -> None:
        total: Any = None
        for offset, weight in weights.items():
            term = weight * u[offset]
            total = term if total is None else total + term
        u.next = total

    return timetile.stencil(step)


def advanced(model: Model, start: Array, fp_reassoc: FpReassoc, **options: Any) -> Array:
    """The state after a step, or after `steps`."""
    steps = options.pop("steps", 1)
    chosen = model.on(cache=False, fp_reassoc=fp_reassoc, **options)
    return chosen.advance({"u": start}, steps=steps)["u"]


def exact(weights: Weights, start: Array, at: Offset) -> tuple[Fraction, float]:
    """The exact sum at a cell, and the sum of the magnitudes of its terms."""
    total, size = Fraction(0), 0.0
    for offset, weight in weights.items():
        cell = float(start[tuple(a + o for a, o in zip(at, offset, strict=True))])
        # Constants of a program in FP32 are rounded to FP32.
        factor = float(start.dtype.type(weight))
        total += Fraction(factor) * Fraction(cell)
        size += abs(factor * cell)
    return total, size


def error(weights: Weights, start: Array, found: Array, cells: list[Offset]) -> float:
    """The largest error at some cells, in roundings of the terms' magnitudes."""
    worst = 0.0
    for at in cells:
        total, size = exact(weights, start, at)
        far = abs(Fraction(float(found[at])) - total)
        worst = max(worst, float(far) / (size * UNIT[start.dtype.name]))
    return worst


CELLS = [(20, 30), (17, 41), (25, 26), (13, 33), (29, 50)]


@pytest.mark.covering
@pytest.mark.parametrize("dtype", ("float64", "float32"))
@pytest.mark.parametrize("shape", ((4, 4), (5, 7), (9, 9), (12, 13)))
def test_a_separable_sum_is_as_exact_as_the_plain_sum(shape: tuple[int, int], dtype: str) -> None:
    weights = grid(*shape)
    start = np.random.default_rng(2).uniform(-1.0, 1.0, (43, 75)).astype(dtype)
    model = model_of_weights(weights)
    plain = error(weights, start, advanced(model, start, "off", executor="numpy"), CELLS)
    factored = error(weights, start, advanced(model, start, "on", executor="numpy"), CELLS)
    # Weights along the axes differ from the given weights by up to four units of the last place.
    assert factored <= 8.0 + 2.0 * plain


@given(st.sampled_from((1, 2)).flatmap(lambda rank: st.tuples(st.just(rank), sums(rank))))
def test_no_term_is_lost(drawn: tuple[int, Total]) -> None:
    rank, total = drawn
    reach = total_reach(total, rank)
    start = np.random.default_rng(3).uniform(-1.0, 1.0, (23,) if rank == 1 else (11, 13))
    found = advanced(model_of(total), start, "on", executor="numpy")
    at = tuple(size // 2 for size in start.shape)
    assert all(before <= 2 and behind <= 2 for before, behind in reach)

    def cell(offset: Offset) -> Fraction:
        return Fraction(float(start[tuple(a + o for a, o in zip(at, offset, strict=True))]))

    value, size = exact_value(total, cell)
    assert abs(Fraction(float(found[at])) - value) <= Fraction(2.0**-53) * 64 * size


def exact_value(node: Node, cell: Any) -> tuple[Fraction, Fraction]:
    """A tree of sums: its exact value, and how large its leaves are together."""
    if isinstance(node, Leaf):
        value = cell(node.offset) * Fraction(1 if node.factor is None else node.factor)
        return value, abs(value)
    if isinstance(node, Scaled):
        value, size = exact_value(node.inner, cell)
        return Fraction(node.factor) * value, abs(Fraction(node.factor)) * size
    (first, one), (second, other) = exact_value(node.first, cell), exact_value(node.second, cell)
    return (first - second if node.subtracts else first + second), one + other


def products(model: Model, shape: tuple[int, ...]) -> int:
    """The products of the factored cells of a step."""
    program = timetile.compile(model.module(shape), executor="numpy", fp_reassoc="on", cache=False)
    return sum(isinstance(op, arith.MulfOp | xmath.FmaOp) for op in program.module.walk())


def test_a_gaussian_of_400_cells_takes_40_products() -> None:
    assert products(model_of_weights(grid(20, 20)), (43, 75)) <= 40


def test_weights_of_rank_2_stay_whole() -> None:
    weights = grid(5, 5)
    weights[2, 1] *= 1.0 + 1e-9
    distinct = 15
    assert products(model_of_weights(weights), (43, 75)) >= distinct


def test_the_cells_off_the_axes_are_cut_from_a_sum() -> None:
    places = {-2: 1.0 / 12.0, -1: -8.0 / 12.0, 1: 8.0 / 12.0, 2: -1.0 / 12.0}
    weights = {(y, x): 0.3 * a * b for y, a in places.items() for x, b in places.items()}
    weights |= {(0, 0): 0.4, (0, 1): 0.03, (0, -1): 0.03, (1, 0): 0.02, (-1, 0): 0.02}
    model = model_of_weights(weights)
    assert products(model, (43, 75)) <= 4 + 4 + 4
    start = np.random.default_rng(2).uniform(-1.0, 1.0, (43, 75))
    found = advanced(model, start, "on", executor="numpy")
    assert error(weights, start, found, CELLS) <= 16.0


def test_executors_and_depths_agree_on_factored_sums() -> None:
    model = model_of_weights(grid(4, 5))
    start = np.random.default_rng(5).uniform(0.2, 0.3, (41, 75))
    expected = advanced(model, start, "on", executor="numpy", steps=5)
    for executor in executors():
        for depth in (1, 2):
            found = advanced(model, start, "on", executor=executor, depth=depth, steps=5)
            assert np.array_equal(found, expected), (executor, depth)
    assert not np.array_equal(advanced(model, start, "off", executor="numpy", steps=5), expected)


def test_a_sum_over_a_volume_is_cut_twice() -> None:
    axis = line(5)
    places = range(-2, 3)
    weights = {
        (z, y, x): axis[z + 2] * axis[y + 2] * axis[x + 2]
        for z in places
        for y in places
        for x in places
    }
    model = model_of_weights(weights)
    assert products(model, (11, 13, 17)) <= 15
    start = np.random.default_rng(5).uniform(0.2, 0.3, (11, 13, 37))
    expected = advanced(model, start, "on", executor="numpy", steps=3)
    for executor in ("cpu", "planes"):
        found = advanced(model, start, "on", executor=executor, steps=3)
        assert np.array_equal(found, expected), executor
