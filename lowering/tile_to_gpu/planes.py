"""The planes of a kernel as one thread sees them: registers, shared rings, neighbours, halos."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from xdsl.ir import Attribute, SSAValue

from timetile.dialects import simt
from timetile.dialects.tile import LANES
from timetile.lowering.emitter import Emitter
from timetile.lowering.tile_to_gpu.inboxes import Letters
from timetile.lowering.tile_to_gpu.rings import Ring, add_offsets
from timetile.lowering.tile_to_gpu.thread import Thread
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.analysis.geometry.plane_geometry import FieldShape, Row, vector_cells

Position = tuple[int, ...]
"""A cell's place along every in-plane axis, from the thread's first own cell: its row's, then its own in the row."""

Reach = Sequence[tuple[int, int]]
"""Cells that readers look below and above their own, per in-plane axis; negative where they look at none so near."""

Sides = tuple[tuple[bool, bool], ...]
"""Per in-plane axis, whether a position may be outside the bounds below, and above."""

Plane = dict[Position, SSAValue]
"""The values of one plane that a thread has at hand, its own cells and neighbours'."""


@dataclass
class Guard:
    """Where the cells outside the bounds of a queue are read: a field, by the program's coordinates."""

    field: SSAValue
    shape: FieldShape


@dataclass
class SharedPlane:
    """
    How a plane lies in a slot of a ring: its cells, and `pads` around them on both sides of every in-plane axis so
    that neighbours' addresses are always valid, `strides` cells from one to the next along each; `pitch` cells a row.
    """

    ring: Ring
    element: Attribute
    pitch: int
    strides: tuple[int, ...]
    pads: tuple[int, ...]
    base: int = 0
    own: SSAValue | None = None
    """Offset of the thread's first own cell in a slot (elements)."""

    def offset(self, at: Position) -> int:
        """Elements from the thread's first own cell to a position."""
        return sum(place * stride for place, stride in zip(at, self.strides, strict=True))


@dataclass(frozen=True)
class BlockEdge:
    """
    Where a tile goes on in another block: on the side before (-1) or after (1), at one of the block's
    warps; its edge lies `shift` elements further in the neighbour's mail than in the own.
    """

    side: int
    warp: int
    shift: int


@dataclass(frozen=True)
class Parcel:
    """Cells on their way to the mail of the block beside."""

    edge: BlockEdge
    peer: SSAValue
    cells: list[SSAValue]
    index: SSAValue | None
    at: int


@dataclass
class EdgeMail:
    """
    The edges of the warps along one in-plane axis: per warp, the first and the last `width` rows (or
    cells of the only row), with an unused warp on both ends so that addresses are always valid.
    """

    ring: Ring
    element: Attribute
    width: int
    along_rows: bool
    row_cells: int
    own: SSAValue | None = None
    """Offset of the thread's warp's first edge cell in a slot (elements)."""
    lane_position: SSAValue | None = None
    """Position of the thread's first own cell in its warp, along the last axis."""
    peers: list[tuple[BlockEdge, SSAValue]] = field(
        default_factory=list[tuple[BlockEdge, SSAValue]]
    )
    """The mail of the blocks beside, in a cluster."""
    letters: Letters | None = None
    """What goes to the blocks beside in messages, in a tile that the device holds."""


@dataclass(frozen=True)
class Rim:
    """
    The cells around a block's plane in shared memory, `width` along the first axis on either side, which the blocks
    beside send, in a tile that the device holds: planes of `age` arrive there.
    """

    plane: SharedPlane
    letters: Letters
    width: int
    age: int

    def rows(self, geometry: Geometry, side: int) -> list[Row]:
        """The rows before (-1) or after (1) a thread's own, along the first axis."""
        own = geometry.axes[0].layout.cells
        return [
            (place + (-self.width if side < 0 else own), *others)
            for place, *others in geometry.thread_rows
            if place < self.width
        ]


