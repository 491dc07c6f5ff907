"""The shared memory of a block of a placed kernel: the slices, and what each slice holds.

Homes say how many planes a queue keeps, and `geometry/shared_layout.py` says how a plane lies. From
both follows where everything is in the memory of a block. The lowering allocates the slices named
here, in this order, and no others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from xdsl.dialects.builtin import i64
from xdsl.ir import Attribute, SSAValue

from timetile.dialects.cell_types import CELL_BYTES
from timetile.dialects.syntax import cell_type, element_type
from timetile.dialects.tile import (
    LANES,
    Addressing,
    ApplyOp,
    CopiesAttr,
    ExchangeBufferAttr,
    ExchangeOp,
    KernelOp,
    LoadOp,
    Published,
    RegistersAttr,
    SharedAttr,
    StageOp,
    StoreOp,
    exchanges_of,
    queue_type,
    taps_of,
)
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.analysis.geometry.shared_layout import (
    EdgeLayout,
    PaddedPlane,
    PrefetchLayout,
    StagedRows,
    slice_bytes,
)
from timetile.passes.analysis.queues.common_rings import ring_base, ring_key, shares_ring
from timetile.passes.analysis.queues.synchronisation import arrives, lives_in_ring


@dataclass(frozen=True, eq=False)
class Slice:
    """A part of a block's shared memory: `cells` cells, from `at` bytes on."""

    at: int
    element: Attribute
    cells: int

    @property
    def end(self) -> int:
        """The first byte behind the slice, where another slice may begin."""
        return self.at + slice_bytes(self.cells, CELL_BYTES[self.element])


@dataclass(frozen=True)
class WarpPart:
    """
    Cells of each warp for the warp's own lanes: a slice, or a part of a slice shared by all parts
    of one type, in which the parts of a warp are adjacent.
    """

    memory: Slice
    first: int
    """The part's place behind the first cell of the warp."""
    pitch: int
    """Cells between warps."""


@dataclass(frozen=True)
class PlaneRing:
    """
    A ring of `slots` planes for each tile of the block. Queues that share a ring have `base`s: the
    slots by which a queue is ahead.
    """

    memory: Slice
    plane: PaddedPlane
    slots: int
    addressing: Addressing
    base: int = 0

    @property
    def tile_cells(self) -> int:
        """Cells of a tile's ring."""
        return self.slots * self.plane.cells


@dataclass(frozen=True)
class EdgeRing:
    """A ring with the edges of `slots` planes."""

    memory: Slice
    edges: EdgeLayout
    slots: int
    addressing: Addressing
    base: int = 0


@dataclass(frozen=True)
class EarlyPlanes:
    """The rings of a load with early fetches, one for each warp."""

    part: WarpPart
    ring: PrefetchLayout


@dataclass
class BlockMemory:
    """The shared memory of a block of a placed kernel."""

    slices: list[Slice] = field(default_factory=list[Slice])
    planes: dict[SSAValue, PlaneRing] = field(default_factory=dict[SSAValue, PlaneRing])
    """By queue: rings of homes in shared memory, and of exchanges of planes or copies."""
    edges: dict[SSAValue, EdgeRing] = field(default_factory=dict[SSAValue, EdgeRing])
    """By queue: the slots in which edges are exchanged."""
    early: dict[SSAValue, EarlyPlanes] = field(default_factory=dict[SSAValue, EarlyPlanes])
    """By queue: planes fetched early by loads, unless the copies serve an exchange."""
    staged: dict[SSAValue, WarpPart] = field(default_factory=dict[SSAValue, WarpPart])
    """
    By field: where rows of a warp change hands before they are stored. Fields of a type with the
    cells of one queue share a slice: rows change hands once.
    """
    arrivals: Slice | None = None
    """Words for arrivals of warps; None unless warps synchronise in two halves."""

    @property
    def bytes(self) -> int:
        """Bytes of shared memory of a block."""
        return self.slices[-1].end if self.slices else 0

    @staticmethod
    def of(geometry: Geometry, *, adjacent: bool = False) -> BlockMemory:
        """
        The memory of a placed kernel. With `adjacent` all cells of a type that a warp keeps for its
        lanes are adjacent, and one register addresses all of a lane; else slices are smaller.
        """
        return Allocator(geometry, adjacent=adjacent).allocated()

    def allocate(self, element: Attribute, cells: int) -> Slice:
        """A new slice, behind all others."""
        self.slices.append(Slice(self.bytes, element, cells))
        return self.slices[-1]


