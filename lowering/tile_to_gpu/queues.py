"""The queues of a kernel in a thread: layouts of planes in shared memory, and the fixed facts of
each queue.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Attribute, SSAValue

from timetile.lowering.tile_to_gpu.message_buffers import MessageSlots
from timetile.lowering.tile_to_gpu.rings import Ring
from timetile.passes.analysis.geometry.borders import BlockDirection, Border
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.analysis.geometry.plane_geometry import FieldShape, Row
from timetile.passes.analysis.geometry.shared_layout import EdgeLayout, PaddedPlane

Position = tuple[int, ...]
"""
A cell's place along every in-plane axis, counted from the thread's first own cell: the place of the
row, then the place in the row.
"""

Plane = dict[Position, SSAValue]
"""The values of a plane in a thread: own cells and neighbours."""


@dataclass(frozen=True)
class SharedPlane:
    """
    A plane in a slot of a ring. The cells around the block's own give addresses of neighbours a
    place.
    """

    ring: Ring
    layout: PaddedPlane
    own: SSAValue
    """Offset of the thread's first own cell in a slot (elements)."""
    base: int = 0

    @property
    def element(self) -> Attribute:
        """The type of a cell."""
        return self.layout.element

    def offset(self, at: Position) -> int:
        """Elements from the thread's first own cell to a position."""
        return sum(place * stride for place, stride in zip(at, self.layout.strides, strict=True))


@dataclass(frozen=True)
class BlockEdge:
    """
    The place where a tile continues in another block: on the side before (-1) or after (1), at one
    of the block's warps. The edge lies `shift` elements further in the neighbour's buffer than in
    the own buffer.
    """

    side: int
    warp: int
    shift: int


@dataclass(frozen=True)
class EdgeMessage:
    """
    Cells for the edge buffer of the block beside, and the place in the buffer: an index, and
    elements from the index.
    """

    edge: BlockEdge
    peer: SSAValue
    cells: list[SSAValue]
    index: SSAValue | None
    at: int


@dataclass(frozen=True)
class EdgeBuffer:
    """
    The edges of the warps along one in-plane axis, in a slot of a ring. An unused warp at both ends
    keeps all addresses valid.
    """

    ring: Ring
    element: Attribute
    edges: EdgeLayout
    own: SSAValue
    """Offset of the first edge cell of the thread's warp in a slot (elements)."""
    lane_position: SSAValue
    """Position of the thread's first own cell in its warp, along the last axis."""
    base: int = 0
    peers: tuple[tuple[BlockEdge, SSAValue], ...] = ()
    """The edge buffers of the blocks beside, in a cluster."""
    slots: MessageSlots | None = None
    """The slots of messages to the blocks beside, in a tile held by the device."""


@dataclass(frozen=True)
class Column:
    """The column or corner that the block beside in a direction sends, and its slots."""

    border: Border
    slots: MessageSlots

    def places(self, slot: int) -> list[int]:
        """Where a lane's cells begin, in a slot."""
        return self.slots.places(slot, 0)


@dataclass(frozen=True)
class RimPlanes:
    """
    The cells around a block's plane in shared memory, `width` along the first axis on either side,
    sent by the blocks beside in a tile held by the device. Planes of `age` steps arrive in the rim.
    """

    plane: SharedPlane
    slots: MessageSlots | None
    """The slots of rows; None if no blocks lie along the first axis."""
    width: int
    age: int
    columns: tuple[Column, ...] = ()

    def column(self, direction: BlockDirection) -> Column:
        """The column that the block beside in a direction sends."""
        return next(c for c in self.columns if c.border.direction == direction)

    def rows(self, geometry: Geometry, side: int) -> list[Row]:
        """The rows before (-1) or after (1) a thread's own, along the first axis."""
        own = geometry.axes[0].layout.cells
        return [
            (place + (-self.width if side < 0 else own), *others)
            for place, *others in geometry.thread_rows
            if place < self.width
        ]


@dataclass(frozen=True)
class PublishedPlane:
    """A whole plane, written for the readers, with rows of other blocks in a rim."""

    plane: SharedPlane
    rim: RimPlanes | None


@dataclass(frozen=True)
class PublishedRing:
    """The ring of the published queue itself, with rows of other blocks in a rim."""

    plane: SharedPlane
    rim: RimPlanes | None


@dataclass(frozen=True)
class CopiedPlane:
    """The plane of a load's asynchronous copies: nothing is written for the readers."""

    plane: SharedPlane


PublishedCells = EdgeBuffer | PublishedPlane | PublishedRing | CopiedPlane
"""Where the readers of an exchange find cells of other threads."""


@dataclass(frozen=True)
class ReceivedEdge:
    """The slots of an exchange's messages from the blocks beside, and the place of the edges."""

    slots: MessageSlots
    place: EdgeBuffer | RimPlanes


@dataclass(frozen=True)
class QueuePlan:
    """
    The fixed facts of one queue. `depth` counts the older planes in registers. A loaded or computed
    queue in shared memory has a `shared` plane.
    """

    value: SSAValue
    element: Attribute
    lag: int
    depth: int = 0
    shared: SharedPlane | None = None


@dataclass(frozen=True, kw_only=True)
class ExchangePlan(QueuePlan):
    """
    The queue of an exchange: cells of other threads come from `published`, own cells from the
    planes of the published queue, the `source`. `hold` is the age of published planes, `delay` the
    number of steps until reading.
    """

    source: QueuePlan
    published: PublishedCells
    delay: int
    hold: int

    @property
    def published_age(self) -> int:
        """The source's age of a plane, new for readers of the exchange."""
        return self.delay + self.hold

    @property
    def received(self) -> ReceivedEdge | None:
        """The edges sent by the blocks beside, in a tile held by the device."""
        match self.published:
            case EdgeBuffer(slots=MessageSlots() as slots) as buffer:
                return ReceivedEdge(slots, buffer)
            case PublishedPlane(rim=RimPlanes(slots=MessageSlots() as slots) as rim):
                return ReceivedEdge(slots, rim)
            case PublishedRing(rim=RimPlanes(slots=MessageSlots() as slots) as rim):
                return ReceivedEdge(slots, rim)
            case _:
                return None

    @property
    def rim(self) -> RimPlanes | None:
        """The cells around the published planes that other blocks send."""
        match self.published:
            case PublishedPlane(rim=rim) | PublishedRing(rim=rim):
                return rim
            case _:
                return None

    @property
    def is_sent(self) -> bool:
        """Other blocks get cells of the exchange by messages."""
        return self.received is not None or self.rim is not None


def cells_between(geometry: Geometry, shape: FieldShape, at: Position) -> int:
    """Cells between the thread's first own cell and a position, in a field."""
    return sum(
        place * shape.strides[tiling.axis] for place, tiling in zip(at, geometry.axes, strict=True)
    )
