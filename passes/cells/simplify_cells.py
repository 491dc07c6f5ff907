"""simplify-cells: cells' operations on constants are folded; quotients by known divisors become
products.

Before:                                  After:
```
%four = arith.constant 4.0 : f64         %r = arith.constant 0.25 : f64
%q = arith.divf %x, %four : f64          %q = arith.mulf %x, %r : f64
```
1. Operations on constants are folded, with the rounding of the operation.
2. A quotient by a power of two becomes a product with the exact reciprocal. (Contraction may fuse
   the product like any other: bits differ only if the quotient would overflow or be subnormal.)
3. A quotient by another constant becomes a product only if the program allows two roundings in
   place of one (`fastmath<arcp>`), or everywhere with `fp-division=fast`.
4. A quotient by a square root becomes a product with a reciprocal root if the program allows both
   to be approximate (`fastmath<afn>`), or everywhere with `fp-division=fast`. The option also lets
   all other quotients and reciprocal roots be approximate: see `expand-division`.
   (`docs/command_line.md` states the errors.)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects import math as math_dialect
from xdsl.dialects.builtin import Float32Type, Float64Type, FloatAttr, ModuleOp, f32, f64
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Attribute, Operation
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    GreedyRewritePatternApplier,
    PatternRewriter,
    RewritePattern,
    op_type_rewrite_pattern,
)

from timetile.passes.analysis.cells.cell_operations import CELL_OPERATIONS
from timetile.passes.analysis.cells.constants import float_constant
from timetile.passes.patterns import Patterns, erase_unread, rewrite_cells

FpDivision = Literal["exact", "fast"]

SMALLEST_NORMAL: dict[Attribute, float] = {f64: 2.0**-1022, f32: 2.0**-126}


def constant(value: float, kind: Attribute) -> arith.ConstantOp | None:
    """A constant of a type, rounded to the type; None if not finite."""
    if not isinstance(kind, Float32Type | Float64Type) or not math.isfinite(value):
        return None
    try:
        return arith.ConstantOp(FloatAttr(value, kind))
    except OverflowError:
        return None


def folded(op: Operation) -> arith.ConstantOp | None:
    """
    The constant result of an operation on constants; None otherwise. FP64 results rounded to FP32
    are exactly the results of FP32, as FP64 has more than twice the bits of FP32 and two (S.
    Figueroa, "When is double rounding innocuous?", 1995).
    """
    known_operation = CELL_OPERATIONS.get(type(op))
    fold = None if known_operation is None else known_operation.fold
    operands = [float_constant(value) for value in op.operands]
    known = [value for value in operands if value is not None]
    if fold is None or len(known) < len(operands):
        return None
    try:
        return constant(fold(*known), op.results[0].type)
    except (ZeroDivisionError, ValueError, OverflowError):
        # Executors compute infinities and NaNs at run time.
        return None


def is_power_of_two(value: float) -> bool:
    """The number is a power of two, of either sign."""
    return abs(math.frexp(value)[0]) == 0.5


def reciprocal(op: arith.DivfOp, everywhere: bool) -> arith.ConstantOp | None:
    """
    The constant with which to multiply a quotient's numerator instead; None if the quotient must
    stay.
    """
    divisor, kind = float_constant(op.rhs), op.result.type
    if divisor is None or divisor == 0.0 or float_constant(op.lhs) is not None:
        return None
    factor = 1.0 / divisor
    if not is_power_of_two(divisor):
        # A subnormal reciprocal loses more than the last bit.
        allowed = everywhere or FastMathFlag.ALLOW_RECIP in op.fastmath.data
        if not allowed or abs(factor) < SMALLEST_NORMAL.get(kind, math.inf):
            return None
    return constant(factor, kind)


APPROXIMATE = FastMathFlag.APPROX_FUNC

Approximated = arith.DivfOp | math_dialect.SqrtOp | math_dialect.RsqrtOp
"""
Operations made approximate by `fp-division=fast`. A square root itself stays exact: its flag allows
an approximate quotient by the root.
"""


def by_reciprocal_root(op: arith.DivfOp) -> list[Operation]:
    """
    The reciprocal root, and the product with the reciprocal root, in place of a quotient by a root;
    empty if not allowed.
    """
    root = op.rhs.owner
    if not isinstance(root, math_dialect.SqrtOp):
        return []
    if not all(APPROXIMATE in flags.data for flags in (op.fastmath, root.fastmath)):
        return []
    made = math_dialect.RsqrtOp(root.operand, root.fastmath)
    if float_constant(op.lhs) == 1.0:
        return [made]
    return [made, arith.MulfOp(op.lhs, made.result, op.fastmath)]


def replace_with_last(op: Operation, new: Sequence[Operation], rewriter: PatternRewriter) -> None:
    """Replace an operation, and erase constants and roots needed for the operation only."""
    operands, last = list(op.operands), new[-1]
    # Only the last new operation takes the name of the old result.
    rewriter.insert(new[:-1])
    rewriter.replace(op, last)
    erase_unread(operands, rewriter, arith.ConstantOp, math_dialect.SqrtOp)


class FoldConstants(RewritePattern):
    """Operations on constants."""

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter, /) -> None:
        if (known := folded(op)) is not None:
            replace_with_last(op, [known], rewriter)


@dataclass(frozen=True)
class MultiplyByReciprocal(RewritePattern):
    """Quotients by a constant divisor, `everywhere` or if the quotient allows a product."""

    everywhere: bool

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: arith.DivfOp, rewriter: PatternRewriter, /) -> None:
        if (factor := reciprocal(op, self.everywhere)) is not None:
            product = arith.MulfOp(op.lhs, factor.result, op.fastmath)
            replace_with_last(op, [factor, product], rewriter)


@dataclass(frozen=True)
class Approximate(RewritePattern):
    """Quotients and roots that may be approximate, `everywhere` or by their flags."""

    everywhere: bool

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: Approximated, rewriter: PatternRewriter, /) -> None:
        if self.everywhere:
            op.fastmath = arith.FastMathFlagsAttr({*op.fastmath.data, APPROXIMATE})
            rewriter.notify_op_modified(op)
        if isinstance(op, arith.DivfOp) and (new := by_reciprocal_root(op)):
            replace_with_last(op, new, rewriter)


def all_patterns(fp_division: FpDivision) -> Patterns:
    """The patterns of each operation: the first that applies is taken."""
    everywhere, fold = fp_division == "fast", FoldConstants()
    patterns: dict[type[Operation], RewritePattern] = {
        kind: fold for kind, known in CELL_OPERATIONS.items() if known.fold is not None
    }
    approximate = [fold, Approximate(everywhere)]
    patterns[math_dialect.SqrtOp] = first_of(approximate)
    patterns[math_dialect.RsqrtOp] = first_of(approximate)
    patterns[arith.DivfOp] = first_of(
        [fold, MultiplyByReciprocal(everywhere), Approximate(everywhere)]
    )
    return patterns


def first_of(patterns: Sequence[RewritePattern]) -> RewritePattern:
    """The first of the patterns that applies."""
    return GreedyRewritePatternApplier(list(patterns), dce_enabled=False)


@dataclass(frozen=True)
class SimplifyCellsPass(ModulePass):
    """Simplify all cell functions; see the module's documentation."""

    name = "simplify-cells"

    fp_division: FpDivision = "exact"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rewrite_cells(op, all_patterns(self.fp_division))
