"""Numbers that values are known not to be below."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects import math as xmath
from xdsl.ir import SSAValue

from timetile.passes.analysis.constants import float_constant


class Bounds:
    """Lower bounds of floating-point values, each found once; NaNs are below none."""

    def __init__(self) -> None:
        self.found: dict[SSAValue, float | None] = {}

    def at_least(self, value: SSAValue) -> float | None:
        """
        A number that a value is not below, whatever it is computed from: constants, squares and sums of what is not
        negative. None where nothing is known.
        """
        if value not in self.found:
            self.found[value] = self.bound(value)
        return self.found[value]

    def bound(self, value: SSAValue) -> float | None:
        match value.owner:
            case arith.MulfOp(lhs=a, rhs=b):
                return self.of_product(a, b)
            case arith.AddfOp(lhs=a, rhs=b):
                return self.of_sum(self.at_least(a), self.at_least(b))
            case xmath.FmaOp(a=a, b=b, c=c):
                return self.of_sum(self.of_product(a, b), self.at_least(c))
            case xmath.AbsFOp():
                return 0.0
            case _:
                return float_constant(value)

    def of_product(self, a: SSAValue, b: SSAValue) -> float | None:
        """0 for squares and for products of what is not negative."""
        if a is b:
            return 0.0
        factors = (self.at_least(a), self.at_least(b))
        return 0.0 if all(f is not None and f >= 0 for f in factors) else None

    def of_sum(self, a: float | None, b: float | None) -> float | None:
        """The larger one where neither is negative: no rounding takes the sum below it."""
        if a is None or b is None or not (a >= 0 and b >= 0):
            return None
        return max(a, b)
