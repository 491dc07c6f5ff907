"""Integers of cells on arrays: wrapping around, with one result for all operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def as_unsigned(a: Array) -> Array:
    """The bits as unsigned numbers."""
    a = np.asarray(a)
    return a.astype({4: np.uint32, 8: np.uint64, 1: np.uint8}[a.dtype.itemsize])


def unsigned(operation: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    """An operation on integers taken as unsigned."""

    def apply(a: Array, b: Array) -> Array:
        return operation(as_unsigned(a), as_unsigned(b)).astype(np.asarray(a).dtype)

    return apply


def magnitudes(a: Array) -> Array:
    """
    Magnitudes of signed integers, as unsigned numbers: the magnitude of the least integer needs one
    more bit.
    """
    bits = as_unsigned(a)
    return np.where(a < 0, np.negative(bits), bits)


def truncated_divide(a: Array, b: Array) -> Array:
    """Signed division, rounded towards zero, wrapping around; 0 for a divisor of 0."""
    quotient = magnitudes(a) // magnitudes(b)
    return np.where((a < 0) == (b < 0), quotient, np.negative(quotient)).astype(a.dtype)


def truncated_remainder(a: Array, b: Array) -> Array:
    """The remainder of `truncated_divide`, with the sign of `a`; 0 for a divisor of 0."""
    remainder = np.remainder(magnitudes(a), magnitudes(b))
    return np.where(a < 0, np.negative(remainder), remainder).astype(a.dtype)


def saturated(a: Array, kind: type[np.signedinteger[Any] | np.unsignedinteger[Any]]) -> Array:
    """Floats cut off to integers: the nearest in range, 0 for NaN."""
    limits = np.iinfo(kind)
    # The largest integer is no float; the largest integer plus 1 is a float.
    large, small = a >= float(limits.max) + 1.0, a < float(limits.min)
    outside: Array = large | small | np.isnan(a)
    result: Array = np.where(outside, np.zeros_like(a), a).astype(kind)
    result[large], result[small] = limits.max, limits.min
    return result


def shift_amount(a: Array, b: Array) -> tuple[Array, Array]:
    """
    Amounts of shifts for NumPy, and a mask of amounts not below the width, all taken as unsigned.
    """
    width = 8 * a.dtype.itemsize
    amount = as_unsigned(b)
    beyond = amount >= width
    return np.where(beyond, 0, amount).astype(b.dtype), beyond


def shift_left(a: Array, b: Array) -> Array:
    """Bits moved to the left; by the width or more, none is left."""
    amount, beyond = shift_amount(a, b)
    return np.where(beyond, a.dtype.type(0), np.left_shift(a, amount))


def shift_right_unsigned(a: Array, b: Array) -> Array:
    """Bits moved to the right; by the width or more, none is left."""
    amount, beyond = shift_amount(a, b)
    moved = np.right_shift(as_unsigned(a), as_unsigned(amount)).astype(a.dtype)
    return np.where(beyond, a.dtype.type(0), moved)


def shift_right_signed(a: Array, b: Array) -> Array:
    """
    Bits moved to the right, filled with the sign; for an amount not below the width, the sign
    alone.
    """
    amount, beyond = shift_amount(a, b)
    sign: Array = -(a < 0).astype(a.dtype)
    return np.where(beyond, sign, np.right_shift(a, amount))


def count_ones(a: Array) -> Array:
    """How many bits are 1."""
    return np.bitwise_count(as_unsigned(a)).astype(a.dtype)


def leading_zeros(a: Array) -> Array:
    """How many bits are 0 above the highest 1."""
    bits = as_unsigned(a)
    for distance in (1, 2, 4, 8, 16, 32):
        if distance < 8 * a.dtype.itemsize:
            bits = bits | (bits >> bits.dtype.type(distance))
    return (8 * a.dtype.itemsize - np.bitwise_count(bits)).astype(a.dtype)


def trailing_zeros(a: Array) -> Array:
    """How many bits are 0 below the lowest 1."""
    bits = as_unsigned(a)
    return np.bitwise_count(~bits & (bits - bits.dtype.type(1))).astype(a.dtype)
