"""
lower-affine-nests: loops and accesses of the `affine` dialect become `scf`, `memref` and `arith`.

Before:
```
affine.for %i = 1 to 9 {
  %v = affine.load %A[%i - 1] : memref<10xf64>
  affine.store %v, %B[%i] : memref<10xf64>
}
```
After:
```
scf.for %i = %c1 to %c9 step %c1_1 {
  %m = arith.constant -1 : index
  %p = arith.addi %i, %m : index
  %v = memref.load %A[%p] : memref<10xf64>
  memref.store %v, %B[%i] : memref<10xf64>
}
```
1. A map becomes its arithmetic on indices.
2. A loop with a bound of several results stays unchanged, with a remark.

xDSL's own `lower-affine` (0.74) reads no operand of a bound and no symbol of an access; xDSL parses
every operand of an access as a symbol.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects import affine, arith, memref, scf
from xdsl.dialects.builtin import AffineMapAttr, ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern
from xdsl.transforms.lower_affine import affine_expr_ops

from timetile.passes.diagnostics import remark
from timetile.passes.patterns import rewrite_once


def computed(
    attribute: AffineMapAttr, operands: Sequence[SSAValue], rewriter: PatternRewriter
) -> list[SSAValue]:
    """The results of a map on operands, computed before the operation at hand."""
    dims, symbols = operands[: attribute.data.num_dims], operands[attribute.data.num_dims :]
    values: list[SSAValue] = []
    for expression in attribute.data.results:
        ops, value = affine_expr_ops(expression, dims, symbols)
        rewriter.insert(ops)
        values.append(value)
    return values


class LowerLoad(RewritePattern):
    """A load at a map of indices becomes a load at computed indices."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: affine.LoadOp, rewriter: PatternRewriter, /) -> None:
        indices = computed(op.map, op.indices, rewriter)
        load = memref.LoadOp.get(op.memref, indices)
        load.location = op.location
        rewriter.replace(op, load)


class LowerStore(RewritePattern):
    """A store at a map of indices becomes a store at computed indices."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: affine.StoreOp, rewriter: PatternRewriter, /) -> None:
        indices = computed(op.map, op.indices, rewriter)
        store = memref.StoreOp.get(op.value, op.memref, indices)
        store.location = op.location
        rewriter.replace(op, store)


class LowerApply(RewritePattern):
    """A map becomes its arithmetic."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: affine.ApplyOp, rewriter: PatternRewriter, /) -> None:
        rewriter.replace(op, [], computed(op.map, op.mapOperands, rewriter))


class LowerLoop(RewritePattern):
    """A loop with a bound of one result at each end becomes an `scf.for`."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: affine.ForOp, rewriter: PatternRewriter, /) -> None:
        if any(len(bound.data.results) != 1 for bound in (op.lowerBoundMap, op.upperBoundMap)):
            remark(
                op,
                "the loop is left unchanged: a bound is the least or the greatest of several "
                "numbers; give the loop one number for each bound",
            )
            return
        (low,) = computed(op.lowerBoundMap, op.lowerBoundOperands, rewriter)
        (high,) = computed(op.upperBoundMap, op.upperBoundOperands, rewriter)
        step = rewriter.insert(arith.ConstantOp(op.step))
        region = op.detach_region(op.body)
        end = region.block.last_op
        assert isinstance(end, affine.YieldOp)
        rewriter.replace(end, scf.YieldOp(*end.arguments))
        loop = scf.ForOp(low, high, step.result, op.inits, region)
        loop.location = op.location
        loop.attributes.update(op.attributes)
        rewriter.replace(op, loop)


PATTERNS: dict[type[Operation], RewritePattern] = {
    affine.LoadOp: LowerLoad(),
    affine.StoreOp: LowerStore(),
    affine.ApplyOp: LowerApply(),
    affine.ForOp: LowerLoop(),
}


class LowerAffineNestsPass(ModulePass):
    """Loops and accesses of `affine` become `scf`; see the module's documentation."""

    name = "lower-affine-nests"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rewrite_once(list(op.walk()), PATTERNS)
