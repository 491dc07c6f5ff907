"""Rings of planes filled early by asynchronous copies, and the share of each thread."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce

from xdsl.ir import Attribute, SSAValue

from timetile.dialects.syntax import cell_type, element_type
from timetile.dialects.tile import LANES, Addressing, LoadOp
from timetile.lowering.emitter import Emitter
from timetile.lowering.tile_to_gpu.queues import Position, SharedPlane
from timetile.lowering.tile_to_gpu.rings import Ring
from timetile.lowering.tile_to_gpu.thread import Thread, dealt, dealt_by_rows, index_width
from timetile.passes.analysis.block_memory import EarlyPlanes, WarpPart
from timetile.passes.analysis.geometry.axis_tiling import ceil_div
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.analysis.geometry.plane_geometry import FieldShape, Row, vector_cells
from timetile.passes.analysis.geometry.wide_copies import wide_copy


@dataclass(frozen=True, eq=False)
class PadCopy:
    """A thread's copy of cells around the tile; every value differs between threads."""

    slot_offset: SSAValue
    """Elements from the start of a slot."""
    distance: SSAValue
    """Cells of the field from the thread's first own cell."""
    coordinates: tuple[SSAValue, ...]
    """The first copied cell, by in-plane axis, in the program's coordinates."""
    valid: SSAValue | None
    """Off for threads without a copy; None if all threads have one."""


@dataclass(frozen=True)
class Vector:
    """Consecutive cells of a row: the first position, and the place in a slot (elements)."""

    at: Position
    place: int
    width: int

    def parts(self, width: int) -> Iterator[Vector]:
        """The cells in vectors of a width that divides the own width."""
        for k in range(0, self.width, width):
            yield Vector((*self.at[:-1], self.at[-1] + k), self.place + k, width)


@dataclass(frozen=True, eq=False)
class PrefetchRing:
    """
    The ring of a load with early fetches. A ring of lanes is read by the copying lane, or by the
    lane's warp. A ring of the tile holds whole planes, with pads, for all threads.
    """

    load: LoadOp
    source: SSAValue
    shape: FieldShape
    element: Attribute
    ring: Ring
    ahead: int
    view: Thread
    """The cells that a thread copies: its own, or its share of the plane."""
    copied_from: SSAValue
    """Offset of the first copied cell in a slot (elements)."""
    copies: list[Vector]
    read_from: SSAValue
    """Offset of the thread's first own cell in a slot (elements)."""
    reads: list[Vector]
    pads: list[PadCopy] = field(default_factory=list[PadCopy])
    halo: SSAValue | None = None
    """For a ring of the tile: where planes outside the bounds are copied from."""
    base: int = 0
    """The slots by which the planes are ahead in a ring that other queues share."""
    waits: bool = False
    commits: bool = False

    @property
    def is_tiles(self) -> bool:
        """All threads of the tile read the ring."""
        return bool(self.pads)

    @property
    def changes_lanes(self) -> bool:
        """Lanes read what other lanes of the warp copied."""
        return self.copied_from is not self.read_from


