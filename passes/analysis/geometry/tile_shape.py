"""The shape of a tile: its in-plane axes, and whether the tile is streamed."""

from __future__ import annotations

from enum import Enum

from timetile.dialects.tile import KernelOp


class TileShape(Enum):
    """The shape of a tile; the value is (streamed, number of in-plane axes)."""

    LINE = (False, 1)
    """A tile of a line, which has one axis."""
    STRIP = (True, 1)
    """A streamed tile of a plate: the plane is a single row."""
    PENCIL = (True, 2)
    """A streamed tile of a volume: the plane has several rows."""
    PLATE = (False, 2)
    """A part of a plate, for all steps of a launch."""
    VOLUME = (False, 3)
    """A part of a volume, for all steps of a launch."""

    @staticmethod
    def of(kernel: KernelOp) -> TileShape:
        """The shape of a kernel's tile. Raises ValueError for planes of no or of many axes."""
        return TileShape((kernel.stream_axis is not None, len(kernel.plane_axes)))

    @property
    def streams(self) -> bool:
        """Whether the tile advances along a streaming axis."""
        return self.value[0]

    @property
    def axes(self) -> int:
        """The number of in-plane axes."""
        return self.value[1]

    @property
    def has_rows(self) -> bool:
        """Whether a plane has several rows."""
        return self.axes > 1
