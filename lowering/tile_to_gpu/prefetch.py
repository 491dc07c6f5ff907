"""Rings of planes that asynchronous copies fill ahead of their use, and who copies what into them."""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.dialects import arith
from xdsl.ir import Attribute, SSAValue

from timetile.dialects.syntax import element_type
from timetile.dialects.tile import LoadOp
from timetile.dialects.tile_attributes import LANES
from timetile.lowering.emitter import Emitter
from timetile.lowering.tile_to_gpu.planes import Position, SharedPlane
from timetile.lowering.tile_to_gpu.rings import Ring, SharedMemory
from timetile.lowering.tile_to_gpu.thread import Thread, index_width, split
from timetile.passes.analysis.geometry import FieldShape, Geometry, ceil_div


@dataclass
class PadCopy:
    """One copy that a thread makes for the cells around the tile; all of it differs by thread."""

    slot_offset: SSAValue
    """Elements from the start of a slot."""
    distance: SSAValue
    """Cells of the field from the thread's first own cell."""
    coordinates: tuple[SSAValue, ...]
    """Of the first copied cell in the program, per in-plane axis."""
    valid: SSAValue | None
    """Off for the threads that have nothing to copy; None where all have."""


@dataclass
class PrefetchRing:
    """
    The ring of one load that is fetched early. A ring of lanes is read by the lane that copied; a
    ring of the tile holds whole planes, with pads, for all threads to read.
    """

    load: LoadOp
    source: SSAValue
    shape: FieldShape
    element: Attribute
    ring: Ring
    own: SSAValue
    """Offset of the thread's first own cells in a slot (elements)."""
    ahead: int
    width: int
    """Cells of one copy."""
    groups: dict[Position, int]
    """The thread's own copies: their first cells, and their distance from `own` in a slot."""
    pads: list[PadCopy] = field(default_factory=list[PadCopy])
    halo: SSAValue | None = None
    """For a ring of the tile: where planes outside the bounds are copied from."""
    waits: bool = False
    commits: bool = False

    @property
    def is_tiles(self) -> bool:
        """All threads of the tile read the ring."""
        return bool(self.pads)


def own_groups(geometry: Geometry, width: int) -> list[Position]:
    """The first cells of a thread's own copies."""
    axes = geometry.axes
    rows = axes[0].layout.cells if len(axes) == 2 else 1
    cells = axes[-1].layout.cells
    return [(row, start) for row in range(rows) for start in range(0, cells, width)]


def lane_ring(
    emit: Emitter,
    geometry: Geometry,
    thread: Thread,
    memory: SharedMemory,
    load: LoadOp,
    arguments: dict[SSAValue, SSAValue],
) -> PrefetchRing:
    """A ring of a power of two of planes, per warp; groups of all lanes lie together."""
    assert load.data is not None
    element = element_type(load.data)
    width = geometry.access_width(load.data)
    groups = own_groups(geometry, width)
    plane_cells = len(groups) * LANES * width
    slots = 1 << load.planes_ahead.bit_length()
    assert geometry.kernel.layout is not None
    warps = geometry.kernel.layout.threads // LANES
    buffer = memory.allocate(element, warps * slots * plane_cells)
    own = emit.add_int(
        emit.mul_int(thread.warp_in_block, slots * plane_cells), emit.mul_int(thread.lane, width)
    )
    ring = Ring(buffer, slots, "computed", plane_cells)
    places = {at: number * LANES * width for number, at in enumerate(groups)}
    return PrefetchRing(
        load, arguments[load.data], FieldShape.of(load.data), element, ring, own,
        load.planes_ahead, width, places,
    )  # fmt: skip


