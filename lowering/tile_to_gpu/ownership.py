"""Which cells a thread stores, and which it loads for their sake.

A tile stores its own cells, without its overlap with those beside; at the bounds nothing overlaps, so the
outermost tiles store as far as the bounds reach.
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from timetile.dialects.tile import LoadOp
from timetile.lowering.emitter import Emitter
from timetile.lowering.tile_to_gpu.planes import Position
from timetile.lowering.tile_to_gpu.thread import Thread, ThreadAxis
from timetile.lowering.tile_to_gpu.variant import Variant
from timetile.passes.analysis.geometry.plane_geometry import AxisTiling, FieldShape

WORTH_SKIPPING = 6
"""Cells of the overlap along an axis from which a load is masked to what is needed."""


def owned(v: Variant, at: Position, view: Thread, width: int = 1) -> SSAValue | None:
    """The tile stores `width` cells of a row from a position on; None where that is certain."""

    def make() -> SSAValue | None:
        widths = [1] * (len(view.axes) - 1) + [width]
        places = zip(v.geometry.axes, view.axes, at, widths, strict=True)
        return v.setup.all_of([stored_along(v, *place) for place in places])

    return v.mask(("owned", at, view.axes[-1].coordinate, width), make)


def stored_along(
    v: Variant,
    tiling: AxisTiling,
    axis: ThreadAxis,
    shift: int,
    width: int = 1,
    around: tuple[int, int] = (0, 0),
) -> SSAValue | None:
    """
    Along an axis, `width` cells from a position on are among those that the tile stores and so many more
    `around` them, below and above. None where that is certain.
    """
    below, above = around
    if not v.guarded:
        low, high = tiling.overlap_low - below, tiling.overlap_low + tiling.useful + above
        if low <= 0 and high >= tiling.layout.extent:
            return None
        return v.within(axis.in_tile, shift, low, high - width + 1)
    first, cells = stored_span(v, tiling, axis)
    distance = v.setup.sub_int(v.setup.add_int(axis.coordinate, shift + below), first)
    room = v.setup.add_int(cells, below + above - width + 1)
    if width > 1:
        room = v.setup.binary(arith.MaxSIOp, room, v.setup.int(0))
    return v.setup.compare("ult", distance, room)


def stored_span(v: Variant, tiling: AxisTiling, axis: ThreadAxis) -> tuple[SSAValue, SSAValue]:
    """The first cell that the tile stores along an axis, in the program, and how many it stores."""
    emit = v.setup
    number, inner = tiling.axis, tiling.overlap_low
    low, high = v.geometry.lower[number], v.geometry.upper[number]

    def start() -> SSAValue:
        return emit.sub_int(axis.coordinate, axis.in_tile)

    def from_tile(outermost: int, bound: int, inner: int) -> SSAValue:
        is_outermost = emit.compare("eq", tile, outermost)
        return emit.select(is_outermost, emit.int(bound), emit.add_int(tile, inner))

    tile = v.known(("tile's start", number), start)
    first = v.known(("first stored", number), lambda: from_tile(tiling.origin, low, inner))
    inner_end = inner + tiling.useful
    end = v.known(("stored end", number), lambda: from_tile(tiling.last_origin, high, inner_end))
    return first, v.known(("stored cells", number), lambda: emit.sub_int(end, first))


def load_mask(
    v: Variant,
    emit: Emitter,
    load: LoadOp,
    shape: FieldShape,
    step: SSAValue | None,
    shift: int,
    at: Position,
    view: Thread,
) -> SSAValue | None:
    """
    Plane `step + shift` and the position lie in the field, and somebody needs them; None where
    that is certain.
    """
    parts: list[SSAValue | None] = [needed(v, load, at, view)]
    parts.append(v.in_field(shape, at, view))
    parts.append(v.plane_mask(emit, shape, step, shift))
    return emit.all_of(parts)


def needed(v: Variant, load: LoadOp, at: Position, view: Thread) -> SSAValue | None:
    """
    The position is one that the stores depend on: what is read at its own cell only need not be
    loaded where tiles overlap. None where nearly all of the tile is needed.
    """
    extent = v.geometry.extents[load.result]

    def make() -> SSAValue | None:
        parts: list[SSAValue | None] = []
        for tiling, axis, shift in zip(v.geometry.axes, view.axes, at, strict=True):
            # Groups of a vector are loaded whole.
            more = v.geometry.vector - 1
            around = extent.low[tiling.axis] + more, extent.high[tiling.axis] + more
            if tiling.layout.extent - tiling.useful - sum(around) >= WORTH_SKIPPING:
                parts.append(stored_along(v, tiling, axis, shift, around=around))
        return v.setup.all_of(parts)

    return v.mask(("needed", load, at, view.axes[-1].coordinate), make)
