"""The fused multiply-add of the executors against exact rational arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from math import inf, nan
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from support.fused import by_processor, emulated
from support.reference import exact_fma
from timetile.runtime.arithmetic.fma import fma, fma_up

FloatType = type[np.floating[Any]]

KINDS: tuple[FloatType, ...] = (np.float32, np.float64)


def bits(value: np.floating[Any]) -> str:
    """The bits of a number, all NaN alike."""
    return "nan" if np.isnan(value) else value.tobytes().hex()


def assert_exact(kind: FloatType, triples: Sequence[tuple[float, ...]]) -> None:
    """
    `fma` rounds each a * b + c once, for any other elements of the array; and so does the machine
    code in place of `fma` in other tests.
    """
    a, b, c = (np.array(column, dtype=kind) for column in zip(*triples, strict=True))
    with emulated():
        found = fma(a, b, c)
    replaced = by_processor("fma32" if kind is np.float32 else "fma64")(a, b, c)
    assert found.dtype == replaced.dtype == kind
    for k, results in enumerate(zip(found, replaced, strict=True)):
        expected = bits(kind(exact_fma(kind, float(a[k]), float(b[k]), float(c[k]))))
        for result in results:
            assert bits(result) == expected, f"fma({a[k]!r}, {b[k]!r}, {c[k]!r}) is {expected!r}"


def special_values(kind: FloatType) -> list[float]:
    """Both signs of zeros, infinities, subnormals, and the ends of the normal range; NaN."""
    limits = np.finfo(kind)
    tiny, least = float(limits.smallest_normal), float(limits.smallest_subnormal)
    one_up = float(np.nextafter(kind(1), kind(2)))
    sizes = [0.0, least, 3 * least, tiny - least, tiny, 0.75, 1.0, one_up, float(limits.max), inf]
    return [nan, *(sign * size for size in sizes for sign in (1, -1))]


@pytest.mark.parametrize("kind", KINDS)
def test_special_values_are_fused_as_exactly_as_in_rational_arithmetic(kind: FloatType):
    values = special_values(kind)
    assert_exact(kind, list(product(values, repeat=3)))


@pytest.mark.parametrize("kind", KINDS)
def test_ordinary_numbers_are_fused_with_one_rounding(kind: FloatType):
    rng = np.random.default_rng(1)
    size = 4000
    a, b = (rng.uniform(-2, 2, size).astype(kind) for _ in range(2))
    # Half of the sums cancel: only the product's low half is left.
    c = np.where(rng.random(size) < 0.5, -(a * b), rng.uniform(-2, 2, size).astype(kind))
    assert_exact(kind, list(zip(a.tolist(), b.tolist(), c.tolist(), strict=True)))


@pytest.mark.parametrize("kind", KINDS)
def test_sums_beside_the_middle_of_two_numbers_are_rounded_once(kind: FloatType):
    """Rounding twice goes wrong where the exact sum lies just beside the middle of two numbers."""
    unit = float(np.finfo(kind).eps)
    one_up = 1.0 + unit
    triples = [
        (factor, other, sign * (base + unit / 2))
        for factor, other in product(
            (unit / 2, one_up * unit / 2, unit * unit), (1.0, one_up, -1.0)
        )
        for base in (1.0, 2.0, one_up)
        for sign in (1, -1)
    ]
    triples += [
        (1.0 + unit * k, 1.0 + unit * m, unit * unit / 2) for k in range(8) for m in range(8)
    ]
    assert_exact(kind, triples)


@st.composite
def operands(draw: st.DrawFn, kind: FloatType) -> tuple[float, float, float]:
    """Operands of any exponent; the addend is often close to the product, where sums cancel."""
    width = 32 if kind is np.float32 else 64
    numbers = st.floats(width=width)
    a, b = draw(numbers), draw(numbers)
    c = draw(numbers)
    if draw(st.booleans()):
        with np.errstate(all="ignore"):
            near = -kind(a) * kind(b)
            steps = draw(st.integers(-2, 2))
            for _ in range(abs(steps)):
                near = np.nextafter(near, kind(inf if steps > 0 else -inf))
        c = float(near)
    return a, b, c


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_any_drawn_numbers_are_fused_with_one_rounding(kind: FloatType, data: st.DataObject):
    triples = data.draw(st.lists(operands(kind), min_size=1, max_size=100))
    assert_exact(kind, triples)


@example(rows=1, columns=1)
@given(rows=st.integers(1, 4), columns=st.integers(1, 5))
def test_arrays_of_any_shape_and_stride_are_fused(rows: int, columns: int):
    rng = np.random.default_rng(2)
    a = rng.random((columns, rows)).T
    b = rng.random((rows, 1))
    c = np.float64(rng.random())
    with emulated():
        found = fma(a, b, np.asarray(c))
    assert found.shape == (rows, columns)
    for at in np.ndindex(rows, columns):
        expected = exact_fma(np.float64, float(a[at]), float(b[at[0], 0]), float(c))
        assert float(found[at]) == expected


@given(
    st.lists(
        st.tuples(*3 * [st.floats(width=32, allow_nan=False, allow_infinity=False)]), min_size=1
    )
)
@example([(1.0, 1.0, 2.0**-30), (-1.0, 1.0, 2.0**-30), (0.0, 1.0, 0.0), (3.0e38, 3.0e38, -1.0)])
@example([(2.0**-24, 2.0**-24, 2.0**-24), (-(2.0**-24), 2.0**-24, 1.0), (1e-30, 1e-30, -1e-45)])
def test_rounding_upwards_gives_the_least_number_that_is_not_below(
    triples: list[tuple[float, ...]],
):
    a, b, c = (np.array(column, dtype=np.float32) for column in zip(*triples, strict=True))
    for k, result in enumerate(fma_up(a, b, c)):
        exact = Fraction(float(a[k])) * Fraction(float(b[k])) + Fraction(float(c[k]))
        with np.errstate(over="ignore"):
            below = np.nextafter(result, np.float32(-inf))
        assert result == inf or Fraction(float(result)) >= exact
        assert below == -inf or Fraction(float(below)) < exact
