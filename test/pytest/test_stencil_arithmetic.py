"""Operators and functions in Python steps compute NumPy's results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import timetile
from support.steps import noise, numpy, run
from timetile import Field, coordinate, where


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_coordinates_are_divided_with_remainder(dtype: str):
    """Negative numbers are rounded down, as Python does."""

    @timetile.stencil
    def places(u: Field, v: Field):
        k = 3 - coordinate(0)
        u.next = (k % 4) + 0.0 * u[0]
        v.next = (k // 4) + 0.0 * v[0]

    state = {"u": np.ones(12, dtype), "v": np.ones(12, dtype)}
    found = run(places, "cpu", state, 1)
    k = 3 - np.arange(12)
    assert np.array_equal(found["u"], (k % 4).astype(dtype))
    assert np.array_equal(found["v"], (k // 4).astype(dtype))


FUNCTIONS = [
    "sqrt",
    "cbrt",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "sin",
    "cos",
    "tan",
    "arcsin",
    "arccos",
    "arctan",
    "sinh",
    "cosh",
    "tanh",
    "arcsinh",
    "arctanh",
    "floor",
    "ceil",
    "trunc",
    "rint",
    "absolute",
    "fabs",
    "negative",
    "square",
]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_numpy_are_computed_as_numpy_does(name: str):
    function: Any = getattr(np, name)

    @timetile.stencil
    def applied(u: Field):
        u.next = function(u[0])

    u = 0.1 + 0.8 * noise(50)
    found = run(applied, "cpu", {"u": u}, 1)["u"]
    np.testing.assert_allclose(found, function(u), rtol=1e-15)


@pytest.mark.parametrize(
    "name",
    [
        "add",
        "subtract",
        "multiply",
        "divide",
        "maximum",
        "minimum",
        "fmax",
        "fmin",
        "copysign",
        "arctan2",
        "power",
    ],
)
def test_functions_of_two_numbers_are_computed_as_numpy_does(name: str):
    function: Any = getattr(np, name)

    @timetile.stencil
    def applied(u: Field, v: Field):
        u.next = function(u[0], v[0]) + function(0.5, u[0]) - function(v[0], 2.5)

    u, v = 0.1 + noise(50), noise(50)[::-1].copy()
    found = run(applied, "cpu", {"u": u, "v": v}, 1)["u"]
    expected = function(u, v) + function(0.5, u) - function(v, 2.5)
    np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_operators_are_computed_as_numpy_does():
    """Numbers on either side, comparisons, and choices of NumPy."""

    @timetile.stencil
    def applied(u: Field, v: Field):
        a, b = u[0], v[0]
        low = (a <= 0.3) | (b >= 0.9) & (a != b)
        first = numpy.where(low ^ (a == 0.5), 2 - a, 1 / b)
        second = numpy.where(numpy.logical_or(a < b, a > 0.8), abs(a - b), -a)
        u.next = first + second + a**2 - b**3 + a**0.5 + 2**b + np.float64(3) * (+a)

    u, v = 0.1 + noise(60), 0.1 + noise(60)[::-1]
    found = run(applied, "cpu", {"u": u, "v": v}, 1)["u"]
    low = (u <= 0.3) | (v >= 0.9) & (u != v)
    expected = np.where(low, 2 - u, 1 / v)
    expected = expected + np.where((u < v) | (u > 0.8), abs(u - v), -u)
    expected = expected + u**2 - v * v**2 + np.sqrt(u) + 2**v + 3 * u
    np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_loops_and_functions_of_python_unroll():
    weights = {-2: -1 / 12, -1: 4 / 3, 0: -5 / 2, 1: 4 / 3, 2: -1 / 12}

    @timetile.stencil
    def fourth(u: Field):
        total = 0.0
        for k, weight in weights.items():
            total = total + weight * u[k]
        u.next = u[0] + 0.1 * total

    u = noise(40)
    found = run(fourth, "cpu", {"u": u}, 1)["u"]
    total: Any = 0.0
    for k, weight in weights.items():
        total = total + weight * u[2 + k : 38 + k]
    assert np.array_equal(found[2:-2], u[2:-2] + 0.1 * total)
    assert np.array_equal(found[[0, 1, -2, -1]], u[[0, 1, -2, -1]])


def test_conditions_and_whole_numbers_are_assigned_as_floats():
    @timetile.stencil
    def marked(u: Field, v: Field, w: Field):
        u.next = u[0] > 0.5
        v.next = coordinate(0)
        w.next = 3

    u = noise(9)
    found = run(marked, "cpu", {"u": u, "v": u, "w": u}, 1)
    assert np.array_equal(found["u"], (u > 0.5).astype(float))
    assert np.array_equal(found["v"], np.arange(9.0))
    assert np.array_equal(found["w"], np.full(9, 3.0))


@pytest.mark.filterwarnings("ignore:.* NaN or infinite:RuntimeWarning")
def test_a_choice_may_be_nan_or_infinite():
    @timetile.stencil
    def marked(u: Field, v: Field):
        u.next = where(u[0] > 0.5, np.nan, u[0])
        v.next = where(v[0] > 0.5, np.inf, -np.inf)

    u = noise(9)
    found = run(marked, "cpu", {"u": u, "v": u}, 1)
    assert np.array_equal(found["u"], np.where(u > 0.5, np.nan, u), equal_nan=True)
    assert np.array_equal(found["v"], np.where(u > 0.5, np.inf, -np.inf))


@pytest.mark.filterwarnings("ignore:.* NaN or infinite:RuntimeWarning")
def test_numbers_beyond_a_type_are_rounded_as_numpy_does():
    @timetile.stencil
    def scaled(u: Field, v: Field, w: Field):
        u.next = u[0] * 1e300
        v.next = v[0] * (1 / 3) - 1e-60
        w.next = where(coordinate(0) > -(2**63), w[0], 2**63 - 1)

    ones = np.ones(4, "float32")
    found = run(scaled, "cpu", {"u": ones, "v": ones, "w": ones}, 1)
    assert np.array_equal(found["u"], np.full(4, np.inf))
    assert np.array_equal(found["v"], np.full(4, np.float32(1 / 3)))
    assert np.array_equal(found["w"], ones)


def test_negative_zero_is_another_number():
    @timetile.stencil
    def zeros(u: Field, v: Field):
        u.next = numpy.copysign(u[0], 0.0)
        v.next = numpy.copysign(v[0], -0.0)

    found = run(zeros, "cpu", {"u": np.ones(5), "v": np.ones(5)}, 1)
    assert np.array_equal(found["u"], np.ones(5)) and np.array_equal(found["v"], -np.ones(5))
