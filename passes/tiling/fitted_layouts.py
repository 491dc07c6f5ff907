"""The layouts of kernels that read memory, in boxes thinner than a tile.

A step in parts has one schedule, of tiles for the cells inside. A layer is 10 or 20 cells thick: a
warp with 64 cells of a row leaves most lanes without a cell, and tiles that reach beyond the layer
test every cell. The layer's kernel has as many threads in a block, laid out over the layer: lanes
along two axes where rows are short, and warps along the long axes.

With `cells [2, 1, 2], lanes [1, 1, 32], warps [2, 4, 1]`, a layer of 500 x 500 x 16 cells takes
`cells [2, 1, 2], lanes [1, 4, 8], warps [1, 8, 1]`, and a layer of 10 x 500 x 500 cells takes
`warps [1, 8, 1]`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import product
from math import prod

from timetile.dialects.boxes import CellBox
from timetile.dialects.tile import AxisLayout, LayoutAttr
from timetile.passes.analysis.geometry.axis_tiling import ceil_div

LEAST_GAIN = 0.9
"""A layer has tiles of its own below this share of the time that the inside's tiles take."""

GUARDED = 1.0
"""
What a tile beyond the box along another axis than the last takes longer: its threads test each cell
of their own, one after the other.
"""

SHORT_ROW = 4.0
"""
Cells of a row that are moved beside the row of a warp: sectors at both ends lie in two warps' rows.
"""

SURFACE = 0.25
"""Rows loaded again by the neighbouring block, for each row of a block along an axis."""

SINGLE = 0.5
"""What threads of one cell take longer, as loads are shared by the cells of a thread."""

Sizes = tuple[int, ...]


def divisors(number: int) -> list[int]:
    """The divisors of a number."""
    return [k for k in range(1, number + 1) if number % k == 0]


def layouts_beside(layout: LayoutAttr, row: int) -> Iterator[tuple[AxisLayout, ...]]:
    """
    Layouts with an equal number of threads. Warps lie along any axis, a thread keeps its cells
    along each axis or a divisor, and lanes lie along the last axis; with short rows, along the axis
    before too.
    """
    axes, warps = layout.axis_layouts, layout.warps
    lanes = prod(axis.lanes for axis in axes)
    cells = [divisors(axis.cells)[::-1] for axis in axes]
    spread = [each for each in product(divisors(warps), repeat=len(axes)) if prod(each) == warps]
    fewest = 1 if 2 * row <= lanes * axes[-1].cells else lanes
    for last in [each for each in divisors(lanes)[::-1] if each >= fewest]:
        along = (*(1,) * (len(axes) - 2), lanes // last, last)
        for counts in product(product(*cells), spread):
            yield tuple(AxisLayout(*each) for each in zip(counts[0], along, counts[1]))


def time_of(axes: tuple[AxisLayout, ...], sizes: Sizes, start: int) -> float:
    """
    A measure for a launch's time: the cells of all tiles, with cells beyond the box and with the
    ends of rows. `start`: where the box begins along the last axis.
    """
    *others, last = axes
    shift = start % last.cells
    spans = (*sizes[:-1], sizes[-1] + shift)
    counts = [ceil_div(span, axis.extent) for span, axis in zip(spans, axes)]
    cells = prod(count * axis.extent for count, axis in zip(counts, axes))
    inside = 1.0
    for span, axis in zip(spans[:-1], others):
        inside *= span // axis.extent / ceil_div(span, axis.extent)
    beside = sum(SURFACE / axis.extent for axis in others) + SHORT_ROW / (last.lanes * last.cells)
    of_thread = prod(axis.cells for axis in axes)
    return cells * (1 + GUARDED * (1 - inside)) * (1 + beside) * (1 + SINGLE / of_thread)


@lru_cache(maxsize=1 << 10)
def fitted_axes(layout: LayoutAttr, sizes: Sizes, start: int) -> tuple[AxisLayout, ...]:
    """The layout of the axes for a box of some sizes: of equal times, the first."""
    own = layout.axis_layouts
    row = sizes[-1] + start % own[-1].cells
    best = min(layouts_beside(layout, row), key=lambda axes: time_of(axes, sizes, start))
    gains = time_of(best, sizes, start) < LEAST_GAIN * time_of(own, sizes, start)
    return best if gains else own


def fitted_layout(layout: LayoutAttr, box: CellBox) -> LayoutAttr:
    """A layout of as many threads for the cells of a box; the given one unless others gain."""
    sizes = box.extents
    if layout.blocks > 1 or layout.pack.data > 1 or len(sizes) < 2:
        return layout
    axes = fitted_axes(layout, sizes, box.lower[-1])
    return layout if axes == layout.axis_layouts else LayoutAttr(layout.level.data, axes)
