"""How fields go on beyond their edges, and series, and what each costs, in a sentence."""

from __future__ import annotations

from timetile.dialects.series import is_series
from timetile.dialects.temporal import LoopOp
from timetile.dialects.temporal.boundary import MIRRORS, BoundaryAttr, Kind, Side
from timetile.passes.analysis.edges import loop_boundary


def side_text(side: Side) -> str:
    """`mirror`, or `0.5` for a value."""
    return str(side) if isinstance(side, Kind) else f"value {side:g}"


def axis_text(boundary: BoundaryAttr, axis: int) -> str:
    """`periodic`, or `mirror below and keep above`."""
    below, above = map(side_text, boundary.of_axis(axis))
    return below if below == above else f"{below} below and {above} above"


def edges_text(loop: LoopOp) -> str | None:
    """
    The edges of a loop whose kernels continue the fields, with their cost; None for a loop with
    kept edges, and for edges that are updates of their own.
    """
    boundary = loop_boundary(loop)
    if boundary is None:
        return None
    rank = loop.updates[0].rank
    parts = [f"axis {axis} {axis_text(boundary, axis)}" for axis in range(rank)]
    kinds = [side for axis in range(rank) for side in boundary.of_axis(axis)]
    if any(side in MIRRORS for side in kinds):
        cost = "tiles at the edges choose between a cell and its image for each read across a side"
    elif any(not isinstance(side, Kind) for side in kinds):
        cost = "tiles at the edges choose between a cell and the value for each read"
    else:
        cost = "tiles at the edges load the cells of the other end, and compute them as others"
    copied = ""
    if any(update.inner is not None for update in loop.updates):
        copied = (
            "; copies of cells beside the box state this, and run at the start and the end only"
        )
    return f"{', '.join(parts)}{copied}; {cost}"


def series_text(loop: LoopOp) -> str | None:
    """The numbers of series that a step reads, with their cost; None without series."""
    count = len({each for update in loop.updates for each in update.scalars if is_series(each)})
    if not count:
        return None
    numbers = "1 number" if count == 1 else f"{count} numbers"
    return f"{numbers} a step; each level of a kernel takes its own, all cells the same"
