"""expand-cells: operations missing on some machine, or with different results at the edges, become
operations with one result everywhere.

Before: `%q = arith.divsi %a, %b : i32`
After:
```
%above = arith.addi %b, %one : i32
%rare = arith.cmpi ult, %above, %two : i32       // %b is 0 or -1
%safe = arith.select %rare, %one, %b : i32
%ordinary = arith.divsi %a, %safe : i32
%product = arith.muli %a, %b : i32
%q = arith.select %rare, %product, %ordinary : i32
```
1. Quotients and remainders of integers: by 0 the result is 0, and the least integer divided by -1
   wraps around to the least integer. Constant divisors need no test. `floordivsi`, `ceildivsi` and
   `ceildivui` become quotients rounded towards zero, and a correction.
2. A NaN has no sign: `copysign` takes a NaN for positive, and `bitcast` gives one integer for all
   NaNs (0x7ff8 and zeros, 0x7fc0 and zeros in FP32). Machines differ in the sign of a NaN made by
   an invalid operation.

Both rewrites cost a few instructions of operations rare in cells, and leave sums and products
alone.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects import math as math_dialect
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, ModuleOp, f32, f64, i32, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from timetile.dialects.verified import float_type
from timetile.passes.analysis.cells.constants import float_constant, integer_constant
from timetile.passes.analysis.cells.quotients import Quotient, Remainder, has_sign, is_rare
from timetile.passes.cells.expansion import CellExpansion
from timetile.passes.patterns import Patterns, rewrite_cells

NAN_BITS: dict[Attribute, IntegerAttr] = {
    f64: IntegerAttr(0x7FF8 << 48, i64),
    f32: IntegerAttr(0x7FC0 << 16, i32),
}
"""The integer standing for every NaN, by type."""


class Division(CellExpansion):
    """The operations replacing a quotient of integers."""

    def safe_divisor(self, b: SSAValue, *, signed: bool) -> tuple[SSAValue, SSAValue | None]:
        """
        A divisor that is 1 if `b` is 0, or -1 for signed numbers; and the condition, None if never
        true.
        """
        known = integer_constant(b)
        if known is not None and not is_rare(known, signed=signed):
            return b, None
        one = self.int(1, b)
        if signed:
            above = self.add(arith.AddiOp(b, one))
            rare = self.compare("ult", above, self.int(2, b))
        else:
            rare = self.compare("eq", b, self.int(0, b))
        return self.select(rare, one, b), rare

    def divide(self, a: SSAValue, b: SSAValue, *, signed: bool) -> tuple[SSAValue, SSAValue]:
        """A quotient rounded towards zero, and the remainder."""
        safe, rare = self.safe_divisor(b, signed=signed)
        ordinary = self.add((arith.DivSIOp if signed else arith.DivUIOp)(a, safe))
        left = self.add(arith.SubiOp(a, self.add(arith.MuliOp(ordinary, safe))))
        if rare is None:
            return ordinary, left
        # A rare divisor `b` is 0 or -1. The quotient is 0 for 0, and -a for -1: both are a * b.
        product = self.add(arith.MuliOp(a, b))
        return self.select(rare, product, ordinary), left


class ExpandQuotient(RewritePattern):
    """Quotients by a divisor that may be 0, or -1 for signed numbers."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: Quotient, rewriter: PatternRewriter, /) -> None:
        new, signed = Division(op, rewriter), has_sign(op)
        safe, rare = new.safe_divisor(op.rhs, signed=signed)
        if rare is None:
            return
        ordinary = new.add(type(op)(op.lhs, safe))
        new.finish(new.select(rare, new.add(arith.MuliOp(op.lhs, op.rhs)), ordinary))


class ExpandRemainder(RewritePattern):
    """Remainders, 0 if the divisor is 0."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: Remainder, rewriter: PatternRewriter, /) -> None:
        new, signed = Division(op, rewriter), has_sign(op)
        safe, rare = new.safe_divisor(op.rhs, signed=signed)
        if rare is not None:
            new.finish(new.add(type(op)(op.lhs, safe)))


class ExpandRounded(RewritePattern):
    """
    Quotients rounded down or up: the quotient towards zero, corrected by one if a remainder is
    left.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(
        self,
        op: arith.FloorDivSIOp | arith.CeilDivSIOp | arith.CeilDivUIOp,
        rewriter: PatternRewriter,
        /,
    ) -> None:
        new, down = Division(op, rewriter), isinstance(op, arith.FloorDivSIOp)
        signed = not isinstance(op, arith.CeilDivUIOp)
        quotient, left = new.divide(op.lhs, op.rhs, signed=signed)
        zero = new.int(0, left)
        corrects = new.compare("ne", left, zero)
        if signed:
            signs = new.add(arith.XOrIOp(left, op.rhs))
            towards = new.compare("slt" if down else "sge", signs, zero)
            corrects = new.add(arith.AndIOp(corrects, towards))
        moved = (arith.SubiOp if down else arith.AddiOp)(quotient, new.int(1, left))
        new.finish(new.select(corrects, new.add(moved), quotient))


class ExpandCopySign(RewritePattern):
    """Magnitudes with the sign of a number that is no constant: positive for NaN."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: math_dialect.CopySignOp, rewriter: PatternRewriter, /) -> None:
        if float_constant(op.rhs) is not None:
            return
        new, kind = CellExpansion(op, rewriter), float_type(op.rhs.type)
        one = new.add(arith.ConstantOp(FloatAttr(1.0, kind)))
        sign = new.select(new.is_nan(op.rhs), one, op.rhs)
        new.finish(new.add(math_dialect.CopySignOp(op.lhs, sign, op.fastmath)))


class ExpandBitcast(RewritePattern):
    """The bits of floats as integers of equal width, equal for all NaNs."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: arith.BitcastOp, rewriter: PatternRewriter, /) -> None:
        bits = NAN_BITS.get(op.input.type)
        if bits is None or op.result.type != bits.type:
            return
        new = CellExpansion(op, rewriter)
        nan = new.is_nan(op.input)
        copy = new.add(arith.BitcastOp(op.input, op.result.type))
        new.finish(new.select(nan, new.add(arith.ConstantOp(bits)), copy))


PATTERNS: Patterns = {
    arith.DivSIOp: ExpandQuotient(),
    arith.DivUIOp: ExpandQuotient(),
    arith.RemSIOp: ExpandRemainder(),
    arith.RemUIOp: ExpandRemainder(),
    arith.FloorDivSIOp: ExpandRounded(),
    arith.CeilDivSIOp: ExpandRounded(),
    arith.CeilDivUIOp: ExpandRounded(),
    math_dialect.CopySignOp: ExpandCopySign(),
    arith.BitcastOp: ExpandBitcast(),
}


class ExpandCellsPass(ModulePass):
    """Expand operations in all cell functions; see the module's documentation."""

    name = "expand-cells"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rewrite_cells(op, PATTERNS)
