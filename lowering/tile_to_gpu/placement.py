"""The places of all queues: prefetch rings, shared planes, edge buffers, and the required order of
accesses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from xdsl.dialects.builtin import i64
from xdsl.ir import Attribute, SSAValue

from timetile.dialects import simt
from timetile.dialects.tile import (
    ApplyOp,
    ExchangeOp,
    KernelOp,
    LayoutAttr,
    LoadOp,
    RegistersAttr,
    SharedAttr,
    StageOp,
    StoreOp,
    queue_type,
    taps_of,
)
from timetile.lowering.emitter import Emitter
from timetile.lowering.tile_to_gpu.inboxes import Inboxes, place_inboxes
from timetile.lowering.tile_to_gpu.prefetch import (
    PrefetchRing,
    Staging,
    lane_ring,
    row_staging,
    tile_ring,
)
from timetile.lowering.tile_to_gpu.queues import BlockEdge, EdgeBuffer, Rim, SharedPlane
from timetile.lowering.tile_to_gpu.rings import Ring, SharedMemory
from timetile.lowering.tile_to_gpu.thread import Thread, block_beside
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.analysis.queues.lags import oldest_age
from timetile.passes.analysis.queues.storage import ring_window
from timetile.passes.analysis.queues.synchronisation import (
    Order,
    collect_orders,
    lives_in_ring,
    place_barriers,
)

Allocate = Callable[[Attribute, int], SSAValue]
"""Hands out shared memory for a number of cells of an element."""


@dataclass
class Placement:
    """The place of every queue of one kernel."""

    one_warp: bool
    orders: Sequence[Order]
    """The required orders of accesses to shared memory by the tile's warps."""
    warp_orders: Sequence[Order]
    """The required orders of accesses to shared memory by the lanes of a warp."""
    depths: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    shared: dict[SSAValue, SharedPlane] = field(default_factory=dict[SSAValue, SharedPlane])
    edge_buffers: dict[SSAValue, EdgeBuffer] = field(default_factory=dict[SSAValue, EdgeBuffer])
    rims: dict[SSAValue, Rim] = field(default_factory=dict[SSAValue, Rim])
    prefetches: list[PrefetchRing] = field(default_factory=list[PrefetchRing])
    staging: dict[SSAValue, Staging] = field(default_factory=dict[SSAValue, Staging])
    shared_bytes: int = 0
    arrivals: SSAValue | None = None
    """The words for arrivals of the tile's warps; None unless warps synchronise in two halves."""
    peer_arrivals: dict[int, SSAValue] = field(default_factory=dict[int, SSAValue])
    """The words of the blocks before (-1) and after (1), in a cluster."""
    inboxes: Inboxes | None = None
    """The inboxes for messages between blocks, in a tile held by the device."""

    @property
    def rings(self) -> list[Ring]:
        """All rings, each once."""
        rings = [p.ring for p in self.prefetches]
        rings += [plane.ring for plane in self.shared.values()]
        rings += [buffer.ring for buffer in self.edge_buffers.values()]
        return list(dict.fromkeys(rings))

    @property
    def shifting_rings(self) -> list[Ring]:
        """The rings with carried offsets of slots."""
        return [ring for ring in self.rings if ring.addressing == "shifting"]

    @property
    def pending_groups(self) -> int:
        """Groups of copies that may still run when a step needs its planes."""
        return min(p.ahead for p in self.prefetches) - 1

    def prefetch_of(self, load: LoadOp) -> PrefetchRing | None:
        """The ring of a load with early fetches; None for other loads."""
        return next((p for p in self.prefetches if p.load is load), None)


def place(
    emit: Emitter,
    geometry: Geometry,
    thread: Thread,
    arguments: dict[SSAValue, SSAValue],
    messages: SSAValue | None = None,
) -> Placement:
    """
    Allocate the shared memory of a kernel. `messages` is global memory for exchanges between
    blocks.
    """
    return Placer(emit, geometry, thread, arguments, messages).place()


