"""
Cells outside the bounds along axes that go on, as computed by a thread.

A tap across a mirror reads the image inside the bounds: a select between two taps, for the cells of
a thread that may lie at the mirror. A cell beyond a side with a value is the number. In tiles
inside the rim and in steady loops nothing is selected.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import groupby

from xdsl.ir import Attribute, SSAValue

from timetile.dialects.temporal.boundary import MIRRORS, Kind
from timetile.dialects.tile import CopiesAttr, KernelOp, LoadOp
from timetile.dialects.verified import number_attribute
from timetile.lowering.tile_to_gpu.halo_plans import Reach, Sides
from timetile.lowering.tile_to_gpu.images import has_images
from timetile.lowering.tile_to_gpu.queues import ExchangePlan, Plane, Position, QueuePlan
from timetile.lowering.tile_to_gpu.scopes import StepScope, StreamStep, VariantScope, once
from timetile.passes.analysis.edges import images_of
from timetile.passes.analysis.geometry.field_access import steady_planes
from timetile.passes.analysis.geometry.kernel_geometry import Geometry


@once
def crosses(variant: VariantScope, number: int, position: int, moved: int) -> bool:
    """A tap along an in-plane axis may leave the bounds at a position."""
    return variant.code.geometry.may_cross(number, position, moved)


def crossed_sides(variant: VariantScope, at: Position, reach: Reach) -> Sides:
    """Where a position may be outside the bounds, no further than readers reach."""
    return tuple(
        (
            crosses(variant, k, position, -max(low, 0)),
            crosses(variant, k, position, max(high, 0)),
        )
        for k, (position, (low, high)) in enumerate(zip(at, reach, strict=True))
    )


@once
def beyond_side(variant: VariantScope, number: int, shift: int, side: int) -> SSAValue:
    """A position along an in-plane axis lies below the bounds (`side` 0), or above."""
    geometry, place = variant.code.geometry, variant.code.thread.axes[number].coordinate
    axis = geometry.axes[number].axis
    if side == 0:
        return variant.emit.compare("slt", place, geometry.lower[axis] - shift)
    return variant.emit.compare("sge", place, geometry.upper[axis] - shift)


@once
def plane_beyond_side(step: StreamStep, lag: int, side: int) -> SSAValue:
    """The plane `lag` steps back lies below the bounds (`side` 0), or above."""
    geometry = step.code.geometry
    place = step.emit.add_int(step.arriving_plane, step.turn - lag)
    if side == 0:
        return step.emit.compare("slt", place, geometry.lower[step.axis])
    return step.emit.compare("sge", place, geometry.upper[step.axis])


def lies_beyond(step: StepScope, axis: int, side: int, lag: int, at: Position) -> SSAValue | None:
    """
    A position of the plane `lag` steps back lies beyond a side of the bounds; None where no cell
    does.
    """
    kernel = step.code.kernel
    if isinstance(step, StreamStep) and axis == step.axis:
        if step.is_steady and is_steady_inside(step.code.geometry, lag):
            return None
        return plane_beyond_side(step, lag, side)
    number = kernel.plane_axes.index(axis)
    if not has_images(step.variant, number):
        return None
    return beyond_side(step.variant, number, at[number], side)


def is_steady_inside(geometry: Geometry, lag: int) -> bool:
    """Whether a steady loop meets no plane outside the bounds `lag` steps back."""
    planes, stored = steady_planes(geometry, lag), geometry.stored_planes
    return not planes or (stored.start <= planes.start and planes.stop <= stored.stop)


@once
def is_at(variant: VariantScope, number: int, position: int, place: int) -> SSAValue | None:
    """A position along an in-plane axis lies at a place; None where it never does."""
    code = variant.code
    if not has_images(variant, number) or not code.geometry.may_be_at(number, position, place):
        return None
    return variant.emit.compare("eq", code.thread.axes[number].coordinate, place - position)


@once
def is_plane(step: StreamStep, lag: int, plane: int) -> SSAValue:
    """The plane `lag` steps back is a plane."""
    place = step.emit.add_int(step.arriving_plane, step.turn - lag)
    return step.emit.compare("eq", place, plane)


def lies_at(step: StepScope, axis: int, place: int, lag: int, at: Position) -> SSAValue | None:
    """A position of the plane `lag` steps back lies at a place; None where it never does."""
    kernel = step.code.kernel
    if isinstance(step, StreamStep) and axis == step.axis:
        return None if step.is_steady else is_plane(step, lag, place)
    number = kernel.plane_axes.index(axis)
    return is_at(step.variant, number, at[number], place)


def is_mirrored(kernel: KernelOp) -> bool:
    """Whether some side of a kernel's bounds is a mirror."""
    return any(set(kernel.sides(axis)) & set(MIRRORS) for axis in range(kernel.rank))


