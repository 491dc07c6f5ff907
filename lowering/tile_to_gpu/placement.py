"""Where everything lives: prefetch rings, shared planes and mail, with the orders that they ask for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
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
    StoreOp,
    queue_type,
    taps_of,
)
from timetile.lowering.emitter import Emitter
from timetile.lowering.tile_to_gpu.inboxes import Inboxes, place_inboxes
from timetile.lowering.tile_to_gpu.planes import BlockEdge, EdgeMail, Rim, SharedPlane
from timetile.lowering.tile_to_gpu.prefetch import (
    PrefetchRing,
    Staging,
    lane_ring,
    row_staging,
    tile_ring,
)
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
"""Hands out shared memory for so many cells of an element."""


@dataclass
class Placement:
    """Every queue's place, for one kernel."""

    one_warp: bool
    depths: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    shared: dict[SSAValue, SharedPlane] = field(default_factory=dict[SSAValue, SharedPlane])
    mails: dict[SSAValue, EdgeMail] = field(default_factory=dict[SSAValue, EdgeMail])
    rims: dict[SSAValue, Rim] = field(default_factory=dict[SSAValue, Rim])
    prefetches: list[PrefetchRing] = field(default_factory=list[PrefetchRing])
    staging: dict[SSAValue, Staging] = field(default_factory=dict[SSAValue, Staging])
    orders: list[Order] = field(default_factory=list[Order])
    warp_orders: list[Order] = field(default_factory=list[Order])
    """The same for the lanes of a warp."""
    shared_bytes: int = 0
    arrivals: SSAValue | None = None
    """The words in which the tile's warps arrive, where they synchronise in two halves."""
    peer_arrivals: dict[int, SSAValue] = field(default_factory=dict[int, SSAValue])
    """Those of the blocks before (-1) and after (1), in a cluster."""
    inboxes: Inboxes | None = None
    """Where blocks of a tile that the device holds leave messages for each other."""

    @property
    def rings(self) -> list[Ring]:
        """All rings, each once."""
        rings = [p.ring for p in self.prefetches]
        rings += [s.ring for s in self.shared.values()] + [m.ring for m in self.mails.values()]
        return list({id(ring): ring for ring in rings}.values())

    @property
    def shifting_rings(self) -> list[Ring]:
        """The rings whose slots' offsets are carried."""
        return [ring for ring in self.rings if ring.addressing == "shifting"]

    @property
    def pending_groups(self) -> int:
        """Groups of copies that may be on their way when a step's planes must be there."""
        return min(p.ahead for p in self.prefetches) - 1

    def prefetch_of(self, load: LoadOp) -> PrefetchRing | None:
        return next((p for p in self.prefetches if p.load is load), None)


def place(
    emit: Emitter,
    geometry: Geometry,
    thread: Thread,
    arguments: dict[SSAValue, SSAValue],
    messages: SSAValue | None = None,
) -> Placement:
    """
    Allocate shared memory for everything that a kernel keeps there. `messages` is global memory for what
    passes between blocks.
    """
    kernel = geometry.kernel
    assert kernel.layout is not None
    placement = Placement(one_warp=kernel.layout.warps == 1)
    placement.orders = collect_orders(kernel)
    placement.warp_orders = collect_orders(kernel, within_warps=True)
    memory, mail_memory = SharedMemory(emit), MailMemory(kernel, placement.orders)
    ranks = neighbour_ranks(emit, thread, kernel.layout) if kernel.layout.has_cluster else {}
    if messages is not None:
        placement.inboxes = place_inboxes(emit, thread, kernel, messages)
    multi_queue: dict[Attribute, SharedPlane] = {}
    for stage in kernel.stages:
        match stage:
            case LoadOp(home=RegistersAttr()) if stage.data is not None and stage.planes_ahead:
                exchange = copies_exchange(geometry, stage)
                if exchange is None:
                    ring = lane_ring(emit, geometry, thread, memory, stage, arguments)
                else:
                    plane = exchange_plane(emit, geometry, thread, memory.allocate, exchange)
                    placement.shared[exchange.result] = plane
                    ring = tile_ring(emit, geometry, thread, plane, stage, arguments)
                placement.prefetches.append(ring)
            case LoadOp(home=SharedAttr() as home) | ApplyOp(home=SharedAttr() as home):
                for number, result in enumerate(stage.results):
                    placement.shared[result] = shared_plane(
                        emit, geometry, thread, memory.allocate, result, home, number, multi_queue
                    )
            case ExchangeOp() if stage.what.data == "plane":
                allocate = partial(mail_memory.allocate, memory, stage)
                plane = exchange_plane(emit, geometry, thread, allocate, stage)
                placement.shared[stage.result] = plane
                if placement.inboxes is not None and stage.edges[0]:
                    letters = placement.inboxes.letters(kernel, stage)
                    rim = Rim(plane, letters, stage.edges[0], stage.delay.data)
                    placement.rims[stage.result] = rim
            case ExchangeOp() if lives_in_ring(stage.queue):
                assert placement.inboxes is not None
                letters = placement.inboxes.letters(kernel, stage)
                plane, age = placement.shared[stage.queue], stage.delay.data + stage.hold
                placement.rims[stage.result] = Rim(plane, letters, stage.edges[0], age)
            case ExchangeOp() if stage.what.data == "edges":
                mail = edge_mail(emit, geometry, thread, memory, mail_memory, stage, ranks)
                if placement.inboxes is not None:
                    mail.letters = placement.inboxes.letters(kernel, stage)
                placement.mails[stage.result] = mail
            case StoreOp() if geometry.is_dealt(stage.field):
                staging = row_staging(emit, geometry, thread, memory, stage.field)
                placement.staging[stage.field] = staging
            case _:
                pass
        for result in stage.results:
            placement.depths[result] = oldest_age(result, kernel.stream_axis)
    if placement.prefetches:
        placement.prefetches[0].waits = True
        placement.prefetches[-1].commits = True
    if any(isinstance(s, ExchangeOp) and is_split(kernel, s) for s in kernel.stages):
        words = 2 if kernel.layout.has_cluster else 1
        placement.arrivals = memory.allocate(i64, words)
        for side, rank in ranks.items():
            peer = emit.add(simt.PeerOp(placement.arrivals, rank)).result
            placement.peer_arrivals[side] = peer
    placement.shared_bytes = memory.bytes
    return placement


