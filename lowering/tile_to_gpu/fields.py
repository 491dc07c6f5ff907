"""Cells of fields in a thread: addresses, and masks for cells beyond a field."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IndexType, IntegerType
from xdsl.dialects.stencil import StencilBoundsAttr
from xdsl.ir import SSAValue

from timetile.lowering.emitter import Emitter, integer_type
from timetile.lowering.tile_to_gpu.images import asks_for_images, image_plane, seen
from timetile.lowering.tile_to_gpu.queues import Position, cells_between
from timetile.lowering.tile_to_gpu.scopes import (
    CopyingStep,
    EarlyStep,
    LoopScope,
    StepScope,
    StreamStep,
    VariantScope,
    chunk_start,
    once,
    plane_between,
    sum_around,
)
from timetile.lowering.tile_to_gpu.thread import Thread, plane_base
from timetile.passes.analysis.geometry.field_access import (
    are_cells_tested,
    is_plane_tested,
    steady_planes,
)
from timetile.passes.analysis.geometry.plane_geometry import FieldShape
from timetile.passes.analysis.geometry.regions import Lying, cells_of_inner_tiles, lying

FAR_CELLS = 1 << 20
"""The smallest distance, in 8-byte cells, beyond the 24 signed bits for offsets of accesses."""


# Addresses of cells.


@once
def base_of(variant: VariantScope, shape: FieldShape, view: Thread) -> SSAValue:
    """The first cell of a thread's view in plane 0 of the program's coordinates, in a field."""
    return plane_base(variant.emit, variant.code.geometry, view, shape)


def moved_to(
    variant: VariantScope, emit: Emitter, base: SSAValue, stride: int, planes: SSAValue
) -> SSAValue:
    """A field's cell some planes further on; a plane has `stride` cells."""
    moved = emit.mul_int(emit.extend(planes, variant.code.index_type), stride)
    return emit.add_int(moved, base)


@once
def first_index(variant: VariantScope, shape: FieldShape, view: Thread, stride: int) -> SSAValue:
    """The first own cell of a thread's view in the plane of the chunk's first step."""
    base = base_of(variant, shape, view)
    return moved_to(variant, variant.emit, base, stride, chunk_start(variant))


@once
def index_in_loop(loop: LoopScope, shape: FieldShape, view: Thread) -> SSAValue:
    """The first own cell of a thread's view in the arriving plane of a loop's turn."""
    stride = shape.strides[loop.axis]
    first = first_index(loop.variant, shape, view, stride)
    return moved_to(loop.variant, loop.emit, first, stride, loop.count)


def index_of(step: StepScope | EarlyStep, shape: FieldShape, view: Thread) -> SSAValue:
    """
    The first own cell of a thread's view in the arriving plane of a loop's turn, or of an early
    step; in the tile without a stream.
    """
    if isinstance(step, StreamStep):
        return index_in_loop(step.loop, shape, view)
    base = base_of(step.variant, shape, view)
    if isinstance(step, EarlyStep):
        stride = shape.strides[step.axis]
        return moved_to(step.variant, step.variant.emit, base, stride, step.arriving_plane)
    return base


@once
def index_of_image(
    step: StreamStep, shape: FieldShape, lag: int, view: Thread, *, folds: bool = False
) -> SSAValue:
    """The first own cell of a thread's view in the image of the plane `lag` steps back."""
    base, stride = base_of(step.variant, shape, view), shape.strides[step.axis]
    plane = image_plane(step, step.turn - lag, folds=folds)
    return moved_to(step.variant, step.emit, base, stride, plane)


def copied_plane_at(
    step: CopyingStep, shape: FieldShape, lag: int, view: Thread
) -> tuple[SSAValue, int]:
    """
    The first copied cell of a thread's view in the plane `lag` steps back, or in the plane's image:
    an index, and cells from the index.
    """
    stride = shape.strides[step.axis]
    if not asks_for_images(step, shape, lag):
        return index_of(step, shape, view), (step.turn - lag) * stride
    if isinstance(step, StreamStep):
        return index_of_image(step, shape, lag, view), 0
    base, plane = base_of(step.variant, shape, view), image_plane(step, step.turn - lag)
    return moved_to(step.variant, step.variant.emit, base, stride, plane), 0


