"""
split-guards: cells with a read outside a field, in a branch, are computed apart.

Before, over cells 0 to 11 of a field that begins at 0:
```
%v = stencil.apply(%x = %u : !t) -> (!t) {
  %d = scf.if %is_first -> (f64) {
    scf.yield %one : f64
  } else {
    %l = stencil.access %x[-1] : !t
    scf.yield %l : f64
  }
  stencil.return %d : f64
}
```
After:
```
%edge = stencil.apply(%x = %u : !t) -> (!t) { ... scf.yield %zero ... }
%rest = stencil.apply(%x = %u : !t) -> (!t) { ... scf.yield %l ... }
%v = stencil.combine 0 at 1 lower = (%edge : !t) upper = (%rest : !t) : !t
```
1. If an access in a branch leaves its field for some of the needed cells, these cells are computed
   apart.
2. For cells apart, no branch with the access is taken: in their part the access reads 0.

Both branches of a condition are computed later (`select-branches`). `raise-time-loop` refuses an
access outside a field without a branch around.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects import arith, stencil
from xdsl.dialects.builtin import (
    AnyFloat,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    ModuleOp,
)
from xdsl.dialects.stencil import StencilBoundsAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern
from xdsl.utils.hints import isa

from timetile.dialects.syntax import field_type
from timetile.passes.patterns import rewrite_once
from timetile.passes.raising.boxes import above, below
from timetile.passes.raising.demand import ApplyRead, accesses, demand_of, unbuffered
from timetile.passes.raising.errors import CannotRaiseError
from timetile.passes.stencil.gather_cells import joined


def field_of(access: ApplyRead) -> StencilBoundsAttr | None:
    """
    The bounds of the field read by an access in a branch. None for an access outside of branches,
    of another apply, or of unknown bounds.
    """
    load = unbuffered(access.operand).owner
    if isinstance(access.op.parent_op(), stencil.ApplyOp) or not isinstance(load, stencil.LoadOp):
        return None
    bounds = field_type(load.field).bounds
    return bounds if isinstance(bounds, StencilBoundsAttr) else None


def inside(access: ApplyRead, bounds: StencilBoundsAttr) -> list[tuple[int, int, int]]:
    """
    For each axis of the field: the axis, and the first and the end of cells with reads inside.
    """
    spans = zip(access.axes, bounds.lb, bounds.ub)
    return [
        (axis, low - access.offset[axis], high - access.offset[axis]) for axis, low, high in spans
    ]


def zero(kind: Attribute) -> arith.ConstantOp:
    """The number 0 of a cell's type."""
    if isinstance(kind, AnyFloat):
        return arith.ConstantOp(FloatAttr(0.0, kind))
    if isinstance(kind, IndexType):
        return arith.ConstantOp(IntegerAttr(0, kind))
    assert isa(kind, IntegerType)
    return arith.ConstantOp(IntegerAttr(0, kind))


@dataclass
class Parting:
    """The parts of one apply."""

    apply: stencil.ApplyOp
    guarded: list[tuple[ApplyRead, list[tuple[int, int, int]]]]
    rewriter: PatternRewriter
    made: list[Operation] = field(default_factory=list[Operation])
    variants: dict[frozenset[Operation], list[SSAValue]] = field(
        default_factory=dict[frozenset[Operation], list[SSAValue]]
    )

    def values(self, box: StencilBoundsAttr) -> list[SSAValue]:
        """The results over a box."""
        low, high = tuple(box.lb), tuple(box.ub)
        for _, spans in self.guarded:
            for axis, *ends in spans:
                for end in ends:
                    if low[axis] < end < high[axis]:
                        return self.combined(box, axis, end)
        outside = [
            access.op
            for access, spans in self.guarded
            if any(high[axis] <= begin or low[axis] >= end for axis, begin, end in spans)
        ]
        return self.variant(frozenset(outside))

    def combined(self, box: StencilBoundsAttr, axis: int, end: int) -> list[SSAValue]:
        """The results over both parts of a box."""
        parts = [part for part in (below(box, axis, end), above(box, axis, end)) if part]
        lower, upper = map(self.values, parts)
        op = stencil.CombineOp.build(
            operands=[lower, upper, [], []],
            properties={
                "dim": IntegerAttr(axis, IndexType()),
                "index": IntegerAttr(end, IndexType()),
            },
            result_types=[[value.type for value in lower]],
        )
        self.add(op)
        return list(op.results)

    def add(self, op: Operation) -> None:
        """An operation in place of the apply."""
        op.location = self.apply.location
        self.made.append(op)

    def variant(self, outside: frozenset[Operation]) -> list[SSAValue]:
        """The results of the apply without some accesses."""
        if outside not in self.variants:
            made = self.apply.clone()
            for old, new in zip(list(self.apply.walk()), list(made.walk()), strict=True):
                if old in outside:
                    self.rewriter.replace(new, zero(new.results[0].type))
            self.add(made)
            self.variants[outside] = list(made.res)
        return self.variants[outside]

    def run(self, box: StencilBoundsAttr) -> None:
        """Replace the apply."""
        values = self.values(box)
        self.rewriter.insert(self.made)
        self.rewriter.replace(self.apply, [], values)


def leaves(spans: Sequence[tuple[int, int, int]], box: StencilBoundsAttr) -> bool:
    """Whether some cell of a box has an access outside the field."""
    low, high = tuple(box.lb), tuple(box.ub)
    return any(low[axis] < begin or high[axis] > end for axis, begin, end in spans)


class ComputeApart(RewritePattern):
    """An apply with a read outside a field in a branch computes some cells apart."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: stencil.ApplyOp, rewriter: PatternRewriter, /) -> None:
        end = op.region.block.last_op
        if op.parent is None or not isinstance(end, stencil.ReturnOp) or end.unroll is not None:
            return
        if not any(inner.regions for inner in op.region.block.ops):
            return
        try:
            boxes = demand_of(list(op.parent.ops)).boxes(op)
        except CannotRaiseError:
            # Raising the block reports the error.
            return
        if not boxes:
            return
        box = joined(boxes)
        known = [(access, field_of(access)) for access in accesses(op)]
        spans = [(access, inside(access, bounds)) for access, bounds in known if bounds is not None]
        guarded = [(access, each) for access, each in spans if leaves(each, box)]
        if guarded:
            Parting(op, guarded, rewriter).run(box)


class SplitGuardsPass(ModulePass):
    """Compute cells apart if a branch reads outside a field; see the module's documentation."""

    name = "split-guards"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        # Readers come first: the parts of a reader decide the needed cells of the source.
        rewrite_once(
            list(op.walk(reverse=True, region_first=True)), {stencil.ApplyOp: ComputeApart()}
        )
