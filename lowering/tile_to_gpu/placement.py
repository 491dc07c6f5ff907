"""The places of all queues: prefetch rings, shared planes, edge buffers, and the required order of
accesses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from xdsl.ir import SSAValue

from timetile.dialects import simt
from timetile.dialects.tile import (
    Addressing,
    ApplyOp,
    CopiesAttr,
    ExchangeOp,
    LayoutAttr,
    LoadOp,
    Published,
    RegistersAttr,
    SharedAttr,
    StageOp,
    StoreOp,
)
from timetile.lowering.emitter import Emitter
from timetile.lowering.tile_to_gpu.message_buffers import MessageBuffers, place_message_buffers
from timetile.lowering.tile_to_gpu.prefetch import (
    PrefetchRing,
    Staging,
    lane_ring,
    row_staging,
    tile_ring,
)
from timetile.lowering.tile_to_gpu.queues import (
    BlockEdge,
    Column,
    EdgeBuffer,
    RimPlanes,
    SharedPlane,
)
from timetile.lowering.tile_to_gpu.rings import Ring, SharedMemory
from timetile.lowering.tile_to_gpu.thread import Thread, block_beside
from timetile.passes.analysis.block_memory import (
    BlockMemory,
    PlaneRing,
    Slice,
    copies_exchange,
)
from timetile.passes.analysis.geometry.borders import columns_of, directions
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.analysis.queues.lags import oldest_age
from timetile.passes.analysis.queues.synchronisation import (
    AccessOrder,
    collect_orders,
    lives_in_ring,
)


@dataclass
class Placement:
    """Where a kernel keeps each of its queues."""

    one_warp: bool
    orders: Sequence[AccessOrder]
    """The required orders of accesses to shared memory by the tile's warps."""
    warp_orders: Sequence[AccessOrder]
    """The required orders of accesses to shared memory by the lanes of a warp."""
    depths: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    shared: dict[SSAValue, SharedPlane] = field(default_factory=dict[SSAValue, SharedPlane])
    edge_buffers: dict[SSAValue, EdgeBuffer] = field(default_factory=dict[SSAValue, EdgeBuffer])
    rims: dict[SSAValue, RimPlanes] = field(default_factory=dict[SSAValue, RimPlanes])
    prefetches: list[PrefetchRing] = field(default_factory=list[PrefetchRing])
    staging: dict[SSAValue, Staging] = field(default_factory=dict[SSAValue, Staging])
    arrivals: SSAValue | None = None
    """The words for arrivals of the tile's warps; None unless warps synchronise in two halves."""
    peer_arrivals: dict[int, SSAValue] = field(default_factory=dict[int, SSAValue])
    """The words of the blocks before (-1) and after (1), in a cluster."""
    message_buffers: MessageBuffers | None = None
    """The buffers of messages between blocks, in a tile held by the device."""

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
        return [ring for ring in self.rings if ring.addressing is Addressing.SHIFTING]

    @property
    def has_rolled_rings(self) -> bool:
        """A loop with one step in its body finds every slot as a turn of several steps does."""
        return all(ring.finds_any_step for ring in self.rings)

    @property
    def pending_groups(self) -> int:
        """Groups of copies that may still run when a step needs its planes."""
        return min(p.ahead for p in self.prefetches) - 1

    def prefetch_of(self, load: LoadOp) -> PrefetchRing | None:
        """The ring of a load with early fetches; None for other loads."""
        return next((p for p in self.prefetches if p.load is load), None)


def place_queues(
    emit: Emitter,
    geometry: Geometry,
    memory: BlockMemory,
    thread: Thread,
    arguments: dict[SSAValue, SSAValue],
) -> Placement:
    """Allocate the shared memory of a kernel, in the slices of `memory`."""
    return QueuePlacer(emit, geometry, memory, thread, arguments).place()


