"""
Cells outside the bounds along axes that go on, as computed by a thread.

An image taps images. Behind a mirror the order of cells is reversed: the cell taps to the other
side. A cell beyond a side with a value is the number. In tiles inside the rim and in steady loops
nothing is selected.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import groupby

from xdsl.dialects.builtin import FloatAttr
from xdsl.ir import Attribute, SSAValue

from timetile.dialects.temporal.boundary import Kind
from timetile.dialects.tile import ApplyOp, CopiesAttr, KernelOp, LoadOp
from timetile.dialects.verified import float_type
from timetile.lowering.tile_to_gpu.cells import Late
from timetile.lowering.tile_to_gpu.halo_plans import Reach, Sides
from timetile.lowering.tile_to_gpu.images import has_images, sides_of_axis
from timetile.lowering.tile_to_gpu.queues import ExchangePlan, Plane, Position, QueuePlan
from timetile.lowering.tile_to_gpu.scopes import StepScope, StreamStep, VariantScope, once
from timetile.passes.analysis.edges import MIRRORS, turned_tap
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


def turned_arguments(
    step: StepScope, stage: ApplyOp, at: Position, arguments: Sequence[SSAValue | Late]
) -> Sequence[SSAValue | Late]:
    """The arguments of a cell, with taps to the other side for a cell behind a mirror."""
    geometry, taps, found = step.code.geometry, stage.tap_list, list(arguments)
    for axis in step.code.kernel.continued_axes:
        sides = sides_of_axis(geometry, axis)
        masks = [
            mask
            for side, kind in enumerate(sides)
            if kind in MIRRORS and (mask := lies_beyond(step, axis, side, stage.lag, at))
        ]
        moved = [k for k, tap in enumerate(taps) if tap.offset[axis]]
        if not masks or not moved:
            continue
        mask, values = step.emit.any_of(masks), {k: made_now(found[k]) for k in moved}
        for k in moved:
            other = values[taps.index(turned_tap(taps[k], (axis,)))]
            found[k] = step.emit.select(mask, other, values[k])
    return found


def made_now(argument: SSAValue | Late) -> SSAValue:
    """An argument, made now."""
    return argument() if callable(argument) else argument


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
        for side, number in enumerate(sides_of_axis(step.code.geometry, axis)):
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
        constant = step.emit.constant(FloatAttr(numbers[0], float_type(kind)), kind)
        cell = step.emit.select(step.emit.any_of(masks), constant, cell)
    return cell


def has_values(step: StepScope) -> bool:
    """Whether the cells beyond some side are a number."""
    beyond = step.code.kernel.beyond
    return beyond is not None and any(not isinstance(kind, Kind) for kind in beyond.kinds)


def loaded_with_values(step: StepScope, queue: QueuePlan, plane: Plane) -> Plane:
    """A loaded plane, with numbers beyond sides with a value."""
    if not has_values(step) or not isinstance(queue.value.owner, LoadOp):
        return plane
    reach = step.code.halos[queue.value].reach
    return {
        at: with_values(
            step, queue.lag, at, queue.element, cell, crossed_sides(step.variant, at, reach)
        )
        for at, cell in plane.items()
    }


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
