"""Accesses along rows of fields that go on beyond the bounds, in the code of the rim."""

from __future__ import annotations

from math import gcd

from xdsl.ir import SSAValue

from timetile.dialects.temporal.boundary import Kind
from timetile.passes.analysis.geometry.kernel_geometry import Geometry


def image_width(geometry: Geometry, field: SSAValue) -> int:
    """
    Cells of one access in the rim's code. No access has cells on both sides of a bound where the
    field is periodic. Beyond a mirror or a value no loaded cell is read: an access with a cell of
    the bounds takes cells of the field beside the bounds, too.
    """
    width, last = geometry.access_width(field), geometry.axes[-1]
    if Kind.PERIODIC not in geometry.kernel.sides(last.axis):
        return width
    return bounds_width(geometry, width)


def bounds_width(geometry: Geometry, width: int) -> int:
    """Cells of the widest access, of at most `width`, without a bound inside."""
    last = geometry.axes[-1]
    ends = geometry.lower[last.axis], geometry.upper[last.axis]
    return gcd(width, *(last.origin - end for end in ends))


def cells_before(geometry: Geometry, width: int) -> int:
    """How many cells of a row's first access, `width` cells wide, lie before the bounds."""
    last = geometry.axes[-1]
    return (geometry.lower[last.axis] - last.origin) % width
