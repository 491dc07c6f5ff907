"""The cells over which a value is known: a loaded field's, and those computed from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import stencil
from xdsl.dialects.stencil import StencilBoundsAttr
from xdsl.ir import SSAValue

from timetile.dialects.syntax import field_type
from timetile.passes.raising.demand import ApplyRead, accesses, unbuffered

FAR = 1 << 62
"""Further than any cell."""


@dataclass(frozen=True)
class KnownSpan:
    """The cells from `begin` up to `end` along an axis."""

    axis: int
    begin: int
    end: int

    def leaves(self, box: StencilBoundsAttr) -> bool:
        """Whether some cell of a box lies outside."""
        low, high = tuple(box.lb), tuple(box.ub)
        return low[self.axis] < self.begin or high[self.axis] > self.end

    def misses(self, box: StencilBoundsAttr) -> bool:
        """Whether all cells of a box lie outside."""
        low, high = tuple(box.lb), tuple(box.ub)
        return high[self.axis] <= self.begin or low[self.axis] >= self.end


def is_in_branch(access: ApplyRead) -> bool:
    """Whether an access is taken for some cells only."""
    return not isinstance(access.op.parent_op(), stencil.ApplyOp)


def spans_of(access: ApplyRead) -> list[KnownSpan]:
    """The cells with a known value for an access, along each bounded axis of the domain."""
    return [
        KnownSpan(axis, low - access.offset[axis], high - access.offset[axis])
        for axis, (low, high) in zip(access.axes, bounds_of(access.operand))
        if (low, high) != (-FAR, FAR)
    ]


def bounds_of(value: SSAValue) -> Sequence[tuple[int, int]]:
    """
    The first cell and the end of the cells of a value, along each axis of the value; unbounded
    where nothing is known. Reads in branches of an apply bound nothing.
    """
    made = unbuffered(value).owner
    if isinstance(made, stencil.LoadOp):
        bounds = field_type(made.field).bounds
        return list(zip(bounds.lb, bounds.ub)) if isinstance(bounds, StencilBoundsAttr) else []
    if not isinstance(made, stencil.ApplyOp):
        return []
    return result_bounds(made)


def result_bounds(apply: stencil.ApplyOp) -> list[tuple[int, int]]:
    """The first cell and the end of the cells over which an apply can be computed, by axis."""
    ends = [(-FAR, FAR)] * apply.get_rank()
    for access in accesses(apply):
        for span in () if is_in_branch(access) else spans_of(access):
            low, high = ends[span.axis]
            ends[span.axis] = max(low, span.begin), min(high, span.end)
    return ends
