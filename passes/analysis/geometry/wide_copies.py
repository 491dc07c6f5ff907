"""The width of asynchronous copies of fields whose cells have 16 bits."""

from __future__ import annotations

from math import gcd

from xdsl.ir import SSAValue

from timetile.dialects.cell_types import CELL_BYTES
from timetile.dialects.syntax import element_type
from timetile.passes.analysis.geometry.field_shapes import FieldShape
from timetile.passes.analysis.geometry.plane_geometry import PlaneGeometry
from timetile.passes.targets.hardware import LANES, LEAST_COPY, VECTOR_BYTES


def wide_copy(geometry: PlaneGeometry, field: SSAValue) -> int:
    """
    Cells of a copy to a ring of whole planes. Four 16-bit cells of a thread's row have 8 bytes, and
    a copy moves 16: a warp then copies several rows at once, if tiles and rows of the field begin
    with whole copies, and if the field ends at its bounds.
    """
    width, last = geometry.access_width(field), geometry.layouts[-1]
    if CELL_BYTES[element_type(field)] >= LEAST_COPY or width < last.cells:
        return width
    if len(geometry.layouts) < 2 or geometry.continues_in_plane or geometry.layouts[-2].lanes > 1:
        return width
    tiling, shape = geometry.axes[-1], FieldShape.of(field)
    wide = gcd(
        VECTOR_BYTES // CELL_BYTES[element_type(field)],
        shape.sizes[-1],
        tiling.origin - shape.lower[-1],
        tiling.useful if tiling.count > 1 else 0,
        last.block_extent,
        last.cells * geometry.layouts[-2].cells,
    )
    whole = wide > width and wide % last.cells == 0 and last.lanes == LANES
    return wide if whole else width