class Placer:
    """Finds the place of every queue of a kernel."""

    def __init__(
        self,
        emit: Emitter,
        geometry: Geometry,
        thread: Thread,
        arguments: dict[SSAValue, SSAValue],
        messages: SSAValue | None,
    ):
        self.emit, self.geometry, self.thread = emit, geometry, thread
        self.kernel, self.arguments = geometry.kernel, arguments
        assert self.kernel.layout is not None
        self.layout = self.kernel.layout
        self.placement = Placement(
            self.layout.warps == 1,
            collect_orders(self.kernel),
            collect_orders(self.kernel, within_warps=True),
        )
        self.memory = SharedMemory(emit)
        self.exchange_memory = ExchangeMemory(self.kernel, self.memory, self.placement.orders)
        self.ranks = neighbour_ranks(emit, thread, self.layout) if self.layout.has_cluster else {}
        if messages is not None:
            self.placement.inboxes = place_inboxes(emit, thread, self.kernel, messages)
        self.multi_queue: dict[Attribute, SharedPlane] = {}

    def place(self) -> Placement:
        """The place of every queue."""
        placement = self.placement
        for stage in self.kernel.stages:
            self.place_stage(stage)
            for result in stage.results:
                placement.depths[result] = oldest_age(result, self.kernel.stream_axis)
        if rings := placement.prefetches:
            rings[0] = replace(rings[0], waits=True)
            rings[-1] = replace(rings[-1], commits=True)
        if any(isinstance(s, ExchangeOp) and is_split(self.kernel, s) for s in self.kernel.stages):
            self.place_arrivals()
        placement.shared_bytes = self.memory.bytes
        return placement

    def place_stage(self, stage: StageOp) -> None:
        """The places of one stage's results in memory."""
        match stage:
            case LoadOp(home=RegistersAttr()) if stage.data is not None and stage.planes_ahead:
                self.place_prefetch(stage)
            case LoadOp(home=SharedAttr() as home) | ApplyOp(home=SharedAttr() as home):
                for number, result in enumerate(stage.results):
                    self.placement.shared[result] = self.shared_plane(result, home, number)
            case ExchangeOp() if stage.what.data == "plane":
                self.place_exchange_of_planes(stage)
            case ExchangeOp() if lives_in_ring(stage.queue):
                assert self.placement.inboxes is not None
                slots = self.placement.inboxes.slots(self.kernel, stage)
                plane, age = self.placement.shared[stage.queue], stage.delay.data + stage.hold
                self.placement.rims[stage.result] = Rim(plane, slots, stage.edges[0], age)
            case ExchangeOp() if stage.what.data == "edges":
                self.placement.edge_buffers[stage.result] = self.edge_buffer(stage)
            case StoreOp() if self.geometry.is_dealt(stage.field):
                staging = row_staging(
                    self.emit, self.geometry, self.thread, self.memory, stage.field
                )
                self.placement.staging[stage.field] = staging
            case _:
                pass

    def place_prefetch(self, load: LoadOp) -> None:
        """
        The ring of a load with early fetches: a ring for each lane, or for the tile if the copies
        serve an exchange.
        """
        exchange = copies_exchange(self.geometry, load)
        given = (self.emit, self.geometry, self.thread)
        if exchange is None:
            ring = lane_ring(*given, self.memory, load, self.arguments)
        else:
            plane = self.exchange_plane(exchange, self.memory.allocate)
            self.placement.shared[exchange.result] = plane
            ring = tile_ring(*given, plane, load, self.arguments)
        self.placement.prefetches.append(ring)

    def place_exchange_of_planes(self, stage: ExchangeOp) -> None:
        """The ring of an exchange of whole planes, with surrounding rows sent by other blocks."""
        plane = self.exchange_plane(stage, partial(self.exchange_memory.allocate, stage))
        self.placement.shared[stage.result] = plane
        if self.placement.inboxes is not None and stage.edges[0]:
            slots = self.placement.inboxes.slots(self.kernel, stage)
            rim = Rim(plane, slots, stage.edges[0], stage.delay.data)
            self.placement.rims[stage.result] = rim

    def place_arrivals(self) -> None:
        """The words for arrivals of warps, in the own block and in the blocks beside."""
        words = self.memory.allocate(i64, 2 if self.layout.has_cluster else 1)
        self.placement.arrivals = words
        for side, rank in self.ranks.items():
            peer = self.emit.add(simt.PeerOp(words, rank)).result
            self.placement.peer_arrivals[side] = peer

    def own_ring(
        self,
        element: Attribute,
        reach: tuple[int, ...],
        allocate: Allocate,
        slots: int,
        addressing: str,
    ) -> SharedPlane:
        """A ring of planes with pads of the given reach, for each tile of the block."""
        emit, geometry = self.emit, self.geometry
        *others, last = geometry.axes
        pads = (*reach[:-1], geometry.padded(element, reach[-1]))
        slot_cells = pitch = geometry.padded(element, last.layout.block_extent + 2 * pads[-1])
        strides = [1]
        for tiling, pad in reversed([*zip(others, pads)]):
            strides.insert(0, slot_cells)
            slot_cells *= tiling.layout.block_extent + 2 * pad
        first = sum(pad * stride for pad, stride in zip(pads, strides))
        own = emit.add_int(self.thread.axes[-1].in_block, first)
        for axis, stride in zip(self.thread.axes[:-1], strides):
            own = emit.add_int(own, emit.mul_int(axis.in_block, stride))
        tiles = self.layout.pack.data
        buffer = allocate(element, tiles * slots * slot_cells)
        if tiles > 1:
            tile = emit.mul_int(self.thread.warp_in_block, slots * slot_cells)
            own = emit.add_int(own, tile)
        ring = Ring(buffer, slots, addressing, slot_cells, geometry.period)
        return SharedPlane(ring, element, pitch, tuple(strides), pads, own)

    def shared_plane(self, queue: SSAValue, home: SharedAttr, number: int) -> SharedPlane:
        """
        A queue's ring. Computed queues of an element share a single ring, with the widest reach of
        all.
        """
        element = queue_type(queue).element
        slots, addressing = home.slots.data, home.addressing.data
        allocate = self.memory.allocate
        if addressing != "computed":
            reach = reach_of(self.kernel, queue)
            return self.own_ring(element, reach, allocate, slots, addressing)
        if element not in self.multi_queue:
            reaches = [reach_of(self.kernel, r) for s in self.kernel.stages for r in s.results]
            reach = tuple(map(max, zip(*reaches)))
            common = self.own_ring(element, reach, allocate, slots, addressing)
            self.multi_queue[element] = common
        base = home.base.data
        stage = queue.owner
        assert isinstance(stage, LoadOp | ApplyOp)
        for earlier in list(stage.results)[:number]:
            base -= ring_window(earlier, self.kernel.stream_axis)
        return replace(self.multi_queue[element], base=base % slots)

    def exchange_plane(self, stage: ExchangeOp, allocate: Allocate) -> SharedPlane:
        """The ring of an exchange of whole planes."""
        assert stage.home is not None
        element, reach = queue_type(stage.result).element, reach_of(self.kernel, stage.result)
        slots, addressing = stage.home.slots.data, stage.home.addressing.data
        return self.own_ring(element, reach, allocate, slots, addressing)

    def edge_buffer(self, stage: ExchangeOp) -> EdgeBuffer:
        """The ring of an exchange of edges, along the only axis with several warps."""
        assert stage.home is not None
        emit, geometry, thread = self.emit, self.geometry, self.thread
        k = next(k for k, axis in enumerate(geometry.axes) if axis.layout.tile_warps > 1)
        layout, warp = geometry.axes[k].layout, thread.axes[k].warp
        along_rows = k != len(geometry.axes) - 1
        element, width = queue_type(stage.result).element, stage.edges[k]
        row_cells = geometry.axes[-1].layout.block_extent if along_rows else 1
        per_warp = 2 * width * row_cells
        slot_cells = (layout.warps + 2) * per_warp
        slots, addressing = stage.home.slots.data, stage.home.addressing.data
        buffer = self.exchange_memory.allocate(stage, element, slots * slot_cells)
        own = emit.int(per_warp)
        if warp is not None:
            own = emit.mul_int(emit.add_int(warp, 1), per_warp)
        lane_position = emit.mul_int(thread.lane, geometry.axes[-1].layout.cells)
        if along_rows:
            own = emit.add_int(own, thread.axes[-1].in_block)
        inboxes = self.placement.inboxes
        return EdgeBuffer(
            Ring(buffer, slots, addressing, slot_cells, geometry.period),
            element,
            width,
            along_rows,
            row_cells,
            own,
            lane_position,
            self.peers_of(buffer, layout.warps, per_warp),
            None if inboxes is None else inboxes.slots(self.kernel, stage),
        )

    def peers_of(
        self, buffer: SSAValue, warps: int, per_warp: int
    ) -> tuple[tuple[BlockEdge, SSAValue], ...]:
        """The edge buffers of the blocks beside, in a cluster."""
        if not self.ranks:
            return ()
        # The unused warps on both ends are where the blocks before and after send their edges.
        span = warps * per_warp
        edges = (BlockEdge(-1, 0, span), BlockEdge(1, warps - 1, -span))
        return tuple(
            (edge, self.emit.add(simt.PeerOp(buffer, self.ranks[edge.side])).result)
            for edge in edges
        )


