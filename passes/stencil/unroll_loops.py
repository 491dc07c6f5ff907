"""
unroll-loops: an `scf.for` with known bounds, inside an apply, becomes its iterations.

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
2. A bound may be the cell's own place along an axis, plus a constant, as in a sum over the rest of
   a column: with the box of the stores the least and the greatest bound are known. Each iteration
   is computed in all cells, and values are selected in cells with the iteration.
3. Loops of more than 4096 operations after unrolling are left unchanged.

Outlining of cells refuses other loops.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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

INTEGER_QUOTIENTS = (
    arith.DivSIOp,
    arith.DivUIOp,
    arith.CeilDivSIOp,
    arith.CeilDivUIOp,
    arith.FloorDivSIOp,
    arith.RemSIOp,
    arith.RemUIOp,
)
"""Operations that a cell without the iteration must not compute: the divisor may be 0."""


@dataclass(frozen=True)
class Iterations:
    """The numbers of a loop's iterations in some cell, and bounds that are not equal in all."""

    numbers: range
    guards: tuple[tuple[str, SSAValue], ...] = ()
    """A cell has an iteration if the number compares so with each bound."""


def iterations(loop: scf.ForOp) -> Iterations | None:
    """The iterations of a loop; None for unknown bounds."""
    step = integer_constant(loop.step)
    if step is None or step < 1:
        return None
    places = places_of(loop)
    first, end = (spread(bound, places) for bound in (loop.lb, loop.ub))
    if first is None or end is None:
        return None
    guards: list[tuple[str, SSAValue]] = []
    if len(first) > 1:
        guards.append(("sge", loop.lb))
    if len(end) > 1:
        guards.append(("slt", loop.ub))
    if guards and (step > 1 or not may_be_left_out(loop)):
        return None
    return Iterations(range(first.start, end.stop - 1, step), tuple(guards))


def places_of(loop: scf.ForOp) -> list[range]:
    """The cells stored of the apply around a loop, by axis; none if other values read the apply."""
    apply = loop.parent_op()
    while apply is not None and not isinstance(apply, stencil.ApplyOp):
        apply = apply.parent_op()
    if apply is None:
        return []
    users = [use.operation for result in apply.results for use in result.uses]
    boxes = [user.bounds for user in users if isinstance(user, stencil.StoreOp)]
    if not boxes or len(boxes) < len(users):
        return []
    whole = boxes[0]
    for box in boxes[1:]:
        whole = whole | box
    return [range(low, high) for low, high in zip(whole.lb, whole.ub)]


def spread(value: SSAValue, places: Sequence[range]) -> range | None:
    """The values of a bound in all cells: a constant, or a place plus constants."""
    known = integer_constant(value)
    if known is not None:
        return range(known, known + 1)
    owner = value.owner
    if isinstance(owner, stencil.IndexOp) and owner.dim.value.data < len(places):
        axis = owner.dim.value.data
        shift, cells = tuple(owner.offset)[axis], places[axis]
        return range(cells.start + shift, cells.stop + shift)
    if isinstance(owner, arith.AddiOp | arith.SubiOp):
        left, shift = owner.lhs, integer_constant(owner.rhs)
        if shift is None and isinstance(owner, arith.AddiOp):
            left, shift = owner.rhs, integer_constant(owner.lhs)
        if shift is not None and (cells := spread(left, places)) is not None:
            shift = -shift if isinstance(owner, arith.SubiOp) else shift
            return range(cells.start + shift, cells.stop + shift)
    return None


def may_be_left_out(loop: scf.ForOp) -> bool:
    """
    Whether an iteration may be computed in cells without the iteration: no quotient of integers,
    and reads at the number of the iteration or at places from outside the loop.
    """
    body = loop.body.block
    outside = [loop.body.block.args[0]]
    for op in body.walk():
        if isinstance(op, INTEGER_QUOTIENTS):
            return False
        if isinstance(op, stencil.DynAccessOp):
            inner = [at for at in op.offset if at not in outside and is_made_in(at, loop)]
            if inner:
                return False
    return True


def is_made_in(value: SSAValue, loop: scf.ForOp) -> bool:
    """Whether an operation in a loop, or the loop itself, makes a value."""
    owner = value.owner
    return loop.is_ancestor(owner) if isinstance(owner, Operation) else owner is loop.body.block


def constant(number: int, kind: Attribute) -> arith.ConstantOp:
    """The number of an iteration."""
    assert isa(kind, IndexType | IntegerType)
    return arith.ConstantOp(IntegerAttr(number, kind))


class Unroll(RewritePattern):
    """A loop with known bounds becomes its iterations."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: scf.ForOp, rewriter: PatternRewriter, /) -> None:
        found, body = iterations(op), op.body.block
        if found is None or len(found.numbers) * len(body.ops) > MOST_UNROLLED:
            return
        number, *carried = body.args
        values: Sequence[SSAValue] = op.iter_args
        made: list[Operation] = []
        for each in found.numbers:
            at = constant(each, number.type)
            at.result.name_hint = number.name_hint
            names: dict[SSAValue, SSAValue] = {number: at.result, **dict(zip(carried, values))}
            made.append(at)
            for inner in body.ops:
                if isinstance(inner, scf.YieldOp):
                    after = [names.get(value, value) for value in inner.arguments]
                    values = after_iteration(found, at.result, values, after, made)
                else:
                    made.append(reaching_all(inner.clone(names), found))
        rewriter.replace(op, made, values)


def after_iteration(
    found: Iterations,
    number: SSAValue,
    before: Sequence[SSAValue],
    after: Sequence[SSAValue],
    made: list[Operation],
) -> Sequence[SSAValue]:
    """The values after an iteration: those before in cells without the iteration."""
    values = after
    for predicate, bound in found.guards:
        has = arith.CmpiOp(number, bound, predicate)
        choices = [arith.SelectOp(has.result, yes, no) for yes, no in zip(values, before)]
        made += [has, *choices]
        values = [choice.result for choice in choices]
    return values


def reaching_all(op: Operation, found: Iterations) -> Operation:
    """
    An operation of an iteration; a read at a computed place reaches all places of the iterations.
    """
    if found.guards and isinstance(op, stencil.DynAccessOp):
        far = len(found.numbers)
        low, high = [at - far for at in op.lb], [at + far for at in op.ub]
        op.properties |= {
            "lb": stencil.IndexAttr.from_indices(*low),
            "ub": stencil.IndexAttr.from_indices(*high),
        }
    return op


def loops_inside(apply: stencil.ApplyOp) -> list[Operation]:
    """The loops of an apply, inner loops first."""
    return [op for op in apply.walk(reverse=True) if isinstance(op, scf.ForOp)]


class UnrollLoopsPass(ModulePass):
    """Unroll loops with known bounds inside applies; see the module's documentation."""

    name = "unroll-loops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for apply in [inner for inner in op.walk() if isinstance(inner, stencil.ApplyOp)]:
            known: list[Operation] = []
            # The bounds of an inner loop may be numbers of an outer loop's iterations.
            while (loops := loops_inside(apply)) and loops != known:
                known = loops
                rewrite_once(loops, {scf.ForOp: Unroll()})
