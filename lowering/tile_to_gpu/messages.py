"""
The code that sends edges between the blocks of a tile that the device holds, and takes them: rows, or in volumes
layers of them, which all warps send that lie at the block's edge.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from xdsl.dialects import arith, gpu, scf
from xdsl.ir import Attribute, Block, SSAValue

from timetile.dialects import simt
from timetile.lowering.emitter import Emitter
from timetile.lowering.tile_to_gpu.inboxes import Letters, Message
from timetile.lowering.tile_to_gpu.planes import Plane, Queue, Rim
from timetile.lowering.tile_to_gpu.rings import Address, add_offsets
from timetile.lowering.tile_to_gpu.variant import Variant
from timetile.passes.analysis.geometry.plane_geometry import Row, vector_cells

SIDES = (-1, 1)
"""The blocks before and after."""


def edge_warp(v: Variant, side: int) -> int:
    """The number, along the first axis, of the warps at the block's edge on a side."""
    return 0 if side < 0 else v.geometry.axes[0].layout.warps - 1


@dataclass(frozen=True)
class Edge:
    """An edge that is taken: of which exchange, and the offset of its slot in the inbox."""

    queue: Queue
    letters: Letters
    offset: int

    @property
    def places(self) -> list[int]:
        """Where a lane's cells begin, row by row."""
        rows = range(self.letters.rows)
        return [at for row in rows for at in self.letters.places(self.offset, row)]


def letter_slot(v: Variant, letters: Letters, age: int) -> Address:
    """
    The slot of the message that is `age` steps old. Messages are counted over all tiles that a block takes,
    so that the plane does not say which it is.
    """
    slots, words = letters.slots, letters.slot_words
    if slots == 1 or v.count is None:
        return Address(None, 0)
    if letters.fixed:
        return Address(None, (v.turn - age) % slots * words)
    key = (slots, words, age)
    if key not in v.letter_slots:
        number = v.body.add_int(v.phase(age), slots)
        slot = v.body.binary(arith.RemUIOp, number, v.body.int(slots))
        v.letter_slots[key] = v.body.mul_int(slot, words)
    return Address(v.letter_slots[key], 0)


def write_letter(v: Variant, letters: Letters, plane: Plane, row: Row, target: int) -> None:
    """Add an edge row, the `target`-th of both edges, to the message for the block on its side."""
    edge = letters.rows
    side, number = (-1, target) if target < edge else (1, target - edge)
    slot = letter_slot(v, letters, 0)
    key = (side, letters.element, letters.words, slot.index)
    message = v.messages.setdefault(key, Message())
    message.cells += [plane[*row, cell] for cell in range(v.cells)]
    message.places += letters.places(slot.offset, number)


def post_messages(v: Variant) -> None:
    """Send what was written in this step: one branch a side, which the warps at that edge take."""
    inboxes = v.placement.inboxes
    if inboxes is None:
        return
    for side in SIDES:
        number = v.message_number(0)
        block = Block()
        emit = v.body.into(block)
        for (to, _, words, slot), message in v.messages.items():
            if to == side:
                index = add_offsets(emit, inboxes.posted[side, words], slot)
                emit.add(simt.PostOp(message.cells, inboxes.buffer, index, message.places, number))
        block.add_op(scf.YieldOp())
        v.body.add(scf.IfOp(v.block_edge(side, edge_warp(v, side)), [], [block]))
    v.messages.clear()


def take_messages(v: Variant, queues: Iterable[Queue]) -> None:
    """
    Take what the blocks beside sent of some exchanges for this step, and put it beside the edges of the
    block's own warps, where the warp at the edge reads it like those of another warp; or around the block's plane,
    where others read it, too, once they have waited for each other.
    """
    inboxes = v.placement.inboxes
    if inboxes is None:
        return
    for side in SIDES:
        block = Block()
        emit = v.body.into(block)
        expected: dict[tuple[int, Attribute, int, SSAValue | None], list[Edge]] = {}
        for queue in queues:
            letters = queue.letters
            if letters is not None:
                slot = letter_slot(v, letters, queue.delay)
                key = (queue.delay, letters.element, letters.words, slot.index)
                edges = expected.setdefault(key, [])
                edges.append(Edge(queue, letters, slot.offset))
        for (delay, element, words, slot), edges in expected.items():
            index = add_offsets(emit, inboxes.taken[side, words], slot)
            places = [at for edge in edges for at in edge.places]
            types = [element] * len(places)
            number = v.message_number(delay)
            take = emit.add(simt.TakeOp(inboxes.buffer, index, places, number, types))
            cells = iter(take.cells)
            for edge in edges:
                put_beside(v, emit, edge, side, cells)
        block.add_op(scf.YieldOp())
        v.body.add(scf.IfOp(v.block_edge(side, edge_warp(v, side)), [], [block]))
    if any(queue.rim is not None for queue in queues):
        # Lanes read in the rows around a plane what others of the warp have put there, or of the block.
        if v.takes_for_others:
            v.body.add(gpu.BarrierOp())
        else:
            v.synchronise_warp()


def put_around(v: Variant, emit: Emitter, rim: Rim, side: int, cells: Iterator[SSAValue]) -> None:
    """Write rows that were taken to their places around the block's plane."""
    plane = rim.plane
    slot = plane.ring.slot(v.body, v.count, v.turn, rim.age, plane.base)
    index = add_offsets(emit, plane.own, slot.index)
    vector = vector_cells(v.cells, plane.element)
    for row in rim.rows(v.geometry, side):
        for start in range(0, v.cells, vector):
            group = [next(cells) for _ in range(vector)]
            at = slot.offset + plane.offset((*row, start))
            emit.add(simt.StoreOp(group, plane.ring.buffer, index, at))


def put_beside(v: Variant, emit: Emitter, edge: Edge, side: int, cells: Iterator[SSAValue]) -> None:
    """Write an edge that was taken to where the warp looks for that of the warp beside."""
    if edge.queue.rim is not None:
        put_around(v, emit, edge.queue.rim, side, cells)
        return
    mail = edge.queue.mail
    assert mail is not None
    slot = mail.ring.slot(v.body, v.count, v.turn, edge.queue.delay, 0)
    index = add_offsets(emit, mail.own, slot.index)
    vector = vector_cells(v.cells, mail.element)
    for row in range(mail.width):
        number = row - mail.width if side < 0 else 2 * mail.width + row
        for start in range(0, v.cells, vector):
            group = [next(cells) for _ in range(vector)]
            at = slot.offset + number * mail.row_cells + start
            emit.add(simt.StoreOp(group, mail.ring.buffer, index, at))
