"""Approximate quotients and reciprocal roots: the hardware's guess, and in FP64 one step from the
guess.

There is no branch for special operands: a cell never depends on other cells of its warp. In FP64 a
step of third order takes the guess's 20 bits to all but the last of 53; a guess of 0, infinity or
NaN is the result. Results below the normal numbers, and operands below them, count as 0. In FP32
the guess itself has all bits but the last.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import math as xmath
from xdsl.dialects.builtin import f64
from xdsl.ir import Operation, SSAValue

from timetile.dialects import simt
from timetile.lowering.division.sequences import Sequences
from timetile.passes.analysis.cells.constants import float_constant


class Approximation(Sequences):
    """Writes the sequences."""

    def refined(
        self,
        guess: simt.ReciprocalOp | simt.ReciprocalRootOp,
        step: Callable[[SSAValue, SSAValue], SSAValue],
        *,
        signed: bool,
    ) -> SSAValue:
        """
        The hardware's guess for a value, and in FP64 a step from the guess for a normal value.
        """
        x, about = guess.value, self.emit.add(guess).result
        if x.type != f64:
            return about
        closer = step(x, about)
        return self.emit.select(self.is_normal(x, signed=signed), closer, about)

    def one_by(self, x: SSAValue) -> SSAValue:
        """About one by a value."""
        return self.refined(simt.ReciprocalOp(x), self.third_order, signed=True)

    def one_by_root(self, x: SSAValue) -> SSAValue:
        """About one by a value's square root."""
        return self.refined(simt.ReciprocalRootOp(x), self.third_order_root, signed=False)

    def expand(self, op: Operation, operands: Sequence[SSAValue]) -> SSAValue:
        """The result of a quotient or a reciprocal root."""
        if isinstance(op, xmath.RsqrtOp):
            return self.one_by_root(operands[0])
        numerator, divisor = operands
        reciprocal = self.once("one by", divisor, lambda: (self.one_by(divisor),))[0]
        if float_constant(numerator) == 1.0:
            return reciprocal
        return self.multiply(numerator, reciprocal)