def plane_at(
    step: StepScope, shape: FieldShape, lag: int, view: Thread, *, folds: bool = False
) -> tuple[SSAValue, int]:
    """
    The first own cell of a thread's view in the plane `lag` steps back, or in the plane's image: an
    index, and cells from the index. `folds`: planes behind a mirror are read.
    """
    if isinstance(step, StreamStep) and asks_for_images(step, shape, lag):
        return index_of_image(step, shape, lag, view, folds=folds), 0
    return own_plane_at(step, shape, lag, view)


def own_plane_at(
    step: StepScope, shape: FieldShape, lag: int, view: Thread
) -> tuple[SSAValue, int]:
    """
    The first own cell of a thread's view in the plane `lag` steps back: an index, and cells from
    the index. Far planes have a separate index, as offsets of accesses have few bits.
    """
    index = index_of(step, shape, view)
    if not isinstance(step, StreamStep):
        return index, 0
    shift = (step.turn - lag) * shape.strides[step.axis]
    if abs(shift) < FAR_CELLS:
        return index, shift
    return sum_around(step.loop, index, shift), 0


def cell_at(
    step: StepScope,
    shape: FieldShape,
    lag: int,
    at: Position,
    view: Thread,
    *,
    folds: bool = False,
    width: int = 1,
) -> tuple[SSAValue, int]:
    """
    A position in the plane `lag` steps back, or its image: an index, and cells from the index.
    `folds`: cells behind a mirror are read. `width`: cells of an access.
    """
    view, at = seen(step.variant, view, at, folds=folds, width=width)
    index, distance = plane_at(step, shape, lag, view, folds=folds)
    return index, distance + cells_between(step.code.geometry, shape, at)


@once
def one_or_none(variant: VariantScope, mask: SSAValue, kind: IntegerType | IndexType) -> SSAValue:
    """1 where a mask is on and 0 where it is off."""
    emit = variant.emit
    return emit.select(mask, emit.int(1, kind), emit.int(0, kind))


def next_cell(step: StepScope, index: SSAValue, mask: SSAValue) -> SSAValue:
    """An index, one more where the mask is on."""
    return sum_around(step.around, index, one_or_none(step.variant, mask, integer_type(index)))


# Whether a cell lies in a field.


@once
def within(variant: VariantScope, value: SSAValue, shift: int, low: int, high: int) -> SSAValue:
    """`low <= value + shift < high`."""
    distance = variant.emit.add_int(value, shift - low)
    return variant.emit.compare("ult", distance, high - low)


@once
def in_field(
    variant: VariantScope,
    shape: FieldShape,
    at: Position,
    view: Thread,
    *,
    stores: bool = False,
    beside: Position | None = None,
) -> SSAValue | None:
    """
    A position lies in a field, halo included, along the in-plane axes. None if certain, as for
    stores (`stores`) to a field with all cells inside the bounds. `beside`: the distance from one
    of the thread's own cells.
    """
    far = beside or (0,) * len(view.axes)
    cells = [
        (axis.coordinate, shift, distance)
        for axis, shift, distance in zip(view.axes, at, far, strict=True)
    ]
    return cells_in_field(variant, shape, cells, stores=stores)


def cells_in_field(
    variant: VariantScope,
    shape: FieldShape,
    cells: Sequence[tuple[SSAValue, int, int]],
    *,
    stores: bool = False,
) -> SSAValue | None:
    """
    Cells lie in a field; None if certain. Each in-plane axis gives a coordinate, the cell's
    distance from the coordinate, and the cell's distance from the cells held or copied by the
    block.
    """
    geometry = variant.code.geometry
    parts: list[SSAValue | None] = []
    for number, (coordinate, shift, far) in enumerate(cells):
        interior, axis = not variant.guarded, geometry.axes[number].axis
        if are_cells_tested(geometry, shape, number, interior=interior, stores=stores, far=far):
            parts.append(within(variant, coordinate, shift, shape.lower[axis], shape.upper[axis]))
    return variant.emit.all_of(parts)


def plane_in_field(step: StepScope, shape: FieldShape, lag: int) -> SSAValue | None:
    """The plane `lag` steps back lies in the field, halo included; None if certain."""
    return tested_plane(step, shape, lag, stores=False)


