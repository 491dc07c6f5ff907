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

from xdsl.ir import SSAValue

from timetile.dialects.tile import ApplyOp, LoadOp
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.analysis.geometry.plane_geometry import FieldShape


def steady_steps(geometry: Geometry) -> range:
    """
    The stream steps, named by the arriving plane, in which a steady loop may run: no queue's newest
    plane lies outside the bounds along the stream.
    """
    stream = geometry.kernel.stream_axis
    assert stream is not None
    after = geometry.period - 1 + geometry.ahead - min(geometry.smallest_lag, 0)
    return range(geometry.lower[stream] + geometry.largest_lag, geometry.upper[stream] - after)


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


def is_plane_tested(
    geometry: Geometry, shape: FieldShape, lag: int, *, steady: bool, stores: bool = False
) -> bool:
    """
    Whether an access `lag` steps back must test for a plane outside the field. `steady`: in a
    steady loop. `stores`: the access writes.
    """
    stream = geometry.kernel.stream_axis
    if stream is None or (stores and covers(shape, stream, bounds_along(geometry, stream))):
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
    if stores and covers(shape, axis, bounds_along(geometry, axis)):
        return False
    cells = geometry.interior_cells(number)
    return not (interior and covers(shape, axis, range(cells.start + far, cells.stop + far)))


def halo_spans(geometry: Geometry, shape: FieldShape, axis: int) -> tuple[range, range]:
    """
    The cells of a field outside the bounds along an axis, below and above; either may be empty.
    """
    low, high = geometry.lower[axis], geometry.upper[axis]
    below = range(shape.lower[axis], min(low, shape.upper[axis]))
    return below, range(max(high, shape.lower[axis]), shape.upper[axis])


def guarding_field(queue: SSAValue) -> SSAValue | None:
    """
    The field supplying a queue's cells outside the bounds; None if no such cell is read from
    memory.
    """
    stage = queue.owner
    if isinstance(stage, LoadOp):
        return stage.halo
    if not isinstance(stage, ApplyOp) or not stage.outside:
        return None
    results: list[SSAValue] = list(stage.res)
    older = stage.outside[results.index(queue)]
    if (field := guarding_field(older)) is not None:
        return field
    # Data at home has its halo around it. A stage with a box takes its other cells from there by
    # itself.
    load = older.owner
    return load.data if stage.box is None and isinstance(load, LoadOp) else None
