"""Where a thread stands: its tile, its cells, its chunk of planes, and the masks that follow."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerType, i32, i64
from xdsl.dialects.gpu import BlockIdOp, DimensionAttr, DimensionEnum, ThreadIdOp
from xdsl.ir import SSAValue

from timetile.dialects import simt
from timetile.dialects.tile_attributes import LANES, LayoutAttr, VariantAttr
from timetile.lowering.emitter import Emitter
from timetile.passes.analysis.geometry import FieldShape, Geometry


@dataclass(frozen=True)
class ThreadAxis:
    """One in-plane axis from a thread's point of view; coordinates are of its first own cell."""

    axis: int
    cells: int
    in_tile: SSAValue
    """Position in the tile."""
    in_block: SSAValue
    """Position in the part of the tile that the block holds."""
    coordinate: SSAValue
    """Position in the program."""
    warp: SSAValue | None
    """Number of the warp along this axis, where the tile has several."""


@dataclass(frozen=True)
class Turn:
    """
    Which tile blocks hold now that take one after the other: its number, that of their first one, and the
    steps of those before.
    """

    held: SSAValue
    tile: SSAValue
    said: SSAValue


@dataclass(frozen=True)
class Thread:
    """A thread's place. `first` and `last` bound the planes of its chunk, in program coordinates."""

    axes: tuple[ThreadAxis, ...]
    lane: SSAValue
    warp_in_block: SSAValue
    first: SSAValue
    last: SSAValue
    rank: SSAValue | None
    """Number of the block among those of the tile, where there are several."""
    turn: Turn | None
    """Which tile it is, where blocks take one after the other."""
    valid: SSAValue | None
    """Off where the block has more warps than there are tiles left; None where that cannot be."""

    @property
    def said(self) -> SSAValue | None:
        """Steps of the block's tiles before this one, where it takes one after the other."""
        return None if self.turn is None else self.turn.said


def place_thread(
    emit: Emitter,
    geometry: Geometry,
    turn: Turn | None = None,
) -> Thread:
    """
    Emit the computation of a thread's place from its block and thread numbers; where blocks take one tile
    after the other, from which one it is.
    """
    kernel = geometry.kernel
    assert kernel.layout is not None
    number = emit.add(ThreadIdOp(DimensionAttr(DimensionEnum.X))).result
    thread = emit.add(arith.IndexCastOp(number, i32)).result
    block = block_number(emit)
    lane = emit.binary(arith.AndIOp, thread, emit.int(LANES - 1))
    warp = emit.binary(arith.ShRUIOp, thread, emit.int(LANES.bit_length() - 1))
    warp = emit.add(simt.UniformOp(warp)).result
    tile, valid = block, None
    pack = kernel.layout.pack.data
    tiles = geometry.tiles
    rank: SSAValue | None = None
    if kernel.layout.blocks > 1:
        rank, tile = split(emit, block, kernel.layout.blocks)
    if turn is not None:
        tile = turn.tile
    if pack > 1:
        tile = emit.add_int(emit.mul_int(block, pack), warp)
        if tiles % pack:
            valid = emit.compare("ult", tile, tiles)
    column, first, last = place_chunk(emit, geometry, tile)
    axes: list[ThreadAxis] = []
    inner_warp, inner_rank = warp if pack == 1 else None, rank
    for tiling in reversed(geometry.axes):
        number, column = split(emit, column, tiling.count)
        along: SSAValue | None = None
        if tiling.layout.warps > 1:
            assert inner_warp is not None
            along, inner_warp = split(emit, inner_warp, tiling.layout.warps)
        position = emit.int(0)
        if tiling.layout.lanes > 1:
            position = emit.mul_int(lane, tiling.layout.cells)
        if along is not None:
            stride = tiling.layout.cells * tiling.layout.lanes
            position = emit.add_int(position, emit.mul_int(along, stride))
        in_block = position
        if tiling.layout.blocks > 1:
            assert inner_rank is not None
            place, inner_rank = split(emit, inner_rank, tiling.layout.blocks)
            position = emit.add_int(position, emit.mul_int(place, tiling.layout.block_extent))
        start = emit.add_int(emit.mul_int(number, tiling.useful), tiling.origin)
        coordinate = emit.add_int(start, position)
        axes.insert(
            0,
            ThreadAxis(tiling.axis, tiling.layout.cells, position, in_block, coordinate, along),
        )
    return Thread(tuple(axes), lane, warp, first, last, rank, turn, valid)