def with_images(
    step: StepScope,
    lag: int,
    at: Position,
    offset: tuple[int, ...],
    tapped: Callable[[tuple[int, ...]], SSAValue],
    axes: Sequence[int],
) -> SSAValue:
    """
    The cell at an offset from a position of the plane `lag` steps back, read by `tapped`; or the
    cell's image, if the offset crosses a mirror along one of the axes.
    """
    if not axes:
        return tapped(offset)
    axis, *later = axes
    cell = with_images(step, lag, at, offset, tapped, later)
    for mask, distance in crossings(step, axis, lag, at, offset[axis]):
        moved = (*offset[:axis], distance, *offset[axis + 1 :])
        cell = step.emit.select(mask, with_images(step, lag, at, moved, tapped, later), cell)
    return cell


def crossings(
    step: StepScope, axis: int, lag: int, at: Position, distance: int
) -> Iterator[tuple[SSAValue, int]]:
    """
    Where a tap from a position of the plane `lag` steps back crosses a mirror along an axis: a
    mask, and the distance of the image.
    """
    geometry = step.code.geometry
    for inside, image in images_of(distance, step.code.kernel.sides(axis)):
        below = distance < 0
        place = geometry.lower[axis] + inside if below else geometry.upper[axis] - 1 - inside
        mask = lies_at(step, axis, place, lag, at)
        if mask is not None:
            yield mask, image


def is_crossed(kernel: KernelOp, crossed: Sides, axis: int, side: int) -> bool:
    """Whether some reader looks beyond a side of an axis; True along the stream."""
    return axis == kernel.stream_axis or crossed[kernel.plane_axes.index(axis)][side]


def with_values(
    step: StepScope,
    lag: int,
    at: Position,
    kind: Attribute,
    cell: SSAValue,
    crossed: Sides | None = None,
    missing: Collection[int] = (),
) -> SSAValue:
    """
    A cell of the plane `lag` steps back, or the number beyond a side with a value. `crossed`: where
    some reader looks at the position beyond the bounds; None for anywhere. A field has no sides
    along `missing` axes.
    """
    kernel, found = step.code.kernel, list[tuple[float, SSAValue]]()
    for axis in kernel.continued_axes:
        if axis in missing:
            continue
        for side, number in enumerate(kernel.sides(axis)):
            if isinstance(number, Kind):
                continue
            if crossed is not None and not is_crossed(kernel, crossed, axis, side):
                continue
            mask = lies_beyond(step, axis, side, lag, at)
            if mask is not None:
                found.append((number, mask))
    # The last axis outside the bounds decides about a corner.
    for _, group in groupby(found, lambda pair: repr(pair[0])):
        numbers, masks = zip(*group)
        constant = step.emit.constant(number_attribute(numbers[0], kind), kind)
        cell = step.emit.select(step.emit.any_of(masks), constant, cell)
    return cell


def has_values(step: StepScope) -> bool:
    """Whether the cells beyond some side are a number."""
    beyond = step.code.kernel.beyond
    return beyond is not None and any(not isinstance(kind, Kind) for kind in beyond.kinds)


def new_with_value(step: StepScope, queue: QueuePlan, at: Position, cell: SSAValue) -> SSAValue:
    """A cell of a queue's new plane, or the number beyond a side with a value."""
    if not has_values(step):
        return cell
    crossed = crossed_sides(step.variant, at, step.code.halos[queue.value].reach)
    return with_values(step, queue.lag, at, queue.element, cell, crossed)


def plane_with_values(step: StepScope, queue: QueuePlan, plane: Plane) -> Plane:
    """A new plane, with numbers beyond sides with a value."""
    return {at: new_with_value(step, queue, at, cell) for at, cell in plane.items()}


def is_read_from_copies(queue: QueuePlan, age: int) -> bool:
    """Whether readers of a plane of some age read what a load's copies brought."""
    if isinstance(queue, ExchangePlan):
        return isinstance(queue.source.value.owner, LoadOp)
    load = queue.value.owner
    return age > 0 and isinstance(load, LoadOp) and isinstance(load.home, CopiesAttr)


def read_with_value(
    step: StepScope, queue: QueuePlan, age: int, at: Position, reach: Reach, cell: SSAValue
) -> SSAValue:
    """
    A cell read from a plane that copies brought, or the number beyond a side with a value: nobody
    wrote the number to the copies.
    """
    if not has_values(step) or not is_read_from_copies(queue, age):
        return cell
    crossed = crossed_sides(step.variant, at, reach)
    return with_values(step, queue.lag + age, at, queue.element, cell, crossed)