class Allocator:
    """Gives the slices of a kernel's memory, stage by stage."""

    def __init__(self, geometry: Geometry, *, adjacent: bool):
        self.geometry, self.kernel, self.layout = geometry, geometry.kernel, geometry.layout
        self.adjacent, self.warps = adjacent, geometry.layout.threads // LANES
        self.axes = geometry.layout.axis_layouts
        self.memory = BlockMemory()
        stores = [stage for stage in self.kernel.stages if isinstance(stage, StoreOp)]
        self.stored = {store.field: store.queue for store in stores}
        """The queue stored to each field."""
        self.common: dict[tuple[int, Attribute], PlaneRing | EdgeRing] = {}
        """The rings that several queues share, by number and type."""
        self.rings: dict[SSAValue, PrefetchLayout] = {}
        """The rings of warps, by queue."""
        self.kept: dict[SSAValue, tuple[Attribute, int]] = {}
        """Type and number of cells that a warp keeps for its own lanes, by queue or field."""
        self.parts: dict[SSAValue, WarpPart] = {}
        """The places of these cells."""

    def allocated(self) -> BlockMemory:
        """The memory, with a place for everything."""
        for stage in self.kernel.stages:
            self.add_stage(stage)
        self.place_kept()
        if arrives(self.kernel):
            words = 2 if self.layout.has_cluster else 1
            self.memory.arrivals = self.memory.allocate(i64, words)
        return self.memory

    def add_stage(self, stage: StageOp) -> None:
        """Add what one stage keeps."""
        memory = self.memory
        match stage:
            case LoadOp(home=CopiesAttr() as home):
                self.keep_ring(stage, PrefetchLayout.of_slots(self.layout, home.slots.data))
            case LoadOp(home=RegistersAttr()) if stage.data is not None and stage.planes_ahead:
                self.add_early(stage)
            case LoadOp(home=SharedAttr() as home) | ApplyOp(home=SharedAttr() as home):
                for queue in stage.results:
                    memory.planes[queue] = self.ring_of_planes(queue, home)
            case ExchangeOp(home=ExchangeBufferAttr() as home) if (
                stage.what.data is Published.PLANE
            ):
                memory.planes[stage.result] = self.ring_of_planes(stage.result, home)
            case ExchangeOp() if lives_in_ring(stage.queue):
                # Readers of the exchange read the ring of the queue: the exchange needs no memory.
                pass
            case ExchangeOp(home=ExchangeBufferAttr() as home) if (
                stage.what.data is Published.EDGES
            ):
                ring = self.ring_of_edges(stage, home)
                if ring is not None:
                    memory.edges[stage.result] = ring
            case StoreOp() if self.geometry.deals_rows(stage.field):
                self.keep_rows(stage.field)
            case _:
                pass

    def keep(self, key: SSAValue, element: Attribute, cells: int) -> None:
        """Keep cells of a warp, in a slice of their own unless parts are adjacent."""
        self.kept[key] = element, cells
        if not self.adjacent:
            memory = self.memory.allocate(element, self.warps * cells)
            self.parts[key] = WarpPart(memory, 0, cells)

    def place_kept(self) -> None:
        """Give all rings of warps, and all rows that change hands, their places."""
        if self.adjacent:
            self.place_adjacent()
        for queue, ring in self.rings.items():
            self.memory.early[queue] = EarlyPlanes(self.parts[queue], ring)
        for stored in filter(self.geometry.deals_rows, self.stored):
            self.memory.staged[stored] = self.parts[self.first_dealt(stored)]

    def place_adjacent(self) -> None:
        """Give each warp a place for all cells of a type that the warp keeps for its lanes."""
        first: dict[SSAValue, int] = {}
        pitches: dict[Attribute, int] = {}
        for key, (element, cells) in self.kept.items():
            first[key] = pitches.get(element, 0)
            pitches[element] = first[key] + cells
        memory = {kind: self.memory.allocate(kind, self.warps * n) for kind, n in pitches.items()}
        for key, (element, _) in self.kept.items():
            self.parts[key] = WarpPart(memory[element], first[key], pitches[element])

    def first_dealt(self, stored: SSAValue) -> SSAValue:
        """The first field with the cells and the type of a field: rows change hands once."""
        return next(
            known
            for known, queue in self.stored.items()
            if queue is self.stored[stored]
            and known.type == stored.type
            and self.geometry.deals_rows(known)
        )

    def keep_ring(self, load: LoadOp, ring: PrefetchLayout) -> None:
        """Keep a ring of planes for each warp."""
        self.rings[load.result] = ring
        self.keep(load.result, element_type(load.field), ring.warp_cells)

    def keep_rows(self, stored: SSAValue) -> None:
        """Keep the rows of a store for each warp, unless kept for another field of equal cells."""
        if (first := self.first_dealt(stored)) not in self.kept:
            self.keep(first, cell_type(stored), StagedRows.of(self.layout).warp_cells)

    def add_early(self, load: LoadOp) -> None:
        """Add the ring of a load with early fetches, which an exchange's readers may share."""
        exchange = copies_exchange(self.geometry, load)
        if exchange is None or exchange.home is None:
            self.keep_ring(load, PrefetchLayout.of(self.layout, load.planes_ahead))
            return
        self.memory.planes[exchange.result] = self.ring_of_planes(exchange.result, exchange.home)

    def own_ring(self, plane: PaddedPlane, slots: int, addressing: Addressing) -> PlaneRing:
        """A ring in a slice of its own, for each tile of the block."""
        cells = self.layout.pack.data * slots * plane.cells
        return PlaneRing(self.memory.allocate(plane.element, cells), plane, slots, addressing)

    def ring_of_planes(self, queue: SSAValue, home: SharedAttr | ExchangeBufferAttr) -> PlaneRing:
        """The ring of a queue's planes. A common ring has the widest reach of its queues."""
        key, slots = ring_key(queue), home.slots.data
        if key is None:
            plane = self.padded(queue, [queue])
            return self.own_ring(plane, slots, home.addressing.data)
        ring = self.common.get(key)
        if not isinstance(ring, PlaneRing):
            queues = [result for each in self.kernel.stages for result in each.results]
            plane = self.padded(queue, [each for each in queues if shares_ring(each, queue)])
            ring = self.common[key] = self.own_ring(plane, slots, home.addressing.data)
        return replace(ring, base=ring_base(queue, self.kernel.stream_axis) % slots)

    def padded(self, queue: SSAValue, sharing: Sequence[SSAValue]) -> PaddedPlane:
        """A plane of a queue with the widest reach of some queues."""
        reach = tuple(map(max, zip(*(queue_reach(self.kernel, each) for each in sharing))))
        maker = queue.owner
        element = maker.element if isinstance(maker, ExchangeOp) else queue_type(queue).element
        return PaddedPlane.of(element, self.axes, reach)

    def ring_of_edges(self, exchange: ExchangeOp, home: ExchangeBufferAttr) -> EdgeRing | None:
        """The ring of an exchange's edges; None where warps have no edges."""
        edges, key = EdgeLayout.of(self.axes, exchange.edges), ring_key(exchange.result)
        if edges is None:
            return None
        ring = None if key is None else self.common.get(key)
        if not isinstance(ring, EdgeRing):
            element, slots = queue_type(exchange.result).element, home.slots.data
            part = self.memory.allocate(element, slots * edges.cells)
            ring = EdgeRing(part, edges, slots, home.addressing.data)
        if key is None:
            return ring
        self.common[key] = ring
        return replace(ring, base=ring_base(exchange.result, self.kernel.stream_axis))


