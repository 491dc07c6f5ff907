"""Boxes of cells: moved, cut and joined."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.stencil import StencilBoundsAttr

from timetile.dialects.boxes import bounds_between


def box_of(low: Sequence[int], high: Sequence[int]) -> StencilBoundsAttr:
    """The cells from `low` up to, not including, `high`."""
    return bounds_between(tuple(low), tuple(high))


def moved(box: StencilBoundsAttr, offset: Sequence[int]) -> StencilBoundsAttr:
    """The box, each cell moved by the offset."""
    return box_of(
        [low + d for low, d in zip(box.lb, offset)], [high + d for high, d in zip(box.ub, offset)]
    )


def overlap(a: StencilBoundsAttr, b: StencilBoundsAttr) -> bool:
    """Some cell lies in both boxes."""
    return all(low < high for low, high in zip(a.lb, b.ub)) and all(
        low < high for low, high in zip(b.lb, a.ub)
    )


def common(a: StencilBoundsAttr, b: StencilBoundsAttr) -> StencilBoundsAttr | None:
    """The cells in both boxes; None if there is none."""
    if not overlap(a, b):
        return None
    return box_of(list(map(max, a.lb, b.lb)), list(map(min, a.ub, b.ub)))


def covers(outer: StencilBoundsAttr, inner: StencilBoundsAttr) -> bool:
    """Every cell of `inner` lies in `outer`."""
    return all(a <= b for a, b in zip(outer.lb, inner.lb)) and all(
        a >= b for a, b in zip(outer.ub, inner.ub)
    )


def below(box: StencilBoundsAttr, axis: int, end: int) -> StencilBoundsAttr | None:
    """The cells of the box with a coordinate below `end` along the axis; None if empty."""
    high = list(box.ub)
    high[axis] = min(high[axis], end)
    return box_of(list(box.lb), high) if tuple(box.lb)[axis] < high[axis] else None


def above(box: StencilBoundsAttr, axis: int, start: int) -> StencilBoundsAttr | None:
    """The cells of the box with a coordinate of `start` or more along the axis; None if empty."""
    low = list(box.lb)
    low[axis] = max(low[axis], start)
    return box_of(low, list(box.ub)) if low[axis] < tuple(box.ub)[axis] else None