@dataclass
class Queue:
    """One queue of the kernel and what is known of it at the current step."""

    value: SSAValue
    element: Attribute
    lag: int
    guard: Guard | None = None
    planes: list[Plane] = field(default_factory=list[Plane])
    """Newest first; all of them where the home is registers, this step's only where it is shared."""
    depth: int = 0
    shared: SharedPlane | None = None
    mail: EdgeMail | None = None
    rim: Rim | None = None
    """For an exchange: where the rows of other blocks lie beside the planes of the own."""
    source: Queue | None = None
    """For an exchange: the queue that it publishes."""
    delay: int = 0
    hold: int = 0
    """For an exchange: the age at which the source's planes are published."""
    copied: bool = False
    """For an exchange: the source's asynchronous copies serve it, and nothing is published."""
    older: Queue | None = None
    """Where cells outside the bounds come from, if from the registers of another queue."""
    behind: int = 0
    """The age at which that queue's plane is taken."""
    crossing: SSAValue | None = None
    """The value of the cell function in whose place cells of that plane wait."""
    waiting: Plane = field(default_factory=dict[Position, SSAValue])
    """The cells that wait there until this queue's plane is made."""
    legal: Plane | None = None
    """The newest plane as later steps will read it, where it is known before the end of the step."""
    born_legal: bool = False
    """Cells outside the bounds are right as soon as a plane is made: neighbours read it in that step."""

    @property
    def letters(self) -> Letters | None:
        """For an exchange: what goes to the blocks beside in messages."""
        if self.rim is not None:
            return self.rim.letters
        return None if self.mail is None else self.mail.letters

    def carried_cell(self, at: Position) -> SSAValue:
        """The newest plane's cell where it is outside the bounds."""
        assert self.older is not None
        return self.waiting[at] if at in self.waiting else self.older.planes[self.behind][at]


