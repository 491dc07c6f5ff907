"""The operands for which sequences of machine operations are right: their words, as integers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from math import frexp

from xdsl.dialects.builtin import f32, f64
from xdsl.ir import Attribute


@dataclass(frozen=True)
class Format:
    """
    Numbers from 2^-farthest to below 2^farthest, of either sign, are ordinary: their roots,
    quotients and remainders are normal numbers. Numbers below 2^-tiny have inexact quotients by
    known divisors. `bias` and `fraction` (bits below the exponent) describe the word with the
    exponent.
    """

    bias: int
    fraction: int
    farthest: int
    tiny: int

    @property
    def least(self) -> int:
        """The word of the least ordinary number, as an integer."""
        return (self.bias - self.farthest) << self.fraction

    @property
    def least_of_known(self) -> int:
        """The word of the least numerator of a known divisor, as an integer."""
        return (self.bias - self.tiny) << self.fraction

    @property
    def span(self) -> int:
        """How many bit patterns are ordinary positive numbers."""
        return 2 * self.farthest << self.fraction

    def suits(self, value: float | None, positive: bool) -> bool:
        """
        Whether a number, if known, is a good divisor, or, if positive, a good operand of a root.
        """
        if value is None:
            return True
        ordinary = 2.0**-self.farthest <= abs(value) < 2.0**self.farthest
        ones = frexp(abs(value))[0] > 1 - 2.0 ** -(self.fraction + 1)
        return ordinary and (value > 0 or not positive) and not ones


FORMATS: dict[Attribute, Format] = {f64: Format(1023, 20, 400, 900), f32: Format(127, 23, 60, 70)}

SIGN_OFF = 0x7FFFFFFF


class Requirement(Enum):
    """
    A requirement on an operand: ORDINARY, of one sign (POSITIVE) or either, or +0; SOME_ZERO, a
    fraction not of ones only; or NOT_TINY, as the numerator of a known divisor: zeros, infinities
    and NaNs are allowed.
    """

    ORDINARY = auto()
    POSITIVE = auto()
    ORDINARY_OR_ZERO = auto()
    POSITIVE_OR_ZERO = auto()
    SOME_ZERO = auto()
    NOT_TINY = auto()

    @property
    def is_positive(self) -> bool:
        """Whether negative operands are excluded."""
        return self in (Requirement.POSITIVE, Requirement.POSITIVE_OR_ZERO)

    @property
    def allows_zero(self) -> bool:
        """Whether +0 is allowed beside ordinary numbers."""
        return self in (Requirement.ORDINARY_OR_ZERO, Requirement.POSITIVE_OR_ZERO)


STRONGER: dict[Requirement, tuple[Requirement, ...]] = {
    Requirement.POSITIVE: (),
    Requirement.ORDINARY: (Requirement.POSITIVE,),
    Requirement.POSITIVE_OR_ZERO: (Requirement.POSITIVE,),
    Requirement.ORDINARY_OR_ZERO: (
        Requirement.ORDINARY,
        Requirement.POSITIVE,
        Requirement.POSITIVE_OR_ZERO,
    ),
    Requirement.SOME_ZERO: (),
    Requirement.NOT_TINY: (
        Requirement.ORDINARY,
        Requirement.POSITIVE,
        Requirement.ORDINARY_OR_ZERO,
        Requirement.POSITIVE_OR_ZERO,
    ),
}
"""For each requirement, stronger requirements."""
