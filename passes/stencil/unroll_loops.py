"""
unroll-loops: an `scf.for` with constant bounds, inside an apply, becomes its iterations.

Before:
```
%s = scf.for %l = %c0 to %c2 step %c1 iter_args(%y = %v) -> (f64) {
  %d = arith.divf %v, %y : f64
  scf.yield %d : f64
}
```
After:
```
%d = arith.divf %v, %v : f64
%d_1 = arith.divf %v, %d : f64
```
1. From the inside out, the operations of each iteration replace the loop, in order, with the number
   of the iteration as a constant.
2. Loops of more than 4096 operations after unrolling are left unchanged.

Outlining of cells refuses other loops.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects import arith, scf, stencil
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType, ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern
from xdsl.utils.hints import isa

from timetile.passes.analysis.cells.constants import integer_constant
from timetile.passes.patterns import rewrite_once
from timetile.passes.raising.cells import MOST_UNROLLED


def iterations(loop: scf.ForOp) -> Sequence[int] | None:
    """The numbers of a loop's iterations; None for bounds that are no constants."""
    bounds = [integer_constant(value) for value in (loop.lb, loop.ub, loop.step)]
    first, end, step = bounds
    if first is None or end is None or step is None or step < 1:
        return None
    return range(first, end, step)


def constant(number: int, kind: Attribute) -> arith.ConstantOp:
    """The number of an iteration."""
    assert isa(kind, IndexType | IntegerType)
    return arith.ConstantOp(IntegerAttr(number, kind))


class Unroll(RewritePattern):
    """A loop with constant bounds becomes its iterations."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: scf.ForOp, rewriter: PatternRewriter, /) -> None:
        numbers, body = iterations(op), op.body.block
        if numbers is None or len(numbers) * len(body.ops) > MOST_UNROLLED:
            return
        number, *carried = body.args
        values: Sequence[SSAValue] = op.iter_args
        made: list[Operation] = []
        for each in numbers:
            at = constant(each, number.type)
            at.result.name_hint = number.name_hint
            names: dict[SSAValue, SSAValue] = {number: at.result, **dict(zip(carried, values))}
            made.append(at)
            for inner in body.ops:
                if isinstance(inner, scf.YieldOp):
                    values = [names.get(value, value) for value in inner.arguments]
                else:
                    made.append(inner.clone(names))
        rewriter.replace(op, made, values)


def loops_inside(apply: stencil.ApplyOp) -> list[Operation]:
    """The loops of an apply, inner loops first."""
    return [op for op in apply.walk(reverse=True) if isinstance(op, scf.ForOp)]


class UnrollLoopsPass(ModulePass):
    """Unroll loops with constant bounds inside applies; see the module's documentation."""

    name = "unroll-loops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for apply in [inner for inner in op.walk() if isinstance(inner, stencil.ApplyOp)]:
            known: list[Operation] = []
            # The bounds of an inner loop may be numbers of an outer loop's iterations.
            while (loops := loops_inside(apply)) and loops != known:
                known = loops
                rewrite_once(loops, {scf.ForOp: Unroll()})
