"""How planes, edges and rows lie in shared memory: the one description of their sizes and strides.

The cost model asks how many cells a schedule takes before homes are chosen. `block_memory.py` makes
slices of the parts of a placed kernel, and the lowering asks where a cell lies. Sizes are in cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from xdsl.ir import Attribute

from timetile.dialects.cell_types import CELL_BYTES
from timetile.dialects.tile import LANES, AxisLayout, LayoutAttr
from timetile.passes.analysis.geometry.axis_tiling import ceil_div
from timetile.passes.targets.hardware import SLICE_ALIGNMENT, VECTOR_BYTES


def whole_vectors(element: Attribute, cells: int) -> int:
    """`cells`, rounded up to whole accesses of 16 bytes."""
    vector = VECTOR_BYTES // CELL_BYTES[element]
    return ceil_div(cells, vector) * vector


def slice_bytes(cells: int, cell_bytes: int) -> int:
    """
    Bytes that `cells` cells take in shared memory, up to the start of the next slice.
    """
    return ceil_div(cells * cell_bytes, SLICE_ALIGNMENT) * SLICE_ALIGNMENT


@dataclass(frozen=True)
class PaddedPlane:
    """
    A block's part of a plane with the cells around the block; each row begins at a whole vector.
    """

    element: Attribute
    extents: tuple[int, ...]
    """Cells of the block along every in-plane axis."""
    reach: tuple[int, ...]
    """Cells read beyond the block on both sides, along each in-plane axis."""

    @staticmethod
    def of(element: Attribute, axes: Sequence[AxisLayout], reach: Sequence[int]) -> PaddedPlane:
        """The padded plane of a block; `reach` is the largest tap distance along each axis."""
        return PaddedPlane(element, tuple(axis.block_extent for axis in axes), tuple(reach))

    @cached_property
    def pads(self) -> tuple[int, ...]:
        """Cells around the block's own on both sides of every axis; along rows, whole vectors."""
        return (*self.reach[:-1], whole_vectors(self.element, self.reach[-1]))

    @cached_property
    def pitch(self) -> int:
        """Cells from a row to the next."""
        return whole_vectors(self.element, self.extents[-1] + 2 * self.pads[-1])

    @cached_property
    def strides(self) -> tuple[int, ...]:
        """Cells from one place to the next along every in-plane axis."""
        sizes = [n + 2 * pad for n, pad in zip(self.extents[1:-1], self.pads[1:-1])]
        outer = [self.pitch * prod(sizes[k:]) for k in range(len(self.extents) - 1)]
        return (*outer, 1)

    @cached_property
    def first(self) -> int:
        """The place of the block's first own cell."""
        return sum(pad * stride for pad, stride in zip(self.pads, self.strides))

    @cached_property
    def cells(self) -> int:
        """Cells of a slot."""
        others = zip(self.extents[:-1], self.pads[:-1])
        return self.pitch * prod(n + 2 * pad for n, pad in others)


@dataclass(frozen=True)
class EdgeLayout:
    """
    Cells exchanged by neighbouring warps along one axis, with a place at each end for neighbouring
    blocks.
    """

    axis: int
    """The in-plane axis, by its place."""
    width: int
    """Cells of an edge along the axis."""
    row_cells: int
    """Cells of an edge across the axis: a row of the block, or one."""
    warps: int
    """Warps of a block along the axis."""
    along_rows: bool
    """Whether edges are rows; otherwise edges are cells of a row."""

    @staticmethod
    def of(axes: Sequence[AxisLayout], edges: Sequence[int]) -> EdgeLayout | None:
        """The edges along the first axis with several warps; None if no axis has several warps."""
        for k, axis in enumerate(axes):
            if axis.tile_warps > 1:
                along_rows = k != len(axes) - 1
                row = axes[-1].block_extent if along_rows else 1
                return EdgeLayout(k, edges[k], row, axis.warps, along_rows)
        return None

    @property
    def edge_cells(self) -> int:
        """Cells of an edge."""
        return self.width * self.row_cells

    @property
    def warp_cells(self) -> int:
        """Cells in both edges of a warp."""
        return 2 * self.edge_cells

    @property
    def cells(self) -> int:
        """Cells of a slot: one place more at both ends is for what blocks beside send."""
        return (self.warps + 2) * self.warp_cells


@dataclass(frozen=True)
class PrefetchLayout:
    """A ring of planes for each warp, of own cells alone, that copies fill ahead of their use."""

    slots: int
    plane_cells: int
    """Cells of a warp's part of a plane."""
    warps: int
    """Warps of a block."""

    @staticmethod
    def of(layout: LayoutAttr, ahead: int, oldest: int = 0) -> PrefetchLayout:
        """
        The ring of a layout whose planes are fetched `ahead` stream steps early, at least one, and
        read up to an age of `oldest` stream steps. Rows have a power of two of slots, found by a
        mask. Planes of two axes are large, and have a slot each: a remainder finds the slot.
        """
        slots = ahead + oldest + 1
        is_plane = len(layout.axis_layouts) > 1
        return PrefetchLayout.of_slots(layout, slots if is_plane else 1 << (slots - 1).bit_length())

    @staticmethod
    def of_slots(layout: LayoutAttr, slots: int) -> PrefetchLayout:
        """The ring of a layout with a number of slots."""
        cells = prod(axis.cells for axis in layout.axis_layouts)
        return PrefetchLayout(slots, cells * LANES, layout.threads // LANES)

    @property
    def warp_cells(self) -> int:
        """Cells in a warp's ring."""
        return self.slots * self.plane_cells

    @property
    def cells(self) -> int:
        """Cells in all rings of a block."""
        return self.warps * self.warp_cells


@dataclass(frozen=True)
class StagedRows:
    """For each warp, the rows its lanes hold, laid out in order."""

    rows: int
    """Rows of a thread."""
    pitch: int
    """Cells in a row of a warp."""
    warps: int
    """Warps of a block."""

    @staticmethod
    def of(layout: LayoutAttr) -> StagedRows:
        """The rows of a layout."""
        *others, last = layout.axis_layouts
        rows = prod(axis.cells for axis in others)
        return StagedRows(rows, last.cells * LANES, layout.threads // LANES)

    @property
    def warp_cells(self) -> int:
        """Cells in all rows of a warp."""
        return self.rows * self.pitch

    @property
    def cells(self) -> int:
        """Cells in all rows of a block."""
        return self.warps * self.warp_cells