def block_number(emit: Emitter) -> SSAValue:
    """The number of the block in the launch."""
    number = emit.add(BlockIdOp(DimensionAttr(DimensionEnum.X))).result
    return emit.add(arith.IndexCastOp(number, i32)).result


def tile_of_block(emit: Emitter, layout: LayoutAttr) -> SSAValue:
    """The number of the block's tile among those of the launch."""
    return split(emit, block_number(emit), layout.blocks)[1]


def chunk_steps(emit: Emitter, geometry: Geometry, first: SSAValue, last: SSAValue) -> SSAValue:
    """The stream steps of a chunk of planes, in whole turns of the unrolled loop; 1 without a stream."""
    if geometry.kernel.stream_axis is None:
        return emit.int(1)
    around = geometry.drain + geometry.fill + geometry.period - 1
    return whole_turns(emit, geometry, emit.add_int(emit.sub_int(last, first), around))


def whole_turns(emit: Emitter, geometry: Geometry, distance: SSAValue) -> SSAValue:
    """Steps of the whole turns of the unrolled loop that fit a distance, none for a negative one."""
    period = geometry.period
    distance = emit.binary(arith.MaxSIOp, distance, emit.int(0))
    count = emit.binary(arith.DivUIOp, distance, emit.int(period)) if period > 1 else distance
    return emit.mul_int(count, period)


def block_beside(
    emit: Emitter, thread: Thread, side: int, layout: LayoutAttr
) -> tuple[SSAValue, SSAValue]:
    """The block before (-1) or after (1) in the tile, by its rank, and whether there is one."""
    assert thread.rank is not None
    beside = emit.add_int(thread.rank, side)
    return beside, emit.compare("ult", beside, layout.blocks)