def queue_reach(kernel: KernelOp, queue: SSAValue) -> tuple[int, ...]:
    """Cells of a queue's plane in shared memory around the block's own, per in-plane axis."""
    if isinstance(queue.owner, ExchangeOp):
        return exchange_reach(kernel, queue.owner)
    return ring_reach(kernel, queue)


def copies_exchange(geometry: Geometry, load: LoadOp) -> ExchangeOp | None:
    """The exchange served by a load's own copies; None if there is none."""
    return next((e for e in geometry.copies if e.queue is load.result), None)


def farthest(kernel: KernelOp, queues: Sequence[SSAValue]) -> tuple[int, ...]:
    """The largest distance of taps of queues, per in-plane axis."""
    taps = [kernel.in_plane(tap.offset) for queue in queues for _, tap in taps_of(queue)]
    return tuple(
        max((abs(tap[k]) for tap in taps), default=0) for k in range(len(kernel.plane_axes))
    )


def exchange_reach(kernel: KernelOp, exchange: ExchangeOp) -> tuple[int, ...]:
    """
    Cells of an exchanged plane around the block's own, per in-plane axis: as far as readers may
    look across warps, and as far as readers do look along lanes.
    """
    tapped = farthest(kernel, [exchange.result])
    return tuple(max(pair) for pair in zip(exchange.edges, tapped))


def ring_reach(kernel: KernelOp, queue: SSAValue) -> tuple[int, ...]:
    """
    How many cells a block keeps around its own, along each in-plane axis: the farthest tap into the
    queue, or the farthest tap into an exchange of its edges.
    """
    edges = [e.result for e in exchanges_of(queue) if e.what.data is Published.EDGES]
    return farthest(kernel, [queue, *edges])
