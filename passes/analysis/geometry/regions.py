"""
Where the cells of a tile lie against the boxes of updates.

A program may update its edges, or layers beside its bounds, by updates of their own. Tiles inside
the rim and steady loops, which do nearly all of the work, rarely meet these boxes: no mask is
needed there, and nothing is computed for a box that no cell lies in.
"""

from __future__ import annotations

from enum import Enum, auto
from itertools import pairwise

from xdsl.dialects.stencil import StencilBoundsAttr

from timetile.dialects.tile import ApplyOp, KernelOp
from timetile.passes.analysis.geometry.plane_geometry import PlaneGeometry


class Lying(Enum):
    """Where cells lie against a box along an axis: all inside, all outside, or perhaps both."""

    INSIDE = auto()
    OUTSIDE = auto()
    BOTH = auto()


def lying(cells: range, low: int, high: int) -> Lying:
    """Where cells lie against a box from `low` to below `high`."""
    if low <= cells.start and cells.stop <= high:
        return Lying.INSIDE
    if cells.stop <= low or high <= cells.start:
        return Lying.OUTSIDE
    return Lying.BOTH


def cells_of_inner_tiles(geometry: PlaneGeometry, number: int) -> range:
    """
    The cells held by tiles inside the rim along an in-plane axis, given by number. Tiles of a
    single block lie on a grid, and those beside the rim may be far from the bounds.
    """
    tiling, pad = geometry.axes[number], geometry.margins[number]
    cells = geometry.interior_cells(number)
    if not cells or tiling.layout.block_extent != tiling.layout.extent:
        return cells
    starts = [
        start
        for start in range(tiling.origin, tiling.last_origin + 1, tiling.useful)
        if cells.start + pad <= start <= cells.stop - pad - tiling.layout.extent
    ]
    return range(starts[0], starts[-1] + tiling.layout.extent) if starts else range(0)


def boxes_of(kernel: KernelOp) -> list[tuple[StencilBoundsAttr, int]]:
    """The boxes of a kernel's updates, with the lags of the updates' planes."""
    stages = (stage for stage in kernel.stages if isinstance(stage, ApplyOp))
    return [(stage.box, stage.lag) for stage in stages if stage.box is not None]


def steps_between_edges(kernel: KernelOp, steps: range) -> range:
    """
    The longest part of some stream steps in which no update begins or ends to have cells: each
    update's box lies all around the arriving planes, or all beside.
    """
    stream = kernel.stream_axis
    if stream is None:
        return steps
    edges = {
        edge + lag
        for box, lag in boxes_of(kernel)
        for edge in (tuple(box.lb)[stream], tuple(box.ub)[stream])
    }
    cuts = [steps.start, *sorted(edge for edge in edges if edge in steps), steps.stop]
    return max((range(*pair) for pair in pairwise(cuts)), key=len)
