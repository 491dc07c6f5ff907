"""Decides which accesses of a kernel may leave their field, and need a test. No other file decides
this.

A field holds the cells named by updates inside their boxes, and may lack other cells of the kernel:
a field may be smaller than the bounds. Threads touch more cells than named by updates: whole tiles,
whole planes, and planes before the first plane behind a stored cell. An access goes untested only
if all possible cells of the access are known to lie in the field.

| along | where | an access may touch |
|---|---|---|
| the stream | head and tail of a chunk | any plane |
| the stream | steady loop, `lag` steps back | `steady_planes(lag)` |
| the plane | tiles on the rim | any cell |
| the plane | tiles inside the rim | `interior_cells(number)` |

Stores keep to the bounds and to the planes of the chunk.
"""

from __future__ import annotations

from timetile.dialects.temporal.boundary import Kind
from timetile.dialects.tile import ApplyOp, KernelOp
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.analysis.geometry.plane_geometry import FieldShape
from timetile.passes.analysis.geometry.regions import longest_between


def steady_steps(geometry: Geometry) -> range:
    """
    The stream steps, named by the arriving plane, in which a steady loop may run: no queue's newest
    plane lies outside the bounds along the stream, and no update's box begins or ends.
    """
    planes, oldest = geometry.stored_planes, oldest_value(geometry.kernel)
    after = geometry.period - 1 + geometry.ahead - min(geometry.smallest_lag, 0)
    inside = range(planes.start + geometry.largest_lag + oldest, planes.stop - after)
    return longest_between(geometry.box_edges, inside)


def oldest_value(kernel: KernelOp) -> int:
    """
    The largest age of a plane whose reader must know whether the plane lies outside the bounds: in
    kernels with a value or a mirror beyond the first or the last plane. Otherwise 0.
    """
    stream, beyond = kernel.stream_axis, kernel.beyond
    if stream is None or beyond is None:
        return 0
    if {Kind.KEEP, Kind.PERIODIC}.issuperset(beyond.of_axis(stream)):
        return 0
    stages = [stage for stage in kernel.stages if isinstance(stage, ApplyOp)]
    return max((stage.age(tap) for stage in stages for tap in stage.tap_list), default=0)


def steady_planes(geometry: Geometry, lag: int) -> range:
    """
    The planes of an access `lag` steps back in a steady loop. Planes fetched ahead have a negative
    lag.
    """
    steps = steady_steps(geometry)
    return range(steps.start - lag, steps.stop - lag)


def covers(shape: FieldShape, axis: int, cells: range) -> bool:
    """A field has all of the cells along an axis."""
    return not cells or (shape.lower[axis] <= cells.start and cells.stop <= shape.upper[axis])


def bounds_along(geometry: Geometry, axis: int) -> range:
    """The cells of the kernel's bounds along an axis."""
    return range(geometry.lower[axis], geometry.upper[axis])


def has_plane_images(geometry: Geometry, shape: FieldShape, lag: int, *, steady: bool) -> bool:
    """
    Whether an access `lag` steps back may ask for the image of a plane outside the bounds.
    `steady`: in a steady loop.
    """
    stream = geometry.kernel.stream_axis
    if stream is None or stream in shape.missing:
        return False
    if stream not in geometry.kernel.continued_axes:
        return False
    return not (steady and covers(shape, stream, steady_planes(geometry, lag)))


def is_plane_tested(
    geometry: Geometry, shape: FieldShape, lag: int, *, steady: bool, stores: bool = False
) -> bool:
    """
    Whether an access `lag` steps back must test for a plane outside the field. `steady`: in a
    steady loop. `stores`: the access writes.
    """
    stream = geometry.kernel.stream_axis
    if stream is None or stream in shape.missing:
        return False
    if not stores and stream in geometry.kernel.continued_axes:
        return False
    if stores and covers(shape, stream, bounds_along(geometry, stream)):
        return False
    return not (steady and covers(shape, stream, steady_planes(geometry, lag)))


def are_cells_tested(
    geometry: Geometry,
    shape: FieldShape,
    number: int,
    *,
    interior: bool,
    stores: bool = False,
    far: int = 0,
) -> bool:
    """
    Whether an access must test for a cell outside the field along an in-plane axis, given by
    number. `stores`: the access writes. `interior`: only tiles inside the rim count. `far`:
    distance, in cells, of the access from the cells of the tile.
    """
    axis = geometry.axes[number].axis
    if axis in shape.missing:
        return False
    if not stores and axis in geometry.kernel.continued_axes:
        return False
    if stores and covers(shape, axis, bounds_along(geometry, axis)):
        return False
    cells = geometry.interior_cells(number)
    return not (interior and covers(shape, axis, range(cells.start + far, cells.stop + far)))
