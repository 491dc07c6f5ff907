"""Quotients by a known number: a product and a fused multiply-add, correctly rounded.

x / d is x h + x l, where h + l is 1 / d to twice the bits (N. Brisebarre, J.-M. Muller and S. K.
Raina, "Accelerating correctly rounded floating-point division when the divisor is known in
advance", IEEE Transactions on Computers 53, 2004). h is rounded towards zero, so that l has its
sign: zeros, infinities and overflowing quotients come out right, too.

With p bits, the sum before its rounding is off by less than 2^(3 - 2p) of the quotient. It rounds
to another number only if the middle of two numbers lies that near to the quotient: for x and d as
integers X and D of p bits, if X 2^(s+1) and an odd multiple of D differ by 16 or less, where s is
p - 1 for X from D on, and p below. The equation is solved for each difference, and each solution
is tried in exact arithmetic: a divisor with a wrong quotient is not accepted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import copysign, frexp, ldexp

from xdsl.dialects.builtin import f32, f64
from xdsl.ir import Attribute

PRECISION: dict[Attribute, int] = {f32: 24, f64: 53}
"""Bits of a number."""

LEAST_NORMAL: dict[Attribute, int] = {f32: -126, f64: -1022}
"""The exponent of the least normal number."""

MOST_EXPONENT = 30
"""Divisors lie between 2^-30 and 2^30: quotients by them are far from the least number."""

NEAREST = 16
"""The largest difference, in the equation above, for which a sum may round to another number."""


@dataclass(frozen=True)
class Inverse:
    """The inverse of a number, as the sum of two numbers with one sign."""

    high: float
    low: float


def to_precision(value: int, precision: int) -> int:
    """The nearest integer with so many leading bits and zeros behind, even on a tie."""
    zeros = max(0, value.bit_length() - precision)
    kept, rest = value >> zeros, 2 * (value & ((1 << zeros) - 1))
    up = rest > 1 << zeros or (rest == 1 << zeros and kept % 2)
    return (kept + (up if zeros else 0)) << zeros


def quotient(dividend: int, divisor: int, precision: int) -> int:
    """The quotient of integers of many more bits, rounded; a remainder decides a tie."""
    whole, rest = divmod(dividend, divisor)
    return to_precision(2 * whole + (rest > 0), precision) // 2


def parts_of_inverse(divisor: int, precision: int) -> tuple[int, int]:
    """
    One by an integer with `precision` bits, times `scale_of(precision)`: rounded towards zero, and
    the rest, rounded.
    """
    scale = scale_of(precision)
    whole = scale // divisor
    zeros = whole.bit_length() - precision
    high = whole >> zeros << zeros
    return high, quotient(scale - high * divisor, divisor, precision)


def scale_of(precision: int) -> int:
    """The scale of the parts of an inverse, which are integers."""
    return 1 << 4 * precision


def doubtful(divisor: int, precision: int) -> Iterator[int]:
    """The integers whose quotients by an integer of equally many bits lie close to a middle."""
    zeros = (divisor & -divisor).bit_length() - 1
    odd, most = divisor >> zeros, NEAREST >> zeros
    least, end = 1 << (precision - 1), 1 << precision
    for shift, first, last in ((precision - 1, divisor, end), (precision, least, divisor)):
        inverse = pow(2, -(shift + 1 - zeros), odd)
        for difference in range(-most, most + 1):
            if difference % 2:
                solution = difference * inverse % odd
                begin = first + (solution - first) % odd
                yield from range(begin, last, odd)


def is_right(divisor: int, precision: int) -> bool:
    """Whether all quotients by an integer with `precision` bits are correctly rounded."""
    high, low = parts_of_inverse(divisor, precision)
    scale = scale_of(precision)
    return all(
        to_precision(x * high + to_precision(x * low, precision), precision)
        == quotient(x * scale, divisor, precision)
        for x in doubtful(divisor, precision)
    )


def is_considered(divisor: float | None, kind: Attribute) -> bool:
    """Whether a known number is no power of two, and near 1: most of them have an `Inverse`."""
    if divisor is None or kind not in PRECISION:
        return False
    near = 2.0**-MOST_EXPONENT <= abs(divisor) <= 2.0**MOST_EXPONENT
    return near and abs(frexp(divisor)[0]) != 0.5


def inverse_of(divisor: float | None, kind: Attribute) -> Inverse | None:
    """
    One by a known number, if all quotients by it are a product and a fused multiply-add; None for
    unknown numbers, powers of two, and numbers far from 1.
    """
    if divisor is None or not is_considered(divisor, kind):
        return None
    precision = PRECISION[kind]
    fraction, exponent = frexp(divisor)
    integer = int(ldexp(abs(fraction), precision))
    if not is_right(integer, precision):
        return None
    # The integer is the divisor times a power of two.
    high, low = (
        copysign(ldexp(part, -4 * precision + precision - exponent), divisor)
        for part in parts_of_inverse(integer, precision)
    )
    return Inverse(high, low) if abs(low) >= 2.0 ** LEAST_NORMAL[kind] else None