def row_vectors(
    rows: Sequence[Row], cells: int, width: int, pitch: int, stride: int, first: int = 0
) -> list[Vector]:
    """
    One vector after the other of every row of a thread, from an element on: `pitch` elements
    between rows, `stride` cells between the vectors of a row.
    """
    starts = [n * stride for n in range(cells // width)]
    return [
        Vector((*row, start), first + line * pitch + start, width)
        for line, row in enumerate(rows)
        for start in starts
    ]


def lane_ring(
    emit: Emitter,
    geometry: Geometry,
    thread: Thread,
    buffer: SSAValue,
    early: EarlyPlanes,
    load: LoadOp,
    arguments: dict[SSAValue, SSAValue],
) -> PrefetchRing:
    """A ring of planes for each warp, in a buffer."""
    planes, part = early.ring, early.part
    element = element_type(load.field)
    width, cells = geometry.access_width(load.field), geometry.axes[-1].layout.cells
    rows = geometry.thread_rows
    slots = planes.slots, Addressing.COMPUTED, planes.plane_cells
    ring = Ring(buffer, *slots, geometry.period)
    warp = emit.mul_int(thread.warp_in_block, part.pitch)
    copied_from = read_from = emit.add_int(warp, emit.mul_int(thread.lane, width))
    view = thread
    if geometry.deals_rows(load.field):
        view = dealt(emit, thread, width)
        read_from = emit.add_int(warp, emit.mul_int(thread.lane, cells))
        copies = row_vectors(rows, cells, width, cells * LANES, width * LANES, part.first)
        whole = vector_cells(cells, element)
        reads = row_vectors(rows, cells, whole, cells * LANES, whole, part.first)
    else:
        # Each lane reads the vectors that the lane copied: equal vectors of all lanes are adjacent.
        own = row_vectors(rows, cells, width, cells, width)
        reads = copies = [
            Vector(v.at, part.first + n * LANES * width, width) for n, v in enumerate(own)
        ]
    return PrefetchRing(
        load, arguments[load.field], FieldShape.of(load.field), element, ring, load.planes_ahead,
        view, copied_from, copies, read_from, reads,
    )  # fmt: skip


def group_vectors(rows: Sequence[Row], group: int, width: int, pitch: int) -> list[Vector]:
    """A vector of every group of a thread's rows, `pitch` elements between rows."""
    starts = range(0, len(rows), group)
    return [Vector((*rows[line], 0), line * pitch, width) for line in starts]


def moved_place(emit: Emitter, plane: SharedPlane, thread: Thread, view: Thread) -> SSAValue:
    """The place, in a slot, of the first own cell of a thread's view (elements)."""
    place = plane.own
    axes = zip(thread.axes, view.axes, plane.layout.strides, strict=True)
    for own, moved, stride in axes:
        if moved is not own:
            cells = emit.sub_int(moved.in_block, own.in_block)
            place = emit.add_int(place, emit.mul_int(cells, stride))
    return place


def tile_ring(
    emit: Emitter,
    geometry: Geometry,
    thread: Thread,
    plane: SharedPlane,
    load: LoadOp,
    arguments: dict[SSAValue, SSAValue],
) -> PrefetchRing:
    """A ring of whole planes. Each thread copies cells of the warp, and a share of the pads."""
    width, cells = geometry.access_width(load.field), geometry.axes[-1].layout.cells
    rows, shape = geometry.thread_rows, FieldShape.of(load.field)
    view, copied_from, stride = thread, plane.own, width
    if geometry.deals_rows(load.field):
        view, stride = dealt(emit, thread, width), width * LANES
        copied_from = emit.add_int(plane.own, emit.mul_int(thread.lane, width - cells))
    copies = row_vectors(rows, cells, width, plane.layout.pitch, stride)
    wide = wide_copy(geometry, load.field)
    if wide > width:
        width, view = wide, dealt_by_rows(emit, thread, wide)
        copied_from = moved_place(emit, plane, thread, view)
        copies = group_vectors(rows, wide // cells, wide, plane.layout.pitch)
    whole = vector_cells(cells, plane.element)
    reads = row_vectors(rows, cells, whole, plane.layout.pitch, whole)
    pads = Pads(emit, geometry, thread, plane, shape, width).copies()
    halo = None if load.halo is None else arguments[load.halo]
    return PrefetchRing(
        load, arguments[load.field], shape, plane.element, plane.ring, load.planes_ahead,
        view, copied_from, copies, plane.own, reads, pads, halo, plane.base,
    )  # fmt: skip


@dataclass(frozen=True)
class Pads:
    """
    The cells around a tile, dealt out in vectors of `width` cells to the threads of the block:
    first whole rows above and below, then the cells beside each row of the tile.
    """

    emit: Emitter
    geometry: Geometry
    thread: Thread
    plane: SharedPlane
    shape: FieldShape
    width: int

    def copies(self) -> list[PadCopy]:
        """The copies of a thread."""
        emit, threads = self.emit, self.geometry.layout.threads
        outer = 2 * self.pad_rows * ceil_div(self.extent + 2 * self.pad_cells, self.width)
        beside = self.pad_cells // self.width
        total = outer + 2 * beside * self.rows
        number = emit.add_int(emit.mul_int(self.thread.warp_in_block, LANES), self.thread.lane)
        copies: list[PadCopy] = []
        for first in range(0, total, threads):
            mine = emit.add_int(number, first)
            valid = None if first + threads <= total else emit.compare("ult", mine, total)
            if first + threads <= outer or not beside:
                row, cell = self.outer_place(mine)
            elif first >= outer:
                row, cell = self.beside_place(emit.add_int(mine, -outer))
            else:
                row, cell = (
                    emit.select(emit.compare("ult", mine, outer), a, b)
                    for a, b in zip(
                        self.outer_place(mine), self.beside_place(emit.add_int(mine, -outer))
                    )
                )
            copies.append(self.copy_at(row, cell, valid))
        return copies

    @property
    def extent(self) -> int:
        """Cells in a row of the block."""
        return self.geometry.axes[-1].layout.block_extent

    @property
    def rows(self) -> int:
        """Rows of the block."""
        axes = self.geometry.axes
        return axes[0].layout.block_extent if len(axes) > 1 else 1

    @property
    def pad_cells(self) -> int:
        """Cells beside a row, on either side."""
        return self.plane.layout.pads[-1]

    @property
    def pad_rows(self) -> int:
        """Rows above the tile, and below."""
        return self.plane.layout.pads[0] if len(self.geometry.axes) > 1 else 0

    def outer_place(self, number: SSAValue) -> tuple[SSAValue, SSAValue]:
        """Row and cell, from the corner of the padded plane, of a vector above or below."""
        emit = self.emit
        group, row = emit.split(number, ceil_div(self.extent + 2 * self.pad_cells, self.width))
        below = emit.add_int(row, self.rows)
        row = emit.select(emit.compare("ult", row, self.pad_rows), row, below)
        return row, emit.mul_int(group, self.width)

    def beside_place(self, number: SSAValue) -> tuple[SSAValue, SSAValue]:
        """Row and cell, from the corner of the padded plane, of a vector beside a row."""
        emit, beside = self.emit, self.pad_cells // self.width
        side, row = emit.split(number, 2 * beside)
        left = emit.mul_int(side, self.width)
        right = emit.add_int(left, self.extent)
        row = emit.add_int(row, self.pad_rows)
        return row, emit.select(emit.compare("ult", side, beside), left, right)

    def copy_at(self, row: SSAValue, cell: SSAValue, valid: SSAValue | None) -> PadCopy:
        """The copy at a row and cell of the padded plane, seen from the thread's first own cell."""
        emit, layout = self.emit, self.plane.layout
        slot_offset = emit.add_int(emit.mul_int(row, layout.pitch), cell)
        places = (row, cell)[2 - len(self.geometry.axes) :]
        index_type = index_width(self.geometry)
        coordinates: list[SSAValue] = []
        distances: list[SSAValue] = []
        for axis, place, pad in zip(self.thread.axes, places, layout.pads, strict=True):
            moved = emit.sub_int(emit.add_int(place, -pad), axis.in_block)
            coordinates.append(emit.add_int(axis.coordinate, moved))
            stride = self.shape.strides[axis.axis]
            distances.append(emit.mul_int(emit.extend(moved, index_type), stride))
        distance = reduce(emit.add_int, distances)
        return PadCopy(slot_offset, distance, tuple(coordinates), valid)


@dataclass(frozen=True)
class Staging:
    """
    Where the rows of a warp change hands before it is written to a field with narrow accesses.
    """

    buffer: SSAValue
    part: WarpPart
    element: Attribute
    view: Thread
    written_from: SSAValue
    writes: list[Vector]
    read_from: SSAValue
    reads: list[Vector]


def row_staging(
    emit: Emitter,
    geometry: Geometry,
    thread: Thread,
    buffer: SSAValue,
    part: WarpPart,
    stored: SSAValue,
) -> Staging:
    """Rows of shared memory for every warp of the block, as many as a thread holds."""
    element, width = cell_type(stored), geometry.access_width(stored)
    cells, rows = geometry.axes[-1].layout.cells, geometry.thread_rows
    pitch, warp = cells * LANES, emit.mul_int(thread.warp_in_block, part.pitch)
    whole = vector_cells(cells, element)
    return Staging(
        buffer,
        part,
        element,
        dealt(emit, thread, width),
        emit.add_int(warp, emit.mul_int(thread.lane, cells)),
        row_vectors(rows, cells, whole, pitch, whole, part.first),
        emit.add_int(warp, emit.mul_int(thread.lane, width)),
        row_vectors(rows, cells, width, pitch, width * LANES, part.first),
    )
