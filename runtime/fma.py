"""Correctly rounded fused multiply-add on arrays, which NumPy lacks.

The error-free form of Boldo and Melquiond, "Emulation of FMA and correctly rounded sums: proved
algorithms using rounding to odd" (IEEE Trans. Computers, 2008): an exact product, two exact sums, and
one sum rounded to odd, so that the last rounding is the only one that counts.
"""

from __future__ import annotations

from fractions import Fraction
from math import isfinite
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.floating[Any]]
Doubles: TypeAlias = NDArray[np.float64]

SPLITTER = 134217729.0
"""2**27 + 1: Veltkamp's constant for doubles."""

SAFE_HIGH = 2.0**480
SAFE_LOW = 2.0**-450
"""Between these no intermediate of the exact product overflows or loses bits."""


def two_sum(a: Doubles, b: Doubles) -> tuple[Doubles, Doubles]:
    """The rounded sum and its error (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def two_product(a: Doubles, b: Doubles) -> tuple[Doubles, Doubles]:
    """The rounded product and its error (Dekker)."""
    product = a * b
    wide_a, wide_b = SPLITTER * a, SPLITTER * b
    high_a, high_b = wide_a - (wide_a - a), wide_b - (wide_b - b)
    low_a, low_b = a - high_a, b - high_b
    error = ((high_a * high_b - product) + high_a * low_b + low_a * high_b) + low_a * low_b
    return product, error


def add_round_to_odd(a: Doubles, b: Doubles) -> Doubles:
    """a + b; where it is not exact, the neighbour with an odd last bit."""
    total, error = two_sum(a, b)
    bits = total.view(np.int64)
    even = (bits & 1) == 0
    # Towards the error: away from zero where total and error agree in sign.
    step = np.where((error > 0) == (total > 0), 1, -1)
    moved = (bits + np.where(even & (error != 0), step, 0)).view(np.float64)
    return np.where(total == 0, total, moved)


def exact_fma(a: float, b: float, c: float) -> float:
    """One fused multiply-add through rational arithmetic, for the rare extreme operands."""
    # Python's floats, unlike NumPy's, pass overflow and invalid operations silently.
    if not (isfinite(a) and isfinite(b)):
        return a * b + c
    if not isfinite(c):
        # A product may overflow where it is rounded, and here it is not.
        return c
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return a * b + c if c == 0 else 0.0
    try:
        return float(exact)
    except OverflowError:
        return float("inf") if exact > 0 else float("-inf")


def fma64(a: Doubles, b: Doubles, c: Doubles) -> Doubles:
    """Fused multiply-add of doubles."""
    with np.errstate(all="ignore"):
        product_high, product_low = two_product(a, b)
        carry_high, carry_low = two_sum(c, product_low)
        sum_high, sum_low = two_sum(product_high, carry_high)
        result = sum_high + add_round_to_odd(carry_low, sum_low)
        size_a, size_b, size_c = np.abs(a), np.abs(b), np.abs(c)
        product = size_a * size_b
        ordinary = (product == 0) & (size_a < SAFE_HIGH) & (size_b < SAFE_HIGH)
        ordinary &= (size_a == 0) | (size_b == 0)
        ordinary |= (product > SAFE_LOW) & (product < SAFE_HIGH)
        ordinary &= (size_a < SAFE_HIGH) & (size_b < SAFE_HIGH) & (size_c < SAFE_HIGH)
        result = np.where((result == 0) | (a == 0) | (b == 0), a * b + c, result)
    extreme = np.nonzero(~ordinary)[0]
    for k in extreme:
        result[k] = exact_fma(float(a[k]), float(b[k]), float(c[k]))
    return result


def fma32(
    a: NDArray[np.float32], b: NDArray[np.float32], c: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Fused multiply-add of singles: the product is exact in doubles, the sum is rounded to odd."""
    with np.errstate(all="ignore"):
        product = a.astype(np.float64) * b.astype(np.float64)
        wide = c.astype(np.float64)
        plain = product + wide
        odd = add_round_to_odd(product, wide)
        return np.where(np.isfinite(plain), odd, plain).astype(np.float32)


def fma_up(
    a: NDArray[np.float32], b: NDArray[np.float32], c: NDArray[np.float32]
) -> NDArray[np.float32]:
    """a * b + c of singles, rounded towards plus infinity."""
    with np.errstate(all="ignore"):
        # The product is exact in doubles.
        total, error = two_sum(a.astype(np.float64) * b.astype(np.float64), c.astype(np.float64))
        nearest = total.astype(np.float32)
        wide = nearest.astype(np.float64)
        below = (wide < total) | ((wide == total) & (error > 0))
        return np.where(below, np.nextafter(nearest, np.float32(np.inf)), nearest)


def fma(a: Floats, b: Floats, c: Floats) -> Floats:
    """a * b + c with one rounding, element by element; all three of one element type."""
    a, b, c = np.broadcast_arrays(a, b, c)
    shape = a.shape
    flat: list[NDArray[Any]] = [np.ascontiguousarray(x).reshape(-1) for x in (a, b, c)]
    if a.dtype == np.float32:
        return fma32(*flat).reshape(shape)
    return fma64(*flat).reshape(shape)
