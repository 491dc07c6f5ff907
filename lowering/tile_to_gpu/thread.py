"""The place of a thread: tile, cells, chunk of planes, and masks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import reduce

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerType, i32, i64
from xdsl.dialects.gpu import BlockIdOp, DimensionAttr, DimensionEnum, ThreadIdOp
from xdsl.ir import SSAValue

from timetile.dialects import simt
from timetile.dialects.tile import LANES, LayoutAttr
from timetile.lowering.emitter import Emitter
from timetile.lowering.tile_to_gpu.chunks import Chunk, is_tile
from timetile.passes.analysis.geometry.axis_tiling import ceil_div
from timetile.passes.analysis.geometry.borders import BlockDirection, along_first
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.analysis.geometry.plane_geometry import FieldShape
from timetile.passes.analysis.placed import layout_of


@dataclass(frozen=True, eq=False)
class ThreadAxis:
    """One in-plane axis of a thread. Coordinates are those of the thread's first own cell."""

    axis: int
    cells: int
    in_tile: SSAValue
    """Position in the tile."""
    in_block: SSAValue
    """Position in the block's part of the tile."""
    coordinate: SSAValue
    """Position in the program."""
    warp: SSAValue | None
    """Number of the warp along the axis; None for a tile of one warp along it."""

    def further(self, emit: Emitter, cells: SSAValue) -> ThreadAxis:
        """The place in another tile, a number of cells on."""
        coordinate = emit.binary(arith.AddiOp, self.coordinate, cells)
        return replace(self, coordinate=coordinate)

    def moved(self, emit: Emitter, cells: SSAValue) -> ThreadAxis:
        """The place moved by a number of cells along the axis."""
        in_tile = emit.binary(arith.AddiOp, self.in_tile, cells)
        in_block = emit.binary(arith.AddiOp, self.in_block, cells)
        coordinate = emit.binary(arith.AddiOp, self.coordinate, cells)
        return replace(self, in_tile=in_tile, in_block=in_block, coordinate=coordinate)


@dataclass(frozen=True)
class Turn:
    """
    Where a block is, if the blocks of a tile exchange messages and take one tile after another.
    `first_tile` and `tile` number the block's first and present tile, and `steps_before` counts
    stream steps in earlier tiles.
    """

    first_tile: SSAValue
    tile: SSAValue
    steps_before: SSAValue
    buffer: SSAValue
    """The words of the launch for messages between blocks."""


@dataclass(frozen=True)
class ThreadSeat:
    """A thread's place in the block, and the block's tile."""

    lane: SSAValue
    warp: SSAValue
    tile: SSAValue
    rank: SSAValue
    """Number of the block in the tile."""
    turn: Turn | None
    valid: SSAValue | None
    """Off in warps beyond the last tile; None if every warp has a tile."""


@dataclass(frozen=True, eq=False)
class Thread:
    """
    A thread's place. `first` and `last` bound the planes of its chunk, in program coordinates.
    """

    axes: tuple[ThreadAxis, ...]
    lane: SSAValue
    warp_in_block: SSAValue
    first: SSAValue
    last: SSAValue
    is_first: SSAValue | None
    """The chunk is the first of its tile; None if no columns are joined."""
    tile: SSAValue
    """Number of the tile in the launch."""
    rank: SSAValue
    """Number of the block in the tile."""
    turn: Turn | None
    """The present tile, if blocks take one tile after the other."""
    valid: SSAValue | None
    """Off in warps beyond the last tile; None if every warp has a tile."""

    @property
    def steps_before(self) -> SSAValue | None:
        """Stream steps of the block's earlier tiles; None if a block has a single tile."""
        return None if self.turn is None else self.turn.steps_before


def take_seat(emit: Emitter, geometry: Geometry, turn: Turn | None = None) -> ThreadSeat:
    """
    Compute a thread's tile from block and thread numbers, or from the turn of blocks with several
    tiles.
    """
    kernel = geometry.kernel
    layout = layout_of(kernel)
    number = emit.add(ThreadIdOp(DimensionAttr(DimensionEnum.X))).result
    thread = emit.add(arith.IndexCastOp(number, i32)).result
    block = block_number(emit)
    lane = emit.binary(arith.AndIOp, thread, emit.int(LANES - 1))
    warp = emit.binary(arith.ShRUIOp, thread, emit.int(LANES.bit_length() - 1))
    warp = emit.add(simt.UniformOp(warp)).result
    pack = layout.pack.data
    rank, tile = emit.split(block, layout.blocks)
    if turn is not None:
        tile = turn.tile
    if pack > 1:
        tile = emit.add_int(emit.mul_int(block, pack), warp)
        tile = emit.add_int(tile, -geometry.spot_tiles)
    return ThreadSeat(lane, warp, tile, rank, turn, is_tile(emit, geometry, tile))


