"""Square roots of FP64, and reciprocals of roots, correctly rounded for all operands, without a
branch or a call.

Numbers far from 1, subnormal numbers among them, are multiplied by an even power of two: the steps
of the quick side are right for the scaled number. Root and reciprocal go back by half of the power,
exactly, as no root is subnormal or too large.

- The step to the reciprocal is wrong for fractions of 1 bits only: r = 2^k (1 - 2^-53) gives y =
  2^-k, and 2^-k (1 + 2^-52) is nearest. Then 1 - r y is 2^-53. A nearest y never leaves the same
  remainder: 1 / r would be more than y (1 + 2^-53), rounded to y for powers of two alone.
- From 0, an infinity, a negative number or a NaN comes a guess of 0, an infinity or a NaN. The
  guess is the reciprocal, and the root is the operand, or a NaN.

The assembler's root and quotient are calls; `tiny_numerators.py` has the cost of a call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects import math as xmath
from xdsl.dialects.builtin import f64
from xdsl.ir import Operation, SSAValue

from timetile.dialects import simt
from timetile.lowering.division.sequences import Sequences
from timetile.lowering.emitter import Emitter
from timetile.passes.analysis.cells.bounds import Bounds
from timetile.passes.analysis.cells.constants import float_constant

FAR = 300
"""Numbers from 2^-300 to below 2^300 keep their scale."""

POWER = 510
"""The power of two that brings other numbers to between 2^-564 and 2^514."""

LAST_BIT = 2.0**-52


@dataclass(frozen=True)
class FarRoot:
    """The root of a scaled number, its approximate reciprocal, and masks of the scale."""

    root: SSAValue
    about: SSAValue
    guess: SSAValue
    is_small: SSAValue | None
    is_large: SSAValue


class FarRoots(Sequences):
    """Writes the sequences."""

    def __init__(self, emit: Emitter):
        super().__init__(emit)
        self.bounds = Bounds()
        self.roots: dict[SSAValue, FarRoot] = {}
        """Facts of roots, by result."""

    def by_power(
        self, value: SSAValue, small: int, large: int, masks: tuple[SSAValue | None, SSAValue]
    ) -> SSAValue:
        """A number by a power of two if small, by a second power if large."""
        is_small, is_large = masks
        factor = self.emit.select(is_large, self.constant(2.0**large, f64), self.constant(1.0, f64))
        if is_small is not None:
            factor = self.emit.select(is_small, self.constant(2.0**small, f64), factor)
        return self.multiply(value, factor)

    def root(self, x: SSAValue) -> SSAValue:
        """A square root."""
        least, is_small = self.bounds.at_least(x), None
        if least is None or least < 2.0**-FAR:
            is_small = self.less(x, self.constant(2.0**-FAR, f64))
        is_large = self.emit.add(arith.CmpfOp(x, self.constant(2.0**FAR, f64), "oge")).result
        scaled = self.by_power(x, POWER, -POWER, (is_small, is_large))
        guess = self.emit.add(simt.ReciprocalRootOp(scaled)).result
        about = self.third_order_root(scaled, guess)
        first = self.multiply(scaled, about)
        rest = self.fma(first, self.negative(first), scaled)
        root = self.fma(rest, self.multiply(about, self.constant(0.5, f64)), first)
        back = self.by_power(root, -POWER // 2, POWER // 2, (is_small, is_large))
        special = self.emit.select(self.equal(guess, guess), x, guess)
        result = self.emit.select(self.is_normal(guess, signed=False), back, special)
        self.roots[result] = FarRoot(root, about, guess, is_small, is_large)
        return result

    def reciprocal(self, root: SSAValue) -> SSAValue:
        """The reciprocal of a root made before."""
        known = self.roots[root]
        step = self.second_order(known.root, known.about)
        rest = self.error(known.root, step)
        is_below = self.equal(rest, self.constant(LAST_BIT / 2, f64))
        above = self.multiply(step, self.constant(1 + LAST_BIT, f64))
        inverse = self.emit.select(is_below, above, step)
        back = self.by_power(inverse, POWER // 2, -POWER // 2, (known.is_small, known.is_large))
        return self.emit.select(self.is_normal(known.guess, signed=False), back, known.guess)

    def expand(self, op: Operation, operands: Sequence[SSAValue]) -> SSAValue | None:
        """The result of a root, or of a reciprocal of a root; None for other quotients."""
        match op:
            case xmath.SqrtOp():
                return self.root(operands[0])
            case xmath.RsqrtOp():
                return self.reciprocal(self.root(operands[0]))
            case _:
                is_one = float_constant(operands[0]) == 1.0
                return (
                    self.reciprocal(operands[1]) if is_one and operands[1] in self.roots else None
                )