class ExchangeMemory:
    """
    Hands out shared memory for exchanges. Without a stream every exchange happens once: a later
    exchange takes over the memory of an earlier one if a barrier stands between the last reader and
    the next writer.
    """

    def __init__(self, kernel: KernelOp, memory: SharedMemory, orders: Sequence[Order]):
        self.memory = memory
        self.stages = list(kernel.stages)
        self.streams = kernel.stream_axis is not None
        self.barriers = place_barriers(orders)
        self.left: dict[SSAValue, tuple[Attribute, int, int]] = {}
        """For each buffer: element, cells, and the number of the last reading stage."""

    def allocate(self, exchange: ExchangeOp, element: Attribute, cells: int) -> SSAValue:
        """A buffer for the planes or edges of an exchange."""
        writer = self.stages.index(exchange)
        buffer = next((b for b in self.left if self.is_free(b, element, cells, writer)), None)
        if buffer is None:
            buffer = self.memory.allocate(element, cells)
        readers = [self.stages.index(stage) for stage, _ in taps_of(exchange.result)]
        self.left[buffer] = (element, cells, max(readers))
        return buffer

    def is_free(self, buffer: SSAValue, element: Attribute, cells: int, writer: int) -> bool:
        """A buffer is alike, and a barrier stands between its last reader and the writer."""
        kind, size, reader = self.left[buffer]
        between = any(reader < barrier <= writer for barrier in self.barriers)
        return not self.streams and (kind, size) == (element, cells) and between