def tile_ring(
    emit: Emitter,
    geometry: Geometry,
    thread: Thread,
    plane: SharedPlane,
    load: LoadOp,
    arguments: dict[SSAValue, SSAValue],
) -> PrefetchRing:
    """A ring of whole planes. Each thread copies its own cells and its share of the pads."""
    assert load.data is not None
    assert plane.own is not None
    width = geometry.access_width(load.data)
    places = {(row, start): row * plane.pitch + start for row, start in own_groups(geometry, width)}
    shape = FieldShape.of(load.data)
    pads = pad_copies(emit, geometry, thread, plane, shape, width)
    halo = None if load.halo is None else arguments[load.halo]
    return PrefetchRing(
        load, arguments[load.data], shape, plane.element, plane.ring, plane.own,
        load.planes_ahead, width, places, pads, halo,
    )  # fmt: skip


def pad_copies(
    emit: Emitter,
    geometry: Geometry,
    thread: Thread,
    plane: SharedPlane,
    shape: FieldShape,
    width: int,
) -> list[PadCopy]:
    """
    The cells around the tile, dealt out to the threads of the block: first whole rows above and
    below, then the cells beside each row of the tile.
    """
    assert geometry.kernel.layout is not None
    threads = geometry.kernel.layout.threads
    extent = geometry.axes[-1].layout.extent
    per_row = ceil_div(extent + 2 * plane.pad_cells, width)
    beside = plane.pad_cells // width
    outer = 2 * plane.pad_rows * per_row
    total = outer + 2 * beside * plane.rows
    number = emit.add_int(emit.mul_int(thread.warp_in_block, LANES), thread.lane)

    def choose(mask: SSAValue, yes: SSAValue, no: SSAValue) -> SSAValue:
        return emit.add(arith.SelectOp(mask, yes, no)).result

    def outer_place(number: SSAValue) -> tuple[SSAValue, SSAValue]:
        group, row = split(emit, number, per_row)
        below = emit.add_int(row, plane.rows)
        row = choose(emit.compare("ult", row, plane.pad_rows), row, below)
        return row, emit.mul_int(group, width)

    def beside_place(number: SSAValue) -> tuple[SSAValue, SSAValue]:
        side, row = split(emit, number, 2 * beside)
        left = emit.mul_int(side, width)
        right = emit.add_int(left, extent)
        return emit.add_int(row, plane.pad_rows), choose(
            emit.compare("ult", side, beside), left, right
        )

    copies: list[PadCopy] = []
    for first in range(0, total, threads):
        mine = emit.add_int(number, first)
        valid = None if first + threads <= total else emit.compare("ult", mine, total)
        # Row and cell from the corner of the padded plane.
        if first + threads <= outer or not beside:
            row, cell = outer_place(mine)
        elif first >= outer:
            row, cell = beside_place(emit.add_int(mine, -outer))
        else:
            row, cell = (
                choose(emit.compare("ult", mine, outer), a, b)
                for a, b in zip(outer_place(mine), beside_place(emit.add_int(mine, -outer)))
            )
        slot_offset = emit.add_int(emit.mul_int(row, plane.pitch), cell)
        copies.append(pad_copy(emit, geometry, thread, plane, shape, slot_offset, row, cell, valid))
    return copies


def pad_copy(
    emit: Emitter,
    geometry: Geometry,
    thread: Thread,
    plane: SharedPlane,
    shape: FieldShape,
    slot_offset: SSAValue,
    row: SSAValue,
    cell: SSAValue,
    valid: SSAValue | None,
) -> PadCopy:
    """The copy at a row and cell of the padded plane, seen from the thread's first own cell."""
    places = (row, cell)[2 - len(geometry.axes) :]
    pads = (plane.pad_rows, plane.pad_cells)[2 - len(geometry.axes) :]
    width = index_width(geometry)
    coordinates: list[SSAValue] = []
    distance: SSAValue | None = None
    for axis, place, pad in zip(thread.axes, places, pads):
        moved = emit.sub_int(emit.add_int(place, -pad), axis.in_tile)
        coordinates.append(emit.add_int(axis.coordinate, moved))
        term = emit.mul_int(emit.extend(moved, width), shape.strides[axis.axis])
        distance = term if distance is None else emit.add_int(distance, term)
    assert distance is not None
    return PadCopy(slot_offset, distance, tuple(coordinates), valid)
