"""Sending and taking edges between the blocks of a tile held by the device: rows, or layers of rows
in volumes, sent by all warps at the block's edge.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from xdsl.dialects import arith, gpu, scf
from xdsl.ir import Attribute, Block, SSAValue

from timetile.dialects import simt
from timetile.lowering.emitter import Emitter
from timetile.lowering.tile_to_gpu.columns import post_columns, take_columns
from timetile.lowering.tile_to_gpu.message_buffers import Message, MessageSlots
from timetile.lowering.tile_to_gpu.message_places import message_number, message_slot
from timetile.lowering.tile_to_gpu.queues import ExchangePlan, Plane, ReceivedEdge, RimPlanes
from timetile.lowering.tile_to_gpu.rings import add_offsets
from timetile.lowering.tile_to_gpu.scopes import StepScope, VariantScope, once
from timetile.lowering.tile_to_gpu.thread import block_beside
from timetile.passes.analysis.geometry.borders import BlockDirection, along_first
from timetile.passes.analysis.geometry.plane_geometry import Row, vector_cells

SIDES = (-1, 1)
"""The blocks before and after."""


def sides(step: StepScope) -> tuple[int, ...]:
    """The sides on which blocks lie along the first axis."""
    return SIDES if step.code.layout.axis_layouts[0].blocks > 1 else ()


def along(step: StepScope, side: int) -> BlockDirection:
    """The direction of the block on a side along the first axis."""
    return along_first(side, len(step.code.geometry.axes))


def edge_warp(step: StepScope, side: int) -> int:
    """The number, along the first axis, of the warps at the block's edge on a side."""
    return 0 if side < 0 else step.code.geometry.axes[0].layout.warps - 1


@once
def block_edge(variant: VariantScope, side: int, warp: int) -> SSAValue:
    """
    The thread's warp has the given number along the first axis, at the block's edge on a side, and
    the tile continues there in another block.
    """
    emit, layout, thread = variant.emit, variant.code.layout, variant.code.thread
    _, there = block_beside(emit, thread, side, layout)
    _, place = emit.split(thread.warp_in_block, layout.edge_warps)
    return emit.binary(arith.AndIOp, there, emit.compare("eq", place, warp))


@dataclass(frozen=True)
class Edge:
    """An edge to take: where the edge goes, and the offset of the slot in the message buffer."""

    exchange: ExchangePlan
    received: ReceivedEdge
    offset: int

    @property
    def places(self) -> list[int]:
        """Where a lane's cells begin, row by row."""
        slots = self.received.slots
        return [at for row in range(slots.rows) for at in slots.places(self.offset, row)]


def write_message(
    step: StepScope, slots: MessageSlots, plane: Plane, row: Row, target: int
) -> None:
    """Add an edge row, the `target`-th of both edges, to the message for the block on its side."""
    edge = slots.rows
    side, number = (-1, target) if target < edge else (1, target - edge)
    slot = message_slot(step, slots, 0)
    key = (side, slots.element, slots.words, slot.index)
    message = step.messages.setdefault(key, Message())
    message.cells += [plane[*row, cell] for cell in range(step.code.cells)]
    message.places += slots.places(slot.offset, number)


def post_messages(step: StepScope) -> None:
    """Send the step's messages: a branch for each side, taken by the warps at the edge."""
    buffers = step.code.placement.message_buffers
    if buffers is None:
        return
    for side in sides(step):
        number = message_number(step, buffers, 0)
        block = Block()
        emit = step.emit.into(block)
        for (to, _, words, slot), message in step.messages.items():
            if to == side:
                index = add_offsets(emit, buffers.posted[along(step, side), words], slot)
                emit.add(simt.PostOp(message.cells, buffers.buffer, index, message.places, number))
        block.add_op(scf.YieldOp())
        there = block_edge(step.variant, side, edge_warp(step, side))
        step.emit.add(scf.IfOp(there, [], [block]))
    step.messages.clear()
    post_columns(step)


def take_messages(step: StepScope, exchanges: Iterable[ExchangePlan]) -> None:
    """
    Take the messages of some exchanges for this step. An edge goes beside the edges of the block's
    own warps, and is read like the edge of another warp; or around the block's plane, for all warps
    after a synchronisation.
    """
    buffers = step.code.placement.message_buffers
    if buffers is None:
        return
    exchanges = list(exchanges)
    for side in sides(step):
        block = Block()
        emit = step.emit.into(block)
        for (delay, element, words, slot), edges in expected_edges(step, exchanges).items():
            index = add_offsets(emit, buffers.taken[along(step, side), words], slot)
            places = [at for edge in edges for at in edge.places]
            types = [element] * len(places)
            number = message_number(step, buffers, delay)
            take = emit.add(simt.TakeOp(buffers.buffer, index, places, number, types))
            cells = iter(take.cells)
            for edge in edges:
                put_beside(step, emit, edge, side, cells)
        block.add_op(scf.YieldOp())
        there = block_edge(step.variant, side, edge_warp(step, side))
        step.emit.add(scf.IfOp(there, [], [block]))
    take_columns(step, exchanges)
    if any(exchange.rim is not None for exchange in exchanges):
        # Around a plane, lanes read cells written by other lanes of the warp or block.
        if step.code.takes_for_others:
            step.emit.add(gpu.BarrierOp())
        else:
            step.synchronise_warp()


Expected = dict[tuple[int, Attribute, int, SSAValue | None], list[Edge]]
"""Edges of a message, by delay, type, words of a cell, and the slot's index."""


def expected_edges(step: StepScope, exchanges: Iterable[ExchangePlan]) -> Expected:
    """The edges sent by the blocks beside for this step."""
    expected: Expected = {}
    for exchange in exchanges:
        if (received := exchange.received) is not None:
            slots, delay = received.slots, exchange.delay
            slot = message_slot(step, slots, delay)
            key = (delay, slots.element, slots.words, slot.index)
            expected.setdefault(key, []).append(Edge(exchange, received, slot.offset))
    return expected


def put_around(
    step: StepScope, emit: Emitter, rim: RimPlanes, side: int, cells: Iterator[SSAValue]
) -> None:
    """Write received rows around the block's plane."""
    plane = rim.plane
    slot = step.slot(plane.ring, rim.age, plane.base)
    index = add_offsets(emit, plane.own, slot.index)
    vector = vector_cells(step.code.cells, plane.element)
    for row in rim.rows(step.code.geometry, side):
        for start in range(0, step.code.cells, vector):
            group = [next(cells) for _ in range(vector)]
            at = slot.offset + plane.offset((*row, start))
            emit.add(simt.StoreOp(group, plane.ring.buffer, index, at))


def put_beside(
    step: StepScope, emit: Emitter, edge: Edge, side: int, cells: Iterator[SSAValue]
) -> None:
    """Write a received edge to the place of the edge of the warp beside."""
    buffer = edge.received.place
    if isinstance(buffer, RimPlanes):
        put_around(step, emit, buffer, side, cells)
        return
    slot = step.slot(buffer.ring, edge.exchange.delay, buffer.base)
    index = add_offsets(emit, buffer.own, slot.index)
    vector = vector_cells(step.code.cells, buffer.element)
    for row in range(buffer.edges.width):
        number = row - buffer.edges.width if side < 0 else 2 * buffer.edges.width + row
        for start in range(0, step.code.cells, vector):
            group = [next(cells) for _ in range(vector)]
            at = slot.offset + number * buffer.edges.row_cells + start
            emit.add(simt.StoreOp(group, buffer.ring.buffer, index, at))
