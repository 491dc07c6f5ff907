"""Correctly rounded fused multiply-add on arrays, missing in NumPy.

The error-free form of Boldo and Melquiond, "Emulation of FMA and correctly rounded sums: proved
algorithms using rounding to odd" (IEEE Trans. Computers, 2008): an exact product, two exact sums,
and one sum rounded to odd, so that only the last rounding counts. Operands of extreme exponents are
scaled first, and their sum is rounded at the place of the result's last bit.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.floating[Any]]
Doubles: TypeAlias = NDArray[np.float64]

SPLITTER = 134217729.0
"""2**27 + 1: Veltkamp's constant for doubles."""

SAFE_HIGH = 2.0**480
SAFE_LOW = 2.0**-450
"""Between these bounds no intermediate of the exact product overflows or loses bits."""

FAR = 200
"""Powers of 2 apart, the smaller of two terms only breaks ties: more than three times 53."""

LEAST_UNIT = -1074
"""The exponent of a subnormal number's last bit."""

LEAST_EXPONENT = LEAST_UNIT + 52
"""Numbers below 2 to this power are subnormal."""


def two_sum(a: Doubles, b: Doubles) -> tuple[Doubles, Doubles]:
    """The rounded sum, and the error (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def two_product(a: Doubles, b: Doubles) -> tuple[Doubles, Doubles]:
    """The rounded product, and the error (Dekker)."""
    product = a * b
    wide_a, wide_b = SPLITTER * a, SPLITTER * b
    high_a, high_b = wide_a - (wide_a - a), wide_b - (wide_b - b)
    low_a, low_b = a - high_a, b - high_b
    error = ((high_a * high_b - product) + high_a * low_b + low_a * high_b) + low_a * low_b
    return product, error


def add_round_to_odd(a: Doubles, b: Doubles) -> Doubles:
    """a + b; for an inexact sum, the neighbour with an odd last bit."""
    total, error = two_sum(a, b)
    bits = total.view(np.int64)
    # Move towards the error: away from zero if total and error have equal signs. A sum of 0 is
    # exact.
    step = ((error.view(np.int64) ^ bits) >> 63) | 1
    moves = (error != 0) & ((bits & 1) == 0)
    return (bits + step * moves).view(np.float64)


def rounded_sum(a: Doubles, b: Doubles, c: Doubles) -> tuple[Doubles, Doubles]:
    """
    The rounded sum of three numbers, and the missing rest, rounded to odd (Boldo and Melquiond).
    """
    carry_high, carry_low = two_sum(c, b)
    sum_high, sum_low = two_sum(a, carry_high)
    rest = add_round_to_odd(carry_low, sum_low)
    return two_sum(sum_high, rest)


def scaled_fma(a: Doubles, b: Doubles, c: Doubles) -> Doubles:
    """Fused multiply-add of finite doubles of any exponents; neither `a` nor `b` is 0."""
    (size_a, log_a), (size_b, log_b), (size_c, log_c) = (np.frexp(x) for x in (a, b, c))
    high, low = two_product(size_a, size_b)
    log_product = log_a + log_b
    # Beside a far larger term, only the sign of the smaller term matters.
    top = np.where((high == 0) | ((size_c != 0) & (log_c > log_product)), log_c, log_product)
    near = np.maximum(log_product - top, -FAR)
    far = near == -FAR
    high = np.ldexp(high, near)
    low = np.where(far, 0.0, np.ldexp(low, near))
    third = np.ldexp(size_c, np.maximum(log_c - top, -FAR))
    total, rest = rounded_sum(high, low, third)
    result = np.ldexp(total, top)
    # A subnormal result has fewer bits: adding an anchor, whose last bit is the unit, rounds the
    # sum.
    small = np.nonzero(np.frexp(total)[1] + top <= LEAST_EXPONENT)[0]
    if small.size:
        unit = np.minimum(LEAST_UNIT - top[small], FAR)
        anchor = np.copysign(np.ldexp(1.0, unit + 52), total[small])
        anchored, _ = rounded_sum(anchor, total[small], rest[small])
        units = np.ldexp(anchored - anchor, top[small])
        result[small] = np.copysign(units, total[small])
    return result


def fma64(a: Doubles, b: Doubles, c: Doubles) -> Doubles:
    """Fused multiply-add of doubles."""
    with np.errstate(all="ignore"):
        product_high, product_low = two_product(a, b)
        result, _ = rounded_sum(product_high, product_low, c)
        product = np.abs(product_high)
        # If a product or a sum is 0, NumPy's result is exact, with the right sign.
        plain = ~(product > 0) | (result == 0)
        if np.count_nonzero(plain):
            result = np.where(plain, a * b + c, result)
        # Of numbers with a NaN the maximum is NaN, which is not below a limit.
        largest = np.maximum(np.maximum(np.abs(a), np.abs(b)), np.maximum(np.abs(c), product))
        strange = ~((product > SAFE_LOW) & (largest < SAFE_HIGH))
        if np.count_nonzero(strange):
            # A product with 0 is exact.
            extreme = np.nonzero(strange & (a != 0) & (b != 0))[0]
            if extreme.size:
                result[extreme] = extreme_fma(a[extreme], b[extreme], c[extreme])
    return result


def extreme_fma(a: Doubles, b: Doubles, c: Doubles) -> Doubles:
    """
    Fused multiply-add of doubles, possibly infinite, NaN, or of any exponents; `a` and `b` are not
    0.
    """
    result = a * b + c
    # A finite product beside an infinite addend must not overflow before the sum.
    product_is_finite = np.isfinite(a) & np.isfinite(b)
    result = np.where(product_is_finite & ~np.isfinite(c), c, result)
    finite = np.nonzero(product_is_finite & np.isfinite(c))[0]
    if finite.size:
        result[finite] = scaled_fma(a[finite], b[finite], c[finite])
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
        # A product of singles is exact in doubles.
        total, error = two_sum(a.astype(np.float64) * b.astype(np.float64), c.astype(np.float64))
        nearest = total.astype(np.float32)
        wide = nearest.astype(np.float64)
        below = (wide < total) | ((wide == total) & (error > 0))
        return np.where(below, np.nextafter(nearest, np.float32(np.inf)), nearest)


def fma(a: Floats, b: Floats, c: Floats) -> Floats:
    """a * b + c with one rounding, element by element; all three of one element type."""
    if not a.shape == b.shape == c.shape:
        a, b, c = np.broadcast_arrays(a, b, c)
    shape = a.shape
    flat: list[NDArray[Any]] = [np.ascontiguousarray(x).reshape(-1) for x in (a, b, c)]
    if a.dtype == np.float32:
        return fma32(*flat).reshape(shape)
    return fma64(*flat).reshape(shape)
