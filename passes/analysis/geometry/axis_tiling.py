"""The cover of one in-plane axis by tiles."""

from __future__ import annotations

from dataclasses import dataclass

from timetile.dialects.tile import AxisLayout

TILES_FOR_ONE = 12
"""
For 8-byte cells to be stored alone, one tile of at least this many must be saved along the axis
(measured: saving 1 of 10 tiles wins 7%, saving 1 of 67 loses 2%).
"""

MANY_STORED = 4
"""
So many stored fields keep the sectors of memory whole: beside them, the second-level cache does not
wait for the rest of a sector from the next tile (Yee's scheme on an H100, six fields, three steps,
GPts/s: 54 to 97 in FP32, 38 to 43 in FP64; three fields gain nothing).
"""

LEAST_WHOLE = 0.8
"""The least share of a tile's stored cells that is left when only whole sectors are stored."""


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
        return range(self.first_stored, self.first_stored + self.count * self.useful)

    @property
    def first_stored(self) -> int:
        """The first cell behind the overlap of the first tile."""
        return self.origin + self.overlap_low

    @property
    def excess(self) -> int:
        """The cells that the tiles hold beyond the span."""
        return self.last_origin - self.origin + self.layout.extent - self.span
