"""The cells stored by a thread, and the cells loaded for the stores.

A tile stores its own cells, without the overlap with neighbouring tiles. At the bounds nothing
overlaps, and the outermost tiles store all cells up to the bounds.
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from timetile.dialects.tile import LoadOp
from timetile.lowering.tile_to_gpu.fields import in_field, within
from timetile.lowering.tile_to_gpu.queues import Position
from timetile.lowering.tile_to_gpu.scopes import VariantScope, once
from timetile.lowering.tile_to_gpu.thread import Thread
from timetile.passes.analysis.geometry.plane_geometry import FieldShape

WORTH_SKIPPING = 6
"""Cells of the overlap along an axis from which on loads are masked to needed cells."""


@once
def owned(variant: VariantScope, at: Position, view: Thread, width: int) -> SSAValue | None:
    """The tile stores `width` cells of a row from a position on; None where that is certain."""
    widths = [1] * (len(at) - 1) + [width]
    along = [
        stored_along(variant, view, number, shift, width)
        for number, (shift, width) in enumerate(zip(at, widths))
    ]
    return variant.emit.all_of(along)


def stored_along(
    variant: VariantScope,
    view: Thread,
    number: int,
    shift: int,
    width: int = 1,
    around: tuple[int, int] = (0, 0),
) -> SSAValue | None:
    """
    Along an in-plane axis, `width` cells from a position on are stored by the tile, or lie at most
    `around` cells below and above the stored cells. None if certain.
    """
    below, above = around
    emit = variant.emit
    tiling, axis = variant.code.geometry.axes[number], view.axes[number]
    if not variant.guarded and not variant.code.geometry.always_guarded(number):
        low, high = tiling.overlap_low - below, tiling.overlap_low + tiling.useful + above
        if low <= 0 and high >= tiling.layout.extent:
            return None
        return within(variant, axis.in_tile, shift, low, high - width + 1)
    first, cells = stored_span(variant, view, number)
    distance = emit.sub_int(emit.add_int(axis.coordinate, shift + below), first)
    room = emit.add_int(cells, below + above - width + 1)
    if width > 1:
        room = emit.binary(arith.MaxSIOp, room, emit.int(0))
    return emit.compare("ult", distance, room)


def stored_span(variant: VariantScope, view: Thread, number: int) -> tuple[SSAValue, SSAValue]:
    """
    The tile's first stored cell along an in-plane axis, in the program, and the number of stored
    cells.
    """
    if number not in variant.stored_spans:
        variant.stored_spans[number] = make_stored_span(variant, view, number)
    return variant.stored_spans[number]


def make_stored_span(variant: VariantScope, view: Thread, number: int) -> tuple[SSAValue, SSAValue]:
    """
    The tile's first stored cell along an in-plane axis, in the program, and the number of stored
    cells.
    """
    emit, geometry = variant.emit, variant.code.geometry
    tiling, axis = geometry.axes[number], view.axes[number]
    tile, inner = emit.sub_int(axis.coordinate, axis.in_tile), tiling.overlap_low

    def from_tile(outermost: int, bound: int, inner: int) -> SSAValue:
        is_outermost = emit.compare("eq", tile, outermost)
        return emit.select(is_outermost, emit.int(bound), emit.add_int(tile, inner))

    first = from_tile(tiling.origin, geometry.lower[tiling.axis], inner)
    end = from_tile(tiling.last_origin, geometry.upper[tiling.axis], inner + tiling.useful)
    return first, emit.sub_int(end, first)


def load_masks(
    variant: VariantScope, load: LoadOp, at: Position, view: Thread
) -> list[SSAValue | None]:
    """Some store needs the loaded cells of a position, and the field has them; None if certain."""
    shape = FieldShape.of(load.field)
    return [needed(variant, load, at, view), in_field(variant, shape, at, view)]


@once
def needed(variant: VariantScope, load: LoadOp, at: Position, view: Thread) -> SSAValue | None:
    """
    Stores depend on the position: cells without readers at other cells need not be loaded where
    tiles overlap. None if nearly all of the tile is needed.
    """
    geometry = variant.code.geometry
    extent = geometry.extents[load.result]
    parts: list[SSAValue | None] = []
    for number, tiling in enumerate(geometry.axes):
        # A group of a vector is loaded as a whole.
        more = geometry.vector - 1
        around = extent.low[tiling.axis] + more, extent.high[tiling.axis] + more
        if tiling.layout.extent - tiling.useful - sum(around) >= WORTH_SKIPPING:
            parts.append(stored_along(variant, view, number, at[number], around=around))
    return variant.emit.all_of(parts)
