"""Quotients and square roots by Newton's method, correctly rounded, with the conditions for correct
rounding.

The sequences are those of NVIDIA's assembler, except for reciprocals of roots: an approximation,
one or two steps of Newton's method, and a last step with the remainder, exact by a fused
multiply-add (P. Markstein, "Computation of elementary functions on the IBM RISC System/6000
processor", 1990). Near the ends of the range, and for infinities and NaNs, the sequences are wrong:
the conditions exclude such operands.

The reciprocal of a root r is a single step from y, the value behind the root: y + y e with e = 1 -
r y, equal to (1 - e^2) / r.

- FP64: y is the nearest number to the reciprocal of the exact root, up to 2^-57, if the guess
  behind y is off by at most 1.4 * 2^-20 (the hardware's is off by 0.98) and has bits in its upper
  word only, with an exact square. The root is off by half of its last bit; e is then below 1.57 *
  2^-53, and exact. The step rounds to another number than 1 / r only if the middle m of two numbers
  lies between the step and 1 / r: then r m = 1 - k / 2^106 with k = 1, for fractions of ones only,
  or k = 2. Then r and m, as integers, divide 2^106 - 2, and of the 32 possible r none has a y far
  enough from 1 / r for a wrong step.
- FP32: y is the hardware's guess, off by up to 2.7 * 2^-24. With e + e^2, rounded upwards, in place
  of e the step is right for every r (tried, on the hardware), also for fractions of ones only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import copysign

from xdsl.dialects import arith
from xdsl.dialects import math as xmath
from xdsl.dialects.builtin import f32, f64, i1, i32
from xdsl.ir import Operation, SSAValue

from timetile.dialects import simt
from timetile.lowering.division.guards import LaneGuards
from timetile.lowering.division.requirements import (
    FORMATS,
    SIGN_OFF,
    STRONGER,
    Format,
    Requirement,
)
from timetile.lowering.division.scalar_divisors import (
    ScalarDivisor,
    ScalarDivisors,
    numerator_condition,
)
from timetile.lowering.division.sequences import Sequences
from timetile.lowering.emitter import Emitter
from timetile.passes.analysis.cells.bounds import Bounds
from timetile.passes.analysis.cells.constants import float_constant
from timetile.passes.analysis.cells.instructions import is_dividing, only_divides
from timetile.passes.analysis.cells.known_divisors import Inverse, inverse_of

Condition = tuple[SSAValue, Requirement | SSAValue]
"""A requirement on a value, or a value with the scalar that divides it."""


def either(one: LaneGuards | None, other: LaneGuards | None) -> LaneGuards | None:
    """Where one of two results is needed."""
    return None if one is None or other is None else tuple(dict.fromkeys((*one, *other)))


class DivisionExpansion(Sequences):
    """Writes correctly rounded sequences, and collects their conditions."""

    def __init__(self, emit: Emitter, scalars: ScalarDivisors | None = None):
        super().__init__(emit)
        self.scalars = scalars
        """The scalars of the kernel that divide."""
        self.bounds = Bounds()
        self.conditions: dict[Condition, SSAValue] = {}
        self.guards: dict[Condition, LaneGuards | None] = {}
        """Where each condition must hold: under some of the masks, or, for None, in every lane."""
        self.needed: LaneGuards | None = None
        """Where the result of the present operation is needed."""
        self.inverses: dict[SSAValue, Inverse | None] = {}
        """The inverses of known divisors."""
        self.roots: dict[SSAValue, SSAValue] = {}
        """
        Results known to be ordinary and positive under the conditions, with an approximate
        reciprocal.
        """

    def require(self, value: SSAValue, what: Requirement) -> None:
        """Require a property of a value for the sequences."""
        if (value in self.roots and what is not Requirement.SOME_ZERO) or float_constant(
            value
        ) is not None:
            return
        for stronger in (what, *STRONGER[what]):
            if (value, stronger) in self.conditions:
                self.guards[value, stronger] = either(self.guards[value, stronger], self.needed)
                return
        self.conditions[value, what] = self.condition(value, what)
        # A number with a known bound is ordinary in lanes without cells, too.
        bounded = self.bounds.at_least(value) is not None
        self.guards[value, what] = None if bounded else self.needed

    def all_conditions(self) -> SSAValue | None:
        """The mask of lanes in which each condition holds that must; None for no condition."""
        groups: dict[frozenset[SSAValue] | None, list[Condition]] = {}
        for key, guards in self.guards.items():
            groups.setdefault(None if guards is None else frozenset(guards), []).append(key)
        masks: list[SSAValue | None] = []
        for keys in groups.values():
            guards = self.guards[keys[0]]
            mask = self.emit.all_of([self.conditions[key] for key in keys])
            if guards is not None and mask is not None:
                needed = self.emit.any_of(guards)
                idle = self.emit.binary(arith.XOrIOp, needed, self.emit.int(-1, i1))
                mask = self.emit.binary(arith.OrIOp, mask, idle)
            masks.append(mask)
        return self.emit.all_of(masks)

    def condition(self, value: SSAValue, what: Requirement) -> SSAValue:
        """The condition for a property of a value."""
        if what is Requirement.SOME_ZERO:
            # Comparing the lower word alone is cheaper: one value in four billion takes the exact
            # path needlessly.
            return self.emit.compare("ne", self.halves(value)[0], -1)
        form = FORMATS[value.type]
        word = number = self.exponent_word(value)
        if what is Requirement.NOT_TINY:
            return self.not_tiny(value, word, form)
        least = self.bounds.at_least(value)
        if least is not None and least >= 2.0**-form.farthest:
            # The value has a known sign and a known lower bound: only the upper end is tested.
            return self.emit.compare("ult", word, form.least + form.span)
        if not what.is_positive:
            word = self.emit.binary(arith.AndIOp, word, self.emit.int(SIGN_OFF))
        ordinary = self.emit.compare("ult", self.emit.add_int(word, -form.least), form.span)
        if not what.allows_zero:
            return ordinary
        if value.type == f64:
            number = self.emit.binary(arith.OrIOp, number, self.halves(value)[0])
        return self.emit.any_of([ordinary, self.emit.compare("eq", number, 0)])

    def not_tiny(self, value: SSAValue, word: SSAValue, form: Format) -> SSAValue:
        """The condition that a number is zero, or its quotients by known divisors are exact."""
        # Twice the word has no sign, and zero less 1 is the largest word.
        double, least = self.emit.binary(arith.AddiOp, word, word), 2 * form.least_of_known
        if value.type == f32:
            return self.emit.compare("uge", self.emit.add_int(double, -1), least - 1)
        large = self.emit.compare("uge", double, least)
        number = self.emit.binary(arith.OrIOp, double, self.halves(value)[0])
        return self.emit.any_of([large, self.emit.compare("eq", number, 0)])

    def exponent_word(self, value: SSAValue) -> SSAValue:
        """The 32 bits with sign and exponent."""
        if value.type == f64:
            return self.halves(value)[1]
        cast = self.once(
            "word", value, lambda: (self.emit.add(arith.BitcastOp(value, i32)).result,)
        )
        return cast[0]

    def bounded(self, guess: SSAValue) -> SSAValue:
        """A number far from the ends in place of infinity: times 0, the product is 0."""
        form = FORMATS[guess.type]
        if guess.type != f64:
            most = self.constant(2.0**form.farthest, guess.type)
            return self.emit.binary(arith.MinnumfOp, guess, most)
        low, high = self.halves(guess)
        high = self.emit.binary(arith.MinUIOp, high, self.emit.int(form.least + form.span))
        return self.emit.add(simt.JoinOp(low, high, f64)).result

    def root(self, x: SSAValue, *, or_zero: bool) -> SSAValue:
        """The square root of an ordinary positive number or of +0, correctly rounded."""
        self.require(x, Requirement.POSITIVE_OR_ZERO if or_zero else Requirement.POSITIVE)
        guess = self.emit.add(simt.ReciprocalRootOp(x)).result
        if or_zero:
            guess = self.bounded(guess)
        if x.type == f64:
            guess = self.third_order_root(x, guess)
        root = self.multiply(x, guess)
        rest = self.fma(root, self.negative(root), x)
        half = self.multiply(guess, self.constant(0.5, x.type))
        result = self.fma(rest, half, root)
        if not or_zero:
            # The root of an ordinary number has half the exponent, and is ordinary too.
            self.roots[result] = guess
        return result

    def reciprocal(self, x: SSAValue) -> SSAValue:
        """One by an ordinary number, correctly rounded."""
        self.require(x, Requirement.ORDINARY)
        if x.type == f64:
            # The last step may round a reciprocal down: of fractions of 1 bits only.
            self.require(x, Requirement.SOME_ZERO)
        return self.once("reciprocal", x, lambda: (self.newton(x),))[0]

    def newton(self, x: SSAValue) -> SSAValue:
        """
        Newton's method for a reciprocal. The last step rounds correctly a value off by the last
        bit.
        """
        if x in self.roots:
            return self.one_by_root(x, self.roots[x])
        guess = self.emit.add(simt.ReciprocalOp(x)).result
        return self.second_order(x, guess if x.type != f64 else self.third_order(x, guess))

    def one_by_root(self, root: SSAValue, about: SSAValue) -> SSAValue:
        """The reciprocal of a root, from the value behind the root."""
        if root.type == f64:
            return self.second_order(root, about)
        error = self.error(root, about)
        more = self.emit.add(simt.FmaUpOp(error, error, error)).result
        return self.fma(about, more, about)

    def quotient(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """A quotient of ordinary numbers, correctly rounded; the numerator may be +0."""
        if b not in self.inverses:
            self.inverses[b] = inverse_of(float_constant(b), b.type)
        if (known := self.inverses[b]) is not None:
            self.require(a, Requirement.NOT_TINY)
            high, low = (self.constant(part, b.type) for part in (known.high, known.low))
            return self.fma(a, high, self.multiply(a, low))
        scalar = None if self.scalars is None else self.scalars.of(b)
        if scalar is not None:
            return self.by_scalar(a, b, scalar)
        reciprocal = self.reciprocal(b)
        if float_constant(a) == 1.0:
            return reciprocal
        self.require(a, Requirement.ORDINARY_OR_ZERO)
        against = self.negative(b)
        result = self.multiply(a, reciprocal)
        # The FP32 reciprocal took a step less than the FP64 reciprocal.
        for _ in range(1 if a.type == f64 else 2):
            result = self.fma(reciprocal, self.fma(against, result, a), result)
        return result

    def by_scalar(self, a: SSAValue, b: SSAValue, divisor: ScalarDivisor) -> SSAValue:
        """A quotient by a scalar of the kernel, correctly rounded; the numerator may be zero."""
        self.require_mask((b, b), lambda: divisor.ordinary)
        words = self.halves(a) if a.type == f64 else (self.exponent_word(a),)
        self.require_mask((a, b), lambda: numerator_condition(self.emit, a, words, divisor))
        first = self.multiply(a, divisor.reciprocal)
        rest = self.fma(first, b, self.negative(a))
        return self.fma(rest, self.negative(divisor.reciprocal), first)

    def require_mask(self, key: Condition, make: Callable[[], SSAValue]) -> None:
        """Require a mask, made once."""
        if key in self.conditions:
            self.guards[key] = either(self.guards[key], self.needed)
        else:
            self.conditions[key], self.guards[key] = make(), self.needed

    def expand(
        self, op: Operation, operands: Sequence[SSAValue], needed: LaneGuards | None = None
    ) -> SSAValue:
        """
        The quick result of a quotient or a root. `needed`: where the result is needed; by default
        in every lane.
        """
        self.needed = needed
        match op:
            case xmath.SqrtOp():
                return self.root(operands[0], or_zero=not only_divides(op.result))
            case xmath.RsqrtOp():
                return self.reciprocal(self.root(operands[0], or_zero=False))
            case _:
                return self.quotient(operands[0], operands[1])


def is_expanded(op: Operation) -> bool:
    """
    Whether the operation is a quotient or a root of a type with a sequence, and no operand is known
    to be special.
    """
    if not is_dividing(op) or op.results[0].type not in FORMATS:
        return False
    form = FORMATS[op.results[0].type]
    *numerators, last = (float_constant(value) for value in op.operands)
    positive = not isinstance(op, arith.DivfOp)
    return form.suits(last, positive) and all(
        n is None or is_positive_zero(n) or form.suits(n, False) for n in numerators
    )


def is_positive_zero(value: float) -> bool:
    """The number is +0."""
    return value == 0.0 and copysign(1.0, value) > 0