class PlaneReader:
    """Reads cells of planes in one copy of the unrolled body; neighbours are fetched once."""

    def __init__(
        self,
        emit: Emitter,
        geometry: Geometry,
        thread: Thread,
        *,
        plane_at: Callable[[FieldShape, int], tuple[SSAValue, int]],
        outside: Callable[[FieldShape, Position, Sides], SSAValue | None],
        inside: Callable[[Position, Sides], SSAValue],
        plane_in_field: Callable[[FieldShape, int], SSAValue | None],
        guarded: bool,
        count: SSAValue | None,
        turn: int,
        crossings: dict[tuple[int, int, int], bool],
    ):
        self.emit, self.geometry, self.thread = emit, geometry, thread
        self.plane_at, self.outside, self.guarded = plane_at, outside, guarded
        self.inside, self.plane_in_field = inside, plane_in_field
        self.count, self.turn = count, turn
        self.crossings = crossings
        axes = geometry.axes
        self.cells = axes[-1].layout.cells
        self.rows = geometry.thread_rows
        self.overridden: dict[tuple[SSAValue | int, ...], SSAValue] = {}
        self.fetched: dict[tuple[SSAValue, int, Position], SSAValue] = {}

    def shuffle(self, value: SSAValue, delta: int) -> SSAValue:
        """The value of another lane, shuffled once."""
        key = (value, delta, ())
        if key not in self.fetched:
            self.fetched[key] = self.emit.add(simt.ShuffleOp(value, delta)).result
        return self.fetched[key]

    def read(self, queue: Queue, age: int, at: Position, reach: Reach) -> SSAValue:
        """
        The cell at a position of the plane of some age. `reach` is how far from a cell inside the bounds who reads it
        looks: only what it reaches beyond its own cell can lie outside.
        """
        value = self.raw(queue, age, at)
        if not self.guarded or self.guard_of(queue) is None or self.is_legal(queue, age, at):
            return value
        return self.override(queue, age, at, self.sides(at, reach), value)

    def is_legal(self, queue: Queue, age: int, at: Position) -> bool:
        """The cell was taken from the halo, where it had to be, when its plane became old."""
        if queue.source is not None:
            if queue.source.born_legal and not queue.copied:
                return True
            if queue.mail is None or not (queue.mail.along_rows and at[:-1] in self.rows):
                return False
            age += queue.delay + queue.hold
            queue = queue.source
        return queue.born_legal or (age > 0 and queue.shared is None)

    def sides(self, at: Position, reach: Reach) -> Sides:
        """Where a position may be outside the bounds, no further than readers reach."""
        return tuple(
            (self.crosses(k, position, -max(low, 0)), self.crosses(k, position, max(high, 0)))
            for k, (position, (low, high)) in enumerate(zip(at, reach, strict=True))
        )

    def legal_row(self, queue: Queue, reach: Reach, row: Row) -> Plane:
        """
        A row of the newest plane with its cells outside the bounds replaced. Where no neighbour reads it in
        this step it takes the plane's place at the end: what the next level computes from such cells until
        then is outside, too, and nothing waits for them.
        """
        return {
            at: self.override(queue, 0, at, self.sides(at, reach), value)
            for at, value in queue.planes[0].items()
            if at[:-1] == row
        }

    def crosses(self, number: int, position: int, moved: int) -> bool:
        """A tap along an in-plane axis may leave the bounds at this position."""
        key = (number, position, moved)
        if key not in self.crossings:
            self.crossings[key] = self.geometry.may_cross(number, position, moved)
        return self.crossings[key]

    def guard_of(self, queue: Queue) -> Guard | None:
        return queue.source.guard if queue.source is not None else queue.guard

    def raw(self, queue: Queue, age: int, at: Position) -> SSAValue:
        """The cell, whatever the bounds."""
        row, cell = at[:-1], at[-1]
        behind = age + queue.delay + queue.hold
        if queue.shared is not None:
            planes = queue.planes[:1] if queue.source is None else queue.source.planes
            if row in self.rows and 0 <= cell < self.cells and behind < len(planes):
                return planes[behind][at]
            slot = behind if queue.copied else age + queue.delay
            return self.from_ring(queue, queue.shared, slot, at)
        if queue.mail is not None:
            return self.from_mail(queue, queue.mail, age, at)
        if queue.source is not None and queue.source.shared is not None:
            # The ring serves who reads the exchange, the rows around it included.
            return self.from_ring(queue.source, queue.source.shared, behind, at)
        if row not in self.rows:
            # Beyond the tile, which overlaps its neighbours there.
            return self.emit.add(simt.UnsetOp(queue.element)).result
        plane = queue.planes[age]
        lane, within = divmod(cell, self.cells)
        value = plane[*row, within]
        return value if lane == 0 else self.shuffle(value, lane)

    def from_ring(self, queue: Queue, shared: SharedPlane, age: int, at: Position) -> SSAValue:
        """A cell of a whole plane in shared memory, fetched with the aligned vector that it lies in."""
        key = (queue.value, age, at)
        if key not in self.fetched:
            slot = shared.ring.slot(self.emit, self.count, self.turn, age, shared.base)
            index = add_offsets(self.emit, shared.own, slot.index)
            width = vector_cells(self.cells, shared.element)
            row, first = at[:-1], at[-1] // width * width
            offset = slot.offset + shared.offset((*row, first))
            load = simt.LoadOp(shared.ring.buffer, index, offset, [shared.element] * width)
            for k, value in enumerate(self.emit.add(load).cells):
                self.fetched[queue.value, age, (*row, first + k)] = value
        return self.fetched[key]

    def from_mail(self, queue: Queue, mail: EdgeMail, age: int, at: Position) -> SSAValue:
        """A cell of a neighbouring warp's edge, or of the own warp's registers."""
        assert queue.source is not None
        row, cell = at[:-1], at[-1]
        lane, within = divmod(cell, self.cells)
        source_age = age + queue.delay + queue.hold
        if mail.along_rows:
            if row in self.rows:
                value = queue.source.planes[source_age][*row, within]
            else:
                value = self.mail_row(queue, mail, age, row)[within]
            return value if lane == 0 else self.shuffle(value, lane)
        value = queue.source.planes[source_age][*row, within]
        if lane == 0:
            return value
        return self.mail_cell(queue, mail, age, cell, self.shuffle(value, lane))

    def mail_row(self, queue: Queue, mail: EdgeMail, age: int, row: Row) -> list[SSAValue]:
        """The lane's cells of a row that a neighbouring warp published."""
        (place,) = row
        # The warp before ends `width` rows before the own first edge row: its last rows.
        number = place if place < 0 else 2 * mail.width + place - len(self.rows)
        keys = [(queue.value, age, (place, cell)) for cell in range(self.cells)]
        if keys[0] not in self.fetched:
            slot = mail.ring.slot(self.emit, self.count, self.turn, age + queue.delay, 0)
            index = add_offsets(self.emit, mail.own, slot.index)
            vector = vector_cells(self.cells, mail.element)
            for start in range(0, self.cells, vector):
                offset = slot.offset + number * mail.row_cells + start
                types = [mail.element] * vector
                load = self.emit.add(simt.LoadOp(mail.ring.buffer, index, offset, types))
                for k, value in enumerate(load.cells):
                    self.fetched[keys[start + k]] = value
        return [self.fetched[key] for key in keys]

    def mail_cell(
        self, queue: Queue, mail: EdgeMail, age: int, cell: int, shuffled: SSAValue
    ) -> SSAValue:
        """The shuffled cell, or a neighbouring warp's published one where the lane leaves the warp."""
        key = (queue.value, age, (cell,))
        if key in self.fetched:
            return self.fetched[key]
        assert mail.lane_position is not None
        slot = mail.ring.slot(self.emit, self.count, self.turn, age + queue.delay, 0)
        index = add_offsets(self.emit, mail.own, slot.index, mail.lane_position)
        warp_cells = self.cells * LANES
        position = self.emit.add_int(mail.lane_position, cell)
        if cell < 0:
            mask, offset = self.emit.compare("slt", position, 0), cell
        else:
            mask = self.emit.compare("sge", position, warp_cells)
            offset = cell - warp_cells + 2 * mail.width
        override = simt.OverrideOp([shuffled], mail.ring.buffer, index, slot.offset + offset, mask)
        self.fetched[key] = self.emit.add(override).res[0]
        return self.fetched[key]

    def fetch_halo(self, guard: Guard, element: Attribute, lag: int, reach: Reach) -> None:
        """
        Ask for the cells outside the bounds of the plane `lag` steps back: every level reads them, and
        the first would wait for memory.
        """
        for at in self.geometry.thread_positions:
            sides = self.sides(at, reach)
            mask = self.halo_mask(guard.shape, at, sides, lag)
            if mask is not None:
                index, offset = self.plane_at(guard.shape, lag)
                offset += cells_between(self.geometry, guard.shape, at)
                self.emit.add(simt.PrefetchOp(guard.field, index, offset, element, mask))

    def halo_mask(self, shape: FieldShape, at: Position, sides: Sides, lag: int) -> SSAValue | None:
        """
        The position is outside the bounds on one of the sides, in a plane that the field has; None where the field has no
        such cells.
        """
        outside = self.outside(shape, at, sides) if any(map(any, sides)) else None
        if outside is None:
            return None
        return self.emit.all_of([outside, self.plane_in_field(shape, lag)])

    def override(
        self, queue: Queue, age: int, at: Position, sides: Sides, value: SSAValue
    ) -> SSAValue:
        """
        The value, or the halo's where the position is outside the bounds: an older level's register, or
        a predicated load over the value's own.
        """
        guard = self.guard_of(queue)
        assert guard is not None
        if not any(map(any, sides)):
            return value
        if queue.older is not None:
            return self.emit.select(self.inside(at, sides), value, queue.carried_cell(at))
        key = (value, *at, *(side for pair in sides for side in pair))
        if key in self.overridden:
            return self.overridden[key]
        mask = self.halo_mask(guard.shape, at, sides, queue.lag + age)
        if mask is None:
            return value
        index, offset = self.plane_at(guard.shape, queue.lag + age)
        offset += cells_between(self.geometry, guard.shape, at)
        op = simt.OverrideOp([value], guard.field, index, offset, mask)
        self.overridden[key] = self.emit.add(op).res[0]
        return self.overridden[key]


def cells_between(geometry: Geometry, shape: FieldShape, at: Position) -> int:
    """Cells between the thread's first own cell and a position, in a field."""
    return sum(
        place * shape.strides[tiling.axis] for place, tiling in zip(at, geometry.axes, strict=True)
    )
