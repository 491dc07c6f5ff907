"""Quotients of FP64 by a known number whose numerators may be tiny: correctly rounded, without a
branch or a call.

A product and a fused multiply-add (`known_divisors.py`) are wrong for tiny numerators only, whose
second product is not exact. These are multiplied by 2^850, divided, and the quotient is brought
back: it may be subnormal, and is rounded again. u is the distance of subnormal numbers, times
2^850, and s the scaled numerator by d.

- The scaled quotient q is correctly rounded, and t, q rounded to a multiple of u, is off by
  m = q - t, which is exact. Where the result is normal, m is 0.
- t is the nearest multiple of u to the quotient unless q lies on the middle, |m| = u / 2. Every
  middle is a number of FP64, so that the quotient lies on the same side of a middle as q.
- On a middle, the remainder e = s - q d says, exactly, on which side the quotient lies: beyond the
  middle, seen from t, if e / d and m have one sign. Then t + 2 m is nearest. If e is 0, the tie has
  gone to even. Neither e nor e m is tiny: e is a multiple of 2^-359.

The exact side of FP64 otherwise calls the assembler's quotient. Behind a call the assembler no
longer knows that the lanes of a warp run together, and makes constants anew.
"""

from __future__ import annotations

from math import copysign

from xdsl.dialects import arith
from xdsl.dialects import math as xmath
from xdsl.dialects.builtin import f64
from xdsl.ir import SSAValue

from timetile.lowering.division.requirements import FORMATS
from timetile.lowering.division.sequences import Sequences
from timetile.passes.analysis.cells.known_divisors import Inverse

SCALE = 2.0**850
"""Numerators below 2^-`tiny` times the scale are far from both ends of the range."""

HALF = SCALE * 2.0**-1074 / 2
"""Half of the distance of scaled subnormal numbers."""


class TinyNumerators(Sequences):
    """Writes the sequence."""

    def quotient(self, a: SSAValue, divisor: float, inverse: Inverse) -> SSAValue:
        """A quotient by a known number, correctly rounded for every numerator."""
        magnitude = self.emit.add(xmath.AbsFOp(a)).result
        is_tiny = self.less(magnitude, self.constant(2.0 ** -FORMATS[f64].tiny, f64))
        scaled = self.multiply(a, self.constant(SCALE, f64))
        back = self.constant(1 / SCALE, f64)
        nearest = self.multiply(self.rounded(scaled, divisor, inverse), back)
        return self.emit.select(is_tiny, nearest, self.by_inverse(a, inverse))

    def by_inverse(self, a: SSAValue, inverse: Inverse) -> SSAValue:
        """The quotient of a number that is not tiny."""
        high, low = (self.constant(part, f64) for part in (inverse.high, inverse.low))
        return self.fma(a, high, self.multiply(a, low))

    def rounded(self, scaled: SSAValue, divisor: float, inverse: Inverse) -> SSAValue:
        """The scaled quotient, rounded as the quotient is without the scale."""
        quotient = self.by_inverse(scaled, inverse)
        down = self.multiply(quotient, self.constant(1 / SCALE, f64))
        nearest = self.multiply(down, self.constant(SCALE, f64))
        off = self.emit.binary(arith.SubfOp, quotient, nearest)
        rest = self.fma(quotient, self.constant(-divisor, f64), scaled)
        towards = self.multiply(off, self.constant(copysign(1.0, divisor), f64))
        is_middle = self.equal(self.emit.add(xmath.AbsFOp(off)).result, self.constant(HALF, f64))
        is_beyond = self.less(self.constant(0.0, f64), self.multiply(rest, towards))
        other = self.fma(off, self.constant(2.0, f64), nearest)
        wrong = self.emit.binary(arith.AndIOp, is_middle, is_beyond)
        return self.emit.select(wrong, other, nearest)
