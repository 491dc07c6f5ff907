"""Sending and taking columns and corners between the blocks of a tile that lie along several axes.

A column lies across the rows of a plane in shared memory. The lanes of one warp gather its cells, a
cell each, so that the words of the message lie in a row (the transposition of EBISU, section
4.1). The warp that posts in a direction takes from the direction, too, lane by lane: a lane hears
from the lane of equal number beside that a message was taken. Lanes without a cell send the last
cell again, and write nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, gpu, scf
from xdsl.ir import Attribute, Block, SSAValue

from timetile.dialects import simt
from timetile.dialects.tile import LANES
from timetile.lowering.emitter import Emitter
from timetile.lowering.tile_to_gpu.message_buffers import Message, directions_of_columns
from timetile.lowering.tile_to_gpu.message_places import message_number, message_slot
from timetile.lowering.tile_to_gpu.queues import Column, ExchangePlan, PublishedRing, RimPlanes
from timetile.lowering.tile_to_gpu.rings import Address, add_offsets
from timetile.lowering.tile_to_gpu.scopes import StepScope, VariantScope, once
from timetile.lowering.tile_to_gpu.stored_cells import load_cells
from timetile.lowering.tile_to_gpu.thread import has_block
from timetile.passes.analysis.geometry.borders import BlockDirection, Border, direction_back


@once
def sends_towards(variant: VariantScope, direction: BlockDirection, number: int) -> SSAValue | None:
    """A mask: this is the warp that sends in a direction, and the tile has a block there."""
    emit, code = variant.emit, variant.code
    there = has_block(emit, code.thread, direction, code.layout)
    if code.layout.warps == 1:
        return there
    own = emit.compare("eq", code.thread.warp_in_block, number % code.layout.warps)
    return emit.all_of([there, own])


@once
def lane_cell(
    variant: VariantScope, shape: tuple[int, ...], strides: tuple[int, ...], group: int
) -> SSAValue:
    """
    The distance, in a plane of shared memory, from a border's first cell to the lane's cell. Lanes
    have the cells of `shape` row by row; `group` counts the warps of cells before.
    """
    emit, number = variant.emit, variant.emit.add_int(variant.code.thread.lane, group * LANES)
    cells = Border((1,) * len(shape), shape, shape).cells
    if (group + 1) * LANES > cells:
        number = emit.binary(arith.MinSIOp, number, emit.int(cells - 1))
    distance = emit.int(0)
    for extent, stride in reversed(list(zip(shape, strides, strict=True))):
        place, number = emit.split(number, extent)
        distance = emit.add_int(distance, emit.mul_int(place, stride))
    return distance


@once
def has_cell(variant: VariantScope, cells: int, group: int) -> SSAValue | None:
    """A mask: the lane has a cell, `group` warps of cells into a border; None if all lanes have."""
    left = cells - group * LANES
    return None if left >= LANES else variant.emit.compare("slt", variant.code.thread.lane, left)


@dataclass(frozen=True)
class LaneCells:
    """A lane's cells of a border, in a plane's slot: inside the block, or received from beyond."""

    step: StepScope
    column: Column
    rim: RimPlanes
    slot: Address

    def places(self, first: Sequence[int], emit: Emitter) -> Iterator[tuple[SSAValue | None, int]]:
        """Index and constant offset of each cell; `first` is the border's first cell."""
        plane, border = self.rim.plane, self.column.border
        offset = self.slot.offset + plane.layout.first + plane.offset(tuple(first))
        for group in range(self.column.slots.cells):
            lane = lane_cell(self.step.variant, border.shape, plane.layout.strides, group)
            yield add_offsets(emit, lane, self.slot.index), offset


def synchronise_block(step: StepScope) -> None:
    """Wait until all warps of the block have written their cells."""
    if step.code.layout.warps == 1:
        step.synchronise_warp()
    else:
        step.emit.add(gpu.BarrierOp())


