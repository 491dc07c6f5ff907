"""Message buffers in global memory, for messages between the blocks of a tile held by the device.

Every block has a message buffer for each side, with slots for the edges of every exchange. A
word of 64 bits carries four bytes of a cell and the number of the message; if blocks meet at
barriers, a word carries a cell. The words of a cell of all lanes of the edge warps lie in a row,
cell after cell.
The last word of a tile counts blocks at barriers. The first words of a launch report a wait in
vain, if waits are bounded.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

from xdsl.dialects import arith
from xdsl.ir import Attribute, SSAValue

from timetile.dialects import simt
from timetile.dialects.tile import (
    LANES,
    Addressing,
    ExchangeOp,
    KernelOp,
    Space,
    queue_type,
)
from timetile.lowering.emitter import Emitter
from timetile.lowering.tile_to_gpu.thread import Thread, Turn
from timetile.passes.analysis.placed import home_of, layout_of
from timetile.passes.analysis.queues.synchronisation import (
    collect_orders,
    meets_at_barriers,
    place_barriers,
    words_of_cell,
)

HEADER_WORDS = 2
"""Words of the launch's buffer ahead of the first tile, for the report of a wait in vain."""


def messages(kernel: KernelOp) -> list[ExchangeOp]:
    """The exchanges with edges that pass between blocks through global memory."""
    exchanges = [stage for stage in kernel.stages if isinstance(stage, ExchangeOp)]
    return [e for e in exchanges if e.home is not None and e.home.space.data is Space.GLOBAL]


def blocks_meet(kernel: KernelOp) -> bool:
    """The blocks of a tile wait for each other at barriers."""
    return meets_at_barriers(messages(kernel))


def lane_words(kernel: KernelOp, element: Attribute) -> int:
    """64-bit words of a cell."""
    return words_of_cell(element, at_grid_barriers=blocks_meet(kernel))


def slots_of_tile(kernel: KernelOp) -> int:
    """Words of all slots of all exchanges."""
    return sum(slots_of(kernel, exchange, 0).all_words for exchange in messages(kernel))


def takes_turns(kernel: KernelOp) -> bool:
    """
    Consecutive tiles use different words. If the blocks of a tile send a single message, or meet
    once, a block continues with the next tile before the neighbours have taken all messages.
    """
    return kernel.stream_axis is None and rounds(kernel) == 1


def rounds(kernel: KernelOp) -> int:
    """Barriers after which the blocks of a resident tile have heard of each other."""
    barriers = place_barriers(collect_orders(kernel))
    if blocks_meet(kernel):
        return len(barriers)
    stages = list(kernel.stages)
    published = [stages.index(exchange) for exchange in messages(kernel) if exchange.edges[0]]
    return len({next(b for b in barriers if b > position) for position in published})


def buffer_words(kernel: KernelOp) -> int:
    """Words of a message buffer."""
    return slots_of_tile(kernel) * (2 if takes_turns(kernel) else 1)


def all_buffer_words(kernel: KernelOp) -> int:
    """Words of all message buffers of one tile."""
    return 2 * layout_of(kernel).blocks * buffer_words(kernel)


def tile_words(kernel: KernelOp) -> int:
    """
    Words of one tile: all message buffers, and two (for the alignment) for the count of blocks
    at barriers.
    """
    return all_buffer_words(kernel) + 2 * blocks_meet(kernel)


def launch_words(tiles: int, words: int) -> int:
    """Words of a launch, from the number of tiles and the words of a tile."""
    return HEADER_WORDS + tiles * words


@dataclass(frozen=True)
class MessageSlots:
    """
    Where one exchange lies in every message buffer: slots from word `first` on. A slot has room for
    `rows` rows, with `cells` cells from every lane of the `warps` at the edge.
    """

    element: Attribute
    words: int
    """64-bit words of a cell."""
    slots: int
    fixed: bool
    """Slots take turns as the copies of the unrolled loop do."""
    first: int
    rows: int
    cells: int
    warps: int

    @property
    def slot_words(self) -> int:
        """Words of a slot, of all lanes."""
        return self.lane_stride * self.rows * self.cells

    @property
    def lane_stride(self) -> int:
        """Words from a cell of a lane to the lane's next cell."""
        return LANES * self.warps * self.words

    @property
    def all_words(self) -> int:
        """Words of all slots."""
        return self.slots * self.slot_words

    def places(self, slot: int, row: int) -> list[int]:
        """Where a lane's cells of an edge row begin."""
        before = row * self.cells
        return [self.first + slot + (before + k) * self.lane_stride for k in range(self.cells)]


