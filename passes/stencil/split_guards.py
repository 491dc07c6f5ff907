"""
split-guards: cells with a read outside a field or a value, in a branch, are computed apart.

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
1. If an access in a branch leaves its field for some of the needed cells, or the cells over which
   another apply can compute the value read, these cells are computed apart.
2. For cells apart, no branch with the access is taken: in their part the access reads 0. A
   condition on coordinates that takes the branch at such a cell is refused. A condition on cells or
   scalars is the program's word that no such cell takes the branch.

Both branches of a condition are computed later (`select-branches`). `raise-time-loop` refuses an
access outside a field without a branch around.
"""

from __future__ import annotations

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

from timetile.passes.diagnostics import refuse
from timetile.passes.patterns import rewrite_once
from timetile.passes.raising.boxes import above, below, common
from timetile.passes.raising.conditions import cell_taking_branch
from timetile.passes.raising.demand import ApplyRead, accesses, demand_of
from timetile.passes.raising.errors import CannotRaiseError
from timetile.passes.raising.known_cells import KnownSpan, is_in_branch, spans_of
from timetile.passes.stencil.gather_cells import joined


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
    guarded: list[tuple[ApplyRead, list[KnownSpan]]]
    needed: list[StencilBoundsAttr]
    """The boxes of needed cells."""
    rewriter: PatternRewriter
    made: list[Operation] = field(default_factory=list[Operation])
    variants: dict[frozenset[Operation], list[SSAValue]] = field(
        default_factory=dict[frozenset[Operation], list[SSAValue]]
    )

    def values(self, box: StencilBoundsAttr) -> list[SSAValue]:
        """The results over a box."""
        low, high = tuple(box.lb), tuple(box.ub)
        for _, spans in self.guarded:
            for span in spans:
                for end in (span.begin, span.end):
                    if low[span.axis] < end < high[span.axis]:
                        return self.combined(box, span.axis, end)
        outside: list[Operation] = []
        for access, spans in self.guarded:
            for span in spans:
                if span.misses(box):
                    self.check_not_taken(access, span, box)
                    outside.append(access.op)
        return self.variant(frozenset(outside))

    def check_not_taken(self, access: ApplyRead, span: KnownSpan, box: StencilBoundsAttr) -> None:
        """Refuse a branch taken at a needed cell of a box without a value for the access."""
        for needed in self.needed:
            part = common(box, needed)
            cell = None if part is None else cell_taking_branch(access.op, part)
            if cell is None:
                continue
            offset, axis = access.offset, span.axis
            refuse(
                access.op,
                f"the branch is taken at cell {list(cell)}, and reads {list(offset)} from the "
                f"cell, outside the read value's [{span.begin + offset[axis]}, "
                f"{span.end + offset[axis]}) along axis {axis}; narrow the condition of the "
                "branch, give the field these cells, or store fewer",
            )

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
        """Add an operation in place of the apply."""
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
        spans = [(access, spans_of(access)) for access in accesses(op) if is_in_branch(access)]
        guarded = [(access, all_) for access, all_ in spans if any(s.leaves(box) for s in all_)]
        if guarded:
            Parting(op, guarded, boxes, rewriter).run(box)


class SplitGuardsPass(ModulePass):
    """Compute cells apart if a branch reads outside a field; see the module's documentation."""

    name = "split-guards"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        # Readers come first: the parts of a reader decide the needed cells of the source.
        rewrite_once(
            list(op.walk(reverse=True, region_first=True)), {stencil.ApplyOp: ComputeApart()}
        )
