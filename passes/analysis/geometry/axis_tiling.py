"""The cover of one in-plane axis by tiles."""

from __future__ import annotations

from dataclasses import dataclass

from timetile.dialects.tile import AxisLayout


def ceil_div(a: int, b: int) -> int:
    """The quotient, rounded up."""
    return -(-a // b)


def tiles_beyond_first(span: int, extent: int, useful: int) -> int:
    """
    Tiles needed beside the first for `span` cells, if a tile has `extent` cells and each further
    tile covers `useful` more.
    """
    return max(0, ceil_div(span - extent, useful))


@dataclass(frozen=True)
class AxisTiling:
    """
    The tiles along one in-plane axis. Tile t holds `layout.extent` cells from `origin + t * useful`
    on, and stores `useful` cells from its cell `overlap_low` on. Tiles do not overlap beyond the
    bounds: the first tile stores from its first cell on, and the last tile up to its last.
    """

    axis: int
    layout: AxisLayout
    origin: int
    useful: int
    overlap_low: int
    count: int
    span: int
    """Cells of a tile covering the axis alone."""

    @property
    def last_origin(self) -> int:
        """The first cell of the last tile."""
        return self.origin + (self.count - 1) * self.useful

    @property
    def inner_cells(self) -> range:
        """The cells of the axis without the overlap stored by the first and the last tile."""
        first = self.origin + self.overlap_low
        return range(first, first + self.count * self.useful)
