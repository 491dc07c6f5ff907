"""Steps of Newton's method for quotients and square roots."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import arith
from xdsl.dialects import math as xmath
from xdsl.dialects.builtin import FloatAttr, f64
from xdsl.ir import Attribute, SSAValue

from timetile.dialects import simt
from timetile.dialects.verified import float_type
from timetile.lowering.division.requirements import FORMATS, SIGN_OFF
from timetile.lowering.emitter import Emitter


class Sequences:
    """Writes steps of Newton's method, and their operands."""

    def __init__(self, emit: Emitter):
        self.emit = emit
        self.made: dict[tuple[str, SSAValue], tuple[SSAValue, ...]] = {}

    def once(
        self, name: str, value: SSAValue, make: Callable[[], tuple[SSAValue, ...]]
    ) -> tuple[SSAValue, ...]:
        """The values made from a value, made once."""
        if (name, value) not in self.made:
            self.made[name, value] = make()
        return self.made[name, value]

    def constant(self, value: float, kind: Attribute) -> SSAValue:
        """A constant of a type."""
        return self.emit.constant(FloatAttr(value, float_type(kind)), kind)

    def fma(self, a: SSAValue, b: SSAValue, c: SSAValue) -> SSAValue:
        """A fused multiply-add."""
        return self.emit.add(xmath.FmaOp(a, b, c)).result

    def multiply(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """A product."""
        return self.emit.binary(arith.MulfOp, a, b)

    def negative(self, a: SSAValue) -> SSAValue:
        """The negated value, made once."""
        return self.once("negative", a, lambda: (self.emit.add(arith.NegfOp(a)).result,))[0]

    def less(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """Whether a number is less than another; false for a NaN."""
        return self.emit.add(arith.CmpfOp(a, b, "olt")).result

    def equal(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """Whether two numbers are equal; false for a NaN."""
        return self.emit.add(arith.CmpfOp(a, b, "oeq")).result

    def halves(self, value: SSAValue) -> tuple[SSAValue, ...]:
        """The lower and the upper word of an FP64 number."""
        return self.once("halves", value, lambda: tuple(self.emit.add(simt.SplitOp(value)).results))

    def is_normal(self, x: SSAValue, *, signed: bool) -> SSAValue:
        """An FP64 number is normal, and positive unless either sign will do."""
        word, form = self.halves(x)[1], FORMATS[f64]
        if signed:
            word = self.emit.binary(arith.AndIOp, word, self.emit.int(SIGN_OFF))
        one = 1 << form.fraction
        return self.emit.compare("ult", self.emit.add_int(word, -one), 2 * form.bias * one)

    def error(self, x: SSAValue, guess: SSAValue) -> SSAValue:
        """The relative error of a guess of a reciprocal: the missing share."""
        return self.fma(self.negative(x), guess, self.constant(1.0, x.type))

    def second_order(self, x: SSAValue, guess: SSAValue) -> SSAValue:
        """A reciprocal with twice the bits of a guess."""
        return self.fma(guess, self.error(x, guess), guess)

    def third_order(self, x: SSAValue, guess: SSAValue) -> SSAValue:
        """
        The reciprocal of an FP64 number, correct to all bits but the last, from a third of the
        bits.
        """
        error = self.error(x, guess)
        return self.fma(guess, self.fma(error, error, error), guess)

    def third_order_root(self, x: SSAValue, guess: SSAValue) -> SSAValue:
        """
        The reciprocal square root of an FP64 number, correct to all bits but the last, from a third
        of the bits.
        """
        one, half = self.constant(1.0, f64), self.constant(0.5, f64)
        error = self.fma(x, self.negative(self.multiply(guess, guess)), one)
        weight = self.fma(error, self.constant(0.375, f64), half)
        return self.fma(weight, self.multiply(guess, error), guess)
