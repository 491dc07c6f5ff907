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
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter


def is_selectable(branch: scf.IfOp) -> bool:
    """Whether both branches yield values, and contain neither regions nor stores of nothing."""
    blocks = [region.block for region in branch.regions if region.blocks]
    return bool(branch.results) and not any(
        op.regions or (isinstance(op, stencil.StoreResultOp) and op.arg is None)
        for block in blocks
        for op in block.ops
    )


def select(branch: scf.IfOp) -> None:
    """Replace one `scf.if` without regions in its branches."""
    yields: list[scf.YieldOp] = []
    for region in branch.regions:
        for op in list(region.block.ops):
            if isinstance(op, scf.YieldOp):
                yields.append(op)
                continue
            op.detach()
            Rewriter.insert_op(op, InsertPoint.before(branch))
    taken, other = yields
    for result, true, false in zip(branch.results, taken.arguments, other.arguments):
        chosen = arith.SelectOp(branch.cond, true, false)
        chosen.location = branch.location
        Rewriter.insert_op(chosen, InsertPoint.before(branch))
        result.replace_all_uses_with(chosen.result)
    Rewriter.erase_op(branch)


def forget_results(apply: stencil.ApplyOp) -> None:
    """Replace values of type `!stencil.result` by the stored values."""
    for op in list(apply.walk()):
        if isinstance(op, stencil.StoreResultOp) and op.arg is not None:
            op.res.replace_all_uses_with(op.arg)
            Rewriter.erase_op(op)
    for op in list(apply.walk()):
        for result in op.results:
            if isinstance(kind := result.type, ResultType) and not isinstance(
                op, stencil.StoreResultOp
            ):
                Rewriter.replace_value_with_new_type(result, kind.elem)


class SelectBranchesPass(ModulePass):
    """Cells without branches; see the module's documentation."""

    name = "select-branches"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for apply in [inner for inner in op.walk() if isinstance(inner, stencil.ApplyOp)]:
            if not any(isinstance(i, scf.IfOp | stencil.StoreResultOp) for i in apply.walk()):
                continue
            forget_results(apply)
            for branch in reversed([i for i in apply.walk() if isinstance(i, scf.IfOp)]):
                if is_selectable(branch):
                    select(branch)
