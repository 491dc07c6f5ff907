"""Quotients by a scalar of the kernel: three operations with a reciprocal made once by each thread.

Before, in the loop of a kernel with the argument `%h`: `%q = arith.divf %x, %h : f32`
After:
```
%r = ...                                 // one by %h, once, before all loops
...
%first = arith.mulf %x, %r : f32         // in the loop
%rest = math.fma %first, %h, -%x : f32
%q = math.fma %rest, -%r, %first : f32
```
r is the number nearest to 1 / h, from a sequence without a branch: behind a call the assembler no
longer knows that the lanes of a warp run together. For ordinary x and h the result is
the quotient, correctly rounded (P. Markstein, "Computation of elementary functions on the IBM RISC
System/6000 processor", 1990; decision 49 has the proof for a first product that is off by more than
one number). The remainder has the sign that makes zeros right: a zero divided by a positive number
ends as -0 + +0 or -0 + -0, the first product. For a negative h, zeros take the exact side.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects import math as xmath
from xdsl.dialects.builtin import FloatAttr, f32, f64, i32
from xdsl.ir import Block, SSAValue

from timetile.dialects import simt
from timetile.lowering.division.requirements import FORMATS, SIGN_OFF
from timetile.lowering.division.wide import WideDivision
from timetile.lowering.emitter import Emitter
from timetile.lowering.threads.rewriting import move_before


@dataclass(frozen=True)
class ScalarDivisor:
    """
    A scalar that divides. `reciprocal`: the number nearest to one by the scalar. `ordinary`: the
    mask for a scalar far from the ends of the range.
    """

    reciprocal: SSAValue
    ordinary: SSAValue
    zeros: SSAValue
    """1 for a positive scalar, which may divide zeros, otherwise 0."""
    least: SSAValue
    """The doubled word of the least ordinary numerator, less `zeros`."""


class ScalarDivisors:
    """The scalars of a kernel that divide, with values made once, before all loops."""

    def __init__(self, setup: Emitter):
        self.setup = setup
        self.found: dict[SSAValue, ScalarDivisor] = {}

    def of(self, value: SSAValue) -> ScalarDivisor | None:
        """The divisor of a kernel's argument; None for other values."""
        if value.owner is not self.setup.prologue:
            return None
        if value not in self.found:
            self.found[value] = self.made(value)
        return self.found[value]

    def made(self, value: SSAValue) -> ScalarDivisor:
        """The values for a scalar, ahead of all operations but constants."""
        block, form = Block(), FORMATS[value.type]
        emit = self.setup.into(block)
        steps = WideDivision(emit)
        if value.type == f32:
            reciprocal = steps.quotient(steps.constant(1.0, f32), value)
            word: SSAValue = emit.add(arith.BitcastOp(value, i32)).result
        else:
            guess = emit.add(simt.ReciprocalOp(value)).result
            reciprocal = steps.second_order(value, steps.third_order(value, guess))
            word = steps.halves(value)[1]
        magnitude = emit.binary(arith.AndIOp, word, emit.int(SIGN_OFF))
        ordinary = emit.compare("ult", emit.add_int(magnitude, -form.least), form.span)
        if value.type == f64:
            # The last step may round a reciprocal down: of fractions of 1 bits only.
            some_zero = emit.compare("ne", steps.halves(value)[0], -1)
            ordinary = emit.binary(arith.AndIOp, ordinary, some_zero)
        positive = emit.compare("sgt", word, 0)
        zeros = emit.select(positive, emit.int(1), emit.int(0))
        least = emit.sub_int(emit.int(2 * form.least), zeros)
        first = next(op for op in self.setup.prologue.ops if not isinstance(op, arith.ConstantOp))
        move_before(list(block.ops), first)
        return ScalarDivisor(reciprocal, ordinary, zeros, least)


def numerator_condition(
    emit: Emitter, a: SSAValue, halves: tuple[SSAValue, ...], divisor: ScalarDivisor
) -> SSAValue:
    """
    The mask for an ordinary numerator, or a zero over a positive divisor. `halves`: the lower and
    the upper word of an FP64 number, or the word of an FP32 number.
    """
    form, upper = FORMATS[a.type], halves[-1]
    double = emit.binary(arith.AddiOp, upper, upper)
    if a.type == f32:
        # Twice the word has no sign, and zero less 1 is the largest word.
        large = emit.compare("uge", emit.sub_int(double, divisor.zeros), divisor.least)
        most = emit.constant(FloatAttr(2.0**form.farthest, f32), f32)
        magnitude = emit.add(xmath.AbsFOp(a)).result
        small = emit.add(arith.CmpfOp(magnitude, most, "olt")).result
        return emit.binary(arith.AndIOp, large, small)
    ordinary = emit.compare("ult", emit.add_int(double, -2 * form.least), 2 * form.span)
    number = emit.binary(arith.OrIOp, double, halves[0])
    return emit.any_of([ordinary, emit.compare("ult", number, divisor.zeros)])
