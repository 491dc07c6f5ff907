"""Lower bounds of values of a cell."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects import math as xmath
from xdsl.ir import Operation, SSAValue

from timetile.passes.analysis.cells.cell_operations import CELL_OPERATIONS
from timetile.passes.analysis.cells.constants import float_constant


class Bounds:
    """Lower bounds of floating-point values, each found once; NaNs are below none."""

    def __init__(self) -> None:
        self.found: dict[SSAValue, float | None] = {}

    def at_least(self, value: SSAValue) -> float | None:
        """
        A lower bound of the value, for constants, squares, and sums of nonnegative values. None if
        no bound is known.
        """
        # A sum may nest hundreds of terms: an explicit stack avoids deep recursion.
        pending = [value]
        while pending:
            unknown = [v for v in parts(pending[-1]) if v not in self.found]
            if unknown:
                pending += unknown
            else:
                last = pending.pop()
                self.found[last] = self.bound(last)
        return self.found[value]

    def bound(self, value: SSAValue) -> float | None:
        """The bound of a value, from the bounds of the operands."""
        match value.owner:
            case arith.MulfOp(lhs=a, rhs=b):
                return self.of_product(a, b)
            case arith.AddfOp(lhs=a, rhs=b):
                return of_sum(self.found[a], self.found[b])
            case xmath.FmaOp(a=a, b=b, c=c):
                return of_sum(self.of_product(a, b), self.found[c])
            case Operation() as op if (known := CELL_OPERATIONS.get(type(op))) is not None:
                constant = float_constant(value)
                return known.at_least if constant is None else constant
            case _:
                return None

    def of_product(self, a: SSAValue, b: SSAValue) -> float | None:
        """The bound of a product: 0 for a square, and for nonnegative factors."""
        if a is b:
            return 0.0
        factors = (self.found[a], self.found[b])
        return 0.0 if all(f is not None and f >= 0 for f in factors) else None


def parts(value: SSAValue) -> tuple[SSAValue, ...]:
    """The operands that bound a value."""
    match value.owner:
        case arith.AddfOp(lhs=a, rhs=b):
            return a, b
        case arith.MulfOp(lhs=a, rhs=b):
            return () if a is b else (a, b)
        case xmath.FmaOp(a=a, b=b, c=c):
            return (c,) if a is b else (a, b, c)
        case _:
            return ()


def of_sum(a: float | None, b: float | None) -> float | None:
    """
    The bound of a sum: the larger bound of two nonnegative ones, as no rounding takes the sum
    below.
    """
    if a is None or b is None or not (a >= 0 and b >= 0):
        return None
    return max(a, b)
