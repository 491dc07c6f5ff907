"""Numbers in place of cells, as kernels write them, for one plane of all tiles."""

from __future__ import annotations

from typing import Any

import numpy as np

from timetile.dialects.boxes import CellBox, sizes_of
from timetile.dialects.syntax import field_bounds
from timetile.dialects.tile import KernelOp, StoreOp
from timetile.runtime.arithmetic.cells import Array
from timetile.runtime.arithmetic.reductions import reduced


def number_of_plane(kernel: KernelOp, stage: StoreOp, plane: int, cells: Array) -> tuple[Any, Any]:
    """The number of a plane's cells, and its place in the field: that of a warp for each plane."""
    assert stage.number is not None
    stream = kernel.stream_axis
    place = 0 if stream is None else plane - CellBox.of(kernel.bounds).lower[stream]
    at = np.unravel_index(place, sizes_of(field_bounds(stage.field)))
    return at, reduced(stage.number.data, cells)
