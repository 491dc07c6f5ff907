"""The code that hands planes and edges to the other warps of a tile."""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.ir import Block, SSAValue

from timetile.dialects import simt
from timetile.dialects.tile import ExchangeOp
from timetile.lowering.tile_to_gpu.messages import write_letter
from timetile.lowering.tile_to_gpu.planes import EdgeMail, Parcel, Plane, Queue, SharedPlane
from timetile.lowering.tile_to_gpu.rings import add_offsets
from timetile.lowering.tile_to_gpu.variant import Variant
from timetile.passes.analysis.geometry.plane_geometry import Row, vector_cells


def write_plane(v: Variant, shared: SharedPlane, plane: Plane, base: int) -> None:
    """Write the thread's own cells to this step's slot."""
    slot = shared.ring.slot(v.body, v.count, v.turn, 0, base)
    index = add_offsets(v.body, shared.own, slot.index)
    width = vector_cells(v.cells, shared.element)
    for row in v.rows:
        for start in range(0, v.cells, width):
            cells = [plane[*row, start + k] for k in range(width)]
            offset = slot.offset + shared.offset((*row, start))
            v.body.add(simt.StoreOp(cells, shared.ring.buffer, index, offset))


def publish(v: Variant, number: int, stage: ExchangeOp) -> None:
    """Write what neighbours will read."""
    queue = v.queues[stage.result]
    assert queue.source is not None
    if queue.copied:
        return
    if queue.source.shared is not None:
        # Inside the block the ring is read.
        v.mark(number, 0)
        send_rows(v, queue, ring_rows(v, queue.source, queue.hold, edge_rows(v, queue)))
        return
    plane = queue.source.planes[queue.hold]
    if queue.shared is not None:
        v.mark(number, 0)
        write_plane(v, queue.shared, plane, 0)
        send_rows(v, queue, plane)
        return
    mail = queue.mail
    assert mail is not None
    slot = mail.ring.slot(v.body, v.count, v.turn, 0, 0)
    index = add_offsets(v.body, mail.own, slot.index)
    if mail.along_rows:
        publish_rows(v, number, mail, plane, index, slot.offset)
    else:
        publish_cells(v, number, mail, plane, index, slot.offset)


def edge_rows(v: Variant, queue: Queue) -> list[Row]:
    """The first and the last rows of the warp that the blocks beside read, those for the block before first."""
    if queue.rim is None:
        return []
    edge = queue.rim.letters.rows
    return [*v.rows[:edge], *v.rows[-edge:]]


def ring_rows(v: Variant, queue: Queue, age: int, rows: list[Row]) -> Plane:
    """The thread's own cells of some rows of a plane of some age, which is in shared memory."""
    own = [(*row, k) for row in rows for k in range(v.cells)]
    return {at: v.reader.raw(queue, age, at) for at in own}


def send_rows(v: Variant, queue: Queue, plane: Plane) -> None:
    """Add the edge rows of a plane to the messages for the blocks beside."""
    for target, row in enumerate(edge_rows(v, queue)):
        assert queue.rim is not None
        write_letter(v, queue.rim.letters, plane, row, target)


def publish_rows(
    v: Variant, number: int, mail: EdgeMail, plane: Plane, index: SSAValue | None, offset: int
) -> None:
    """The first and the last rows of the warp, all lanes."""
    width = vector_cells(v.cells, mail.element)
    edge = range(mail.width)
    slots = [(k, k) for k in edge]
    slots += [(len(v.rows) - mail.width + k, mail.width + k) for k in edge]
    for line, target in slots:
        row = v.rows[line]
        v.mark(number, line)
        if mail.letters is not None:
            write_letter(v, mail.letters, plane, row, target)
        for start in range(0, v.cells, width):
            cells = [plane[*row, start + k] for k in range(width)]
            at = offset + target * mail.row_cells + start
            v.body.add(simt.StoreOp(cells, mail.ring.buffer, index, at))
            for edge, peer in mail.peers:
                if (target < mail.width) == (edge.side < 0):
                    v.outgoing.setdefault(edge.side, []).append(
                        Parcel(edge, peer, cells, index, at + edge.shift)
                    )


def send_outgoing(v: Variant) -> None:
    """
    Write what was published at the block's edges to the blocks beside it: one branch a side, which the
    warps take that lie there.
    """
    for side, parcels in v.outgoing.items():
        arrivals, phase = v.placement.peer_arrivals[side], v.phase(0)
        block = Block(
            simt.SendOp(p.cells, p.peer, p.index, p.at, None, arrivals, phase) for p in parcels
        )
        block.add_op(scf.YieldOp())
        edge = parcels[0].edge
        v.body.add(scf.IfOp(v.block_edge(edge.side, edge.warp), [], [block]))
    v.outgoing.clear()


def publish_cells(
    v: Variant, number: int, mail: EdgeMail, plane: Plane, index: SSAValue | None, offset: int
) -> None:
    """The first and the last cells of the warp, by the lanes that hold them."""
    assert mail.lane_position is not None
    v.mark(number, 0)
    moved = add_offsets(v.body, index, mail.lane_position)
    warp_cells = v.cells * 32
    for cell in range(v.cells):
        for low, high, target in (
            (0, mail.width, cell),
            (warp_cells - mail.width, warp_cells, cell - warp_cells + 2 * mail.width),
        ):
            mask = lane_between(v, mail.lane_position, cell, low, high)
            if mask is not None:
                op = simt.StoreOp([plane[(cell,)]], mail.ring.buffer, moved, offset + target, mask)
                v.body.add(op)


def lane_between(v: Variant, position: SSAValue, cell: int, low: int, high: int) -> SSAValue | None:
    """The lane's cell lies in [low, high) of its warp; None where no lane's does."""
    if not any(low <= lane * v.cells + cell < high for lane in range(32)):
        return None

    return v.within(position, cell, low, high)
