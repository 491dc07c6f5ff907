"""The cells stored by a thread, and the cells loaded for the stores.

A tile stores its own cells, without the overlap with neighbouring tiles. At the bounds nothing
overlaps, and the outermost tiles store all cells up to the bounds.
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from timetile.dialects.tile import LoadOp
from timetile.lowering.emitter import Emitter
from timetile.lowering.tile_to_gpu.fields import Arrival, in_field, plane_mask, within
from timetile.lowering.tile_to_gpu.queues import Position
from timetile.lowering.tile_to_gpu.scopes import VariantScope, once
from timetile.lowering.tile_to_gpu.thread import Thread, ThreadAxis
from timetile.passes.analysis.geometry.axis_tiling import AxisTiling
from timetile.passes.analysis.geometry.plane_geometry import FieldShape

WORTH_SKIPPING = 6
"""Cells of the overlap along an axis from which on loads are masked to needed cells."""


@once
def owned(variant: VariantScope, at: Position, view: Thread, width: int) -> SSAValue | None:
    """The tile stores `width` cells of a row from a position on; None where that is certain."""
    widths = [1] * (len(view.axes) - 1) + [width]
    places = zip(variant.code.geometry.axes, view.axes, at, widths, strict=True)
    return variant.setup.all_of([stored_along(variant, *place) for place in places])


def stored_along(
    variant: VariantScope,
    tiling: AxisTiling,
    axis: ThreadAxis,
    shift: int,
    width: int = 1,
    around: tuple[int, int] = (0, 0),
) -> SSAValue | None:
    """
    Along an axis, `width` cells from a position on are stored by the tile, or lie at most `around`
    cells below and above the stored cells. None if certain.
    """
    below, above = around
    emit = variant.setup
    if not variant.guarded:
        low, high = tiling.overlap_low - below, tiling.overlap_low + tiling.useful + above
        if low <= 0 and high >= tiling.layout.extent:
            return None
        return within(variant, axis.in_tile, shift, low, high - width + 1)
    first, cells = stored_span(variant, tiling, axis)
    distance = emit.sub_int(emit.add_int(axis.coordinate, shift + below), first)
    room = emit.add_int(cells, below + above - width + 1)
    if width > 1:
        room = emit.binary(arith.MaxSIOp, room, emit.int(0))
    return emit.compare("ult", distance, room)


def stored_span(
    variant: VariantScope, tiling: AxisTiling, axis: ThreadAxis
) -> tuple[SSAValue, SSAValue]:
    """
    The tile's first stored cell along an axis, in the program, and the number of stored cells.
    """
    if tiling.axis not in variant.stored_spans:
        variant.stored_spans[tiling.axis] = make_stored_span(variant, tiling, axis)
    return variant.stored_spans[tiling.axis]


def make_stored_span(
    variant: VariantScope, tiling: AxisTiling, axis: ThreadAxis
) -> tuple[SSAValue, SSAValue]:
    """
    The tile's first stored cell along an axis, in the program, and the number of stored cells.
    """
    emit, geometry, inner = variant.setup, variant.code.geometry, tiling.overlap_low
    tile = emit.sub_int(axis.coordinate, axis.in_tile)

    def from_tile(outermost: int, bound: int, inner: int) -> SSAValue:
        is_outermost = emit.compare("eq", tile, outermost)
        return emit.select(is_outermost, emit.int(bound), emit.add_int(tile, inner))

    first = from_tile(tiling.origin, geometry.lower[tiling.axis], inner)
    end = from_tile(tiling.last_origin, geometry.upper[tiling.axis], inner + tiling.useful)
    return first, emit.sub_int(end, first)


def load_mask(
    arrival: Arrival,
    emit: Emitter,
    load: LoadOp,
    shape: FieldShape,
    shift: int,
    at: Position,
    view: Thread,
) -> SSAValue | None:
    """
    The plane, `shift` planes from the arriving plane, and the position lie in the field, and some
    store needs the cells; None if certain.
    """
    parts: list[SSAValue | None] = [needed(arrival.variant, load, at, view)]
    parts.append(in_field(arrival.variant, shape, at, view))
    parts.append(plane_mask(arrival, emit, shape, shift))
    return emit.all_of(parts)


@once
def needed(variant: VariantScope, load: LoadOp, at: Position, view: Thread) -> SSAValue | None:
    """
    Stores depend on the position: cells without readers at other cells need not be loaded where
    tiles overlap. None if nearly all of the tile is needed.
    """
    geometry = variant.code.geometry
    extent = geometry.extents[load.result]
    parts: list[SSAValue | None] = []
    for tiling, axis, shift in zip(geometry.axes, view.axes, at, strict=True):
        # A group of a vector is loaded as a whole.
        more = geometry.vector - 1
        around = extent.low[tiling.axis] + more, extent.high[tiling.axis] + more
        if tiling.layout.extent - tiling.useful - sum(around) >= WORTH_SKIPPING:
            parts.append(stored_along(variant, tiling, axis, shift, around=around))
    return variant.setup.all_of(parts)
