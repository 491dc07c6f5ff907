"""contract-cells: products and sums of the cell functions become fused multiply-adds, once.

Before:                                  After:
```
%p = arith.mulf %x, %c : f64
%q = arith.addf %s, %p : f64             %q = math.fma %x, %c, %s : f64
```
Later levels and all executors see `math.fma`, and no later level contracts: all schedules compute
equal bits. `fp-contract=fast` (the default of nvcc) contracts every product with one use; `on` only
if both operations allow contraction (`fastmath<contract>`); `off` none. A difference is contracted
with a negated factor or addend, an exact change.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects import math as math_dialect
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from timetile.passes.patterns import Patterns, rewrite_cells


@dataclass(frozen=True)
class ContractionPattern(RewritePattern):
    """
    What the patterns for sums share. `everywhere`: operations are fused also without
    `fastmath<contract>`.
    """

    everywhere: bool

    def allows(self, op: arith.AddfOp | arith.SubfOp | arith.MulfOp) -> bool:
        """The operation may be fused."""
        return self.everywhere or FastMathFlag.ALLOW_CONTRACT in op.fastmath.data

    def product(self, value: SSAValue) -> arith.MulfOp | None:
        """The product behind `value`, if it may be fused into its only use; otherwise None."""
        product = value.owner
        if not isinstance(product, arith.MulfOp) or not product.result.has_one_use():
            return None
        return product if self.allows(product) else None


class ContractSum(ContractionPattern):
    """`s + x * c` and `x * c + s`. The right product comes first: the later term of a sum."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: arith.AddfOp, rewriter: PatternRewriter, /) -> None:
        if not self.allows(op):
            return
        for value, addend in ((op.rhs, op.lhs), (op.lhs, op.rhs)):
            if (product := self.product(value)) is not None:
                rewriter.replace(op, math_dialect.FmaOp(product.lhs, product.rhs, addend))
                rewriter.erase(product)
                return


class ContractDifference(ContractionPattern):
    """`s - x * c` with a negated factor, and `x * c - s` with a negated addend: exact changes."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: arith.SubfOp, rewriter: PatternRewriter, /) -> None:
        if not self.allows(op):
            return
        if (product := self.product(op.rhs)) is not None:
            opposite = arith.NegfOp(product.lhs)
            fused = math_dialect.FmaOp(opposite.result, product.rhs, op.lhs)
        elif (product := self.product(op.lhs)) is not None:
            opposite = arith.NegfOp(op.rhs)
            fused = math_dialect.FmaOp(product.lhs, product.rhs, opposite.result)
        else:
            return
        rewriter.insert(opposite)
        rewriter.replace(op, fused)
        rewriter.erase(product)


FpContract = Literal["fast", "on", "off"]
"""Where products and sums are fused: everywhere, where fastmath flags allow it, or nowhere."""


@dataclass(frozen=True)
class ContractCellsPass(ModulePass):
    """Decide contraction; see the module's documentation."""

    name = "contract-cells"

    fp_contract: FpContract = "fast"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.fp_contract == "off":
            return
        everywhere = self.fp_contract == "fast"
        patterns: Patterns = {
            arith.AddfOp: ContractSum(everywhere),
            arith.SubfOp: ContractDifference(everywhere),
        }
        rewrite_cells(op, patterns)
