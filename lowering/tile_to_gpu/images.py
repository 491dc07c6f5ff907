"""
Images: the cells of a field behind places outside the bounds, along axes that go on.

Only the code of the rim asks for images along in-plane axes, and only the head and the tail of a
chunk along the stream. A thread whose cells lie on one side of a bound has one image: an index,
with the distances of the own cells. Otherwise each cell has an image of its own.
"""

from __future__ import annotations

from dataclasses import replace

from xdsl.ir import SSAValue

from timetile.dialects.temporal.boundary import MIRRORS, Kind, Side
from timetile.lowering.emitter import Emitter
from timetile.lowering.tile_to_gpu.queues import Position
from timetile.lowering.tile_to_gpu.scopes import CopyingStep, StreamStep, VariantScope, once
from timetile.lowering.tile_to_gpu.thread import Thread
from timetile.passes.analysis.edges import SidePair
from timetile.passes.analysis.geometry.field_access import has_plane_images
from timetile.passes.analysis.geometry.images import cells_before
from timetile.passes.analysis.geometry.plane_geometry import FieldShape


def has_images(variant: VariantScope, number: int) -> bool:
    """Whether cells of a variant may be images along an in-plane axis, given by number."""
    geometry = variant.code.geometry
    return variant.guarded and geometry.axes[number].axis in geometry.kernel.continued_axes


def image_place(
    emit: Emitter,
    place: SSAValue,
    span: range,
    sides: SidePair,
    reached: range,
    *,
    folds: bool,
    first: int | None = None,
) -> SSAValue:
    """
    The place inside a span behind a place, by the kinds below and above. `reached`: all places that
    may occur. `folds`: places behind a mirror are read. Other places outside give `first`, by
    default the first cell; a place between `first` and the span stays.
    """
    low, high, size = span.start, span.stop, len(span)
    if sides[0] is Kind.PERIODIC:
        if reached.start < low - size or reached.stop > high + size:
            whole = -((reached.start - low) // size) * size
            return emit.add_int(emit.split(emit.add_int(place, whole - low), size)[0], low)
        found = place
        if reached.start < low:
            below = emit.compare("slt", place, low)
            found = emit.select(below, emit.add_int(place, size), found)
        if reached.stop > high:
            above = emit.compare("sge", place, high)
            found = emit.select(above, emit.add_int(place, -size), found)
        return found
    found, (below, above) = place, sides
    if folds and reached.start < low and below in MIRRORS:
        seen = folded(emit, place, below, low, -1)
        found = emit.select(emit.compare("slt", place, low), seen, found)
    if folds and reached.stop > high and above in MIRRORS:
        seen = folded(emit, place, above, high - 1, 1)
        found = emit.select(emit.compare("sge", place, high), seen, found)
    # The first cell, or the vector with the first cell, in place of others: vectors stay aligned.
    first = low if first is None else first
    inside = emit.compare("ult", emit.add_int(found, -first), high - first)
    return emit.select(inside, found, emit.int(first))


def folded(emit: Emitter, place: SSAValue, kind: Side, outermost: int, side: int) -> SSAValue:
    """The place inside behind a place beyond a side (-1 below, 1 above), by the outermost cell."""
    if kind is Kind.CLAMP:
        return emit.int(outermost)
    return emit.sub_int(emit.int(2 * outermost + (side if kind is Kind.MIRROR else 0)), place)


def in_plane_image(
    variant: VariantScope, number: int, place: SSAValue, shift: int, *, folds: bool, before: int
) -> SSAValue:
    """
    The place read in place of one outside the bounds, along the in-plane axis `number`: `shift`
    cells from `place`, which lies in the tile or beside. Along the last axis the first access
    begins `before` cells before the bounds.
    """
    geometry = variant.code.geometry
    tiling, pad = geometry.axes[number], geometry.margins[number]
    reached = range(
        tiling.origin - pad + min(shift, 0),
        tiling.last_origin + tiling.layout.extent + pad + max(shift - tiling.layout.cells + 1, 0),
    )
    span = range(geometry.lower[tiling.axis], geometry.upper[tiling.axis])
    moved = variant.emit.add_int(place, shift)
    sides = geometry.kernel.sides(tiling.axis)
    first = span.start - (before if number == len(geometry.axes) - 1 else 0)
    return image_place(variant.emit, moved, span, sides, reached, folds=folds, first=first)


@once
def image_view(
    variant: VariantScope, view: Thread, moved: Position, *, folds: bool = False, before: int = 0
) -> Thread:
    """
    A view of a thread, moved and then seen inside the bounds along in-plane axes that go on. The
    first access of a row begins `before` cells before the bounds.
    """

    def image(number: int, place: SSAValue, shift: int) -> SSAValue:
        return in_plane_image(variant, number, place, shift, folds=folds, before=before)

    axes = tuple(
        replace(place, coordinate=image(k, place.coordinate, shift))
        if has_images(variant, k)
        else place
        for k, (place, shift) in enumerate(zip(view.axes, moved, strict=True))
    )
    return replace(view, axes=axes)


def seen(
    variant: VariantScope, view: Thread, at: Position, *, folds: bool = False, width: int = 1
) -> tuple[Thread, Position]:
    """
    A view whose cells are images inside the bounds, and the distance, in the field, of a position's
    image from the view's first cell. `folds`: cells behind a mirror are read. `width`: cells of an
    access.
    """
    geometry = variant.code.geometry
    numbers = [k for k in range(len(at)) if has_images(variant, k)]
    if not numbers:
        return view, at
    moved, rest = [0] * len(at), list(at)
    for k in numbers:
        own = view is variant.code.thread and 0 <= at[k] < geometry.axes[k].layout.cells
        if not own or folds or geometry.cuts_threads(k):
            moved[k], rest[k] = at[k], 0
    before = cells_before(geometry, width)
    return image_view(variant, view, tuple(moved), folds=folds, before=before), tuple(rest)


def plane_image(step: CopyingStep, shift: int, *, folds: bool) -> SSAValue:
    """The plane read in place of one outside the bounds, `shift` planes from the arriving plane."""
    geometry, emit = step.variant.code.geometry, emitter_of(step)
    span = geometry.stored_planes
    slack = geometry.fill + geometry.drain + geometry.largest_lag + geometry.period
    slack += geometry.ahead + abs(geometry.smallest_lag) + abs(shift)
    reached = range(span.start - slack, span.stop + slack)
    place = emit.add_int(step.arriving_plane, shift)
    sides = geometry.kernel.sides(step.axis)
    return image_place(emit, place, span, sides, reached, folds=folds)


def emitter_of(step: CopyingStep) -> Emitter:
    """Where the values of a step are made."""
    return step.emit if isinstance(step, StreamStep) else step.variant.emit


@once
def plane_image_in_step(step: StreamStep, shift: int, *, folds: bool) -> SSAValue:
    """`plane_image` of a step, made once."""
    return plane_image(step, shift, folds=folds)


def image_plane(step: CopyingStep, shift: int, *, folds: bool = False) -> SSAValue:
    """
    The plane read in place of one `shift` planes from the arriving plane: another one if that plane
    lies outside the bounds. `folds`: planes behind a mirror are read.
    """
    if isinstance(step, StreamStep):
        return plane_image_in_step(step, shift, folds=folds)
    return plane_image(step, shift, folds=folds)


def asks_for_images(step: CopyingStep, shape: FieldShape, lag: int) -> bool:
    """Whether an access to a field `lag` steps back may be to the image of a plane."""
    geometry = step.variant.code.geometry
    return has_plane_images(geometry, shape, lag, steady=step.is_steady)