class QueuePlacer:
    """Finds the place of every queue of a kernel."""

    def __init__(
        self,
        emit: Emitter,
        geometry: Geometry,
        memory: BlockMemory,
        thread: Thread,
        arguments: dict[SSAValue, SSAValue],
    ):
        self.emit, self.geometry, self.memory = emit, geometry, memory
        self.kernel, self.layout = geometry.kernel, geometry.layout
        self.thread, self.arguments = thread, arguments
        self.placement = Placement(
            self.layout.warps == 1,
            collect_orders(self.kernel),
            collect_orders(self.kernel, within_warps=True),
        )
        self.buffers = SharedMemory(emit)
        self.ranks = neighbour_ranks(emit, thread, self.layout) if self.layout.has_cluster else {}
        if thread.turn is not None:
            self.placement.message_buffers = place_message_buffers(
                emit, thread, self.kernel, thread.turn
            )
        self.common_planes: dict[Slice, SharedPlane] = {}
        self.common_edges: dict[Slice, Ring] = {}

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
        if self.memory.arrivals is not None:
            self.place_arrivals(self.memory.arrivals)
        return placement

    def place_stage(self, stage: StageOp) -> None:
        """The places of one stage's results in memory."""
        match stage:
            case LoadOp(home=RegistersAttr() | CopiesAttr()) if (
                stage.data is not None and stage.planes_ahead
            ):
                self.place_prefetch(stage)
            case LoadOp(home=SharedAttr()) | ApplyOp(home=SharedAttr()):
                for result in stage.results:
                    self.placement.shared[result] = self.shared_plane(result)
            case ExchangeOp() if stage.what.data is Published.PLANE:
                self.place_exchange_of_planes(stage)
            case ExchangeOp() if lives_in_ring(stage.queue):
                age = stage.delay.data + stage.hold
                self.place_rim(stage, self.placement.shared[stage.queue], age)
            case ExchangeOp() if stage.what.data is Published.EDGES:
                self.placement.edge_buffers[stage.result] = self.edge_buffer(stage)
            case StoreOp() if (part := self.memory.staged.get(stage.field)) is not None:
                buffer, known = self.buffers.buffer(part.memory), self.placement.staging
                shared = next((each for each in known.values() if each.part == part), None)
                known[stage.field] = shared or row_staging(
                    self.emit, self.geometry, self.thread, buffer, part, stage.field
                )
            case _:
                pass

    def place_prefetch(self, load: LoadOp) -> None:
        """
        The ring of a load with early fetches: a ring for each warp, or for the tile if the copies
        serve an exchange.
        """
        given = (self.emit, self.geometry, self.thread)
        exchange = copies_exchange(self.geometry, load)
        if exchange is None:
            early = self.memory.early[load.result]
            buffer = self.buffers.buffer(early.part.memory)
            ring = lane_ring(*given, buffer, early, load, self.arguments)
        else:
            plane = self.shared_plane(exchange.result)
            self.placement.shared[exchange.result] = plane
            ring = tile_ring(*given, plane, load, self.arguments)
        self.placement.prefetches.append(ring)

    def place_exchange_of_planes(self, stage: ExchangeOp) -> None:
        """The ring of an exchange of whole planes, with surrounding rows sent by other blocks."""
        plane = self.shared_plane(stage.result)
        self.placement.shared[stage.result] = plane
        self.place_rim(stage, plane, stage.delay.data)

    def place_rim(self, stage: ExchangeOp, plane: SharedPlane, age: int) -> None:
        """The rim of an exchanged plane, if other blocks send cells. Planes arrive at an age."""
        buffers = self.placement.message_buffers
        if buffers is None or not directions(self.kernel, stage):
            return
        by_rows = stage.edges[0] and self.layout.axis_layouts[0].blocks > 1
        slots = buffers.slots(self.kernel, stage) if by_rows else None
        columns = tuple(
            Column(border, buffers.column_slots(self.kernel, stage, border))
            for border in columns_of(self.kernel, stage)
        )
        rim = RimPlanes(plane, slots, stage.edges[0], age, columns)
        self.placement.rims[stage.result] = rim

    def place_arrivals(self, part: Slice) -> None:
        """The words for arrivals of warps, in the own block and in the blocks beside."""
        words = self.buffers.buffer(part)
        self.placement.arrivals = words
        for side, rank in self.ranks.items():
            peer = self.emit.add(simt.PeerOp(words, rank)).result
            self.placement.peer_arrivals[side] = peer

    def own_plane(self, ring: PlaneRing) -> SharedPlane:
        """The ring of the thread's tile, and the place of the thread's first own cell."""
        emit, plane = self.emit, ring.plane
        own = emit.add_int(self.thread.axes[-1].in_block, plane.first)
        for axis, stride in zip(self.thread.axes[:-1], plane.strides):
            own = emit.add_int(own, emit.mul_int(axis.in_block, stride))
        buffer = self.buffers.buffer(ring.memory)
        if self.layout.pack.data > 1:
            own = emit.add_int(own, emit.mul_int(self.thread.warp_in_block, ring.tile_cells))
        slots = Ring(buffer, ring.slots, ring.addressing, plane.cells, self.geometry.period)
        return SharedPlane(slots, plane, own)

    def shared_plane(self, queue: SSAValue) -> SharedPlane:
        """A queue's ring. Queues of a common ring have one ring, and a base each."""
        ring = self.memory.planes[queue]
        if ring.memory not in self.common_planes:
            self.common_planes[ring.memory] = self.own_plane(ring)
        return replace(self.common_planes[ring.memory], base=ring.base)

    def edge_buffer(self, stage: ExchangeOp) -> EdgeBuffer:
        """The ring of an exchange of edges, along the only axis with several warps."""
        emit, geometry, thread = self.emit, self.geometry, self.thread
        ring = self.memory.edges[stage.result]
        edges, warp = ring.edges, thread.axes[ring.edges.axis].warp
        buffer = self.buffers.buffer(ring.memory)
        own = emit.int(edges.warp_cells)
        if warp is not None:
            own = emit.mul_int(emit.add_int(warp, 1), edges.warp_cells)
        lane_position = emit.mul_int(thread.lane, geometry.axes[-1].layout.cells)
        if edges.along_rows:
            own = emit.add_int(own, thread.axes[-1].in_block)
        buffers = self.placement.message_buffers
        slots = Ring(buffer, ring.slots, ring.addressing, edges.cells, geometry.period)
        return EdgeBuffer(
            self.common_edges.setdefault(ring.memory, slots),
            ring.memory.element,
            edges,
            own,
            lane_position,
            ring.base,
            self.peers_of(buffer, edges.warps, edges.warp_cells),
            None if buffers is None else buffers.slots(self.kernel, stage),
        )

    def peers_of(
        self, buffer: SSAValue, warps: int, per_warp: int
    ) -> tuple[tuple[BlockEdge, SSAValue], ...]:
        """The edge buffers of the blocks beside, in a cluster."""
        if not self.ranks:
            return ()
        # The first and the last warp of the buffer are unused: neighbouring blocks send edges
        # there.
        span = warps * per_warp
        edges = (BlockEdge(-1, 0, span), BlockEdge(1, warps - 1, -span))
        return tuple(
            (edge, self.emit.add(simt.PeerOp(buffer, self.ranks[edge.side])).result)
            for edge in edges
        )


def neighbour_ranks(emit: Emitter, thread: Thread, layout: LayoutAttr) -> dict[int, SSAValue]:
    """
    The ranks of the blocks before (-1) and after (1) in a tile of several; the own rank at the ends
    of the tile.
    """
    ranks: dict[int, SSAValue] = {}
    for side in (-1, 1):
        beside, there = block_beside(emit, thread, side, layout)
        ranks[side] = emit.select(there, beside, thread.rank)
    return ranks
