"""Message buffers in global memory, for messages between the blocks of a tile held by the device.

Every block has a message buffer for each side along the first axis, with slots for the edges of
every exchange, and a buffer for columns and corners if blocks lie along other axes, too. A word of
64 bits carries four bytes of a cell and the number of the message; if blocks meet at barriers, a
word carries a cell. The words of a cell of all lanes of the edge warps lie in a row, cell after
cell. The cells of a column or a corner are packed: the lanes of one warp have a cell each.
The last word of a tile counts blocks at barriers. The first words of a launch report a wait in
vain, if waits are bounded.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
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
from timetile.lowering.tile_to_gpu.thread import Thread, Turn, rank_distance
from timetile.passes.analysis.geometry.axis_tiling import ceil_div
from timetile.passes.analysis.geometry.borders import (
    BlockDirection,
    Border,
    along_first,
    columns_of,
    directions,
)
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
    """Words of all slots of all exchanges, on a side along the first axis."""
    if layout_of(kernel).axis_layouts[0].blocks == 1:
        return 0
    return sum(slots_of(kernel, exchange, 0).all_words for exchange in messages(kernel))


def slots_of_columns(kernel: KernelOp) -> int:
    """Words that all exchanges take for columns and corners, in all slots."""
    return sum(
        slots_of_column(kernel, exchange, border, 0).all_words
        for exchange in messages(kernel)
        for border in columns_of(kernel, exchange)
    )


def directions_of_columns(kernel: KernelOp) -> list[BlockDirection]:
    """The directions of columns and corners of a kernel's exchanges, each once."""
    borders = (b for exchange in messages(kernel) for b in columns_of(kernel, exchange))
    return list(dict.fromkeys(border.direction for border in borders))


def takes_turns(kernel: KernelOp) -> bool:
    """
    Consecutive tiles use different words. If the blocks of a tile send a single message, or meet
    once, a block continues with the next tile before the neighbours have taken all messages.
    """
    return kernel.stream_axis is None and rounds(kernel) == 1


def rounds(kernel: KernelOp) -> int:
    """Barriers after which any two neighbouring blocks of a resident tile heard of each other."""
    barriers = place_barriers(collect_orders(kernel))
    if blocks_meet(kernel):
        return len(barriers)
    stages = list(kernel.stages)
    heard: dict[BlockDirection, set[int]] = {}
    for exchange in messages(kernel):
        position = stages.index(exchange)
        for direction in directions(kernel, exchange):
            heard.setdefault(direction, set()).add(next(b for b in barriers if b > position))
    return min(map(len, heard.values()), default=0)


def buffer_words(kernel: KernelOp) -> int:
    """Words of a message buffer of a side along the first axis."""
    return slots_of_tile(kernel) * (2 if takes_turns(kernel) else 1)


def block_words(kernel: KernelOp) -> int:
    """Words of all message buffers of a block: of both sides, then of columns and corners."""
    turns = 2 if takes_turns(kernel) else 1
    return 2 * buffer_words(kernel) + turns * slots_of_columns(kernel)


def all_buffer_words(kernel: KernelOp) -> int:
    """Words that the message buffers of a tile take."""
    return layout_of(kernel).blocks * block_words(kernel)


def tile_words(kernel: KernelOp) -> int:
    """
    Words of one tile: all message buffers, and two (for the alignment) for the count of blocks
    at barriers.
    """
    return all_buffer_words(kernel) + 2 * blocks_meet(kernel)


def launch_words(tiles: int, words: int) -> int:
    """Message words for a launch: tiles times words per tile."""
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


def slots_of_column(
    kernel: KernelOp, exchange: ExchangeOp, border: Border, first: int
) -> MessageSlots:
    """The slots of a column or a corner of an exchange: the lanes of one warp have a cell each."""
    slots = slots_of(kernel, exchange, first)
    return replace(slots, rows=1, cells=ceil_div(border.cells, LANES), warps=1)


@dataclass
class Message:
    """A message's cells with one type and one index, and where they go."""

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


PlacesOfBlocks = dict[tuple[BlockDirection, int], SSAValue]
"""The first word of a lane in a message buffer, by direction and words of a cell."""


@dataclass
class MessageBuffers:
    """
    The message buffers of a thread. `taken`: the buffers of the thread's own block, with messages
    of the blocks beside. `posted`: the buffers of the blocks beside. Both give
    the lane's first word by the direction of a block and words of a cell.
    """

    turn: Turn
    meeting: Meeting | None = None
    """Where blocks wait for each other, if blocks meet at barriers."""
    taken: PlacesOfBlocks = field(default_factory=dict[tuple[BlockDirection, int], SSAValue])
    posted: PlacesOfBlocks = field(default_factory=dict[tuple[BlockDirection, int], SSAValue])
    used: int = 0
    """Words of a message buffer already given to exchanges."""
    used_by_columns: int = 0
    """Words of the buffer of columns and corners already given to exchanges."""

    @property
    def buffer(self) -> SSAValue:
        """The buffer of the launch."""
        return self.turn.buffer

    def slots(self, kernel: KernelOp, exchange: ExchangeOp) -> MessageSlots:
        """Give slots to an exchange."""
        slots = slots_of(kernel, exchange, self.used)
        self.used += slots.all_words
        return slots

    def column_slots(self, kernel: KernelOp, exchange: ExchangeOp, border: Border) -> MessageSlots:
        """Give slots to a column or a corner of an exchange."""
        slots = slots_of_column(kernel, exchange, border, self.used_by_columns)
        self.used_by_columns += slots.all_words
        return slots


def place_message_buffers(
    emit: Emitter, thread: Thread, kernel: KernelOp, turn: Turn
) -> MessageBuffers:
    """Find a thread's message buffers in the launch's buffer."""
    layout = layout_of(kernel)
    buffers = MessageBuffers(turn)
    words = buffer_words(kernel)
    tile = emit.add_int(emit.mul_int(turn.first_tile, tile_words(kernel)), HEADER_WORDS)
    first = own = emit.add_int(tile, emit.mul_int(thread.rank, block_words(kernel)))
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
        before, after = (along_first(side, len(layout.axis_layouts)) for side in (-1, 1))
        beside = rank_distance(layout, after) * block_words(kernel)
        buffers.taken[before, width] = lane
        buffers.taken[after, width] = emit.add_int(lane, words)
        # The block before takes from its later side, and the block after from its earlier side.
        buffers.posted[before, width] = emit.add_int(lane, words - beside)
        buffers.posted[after, width] = emit.add_int(lane, beside)
        if any(axis.blocks > 1 for axis in layout.axis_layouts[1:]):
            place_columns(emit, thread, kernel, buffers, first, width)
    return buffers


def place_columns(
    emit: Emitter,
    thread: Thread,
    kernel: KernelOp,
    buffers: MessageBuffers,
    first: SSAValue,
    width: int,
) -> None:
    """Find a lane's words of columns and corners; `first` is the first word of the own block."""
    layout, words = layout_of(kernel), block_words(kernel)
    lane = emit.add_int(first, 2 * buffer_words(kernel))
    if takes_turns(kernel):
        odd = emit.binary(arith.AndIOp, buffers.turn.steps_before, emit.int(1))
        lane = emit.add_int(lane, emit.mul_int(odd, slots_of_columns(kernel)))
    lane = emit.add_int(lane, emit.mul_int(thread.lane, width))
    for direction in directions_of_columns(kernel):
        buffers.taken[direction, width] = lane
        beside = rank_distance(layout, direction) * words
        buffers.posted[direction, width] = emit.add_int(lane, beside)
