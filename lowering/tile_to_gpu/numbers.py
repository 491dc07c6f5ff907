"""Numbers in place of cells: a warp writes the greatest, or the least, of its cells of a plane.

A kernel that ends with a check of all cells, as of the greatest change, then stores no field of the
checked values: a number for each warp and plane is left to reduce. The order in which cells meet
changes no bit of a maximum or a minimum.
"""

from __future__ import annotations

from functools import partial, reduce

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr
from xdsl.ir import SSAValue

from timetile.dialects import simt
from timetile.dialects.number_room import CELLS_APART, MOST_BEFORE, NumberRoom
from timetile.dialects.syntax import element_type
from timetile.dialects.temporal.reduce import IDENTITY
from timetile.dialects.tile import StoreOp
from timetile.dialects.verified import float_type
from timetile.lowering.joined_numbers import has_no_sign, joined, lanes_met
from timetile.lowering.tile_to_gpu.scopes import StepScope, StreamStep, VariantScope, once
from timetile.lowering.tile_to_gpu.storing import planes_of_store, row_stores
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.diagnostics import refuse


def room_of(geometry: Geometry) -> NumberRoom:
    """The places of a kernel's numbers."""
    begin = list(geometry.lower)
    for tiling in geometry.axes:
        begin[tiling.axis] = tiling.origin
    return NumberRoom(tuple(begin), tuple(geometry.upper), geometry.kernel.plane_axes[-1])


def store_number(step: StepScope, number: int, stage: StoreOp) -> None:
    """Write the number of the tile's own cells of the newest plane."""
    assert stage.number is not None
    code, emit, kind = step.code, step.emit, stage.number.data
    check_distances(stage, code.geometry)
    element = element_type(stage.field)
    found = emit.constant(FloatAttr(IDENTITY[kind], float_type(element)), element)
    width = min(
        code.geometry.access_width(stage.field, inside=not step.variant.guarded), code.cells
    )
    plane = step.planes(code.queues[stage.queue])[0]
    known = all(has_no_sign(plane[*row, k]) for row in code.rows for k in range(code.cells))
    meet = partial(joined, emit, kind, magnitudes=known)
    for line, row in enumerate(code.rows):
        step.mark(number, line, private=True)
        own = [plane[*row, k] for k in range(code.cells)]
        cells = {start: own[start : start + width] for start in range(0, code.cells, width)}
        for access in row_stores(step, stage, row, cells, code.thread):
            new = reduce(meet, [found, *access.cells])
            mask = emit.all_of(access.masks)
            found = new if mask is None else emit.select(mask, new, found)
    step.mark(number, len(code.rows), private=True)
    place, mask = warp_place(step.variant)
    if isinstance(step, StreamStep):
        room, lag = room_of(code.geometry), code.queues[stage.queue].lag
        ahead = step.turn - lag - room.begin[step.axis]
        ahead = emit.add_int(step.arriving_plane, ahead)
        place = emit.add_int(place, emit.mul_int(ahead, room.strides[step.axis]))
    written = emit.all_of([mask, *planes_of_store(step, stage)])
    met = lanes_met(emit, kind, found, magnitudes=known)
    emit.add(simt.StoreOp([met], code.arguments[stage.field], place, 0, written))


def check_distances(stage: StoreOp, geometry: Geometry) -> None:
    """CompileError unless warps have places of their own."""
    room = room_of(geometry)
    for tiling in geometry.axes:
        apart = CELLS_APART if tiling.axis == room.along else 1
        cells = tiling.layout.lanes * tiling.layout.cells
        warps = range(tiling.layout.extent // cells)
        # Warps of a tile, and of a tile and the next.
        distances = [cells] if len(warps) > 1 else []
        if tiling.count > 1:
            distances += [abs(tiling.useful - warp * cells) for warp in warps]
        if min(distances, default=apart) < apart:
            refuse(stage, "warps are too near each other for numbers of their own")
        before = geometry.lower[tiling.axis] - tiling.origin
        if not 0 <= before <= min(MOST_BEFORE, geometry.upper[tiling.axis]):
            refuse(stage, "tiles begin too far outside of the bounds for numbers")


@once
def warp_place(variant: VariantScope) -> tuple[SSAValue, SSAValue]:
    """
    The place of the warp's first cell among the numbers, along all axes but the stream's, and a
    mask: the lane has this cell, inside the bounds.
    """
    emit, geometry, thread = variant.emit, variant.code.geometry, variant.code.thread
    room, place = room_of(geometry), emit.int(0)
    masks: list[SSAValue | None] = [emit.compare("eq", thread.lane, 0), thread.valid]
    for tiling, at in zip(geometry.axes, thread.axes, strict=True):
        axis = tiling.axis
        far = emit.add_int(at.coordinate, -room.begin[axis])
        masks.append(emit.compare("slt", at.coordinate, room.end[axis]))
        if axis == room.along:
            far = emit.binary(arith.ShRSIOp, far, emit.int(CELLS_APART.bit_length() - 1))
        place = emit.add_int(place, emit.mul_int(far, room.strides[axis]))
    return place, emit.value_of(emit.all_of(masks))