def place_thread(emit: Emitter, geometry: Geometry, seat: ThreadSeat, chunk: Chunk) -> Thread:
    """
    Compute a thread's own cells in the column of its tile. Of tiles that share a block, each has a
    single warp.
    """
    axes: list[ThreadAxis] = []
    inner_rank, inner_warp, inner_lane = seat.rank, seat.warp, seat.lane
    left = LANES
    numbers = tile_numbers(emit, geometry, chunk.column)
    for tiling, number in zip(reversed(geometry.axes), numbers, strict=True):
        along: SSAValue | None = None
        if tiling.layout.warps > 1:
            along, inner_warp = emit.split(inner_warp, tiling.layout.warps)
        position = emit.int(0)
        if tiling.layout.lanes > 1:
            lane, left = inner_lane, left // tiling.layout.lanes
            if left > 1:
                lane, inner_lane = emit.split(inner_lane, tiling.layout.lanes)
            position = emit.mul_int(lane, tiling.layout.cells)
        if along is not None:
            stride = tiling.layout.cells * tiling.layout.lanes
            position = emit.add_int(position, emit.mul_int(along, stride))
        in_block = position
        if tiling.layout.blocks > 1:
            place, inner_rank = emit.split(inner_rank, tiling.layout.blocks)
            position = emit.add_int(position, emit.mul_int(place, tiling.layout.block_extent))
        start = emit.add_int(emit.mul_int(number, tiling.useful), tiling.origin)
        coordinate = emit.add_int(start, position)
        axes.insert(
            0,
            ThreadAxis(tiling.axis, tiling.layout.cells, position, in_block, coordinate, along),
        )
    return Thread(
        tuple(axes), seat.lane, seat.warp, chunk.first, chunk.last, chunk.is_first, seat.tile,
        seat.rank, seat.turn, seat.valid,
    )  # fmt: skip


def tile_numbers(emit: Emitter, geometry: Geometry, column: SSAValue) -> Iterator[SSAValue]:
    """
    The number of a tile along each in-plane axis, the last axis first, from its number in the
    plane. Tiles follow each other along the last axis, then the axis before; with a slab, along the
    last axis, the slab, the first axis, and then come other slabs. Of tiles in turn along the first
    axis, the first one has a number.
    """
    slab, turn = geometry.slab, geometry.tiles_in_turn
    first, *others = (tiling.count for tiling in geometry.axes)
    first = ceil_div(first, turn)
    if slab is None:
        for count in reversed(others):
            number, column = emit.split(column, count)
            yield number
        yield emit.mul_int(emit.split(column, first)[0], turn)
        return
    planes, (rows, columns) = first, others
    number, column = emit.split(column, columns)
    yield number
    whole, rest = divmod(rows, slab)
    inner, before = emit.split(column, slab * planes)
    row, plane = emit.split(inner, slab)
    if rest:
        # The last slab has the remaining tiles.
        is_last = emit.compare("eq", before, whole)
        row, plane = (
            emit.select(is_last, *values)
            for values in zip(emit.split(inner, rest), (row, plane), strict=True)
        )
    yield emit.add_int(emit.mul_int(before, slab), row)
    yield emit.mul_int(plane, turn)


def block_number(emit: Emitter) -> SSAValue:
    """The number of the block in the launch."""
    number = emit.add(BlockIdOp(DimensionAttr(DimensionEnum.X))).result
    return emit.add(arith.IndexCastOp(number, i32)).result


def tile_of_block(emit: Emitter, layout: LayoutAttr) -> SSAValue:
    """The number of the block's tile in the launch."""
    return emit.split(block_number(emit), layout.blocks)[1]


def chunk_steps(emit: Emitter, geometry: Geometry, first: SSAValue, last: SSAValue) -> SSAValue:
    """
    The stream steps of a chunk of planes, in whole turns of the unrolled loop; 1 without a stream.
    """
    if geometry.kernel.stream_axis is None:
        return emit.int(1)
    around = geometry.drain + geometry.fill + geometry.period - 1
    return whole_turns(emit, geometry, emit.add_int(emit.sub_int(last, first), around))


def whole_turns(emit: Emitter, geometry: Geometry, distance: SSAValue) -> SSAValue:
    """
    Steps of the whole turns of the unrolled loop within a distance; 0 for a negative distance.
    """
    period = geometry.period
    distance = emit.binary(arith.MaxSIOp, distance, emit.int(0))
    count = emit.binary(arith.DivUIOp, distance, emit.int(period)) if period > 1 else distance
    return emit.mul_int(count, period)