def post_columns(step: StepScope) -> None:
    """Send the columns of the exchanges published in this step."""
    buffers = step.code.placement.message_buffers
    if buffers is None or not step.leaving:
        return
    synchronise_block(step)
    number = message_number(step, buffers, 0)
    for count, direction in enumerate(directions_of_columns(step.code.kernel)):
        block = Block()
        emit = step.emit.into(block)
        messages: dict[tuple[Attribute, int, SSAValue | None], Message] = {}
        for exchange, rim in with_column(step.leaving, direction):
            # For the block beside, the message comes from the opposite direction.
            slots = rim.column(direction_back(direction)).slots
            slot = message_slot(step, slots, 0)
            key = slots.element, slots.words, slot.index
            message = messages.setdefault(key, Message())
            message.cells += gathered(step, emit, exchange, rim, direction)
            message.places += rim.column(direction_back(direction)).places(slot.offset)
        for (_, words, slot), message in messages.items():
            index = add_offsets(emit, buffers.posted[direction, words], slot)
            emit.add(simt.PostOp(message.cells, buffers.buffer, index, message.places, number))
        branch(step, block, direction, count)
    step.leaving.clear()


def with_column(
    exchanges: Iterable[ExchangePlan], direction: BlockDirection
) -> Iterator[tuple[ExchangePlan, RimPlanes]]:
    """The exchanges that send a column in a direction, each with the planes around the column."""
    for exchange in exchanges:
        rim = exchange.rim
        if rim is not None and any(c.border.direction == direction for c in rim.columns):
            yield exchange, rim


def branch(step: StepScope, block: Block, direction: BlockDirection, number: int) -> None:
    """Run a block by the warp that sends and takes in a direction, if a block lies there."""
    if block.is_empty:
        return
    block.add_op(scf.YieldOp())
    mask = sends_towards(step.variant, direction, number)
    assert mask is not None
    step.emit.add(scf.IfOp(mask, [], [block]))


def gathered(
    step: StepScope,
    emit: Emitter,
    exchange: ExchangePlan,
    rim: RimPlanes,
    direction: BlockDirection,
) -> list[SSAValue]:
    """The lane's cells of a border, read from the plane that the block has published."""
    column, plane = rim.column(direction), rim.plane
    age = exchange.hold if isinstance(exchange.published, PublishedRing) else 0
    cells = LaneCells(step, column, rim, step.slot(plane.ring, age, plane.base))
    return [
        load_cells(emit, plane.ring.buffer, index, offset, [plane.element])[0]
        for index, offset in cells.places(column.border.first, emit)
    ]


def take_columns(step: StepScope, exchanges: Sequence[ExchangePlan]) -> None:
    """Take the columns of some exchanges for this step, and write the cells around the planes."""
    buffers = step.code.placement.message_buffers
    if buffers is None:
        return
    for count, direction in enumerate(directions_of_columns(step.code.kernel)):
        block = Block()
        emit = step.emit.into(block)
        for (delay, element, words, slot), rims in expected_columns(
            step, exchanges, direction
        ).items():
            index = add_offsets(emit, buffers.taken[direction, words], slot)
            places = [at for rim, offset in rims for at in rim.column(direction).places(offset)]
            number = message_number(step, buffers, delay)
            types = [element] * len(places)
            take = emit.add(simt.TakeOp(buffers.buffer, index, places, number, types))
            cells = iter(take.cells)
            for rim, _ in rims:
                put_beyond(step, emit, rim.column(direction), rim, cells)
        branch(step, block, direction, count)


ExpectedColumns = dict[tuple[int, Attribute, int, SSAValue | None], list[tuple[RimPlanes, int]]]
"""
Planes with a column of a message, and the offset of the column's slot, by delay, type, words of a
cell, and the slot's index.
"""


def expected_columns(
    step: StepScope, exchanges: Sequence[ExchangePlan], direction: BlockDirection
) -> ExpectedColumns:
    """The columns sent from a direction for this step."""
    found: ExpectedColumns = {}
    for exchange, rim in with_column(exchanges, direction):
        slots, delay = rim.column(direction).slots, exchange.delay
        slot = message_slot(step, slots, delay)
        key = delay, slots.element, slots.words, slot.index
        found.setdefault(key, []).append((rim, slot.offset))
    return found


def put_beyond(
    step: StepScope, emit: Emitter, column: Column, rim: RimPlanes, cells: Iterator[SSAValue]
) -> None:
    """Write the received cells of a column around the block's plane."""
    plane, border = rim.plane, column.border
    lanes = LaneCells(step, column, rim, step.slot(plane.ring, rim.age, plane.base))
    for group, (index, offset) in enumerate(lanes.places(border.first_beyond, emit)):
        mask = has_cell(step.variant, border.cells, group)
        emit.add(simt.StoreOp([next(cells)], plane.ring.buffer, index, offset, mask))