class MailMemory:
    """
    Hands out shared memory for what is exchanged. Without a stream every exchange happens once: who comes later takes
    what an earlier one leaves, where a barrier stands between the last reader and the next writer.
    """

    def __init__(self, kernel: KernelOp, orders: Sequence[Order]):
        self.stages = list(kernel.stages)
        self.streams = kernel.stream_axis is not None
        self.barriers = place_barriers(orders)
        self.left: dict[SSAValue, tuple[Attribute, int, int]] = {}
        """By buffer: element, cells, and the last stage that reads it."""

    def allocate(
        self, memory: SharedMemory, exchange: ExchangeOp, element: Attribute, cells: int
    ) -> SSAValue:
        """A buffer for what an exchange publishes."""
        writer = self.stages.index(exchange)
        buffer = next((b for b in self.left if self.is_free(b, element, cells, writer)), None)
        if buffer is None:
            buffer = memory.allocate(element, cells)
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
    """The exchange that is served by a load's own copies, where there is one."""
    return next((e for e in geometry.copies if e.queue is load.result), None)


def reach_of(kernel: KernelOp, queue: SSAValue) -> tuple[int, ...]:
    """Cells that the readers of a queue look beyond their own, or of an exchange of its edges, per in-plane axis."""
    axes = kernel.plane_axes
    exchanges = [use.operation for use in queue.uses if isinstance(use.operation, ExchangeOp)]
    read = [queue, *(exchange.result for exchange in exchanges if exchange.what.data == "edges")]
    taps = [tap for value in read for _, tap in taps_of(value)]
    return tuple(max((abs(tap.offset[axis]) for tap in taps), default=0) for axis in axes)


def plane_layout(
    emit: Emitter, geometry: Geometry, thread: Thread, element: Attribute, reach: tuple[int, ...]
) -> tuple[SharedPlane, int]:
    """How a whole plane lies in a slot, and the cells of a slot; the ring is filled in later."""
    *others, last = geometry.axes
    pads = (*reach[:-1], geometry.padded(element, reach[-1]))
    slot_cells = pitch = geometry.padded(element, last.layout.block_extent + 2 * pads[-1])
    strides = [1]
    for tiling, pad in reversed([*zip(others, pads)]):
        strides.insert(0, slot_cells)
        slot_cells *= tiling.layout.block_extent + 2 * pad
    first = sum(pad * stride for pad, stride in zip(pads, strides))
    position = emit.add_int(thread.axes[-1].in_block, first)
    for axis, stride in zip(thread.axes[:-1], strides):
        position = emit.add_int(position, emit.mul_int(axis.in_block, stride))
    ring = Ring(emit.int(0), 1, "fixed", slot_cells, geometry.period)
    plane = SharedPlane(ring, element, pitch, tuple(strides), pads, 0, position)
    return plane, slot_cells


def tiles_of_block(geometry: Geometry) -> int:
    """Tiles that share a block's shared memory."""
    assert geometry.kernel.layout is not None
    return geometry.kernel.layout.pack.data