def slots_of(kernel: KernelOp, exchange: ExchangeOp, first: int) -> MessageSlots:
    """The slots of an exchange, from a word of every message buffer on."""
    layout, home = layout_of(kernel), home_of(exchange)
    element = queue_type(exchange.result).element
    _, *others = layout.axis_layouts
    rows = exchange.edges[0] * prod(axis.cells for axis in others[:-1])
    return MessageSlots(
        element,
        lane_words(kernel, element),
        1 if kernel.stream_axis is None else home.slots.data,
        home.addressing.data is Addressing.FIXED,
        first,
        rows,
        others[-1].cells,
        layout.edge_warps,
    )


@dataclass
class Message:
    """The cells of a message of one type and one index, and the places of the cells."""

    cells: list[SSAValue] = field(default_factory=list[SSAValue])
    places: list[int] = field(default_factory=list[int])


MessagesOfKernel = dict[tuple[int, Attribute, int, SSAValue | None], Message]
"""Messages by side, type, words of a cell, and the slot's index (None for a constant place)."""


@dataclass(frozen=True)
class Meeting:
    """The barriers of a tile's blocks, counted in a word of the launch's buffer."""

    turn: Turn
    counter: SSAValue

    def barrier(self, number: SSAValue, blocks: int) -> simt.TileBarrierOp:
        """The barrier of a number, for the blocks of a tile."""
        return simt.TileBarrierOp(self.turn.buffer, self.counter, number, blocks)


@dataclass
class MessageBuffers:
    """
    The message buffers of a thread. `taken`: the buffers of the thread's own block, with messages
    of the blocks before (-1) and after (1). `posted`: the buffers of the blocks beside. Both give
    the lane's first word by side and words of a cell.
    """

    turn: Turn
    meeting: Meeting | None = None
    """Where blocks wait for each other, if blocks meet at barriers."""
    taken: dict[tuple[int, int], SSAValue] = field(default_factory=dict[tuple[int, int], SSAValue])
    posted: dict[tuple[int, int], SSAValue] = field(default_factory=dict[tuple[int, int], SSAValue])
    used: int = 0
    """Words of a message buffer already given to exchanges."""

    @property
    def buffer(self) -> SSAValue:
        """The buffer of the launch."""
        return self.turn.buffer

    def slots(self, kernel: KernelOp, exchange: ExchangeOp) -> MessageSlots:
        """Give slots to an exchange."""
        slots = slots_of(kernel, exchange, self.used)
        self.used += slots.all_words
        return slots


def place_message_buffers(
    emit: Emitter, thread: Thread, kernel: KernelOp, turn: Turn
) -> MessageBuffers:
    """Find a thread's message buffers in the launch's buffer."""
    layout = layout_of(kernel)
    buffers = MessageBuffers(turn)
    words = buffer_words(kernel)
    tile = emit.add_int(emit.mul_int(turn.first_tile, tile_words(kernel)), HEADER_WORDS)
    own = emit.add_int(tile, emit.mul_int(thread.rank, 2 * words))
    if blocks_meet(kernel):
        counter = emit.add_int(tile, all_buffer_words(kernel))
        buffers.meeting = Meeting(turn, counter)
    if takes_turns(kernel):
        odd = emit.binary(arith.AndIOp, turn.steps_before, emit.int(1))
        own = emit.add_int(own, emit.mul_int(odd, slots_of_tile(kernel)))
    number = thread.lane
    if layout.edge_warps > 1:
        among, _ = emit.split(thread.warp_in_block, layout.edge_warps)
        number = emit.add_int(emit.mul_int(among, LANES), number)
    for width in {lane_words(kernel, queue_type(e.result).element) for e in messages(kernel)}:
        lane = emit.add_int(own, emit.mul_int(number, width))
        before, after = 0, words
        buffers.taken[-1, width] = emit.add_int(lane, before)
        buffers.taken[1, width] = emit.add_int(lane, after)
        # The block before takes from its later side, and the block after from its earlier side.
        buffers.posted[-1, width] = emit.add_int(lane, after - 2 * words)
        buffers.posted[1, width] = emit.add_int(lane, before + 2 * words)
    return buffers
