"""expand-powers: powers with integer exponents become products.

Before: `%p = math.fpowi %x, %c3 : f64, i32`
After:
```
%s = arith.mulf %x, %x : f64
%p = arith.mulf %s, %x : f64
```

Products by repeated squaring have equal bits on every executor, while libraries differ in the last
bits. A negative exponent gives the reciprocal of the positive power. A power of a float with a
variable exponent becomes `math.powf`. A power of an integer takes a product for every bit of the
exponent, wraps around, and is 0 for negative exponents, unless the base is 1 or -1. Powers on the
host, for example in the places of sources, become products like powers in cells.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects import math as math_dialect
from xdsl.dialects.builtin import FloatAttr, IndexType, ModuleOp, i64
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from timetile.dialects.cell_types import value_bytes
from timetile.dialects.verified import float_type
from timetile.passes.analysis.cells.constants import integer_constant
from timetile.passes.cells.expansion import CellExpansion
from timetile.passes.patterns import Patterns, rewrite_once

Multiply = type[arith.MulfOp] | type[arith.MuliOp]


def known_power(new: CellExpansion, base: SSAValue, exponent: int, multiply: Multiply) -> SSAValue:
    """A power by products, from the highest bit of a positive exponent down."""
    result = base
    for bit in bin(exponent)[3:]:
        result = new.add(multiply(result, result))
        if bit == "1":
            result = new.add(multiply(result, base))
    return result


def expand_float(new: CellExpansion, op: math_dialect.FPowIOp) -> SSAValue:
    """A power of a float."""
    kind, exponent = float_type(op.result.type), integer_constant(op.rhs)
    if exponent is None:
        number = op.rhs
        if isinstance(number.type, IndexType):
            number = new.add(arith.IndexCastOp(number, i64))
        return new.add(math_dialect.PowFOp(op.lhs, new.add(arith.SIToFPOp(number, kind))))
    if exponent > 0:
        return known_power(new, op.lhs, exponent, arith.MulfOp)
    if exponent == 0:
        return new.add(arith.ConstantOp(FloatAttr(1.0, kind)))
    positive = known_power(new, op.lhs, -exponent, arith.MulfOp)
    one = new.add(arith.ConstantOp(FloatAttr(1.0, kind)))
    return new.add(arith.DivfOp(one, positive))


def expand_integer(new: CellExpansion, op: math_dialect.IPowIOp) -> SSAValue:
    """A power of an integer."""
    base, exponent = op.lhs, integer_constant(op.rhs)
    if exponent is not None and exponent > 0:
        return known_power(new, base, exponent, arith.MuliOp)
    zero, one = new.int(0, base), new.int(1, base)
    if exponent == 0:
        return one
    # Powers wrap around, and all bits of the exponent count. A negative exponent gives 0, but for a
    # base of 1 or -1.
    result, power = one, base
    for bit in range(8 * value_bytes(base.type)):
        at = new.add(arith.ShRUIOp(op.rhs, new.int(bit, base)))
        is_set = new.compare("ne", new.add(arith.AndIOp(at, one)), zero)
        result = new.select(is_set, new.add(arith.MuliOp(result, power)), result)
        power = new.add(arith.MuliOp(power, power))
    above = new.add(arith.AddiOp(base, one))
    unit = new.compare("ule", above, new.int(2, base))
    other = new.add(arith.AndIOp(unit, new.compare("ne", base, zero)))
    whole = new.add(arith.OrIOp(other, new.compare("sge", op.rhs, zero)))
    return new.select(whole, result, zero)


class ExpandFloatPower(RewritePattern):
    """Powers of floats with integer exponents."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: math_dialect.FPowIOp, rewriter: PatternRewriter, /) -> None:
        new = CellExpansion(op, rewriter)
        new.finish(expand_float(new, op))


class ExpandIntegerPower(RewritePattern):
    """Powers of integers."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: math_dialect.IPowIOp, rewriter: PatternRewriter, /) -> None:
        new = CellExpansion(op, rewriter)
        new.finish(expand_integer(new, op))


class ExpandPowersPass(ModulePass):
    """Expand the powers in cells and on the host; see the module's documentation."""

    name = "expand-powers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        patterns: Patterns = {
            math_dialect.FPowIOp: ExpandFloatPower(),
            math_dialect.IPowIOp: ExpandIntegerPower(),
        }
        rewrite_once(list(op.walk()), patterns)