def is_split(kernel: KernelOp, exchange: ExchangeOp) -> bool:
    """The threads of the block arrive, and wait later: in the next step of a stream."""
    streams, home = kernel.stream_axis is not None, exchange.home
    return streams and home is not None and home.sync.data in ("mbarrier", "flags")


def copies_exchange(geometry: Geometry, load: LoadOp) -> ExchangeOp | None:
    """The exchange served by a load's own copies; None if there is none."""
    return next((e for e in geometry.copies if e.queue is load.result), None)


def reach_of(kernel: KernelOp, queue: SSAValue) -> tuple[int, ...]:
    """
    The largest distance of taps of a queue, or of an exchange of edges of the queue, per in-plane
    axis.
    """
    axes = kernel.plane_axes
    exchanges = [use.operation for use in queue.uses if isinstance(use.operation, ExchangeOp)]
    read = [queue, *(exchange.result for exchange in exchanges if exchange.what.data == "edges")]
    taps = [tap for value in read for _, tap in taps_of(value)]
    return tuple(max((abs(tap.offset[axis]) for tap in taps), default=0) for axis in axes)


def neighbour_ranks(emit: Emitter, thread: Thread, layout: LayoutAttr) -> dict[int, SSAValue]:
    """
    The ranks of the blocks before (-1) and after (1) in a tile of several; the own rank at the ends
    of the tile.
    """
    assert thread.rank is not None
    ranks: dict[int, SSAValue] = {}
    for side in (-1, 1):
        beside, there = block_beside(emit, thread, side, layout)
        ranks[side] = emit.select(there, beside, thread.rank)
    return ranks
