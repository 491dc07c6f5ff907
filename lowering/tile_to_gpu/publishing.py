"""The code that hands planes and edges to the other warps of a tile."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import scf
from xdsl.ir import Block, SSAValue

from timetile.dialects import simt
from timetile.dialects.tile import LANES
from timetile.lowering.tile_to_gpu.fields import within
from timetile.lowering.tile_to_gpu.messages import block_edge, write_message
from timetile.lowering.tile_to_gpu.queues import (
    CopiedPlane,
    EdgeBuffer,
    EdgeMessage,
    ExchangePlan,
    Plane,
    PublishedPlane,
    PublishedRing,
    RimPlanes,
    SharedPlane,
)
from timetile.lowering.tile_to_gpu.reading import own_plane, rows_of
from timetile.lowering.tile_to_gpu.rings import add_offsets
from timetile.lowering.tile_to_gpu.scopes import StepScope, StreamStep, step_number
from timetile.passes.analysis.geometry.plane_geometry import Row, vector_cells


def write_plane(step: StepScope, shared: SharedPlane, plane: Plane) -> None:
    """Write the thread's own cells to this step's slot."""
    slot = step.slot(shared.ring, 0, shared.base)
    index = add_offsets(step.emit, shared.own, slot.index)
    width = vector_cells(step.code.cells, shared.element)
    for row in step.code.rows:
        for start in range(0, step.code.cells, width):
            cells = [plane[*row, start + k] for k in range(width)]
            offset = slot.offset + shared.offset((*row, start))
            step.emit.add(simt.StoreOp(cells, shared.ring.buffer, index, offset))


def publish(step: StepScope, number: int, exchange: ExchangePlan) -> None:
    """Write what neighbours will read."""
    published, source = exchange.published, exchange.source
    match published:
        case CopiedPlane():
            pass
        case PublishedRing():
            # Threads of the block read the ring: only rows for other blocks are sent.
            step.mark(number, 0)
            rows = edge_rows(step, published.rim)
            send_rows(step, published.rim, rows_of(step, source, exchange.hold, rows))
            send_columns(step, exchange)
        case PublishedPlane():
            plane = own_plane(step, source, exchange.hold)
            step.mark(number, 0)
            write_plane(step, published.plane, plane)
            send_rows(step, published.rim, plane)
            send_columns(step, exchange)
        case EdgeBuffer():
            plane = own_plane(step, source, exchange.hold)
            slot = step.slot(published.ring, 0, published.base)
            index = add_offsets(step.emit, published.own, slot.index)
            write = publish_rows if published.edges.along_rows else publish_cells
            write(step, number, plane, EdgeSlot(published, index, slot.offset))


def edge_rows(step: StepScope, rim: RimPlanes | None) -> list[Row]:
    """The warp's first and last rows read by the blocks beside, rows for the block before first."""
    if rim is None or rim.slots is None:
        return []
    return [*step.code.rows[: rim.slots.rows], *step.code.rows[-rim.slots.rows :]]


def send_rows(step: StepScope, rim: RimPlanes | None, plane: Plane) -> None:
    """Add the edge rows of a plane to the messages for the blocks beside."""
    if rim is not None and rim.slots is not None:
        for target, row in enumerate(edge_rows(step, rim)):
            write_message(step, rim.slots, plane, row, target)


def send_columns(step: StepScope, exchange: ExchangePlan) -> None:
    """Let the columns of an exchange be sent with the step's messages."""
    if exchange.rim is not None and exchange.rim.columns:
        step.leaving.append(exchange)


@dataclass(frozen=True)
class EdgeSlot:
    """A step's slot of an edge buffer: `index + offset` is the warp's first edge cell."""

    buffer: EdgeBuffer
    index: SSAValue | None
    offset: int


def publish_rows(step: StepScope, number: int, plane: Plane, slot: EdgeSlot) -> None:
    """Publish the first and the last rows of the warp, all lanes."""
    buffer, rows = slot.buffer, step.code.rows
    width = vector_cells(step.code.cells, buffer.element)
    edge = range(buffer.edges.width)
    slots = [(k, k) for k in edge]
    slots += [(len(rows) - buffer.edges.width + k, buffer.edges.width + k) for k in edge]
    for line, target in slots:
        row = rows[line]
        step.mark(number, line)
        if buffer.slots is not None:
            write_message(step, buffer.slots, plane, row, target)
        for start in range(0, step.code.cells, width):
            cells = [plane[*row, start + k] for k in range(width)]
            at = slot.offset + target * buffer.edges.row_cells + start
            step.emit.add(simt.StoreOp(cells, buffer.ring.buffer, slot.index, at))
            for beside, peer in buffer.peers:
                if (target < buffer.edges.width) == (beside.side < 0):
                    message = EdgeMessage(beside, peer, cells, slot.index, at + beside.shift)
                    step.outgoing.setdefault(beside.side, []).append(message)


def send_outgoing(step: StreamStep) -> None:
    """
    Write the step's edges to the blocks beside: a branch for each side, taken by the warps at the
    edge.
    """
    for side, outgoing in step.outgoing.items():
        arrivals, phase = step.code.placement.peer_arrivals[side], step_number(step, 0)
        block = Block(
            simt.SendOp(m.cells, m.peer, m.index, m.at, None, arrivals, phase) for m in outgoing
        )
        block.add_op(scf.YieldOp())
        edge = outgoing[0].edge
        there = block_edge(step.variant, edge.side, edge.warp)
        step.emit.add(scf.IfOp(there, [], [block]))
    step.outgoing.clear()


def publish_cells(step: StepScope, number: int, plane: Plane, slot: EdgeSlot) -> None:
    """Publish the warp's first and last cells, each by the lane with the cell."""
    buffer, [row] = slot.buffer, step.code.rows
    step.mark(number, 0)
    moved = add_offsets(step.emit, slot.index, buffer.lane_position)
    warp_cells = step.code.cells * LANES
    for cell in range(step.code.cells):
        for low, high, target in (
            (0, buffer.edges.width, cell),
            (
                warp_cells - buffer.edges.width,
                warp_cells,
                cell - warp_cells + 2 * buffer.edges.width,
            ),
        ):
            mask = lane_between(step, buffer.lane_position, cell, low, high)
            if mask is not None:
                cells, to = [plane[*row, cell]], slot.offset + target
                step.emit.add(simt.StoreOp(cells, buffer.ring.buffer, moved, to, mask))


def lane_between(
    step: StepScope, position: SSAValue, cell: int, low: int, high: int
) -> SSAValue | None:
    """The lane's cell lies in [low, high) of its warp; None where no lane's does."""
    if not any(low <= lane * step.code.cells + cell < high for lane in range(LANES)):
        return None
    return within(step.variant, position, cell, low, high)