def stored_plane(step: StepScope, shape: FieldShape, lag: int) -> SSAValue | None:
    """The plane `lag` steps back, stored by the chunk, lies in the field; None if certain."""
    return tested_plane(step, shape, lag, stores=True)


def tested_plane(step: StepScope, shape: FieldShape, lag: int, *, stores: bool) -> SSAValue | None:
    """The plane `lag` steps back lies in the field; None without need for a test."""
    if not isinstance(step, StreamStep) or not is_plane_tested(
        step.code.geometry, shape, lag, steady=step.is_steady, stores=stores
    ):
        return None
    return plane_between(step, lag, shape.lower[step.axis], shape.upper[step.axis])


def fetched_plane(
    step: StepScope | EarlyStep, emit: Emitter, shape: FieldShape, lag: int
) -> SSAValue | None:
    """The plane `lag` steps back, loaded or copied, lies in the field; None if certain."""
    if not isinstance(step, CopyingStep) or not is_plane_tested(
        step.variant.code.geometry, shape, lag, steady=step.is_steady
    ):
        return None
    shift = step.turn - lag
    low, high = shape.lower[step.axis], shape.upper[step.axis]
    return emit.compare("ult", emit.add_int(step.arriving_plane, shift - low), high - low)


def inside_box(step: StepScope, box: StencilBoundsAttr, lag: int, at: Position) -> SSAValue | None:
    """A position in the plane `lag` steps back lies in a box. None if certain."""
    in_plane = inside_in_plane(step, box, lag, at, step.code.thread)
    return step.emit.all_of([in_plane, plane_in_box(step, box, lag)])


def inside_in_plane(
    step: StepScope, box: StencilBoundsAttr, lag: int, at: Position, view: Thread, width: int = 1
) -> SSAValue | None:
    """
    `width` cells of a row, from a position of a thread's view on, lie in a box along the in-plane
    axes. None if certain.
    """
    variant, geometry = step.variant, step.code.geometry
    low, high = tuple(box.lb), tuple(box.ub)
    parts: list[SSAValue | None] = []
    for number, (tiling, axis, shift) in enumerate(zip(geometry.axes, view.axes, at, strict=True)):
        if lying_along(step, box, lag, tiling.axis) is Lying.INSIDE:
            continue
        more = width - 1 if number == len(at) - 1 else 0
        span = low[tiling.axis], high[tiling.axis] - more
        parts.append(within(variant, axis.coordinate, shift, *span))
    return step.emit.all_of(parts)


def plane_in_box(step: StepScope, box: StencilBoundsAttr, lag: int) -> SSAValue | None:
    """The plane `lag` steps back lies in a box along the stream. None if certain."""
    if not isinstance(step, StreamStep):
        return None
    if lying_along(step, box, lag, step.axis) is Lying.INSIDE:
        return None
    axis = step.axis
    return plane_between(step, lag, tuple(box.lb)[axis], tuple(box.ub)[axis])


@once
def lying_along(step: StepScope, box: StencilBoundsAttr, lag: int, axis: int) -> Lying:
    """Where the tile's cells of the plane `lag` steps back lie against a box along an axis."""
    geometry = step.code.geometry
    low, high = tuple(box.lb)[axis], tuple(box.ub)[axis]
    if isinstance(step, StreamStep) and axis == step.axis:
        return lying(steady_planes(geometry, lag), low, high) if step.is_steady else Lying.BOTH
    number = geometry.kernel.plane_axes.index(axis)
    if step.variant.guarded or geometry.always_guarded(number):
        return Lying.BOTH
    if geometry.kernel.reads_memory:
        # Tiles inside the rim have all of their rows in the boxes.
        is_whole = low <= geometry.lower[axis] and geometry.upper[axis] <= high
        return Lying.BOTH if geometry.touches_row_ends(number) and not is_whole else Lying.INSIDE
    return lying(cells_of_inner_tiles(geometry, number), low, high)


def misses_box(step: StepScope, box: StencilBoundsAttr, lag: int) -> bool:
    """No cell of the plane `lag` steps back lies in a box, whatever the tile and the step."""
    axes = range(len(step.code.geometry.lower))
    return any(lying_along(step, box, lag, axis) is Lying.OUTSIDE for axis in axes)
