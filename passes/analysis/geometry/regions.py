"""
Where the cells of a tile lie against the boxes of updates.

A program may update edges, or layers beside the bounds, by separate updates. Tiles inside the rim
and steady loops do nearly all of the work, and rarely meet the boxes of edges: cells take no mask,
and missed boxes take no code.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, auto
from itertools import pairwise

from timetile.passes.analysis.geometry.axis_tiling import ceil_div
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
    lowest, highest = cells.start + pad, cells.stop - pad - tiling.layout.extent
    # Tiles begin at the origin and every `useful` cells behind it.
    first = max(0, ceil_div(lowest - tiling.origin, tiling.useful))
    last = min(tiling.count - 1, (highest - tiling.origin) // tiling.useful)
    if first > last:
        return range(0)
    start = tiling.origin + first * tiling.useful
    return range(start, tiling.origin + last * tiling.useful + tiling.layout.extent)


def longest_between(edges: Iterable[int], steps: range) -> range:
    """The longest part of some steps with no edge inside."""
    cuts = [steps.start, *sorted(edge for edge in edges if edge in steps), steps.stop]
    return max((range(*pair) for pair in pairwise(cuts)), key=len)