def own_ring(
    emit: Emitter,
    geometry: Geometry,
    thread: Thread,
    allocate: Allocate,
    plane: SharedPlane,
    slots: int,
    addressing: str,
    slot_cells: int,
) -> SharedPlane:
    """Give a plane a ring of its own, one per tile of the block."""
    tiles = tiles_of_block(geometry)
    buffer = allocate(plane.element, tiles * slots * slot_cells)
    plane.ring = Ring(buffer, slots, addressing, slot_cells, geometry.period)
    assert plane.own is not None
    if tiles > 1:
        plane.own = emit.add_int(plane.own, emit.mul_int(thread.warp_in_block, slots * slot_cells))
    return plane


def shared_plane(
    emit: Emitter,
    geometry: Geometry,
    thread: Thread,
    allocate: Allocate,
    queue: SSAValue,
    home: SharedAttr,
    number: int,
    multi_queue: dict[Attribute, SharedPlane],
) -> SharedPlane:
    """A queue's ring; computed queues of one element share one, with the widest reach of all."""
    kernel = geometry.kernel
    element = queue_type(queue).element
    stream = kernel.stream_axis
    slots, addressing = home.slots.data, home.addressing.data
    if addressing != "computed":
        plane, cells = plane_layout(emit, geometry, thread, element, reach_of(kernel, queue))
        return own_ring(emit, geometry, thread, allocate, plane, slots, addressing, cells)
    if element not in multi_queue:
        reaches = [reach_of(kernel, r) for s in kernel.stages for r in s.results]
        reach = tuple(map(max, zip(*reaches)))
        plane, cells = plane_layout(emit, geometry, thread, element, reach)
        multi_queue[element] = own_ring(
            emit, geometry, thread, allocate, plane, slots, addressing, cells
        )
    base = home.base.data
    stage = queue.owner
    assert isinstance(stage, LoadOp | ApplyOp)
    for earlier in list(stage.results)[:number]:
        base -= ring_window(earlier, stream)
    common = multi_queue[element]
    return SharedPlane(
        common.ring, element, common.pitch, common.strides, common.pads, base % slots, common.own
    )


def exchange_plane(
    emit: Emitter, geometry: Geometry, thread: Thread, allocate: Allocate, stage: ExchangeOp
) -> SharedPlane:
    """The ring of an exchange of whole planes."""
    assert stage.home is not None
    element = queue_type(stage.result).element
    reach = reach_of(geometry.kernel, stage.result)
    plane, cells = plane_layout(emit, geometry, thread, element, reach)
    slots, addressing = stage.home.slots.data, stage.home.addressing.data
    return own_ring(emit, geometry, thread, allocate, plane, slots, addressing, cells)


def neighbour_ranks(emit: Emitter, thread: Thread, layout: LayoutAttr) -> dict[int, SSAValue]:
    """
    The ranks of the blocks before (-1) and after (1) in a tile of several; the own one where there is none.
    """
    assert thread.rank is not None
    ranks: dict[int, SSAValue] = {}
    for side in (-1, 1):
        beside, there = block_beside(emit, thread, side, layout)
        ranks[side] = emit.select(there, beside, thread.rank)
    return ranks


def edge_mail(
    emit: Emitter,
    geometry: Geometry,
    thread: Thread,
    memory: SharedMemory,
    mail_memory: MailMemory,
    stage: ExchangeOp,
    ranks: dict[int, SSAValue],
) -> EdgeMail:
    """The ring of an exchange of edges, along the one axis that has several warps."""
    assert stage.home is not None
    k = next(k for k, axis in enumerate(geometry.axes) if axis.layout.tile_warps > 1)
    tiling, axis = geometry.axes[k], thread.axes[k]
    along_rows = k != len(geometry.axes) - 1
    width = stage.edges[k]
    element = queue_type(stage.result).element
    row_cells = geometry.axes[-1].layout.block_extent if along_rows else 1
    per_warp = 2 * width * row_cells
    slot_cells = (tiling.layout.warps + 2) * per_warp
    slots, addressing = stage.home.slots.data, stage.home.addressing.data
    buffer = mail_memory.allocate(memory, stage, element, slots * slot_cells)
    own = emit.int(per_warp)
    if axis.warp is not None:
        own = emit.mul_int(emit.add_int(axis.warp, 1), per_warp)
    lane_position = emit.mul_int(thread.lane, geometry.axes[-1].layout.cells)
    if along_rows:
        own = emit.add_int(own, thread.axes[-1].in_block)
    ring = Ring(buffer, slots, addressing, slot_cells, geometry.period)
    mail = EdgeMail(ring, element, width, along_rows, row_cells, own, lane_position)
    if ranks:
        # The unused warps on both ends are where the blocks before and after send their edges.
        span = tiling.layout.warps * per_warp
        for edge in (BlockEdge(-1, 0, span), BlockEdge(1, tiling.layout.warps - 1, -span)):
            peer = emit.add(simt.PeerOp(buffer, ranks[edge.side]))
            mail.peers.append((edge, peer.result))
    return mail