def block_beside(
    emit: Emitter, thread: Thread, side: int, layout: LayoutAttr
) -> tuple[SSAValue, SSAValue]:
    """
    The rank of the block before (-1) or after (1) in the tile, along the first axis, and a mask:
    the tile has this block.
    """
    along = along_first(side, len(layout.axis_layouts))
    beside = emit.add_int(thread.rank, rank_distance(layout, along))
    return beside, emit.compare("ult", beside, layout.blocks)


def rank_distance(layout: LayoutAttr, direction: BlockDirection) -> int:
    """The rank of the block beside in a direction, less the own rank: ranks follow rows."""
    distance = 0
    for step, axis in zip(direction, layout.axis_layouts, strict=True):
        distance = distance * axis.blocks + step
    return distance


def has_block(
    emit: Emitter, thread: Thread, direction: BlockDirection, layout: LayoutAttr
) -> SSAValue | None:
    """A mask: the tile has a block beside the own block in a direction."""
    masks: list[SSAValue] = []
    rank = thread.rank
    for step, axis in reversed(list(zip(direction, layout.axis_layouts, strict=True))):
        place, rank = emit.split(rank, axis.blocks)
        if step:
            masks.append(emit.compare("ult", emit.add_int(place, step), axis.blocks))
    return emit.all_of(masks)


def dealt(emit: Emitter, thread: Thread, width: int) -> Thread:
    """
    The thread after vectors of `width` cells of the warp's row were dealt to the lanes in order.
    The accesses of a warp are then contiguous, however narrow each access is.
    """
    *others, last = thread.axes
    moved = emit.mul_int(thread.lane, width - last.cells)
    in_tile = emit.add_int(last.in_tile, moved)
    alike = last.in_block is last.in_tile
    first = replace(
        last,
        in_tile=in_tile,
        in_block=in_tile if alike else emit.add_int(last.in_block, moved),
        coordinate=emit.add_int(last.coordinate, moved),
    )
    return replace(thread, axes=(*others, first))


def dealt_by_rows(emit: Emitter, thread: Thread, width: int) -> Thread:
    """
    The thread after vectors of `width` cells of the warp's rows were dealt to the lanes in order,
    several rows of an access: `width` is a multiple of a thread's cells along a row.
    """
    *others, row, last = thread.axes
    number, group = emit.split(thread.lane, LANES * last.cells // width)
    moved = emit.sub_int(emit.mul_int(number, width), emit.mul_int(thread.lane, last.cells))
    return replace(thread, axes=(*others, row.moved(emit, group), last.moved(emit, moved)))


def is_interior(emit: Emitter, geometry: Geometry, thread: Thread) -> SSAValue | None:
    """
    A mask, uniform in a block: all accesses of the block lie inside the bounds along the in-plane
    axes, and outside the overlap stored by the outermost tiles. None if no block is inside.
    """
    masks: list[SSAValue] = []
    for number, (tiling, axis) in enumerate(zip(geometry.axes, thread.axes, strict=True)):
        cells, pad = geometry.interior_cells(number), geometry.margins[number]
        if not cells:
            return None
        if geometry.touches_row_ends(number):
            continue
        start = emit.sub_int(axis.coordinate, axis.in_block)
        masks.append(emit.compare("sge", start, cells.start + pad))
        masks.append(emit.compare("sle", start, cells.stop - pad - tiling.layout.block_extent))
    return emit.all_of(masks)


WIDE_FIELD = 1 << 30
"""
Cells of a field from which on 32 bits may be too few for the number of a cell in or around the
field.
"""


def index_width(geometry: Geometry) -> IntegerType:
    """The integer type for numbers of cells of every field: 32 bits if enough."""
    largest = max(
        FieldShape.of(argument).cells
        for argument, role in zip(geometry.kernel.body.block.args, geometry.kernel.roles)
        if not role.kind.data.is_number
    )
    return i32 if largest < WIDE_FIELD else i64


def plane_base(emit: Emitter, geometry: Geometry, thread: Thread, shape: FieldShape) -> SSAValue:
    """
    The number, in a field of the given shape, of the thread's first own cell in plane 0 of the
    program's coordinates. Without a stream axis: in the whole tile.
    """
    width = index_width(geometry)
    constant = -sum(low * stride for low, stride in zip(shape.lower, shape.strides))
    along_axes = (
        emit.mul_int(emit.extend(axis.coordinate, width), shape.strides[axis.axis])
        for axis in thread.axes
    )
    return emit.add_int(reduce(emit.add_int, along_axes), constant)


def as_index(emit: Emitter, value: SSAValue) -> SSAValue:
    """A 32-bit coordinate as an `index`, the type of coordinates in cell functions."""
    return emit.add(arith.IndexCastOp(value, IndexType())).result