def dealt(emit: Emitter, thread: Thread, width: int) -> Thread:
    """
    The thread where vectors of `width` cells of its warp's row are dealt to the lanes one after the
    other: what a warp accesses at once then lies together, however narrow an access must be.
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


def split(emit: Emitter, number: SSAValue, count: int) -> tuple[SSAValue, SSAValue]:
    """The number modulo `count`, and divided by it."""
    if count == 1:
        return emit.int(0), number
    divisor = emit.int(count)
    return (
        emit.binary(arith.RemUIOp, number, divisor),
        emit.binary(arith.DivUIOp, number, divisor),
    )


def place_chunk(
    emit: Emitter, geometry: Geometry, tile: SSAValue
) -> tuple[SSAValue, SSAValue, SSAValue]:
    """
    The column of tiles, and the planes, that a tile number stands for: the chunks of the columns on the
    rim and those inside it follow each other as the kernel's variants do, and so do the columns of either kind.
    """
    kernel = geometry.kernel
    if kernel.stream_axis is None:
        return tile, emit.int(0), emit.int(1)
    low, high = geometry.lower[kernel.stream_axis], geometry.upper[kernel.stream_axis]
    variants = geometry.used_variants
    counts = [axis.count for axis in geometry.axes]
    kinds = {variant.is_interior for variant in variants}

    def place(
        tiles_before: int, columns_before: int, variant: VariantAttr
    ) -> tuple[SSAValue, SSAValue, SSAValue]:
        # Of tiles of the variants before it is a negative number, and nobody takes what follows from it.
        planes, number = variant.planes.data, emit.add_int(tile, -tiles_before)
        column, chunk = split(emit, number, geometry.columns(variant))
        column = emit.add_int(column, columns_before)
        if len(kinds) > 1:
            numbered = inner_column if variant.is_interior else rim_column
            column = numbered(emit, column, counts)
        start = emit.add_int(emit.mul_int(chunk, planes), low)
        return column, start, emit.add_int(start, planes)

    before, passed = 0, {False: 0, True: 0}
    column, start, end = place(before, 0, variants[0])
    for former, variant in pairwise(variants):
        before += geometry.variant_tiles(former)
        passed[former.is_interior] += geometry.columns(former)
        is_before = emit.compare("ult", tile, before)
        later = place(before, passed[variant.is_interior], variant)
        column, start, end = (
            emit.select(is_before, *places) for places in zip((column, start, end), later)
        )
    end = emit.binary(arith.MinSIOp, end, emit.int(high))
    return column, start, end


def rim_column(emit: Emitter, number: SSAValue, counts: list[int]) -> SSAValue:
    """
    The column that a number among those of the rim stands for: with one axis its two ends, with two
    the first row, the last row, then the two ends of the rows between.
    """
    if len(counts) == 1:
        return emit.mul_int(number, counts[0] - 1)
    rows, columns = counts
    side, row = split(emit, emit.add_int(number, -2 * columns), 2)
    between = emit.mul_int(emit.add_int(row, 1), columns)
    between = emit.add_int(between, emit.mul_int(side, columns - 1))
    last = emit.add_int(number, (rows - 2) * columns)
    in_last = emit.compare("ult", number, 2 * columns)
    beyond = emit.select(in_last, last, between)
    return emit.select(emit.compare("ult", number, columns), number, beyond)


def inner_column(emit: Emitter, number: SSAValue, counts: list[int]) -> SSAValue:
    """The column that a number among those inside the rim stands for."""
    if len(counts) == 1:
        return emit.add_int(number, 1)
    column, row = split(emit, number, counts[1] - 2)
    moved = emit.mul_int(emit.add_int(row, 1), counts[1])
    return emit.add_int(emit.add_int(moved, column), 1)


def is_interior(emit: Emitter, geometry: Geometry, thread: Thread) -> SSAValue | None:
    """
    A mask, the same for all threads of a block: nothing that the block touches lies outside the bounds
    along an in-plane axis, nor in the overlap that the outermost tiles store. None where that holds for no
    block.
    """
    masks: list[SSAValue] = []
    for tiling, axis, pad in zip(geometry.axes, thread.axes, geometry.margins):
        inner = tiling.inner_cells
        low = max(geometry.lower[tiling.axis] + pad, inner.start)
        high = min(geometry.upper[tiling.axis] - pad, inner.stop)
        extent = tiling.layout.block_extent
        if high - low < extent:
            return None
        start = emit.sub_int(axis.coordinate, axis.in_block)
        masks.append(emit.compare("sge", start, low))
        masks.append(emit.compare("sle", start, high - extent))
    return emit.all_of(masks)


WIDE_FIELD = 1 << 30
"""Cells of a field from which 32 bits may not number a cell and what lies around it."""


def index_width(geometry: Geometry) -> IntegerType:
    """The integer that numbers the cells of every field: 32 bits wherever they suffice."""
    largest = max(
        FieldShape.of(argument).cells
        for argument, role in zip(geometry.kernel.body.block.args, geometry.kernel.roles)
        if role.role[0] != "scalar"
    )
    return i32 if largest < WIDE_FIELD else i64


def plane_base(emit: Emitter, geometry: Geometry, thread: Thread, shape: FieldShape) -> SSAValue:
    """
    The number, in a field of this shape, of the thread's first own cell of plane 0 of the program's
    coordinates (of the whole tile where there is no stream axis).
    """
    width = index_width(geometry)
    total: SSAValue | None = None
    constant = -sum(low * stride for low, stride in zip(shape.lower, shape.strides))
    for axis in thread.axes:
        coordinate = emit.extend(axis.coordinate, width)
        term = emit.mul_int(coordinate, shape.strides[axis.axis])
        total = term if total is None else emit.add_int(total, term)
    assert total is not None
    return emit.add_int(total, constant)


def as_index(emit: Emitter, value: SSAValue) -> SSAValue:
    """A 32-bit coordinate as the `index` that cell functions take."""
    return emit.add(arith.IndexCastOp(value, IndexType())).result
