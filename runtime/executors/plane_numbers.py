"""Numbers in place of cells, as kernels write them, for one plane of all tiles."""

from __future__ import annotations

from typing import Any

import numpy as np

from timetile.dialects.boxes import CellBox, sizes_of
from timetile.dialects.number_room import NumberRoom
from timetile.dialects.syntax import field_bounds
from timetile.dialects.tile import KernelOp, StoreOp
from timetile.runtime.arithmetic.cells import Array
from timetile.runtime.arithmetic.reductions import reduced


def number_of_plane(kernel: KernelOp, stage: StoreOp, plane: int, cells: Array) -> tuple[Any, Any]:
    """The number of a plane's cells, and its place in the field: that of the plane's first warp."""
    assert stage.number is not None
    bounds, stream = CellBox.of(kernel.bounds), kernel.stream_axis
    room = NumberRoom(bounds.lower, bounds.upper, kernel.plane_axes[-1])
    place = 0 if stream is None else (plane - room.begin[stream]) * room.strides[stream]
    at = np.unravel_index(place, sizes_of(field_bounds(stage.field)))
    return at, reduced(stage.number.data, cells)
