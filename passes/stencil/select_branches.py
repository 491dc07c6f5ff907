"""select-branches: `scf.if` inside an apply becomes `arith.select`.

Before:
```
%m = scf.if %p -> (f64) {
  %l = stencil.access %x[1] : !t
  scf.yield %l : f64
} else {
  %r = stencil.access %x[-1] : !t
  scf.yield %r : f64
}
```
After:
```
%l = stencil.access %x[1] : !t
%r = stencil.access %x[-1] : !t
%m = arith.select %p, %l, %r : f64
```
1. From the inside out, the operations of both branches move before the `scf.if`: cells are pure,
   and both sides are computed. Floating-point operations cannot fail, and integer quotients have a
   value for each divisor.
2. Each result becomes a select between the two yielded values.
3. `stencil.store_result` is replaced by its value, and `!stencil.result<f64>` by `f64`.

Outlining of cells refuses a branch without a result, and a branch that stores nothing.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects import arith, scf, stencil
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.stencil import ResultType
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern
from xdsl.rewriter import InsertPoint, Rewriter

from timetile.passes.patterns import Patterns, rewrite_once


def is_selectable(branch: scf.IfOp) -> bool:
    """Whether both branches yield values, and contain neither regions nor stores of nothing."""
    blocks = [region.block for region in branch.regions if region.blocks]
    return bool(branch.results) and not any(
        op.regions or (isinstance(op, stencil.StoreResultOp) and op.arg is None)
        for block in blocks
        for op in block.ops
    )


class SelectResults(RewritePattern):
    """An `scf.if` without regions in its branches becomes their operations, and selects."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: scf.IfOp, rewriter: PatternRewriter, /) -> None:
        if not is_selectable(op):
            return
        yields = [region.block.last_op for region in op.regions]
        for region in op.regions:
            rewriter.inline_block(region.block, InsertPoint.before(op))
        taken, other = (end for end in yields if isinstance(end, scf.YieldOp))
        selects: list[arith.SelectOp] = []
        for true, false in zip(taken.arguments, other.arguments):
            chosen = arith.SelectOp(op.cond, true, false)
            chosen.location = op.location
            selects.append(chosen)
        rewriter.replace(op, selects, [chosen.result for chosen in selects])
        rewriter.erase(taken)
        rewriter.erase(other)


class ForgetStore(RewritePattern):
    """A `stencil.store_result` becomes the stored value."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: stencil.StoreResultOp, rewriter: PatternRewriter, /) -> None:
        if op.arg is not None:
            rewriter.replace(op, [], [op.arg])


STORES: Patterns = {stencil.StoreResultOp: ForgetStore()}
BRANCHES: Patterns = {scf.IfOp: SelectResults()}


def forget_results(op: Operation) -> None:
    """Replace an operation's `!stencil.result` types by the types of stored values."""
    if isinstance(op, stencil.StoreResultOp):
        return
    for result in op.results:
        if isinstance(kind := result.type, ResultType):
            Rewriter.replace_value_with_new_type(result, kind.elem)


class SelectBranchesPass(ModulePass):
    """Cells without branches; see the module's documentation."""

    name = "select-branches"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for apply in [inner for inner in op.walk() if isinstance(inner, stencil.ApplyOp)]:
            if not any(isinstance(i, scf.IfOp | stencil.StoreResultOp) for i in apply.walk()):
                continue
            rewrite_once(list(apply.walk()), STORES)
            for inner in list(apply.walk()):
                forget_results(inner)
            # Inner branches come first: an outer branch is rewritten after the branches inside.
            rewrite_once(list(apply.walk(reverse=True, region_first=True)), BRANCHES)
