"""What the code of one variant of a kernel is made of: its queues, its masks, its places in fields.

A variant is one lowered copy of a kernel's stages. Everything that emits a part of it (`stages.py`,
`copies.py`, `publishing.py`, `storing.py`) takes the variant; masks and indices are made once, ahead of
the loops that use them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import arith
from xdsl.ir import Block, SSAValue

from timetile.dialects import nvvm, simt
from timetile.dialects.tile import ApplyOp, ExchangeOp, KernelOp, LoadOp, RegistersAttr, queue_type
from timetile.lowering.emitter import Emitter, integer_type
from timetile.lowering.tile_to_gpu.cells import CellFunction
from timetile.lowering.tile_to_gpu.inboxes import Messages, messages
from timetile.lowering.tile_to_gpu.placement import Placement
from timetile.lowering.tile_to_gpu.planes import (
    Guard,
    Parcel,
    PlaneReader,
    Position,
    Queue,
    Sides,
    cells_between,
)
from timetile.lowering.tile_to_gpu.reaches import Reaches
from timetile.lowering.tile_to_gpu.thread import (
    Thread,
    block_beside,
    index_width,
    plane_base,
)
from timetile.passes.analysis.geometry.field_access import (
    are_cells_tested,
    guarding_field,
    halo_spans,
    is_plane_tested,
)
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.analysis.geometry.plane_geometry import FieldShape
from timetile.passes.analysis.queues.synchronisation import (
    crossing_rows,
    place_barriers,
    steps_between_barriers,
)

FULL_WARP = -1

FAR_CELLS = 1 << 20
"""Cells from which on an offset does not fit the 24 signed bits that an access has for it, in 8-byte cells."""


def keeps_in_registers(stage: ApplyOp, older: SSAValue) -> bool:
    """A stage and the queue that it takes cells outside the bounds from both live in registers."""
    home = getattr(older.owner, "home", None)
    return isinstance(stage.home, RegistersAttr) and isinstance(home, RegistersAttr)


def newest_taps(stage: ApplyOp) -> set[int]:
    """The arguments of a stage's cell function that arrive in its own step."""
    return {k for k, tap in enumerate(stage.tap_list) if stage.age(tap) == 0}


class Variant:
    """One variant of a kernel, and where its code stands: the loop's body, the step, the turn."""

    reader: PlaneReader
    """Reads cells of planes, in the present turn of the loop."""

    def __init__(
        self,
        block: Block,
        root: Emitter,
        geometry: Geometry,
        thread: Thread,
        arguments: dict[SSAValue, SSAValue],
        functions: dict[str, CellFunction],
        placement: Placement,
        *,
        guarded: bool,
    ):
        self.setup = root.into(block)
        self.body = self.setup
        self.count: SSAValue | None = None
        """Steps of the chunk before this turn of the loop; None without a stream."""
        self.turn = 0
        """Which copy of the unrolled body."""
        self.geometry, self.thread = geometry, thread
        self.guarded = guarded
        """Cells may lie outside the bounds along the in-plane axes."""
        self.stream_guarded = True
        """Planes may lie outside the bounds along the stream: in the head and the tail of a chunk."""
        self.filling: int | None = None
        """The step at which the loop ends that fills the pipeline: stages that are not due before are left out."""
        self.kernel: KernelOp = geometry.kernel
        self.arguments, self.functions, self.placement = arguments, functions, placement
        self.stream = self.kernel.stream_axis
        self.width = index_width(geometry)
        self.bases: dict[tuple[FieldShape, SSAValue], SSAValue] = {}
        self.crossings: dict[tuple[int, int, int], bool] = {}
        self.index_cache: dict[tuple[FieldShape, SSAValue], SSAValue] = {}
        self.far_planes: dict[tuple[FieldShape, SSAValue, int], SSAValue] = {}
        self.next_cells: dict[tuple[SSAValue, SSAValue], SSAValue] = {}
        self.row_masks: dict[tuple[int, int, int], SSAValue] = {}
        self.phases: dict[int, SSAValue] = {}
        self.masks: dict[tuple[object, ...], SSAValue | None] = {}
        self.outgoing: dict[int, list[Parcel]] = {}
        """What was published for the blocks before (-1) and after (1) of the cluster, in this step."""
        self.messages: Messages = {}
        """The same for those of a tile that the device holds."""
        self.letter_slots: dict[tuple[int, int, int], SSAValue] = {}
        """Where the slots of messages begin in this step, where that is computed, by slots, words and age."""
        self.arriving: list[Queue] = []
        """The exchanges whose messages have been posted and not yet taken, in a tile without a stream."""
        self.cells = geometry.axes[-1].layout.cells
        self.rows = geometry.thread_rows
        self.barriers = () if self.is_split else place_barriers(placement.orders)
        self.warp_barriers = place_barriers(placement.warp_orders)
        """Stages before which the lanes of a warp wait for each other."""
        self.barrier_steps = steps_between_barriers(messages(self.kernel))
        """Steps from one barrier of a tile's blocks to the next."""
        self.edge_rows = crossing_rows(self.kernel)
        """Rows at either end of a thread's own that are done before the warp arrives."""
        self.queues = self.make_queues()
        self.reaches = Reaches(geometry, list(self.queues.values()))
        for queue in self.queues.values():
            queue.born_legal = self.reaches.asks_for_legal(queue)

    def make_queues(self) -> dict[SSAValue, Queue]:
        queues: dict[SSAValue, Queue] = {}
        for stage in self.kernel.stages:
            for number, result in enumerate(stage.results):
                kind = queue_type(result)
                queue = Queue(result, kind.element, kind.lag.data)
                queue.shared = self.placement.shared.get(result)
                queue.mail = self.placement.mails.get(result)
                queue.rim = self.placement.rims.get(result)
                if (field := guarding_field(result)) is not None:
                    queue.guard = Guard(self.arguments[field], FieldShape.of(field))
                match stage:
                    case ApplyOp() if stage.otherwise:
                        older = queues[stage.otherwise[number]]
                        if stage.box is None and keeps_in_registers(stage, older.value):
                            queue.older, queue.behind = older, stage.lag - older.lag
                            function = self.functions[stage.cell.string_value()]
                            queue.crossing = function.crossing_value(newest_taps(stage))
                    case ExchangeOp():
                        queue.source = queues[stage.queue]
                        queue.delay, queue.hold = stage.delay.data, stage.hold
                        queue.copied = stage.publishes_copies
                    case _:
                        pass
                if isinstance(stage, LoadOp | ApplyOp) and isinstance(stage.home, RegistersAttr):
                    queue.depth = self.placement.depths[result]
                queues[result] = queue
        return queues

    def mask(self, key: tuple[object, ...], make: Callable[[], SSAValue | None]) -> SSAValue | None:
        if key not in self.masks:
            self.masks[key] = make()
        return self.masks[key]

    def known(self, key: tuple[object, ...], make: Callable[[], SSAValue | None]) -> SSAValue:
        """The same for what there always is."""
        value = self.mask(key, make)
        assert value is not None
        return value

    def outside(self, shape: FieldShape, at: Position, sides: Sides) -> SSAValue | None:
        """
        A position is beyond the bounds on one of the sides, and in the halo that the field has there; None where it has
        none.
        """

        def make() -> SSAValue | None:
            beyond: list[SSAValue] = []
            inside: list[SSAValue | None] = []
            several = sum(map(any, sides)) > 1
            for k, (below, above) in enumerate(sides):
                axis = self.geometry.axes[k].axis
                shift, place = at[k], self.thread.axes[k].coordinate
                for side, halo in zip((below, above), halo_spans(self.geometry, shape, axis)):
                    if side and halo:
                        beyond.append(self.within(place, shift, halo.start, halo.stop))
                if several or not (below or above):
                    inside.append(self.within(place, shift, shape.lower[axis], shape.upper[axis]))
            return self.setup.all_of([self.setup.any_of(beyond), *inside]) if beyond else None

        return self.mask(("outside", shape, at, sides), make)

    def plane_in_field(self, shape: FieldShape, lag: int) -> SSAValue | None:
        """The plane `lag` steps back lies in the field, halo included; None where that is certain."""
        if not is_plane_tested(self.geometry, shape, lag, steady=not self.stream_guarded):
            return None
        assert self.stream is not None
        return self.plane_between(lag, shape.lower[self.stream], shape.upper[self.stream])

    def stored_plane(self, shape: FieldShape, lag: int) -> SSAValue | None:
        """The plane `lag` steps back, which the chunk stores, lies in the field; None where that is certain."""
        steady = not self.stream_guarded
        if not is_plane_tested(self.geometry, shape, lag, steady=steady, stores=True):
            return None
        assert self.stream is not None
        return self.plane_between(lag, shape.lower[self.stream], shape.upper[self.stream])

    def within(self, value: SSAValue, shift: int, low: int, high: int) -> SSAValue:
        """`low <= value + shift < high`."""

        def make() -> SSAValue:
            distance = self.setup.add_int(value, shift - low)
            return self.setup.compare("ult", distance, high - low)

        return self.known(("within", value, shift, low, high), make)

    def inside(self, at: Position, sides: Sides) -> SSAValue:
        """A position is not beyond the bounds on any of the sides."""

        def make() -> SSAValue | None:
            parts: list[SSAValue | None] = []
            for k, (below, above) in enumerate(sides):
                axis, place = self.geometry.axes[k].axis, self.thread.axes[k].coordinate
                low, high = self.geometry.lower[axis] - at[k], self.geometry.upper[axis] - at[k]
                if below:
                    parts.append(self.setup.compare("sge", place, low))
                if above:
                    parts.append(self.setup.compare("slt", place, high))
            return self.setup.all_of(parts)

        return self.known(("inside", at, sides), make)

    def in_field(
        self,
        shape: FieldShape,
        at: Position,
        view: Thread,
        *,
        stores: bool = False,
        beside: Position | None = None,
    ) -> SSAValue | None:
        """
        A position lies in a field, halo included, as far as its in-plane axes go; None where that is certain, as of what
        a tile `stores` where the field has all cells inside the bounds. `beside` is how far it is from one of the
        thread's own.
        """
        axes = view.axes
        far = beside or (0,) * len(axes)

        def make() -> SSAValue | None:
            return self.cells_in_field(
                shape,
                [
                    (axis.coordinate, shift, distance)
                    for axis, shift, distance in zip(axes, at, far, strict=True)
                ],
                stores=stores,
            )

        return self.mask(("in field", shape, at, axes[-1].coordinate, stores, far), make)

    def cells_in_field(
        self, shape: FieldShape, cells: Sequence[tuple[SSAValue, int, int]], *, stores: bool = False
    ) -> SSAValue | None:
        """
        Cells lie in a field; None where that is certain. Of each in-plane axis a coordinate, how far the cell is from
        there, and how far from a cell that the block holds, or has copied.
        """
        parts: list[SSAValue | None] = []
        for number, (coordinate, shift, far) in enumerate(cells):
            interior, axis = not self.guarded, self.geometry.axes[number].axis
            if are_cells_tested(
                self.geometry, shape, number, interior=interior, stores=stores, far=far
            ):
                bounds = shape.lower[axis], shape.upper[axis]
                parts.append(self.within(coordinate, shift, *bounds))
        return self.setup.all_of(parts)

    def height(self) -> SSAValue:
        """The planes of the chunk."""
        return self.known(
            ("height",), lambda: self.setup.sub_int(self.thread.last, self.thread.first)
        )

    def unset(self, queue: Queue) -> SSAValue:
        return self.known(
            ("unset", queue.element), lambda: self.setup.add(simt.UnsetOp(queue.element)).result
        )

    def base_of(self, shape: FieldShape, view: Thread) -> SSAValue:
        """The first cell of a thread's view in plane 0 of the program's coordinates, in a field."""
        key = (shape, view.axes[-1].coordinate)
        if key not in self.bases:
            self.bases[key] = plane_base(self.setup, self.geometry, view, shape)
        return self.bases[key]

    def index_of(self, shape: FieldShape, view: Thread | None = None) -> SSAValue:
        """The thread's first own cell in the plane of this turn of the loop (turn 0), in a field."""
        view = self.thread if view is None else view
        key = (shape, view.axes[-1].coordinate)
        if key not in self.index_cache:
            base = self.base_of(shape, view)
            if self.count is not None:
                first = self.known(
                    ("first", *key), lambda: self.moved_to(self.setup, base, shape, self.start())
                )
                base = self.moved_to(self.body, first, shape, self.count)
            self.index_cache[key] = base
        return self.index_cache[key]

    def plane_at(
        self, shape: FieldShape, lag: int, view: Thread | None = None
    ) -> tuple[SSAValue, int]:
        """
        The thread's first own cell in the plane `lag` steps back, in a field: an index, and cells from there
        on. Far planes have an index of their own, as the offsets of accesses have few bits.
        """
        index = self.index_of(shape, view)
        if self.stream is None:
            return index, 0
        shift = (self.turn - lag) * shape.strides[self.stream]
        if abs(shift) < FAR_CELLS:
            return index, shift
        key = (shape, (self.thread if view is None else view).axes[-1].coordinate, shift)
        if key not in self.far_planes:
            self.far_planes[key] = self.body.add_int(index, shift)
        return self.far_planes[key], 0

    def next_cell(self, index: SSAValue, mask: SSAValue) -> SSAValue:
        """An index, one more where the mask is on."""
        kind = integer_type(index)

        def one_or_none() -> SSAValue:
            return self.setup.select(mask, self.setup.int(1, kind), self.setup.int(0, kind))

        if (index, mask) not in self.next_cells:
            more = self.known(("one", mask, kind), one_or_none)
            self.next_cells[index, mask] = self.body.add_int(index, more)
        return self.next_cells[index, mask]

    def moved_to(
        self, emit: Emitter, base: SSAValue, shape: FieldShape, step: SSAValue
    ) -> SSAValue:
        """A cell of plane 0 of the program's coordinates, in plane `step`."""
        assert self.stream is not None
        moved = emit.mul_int(emit.extend(step, self.width), shape.strides[self.stream])
        return emit.add_int(moved, base)

    def start(self) -> SSAValue:
        """The plane that arrives in the chunk's first step."""
        return self.known(
            ("start",), lambda: self.setup.add_int(self.thread.first, -self.geometry.fill)
        )

    @property
    def step(self) -> SSAValue | None:
        """The plane that arrives in this turn of the loop (turn 0); None without a stream."""
        count = self.count
        if count is None:
            return None
        return self.known(("step", count), lambda: self.body.add_int(count, self.start()))

    @property
    def guarded_step(self) -> SSAValue | None:
        """The same where planes may lie outside the bounds; None in a steady loop."""
        return self.step if self.stream_guarded else None

    def phase(self, passed: int) -> SSAValue:
        """The number of the step, from the block's first on: that of the phase in which its warps arrive."""
        assert self.count is not None
        key = self.turn - passed
        if key not in self.phases:
            counted, said = self.count, self.thread.said
            if said is not None:
                counted = self.body.add_int(counted, said)
            self.phases[key] = self.body.add_int(counted, key)
        return self.phases[key]

    @property
    def meets_at_barriers(self) -> bool:
        """The blocks of a tile that the device holds wait for each other at barriers."""
        inboxes = self.placement.inboxes
        return inboxes is not None and inboxes.counter is not None

    def message_number(self, passed: int) -> SSAValue | None:
        """
        The number of the step's message, or of that some steps before; 0 where there was none. Without a
        stream there is one of every exchange. None where blocks meet at barriers.
        """
        if self.meets_at_barriers:
            return None
        if self.count is None:
            assert self.thread.said is not None
            return self.setup.add_int(self.thread.said, 1)
        number = self.phase(passed - 1)
        if passed < 2:
            return number
        return self.body.binary(arith.MaxSIOp, number, self.body.int(0))

    def is_first_thread(self) -> SSAValue:
        """The first thread of the block."""
        first_warp = self.setup.compare("eq", self.thread.warp_in_block, 0)
        first_lane = self.setup.compare("eq", self.thread.lane, 0)
        return self.setup.binary(arith.AndIOp, first_warp, first_lane)

    def block_edge(self, side: int, warp: int) -> SSAValue:
        """
        The thread is of a warp at the block's edge on a side, of this number along the first axis, and the tile goes
        on there in another block.
        """

        def make() -> SSAValue | None:
            assert self.kernel.layout is not None
            _, there = block_beside(self.setup, self.thread, side, self.kernel.layout)
            beside = self.kernel.layout.edge_warps
            _, place = self.setup.split(self.thread.warp_in_block, beside)
            here = self.setup.compare("eq", place, warp)
            return self.setup.all_of([there, here])

        return self.known(("block edge", side), make)

    @property
    def takes_for_others(self) -> bool:
        """Several warps lie at the edge of a block, and read what any of them takes from the blocks beside."""
        assert self.kernel.layout is not None
        return self.kernel.layout.edge_warps > 1

    @property
    def is_split(self) -> bool:
        """The tile's warps arrive, and wait later."""
        return self.placement.arrivals is not None

    def mark_shared(self, stage: int) -> None:
        """What follows belongs to a stage, and other warps have to do with it."""
        self.body.add(simt.PhaseOp(self.turn, stage, 0))

    def mark(self, stage: int, row: int, *, private: bool = False) -> None:
        """
        What follows belongs to a stage and the row of this number. It is `private` if no other warp has to do with
        it, like what is stored, wherever the row lies.
        """
        inner = private or self.edge_rows <= row < len(self.rows) - self.edge_rows
        inner = inner and self.is_split
        self.body.add(simt.PhaseOp(self.turn, stage, row, inner=inner))

    @property
    def synchronises(self) -> bool:
        """The lanes of a warp wait for each other in every step."""
        in_every_step = bool(self.barriers) and self.barrier_steps == 1
        return in_every_step or any(ring.is_dealt for ring in self.placement.prefetches)

    def synchronise_warp(self) -> None:
        """The lanes of the warp wait for each other."""
        self.body.add(nvvm.WarpSyncOp(self.body.int(FULL_WARP)))

    def plane_between(self, lag: int, low: int, high: int) -> SSAValue:
        """The plane `lag` steps back lies in [low, high)."""
        key = (lag, low, high)
        if key not in self.row_masks:
            assert self.step is not None
            distance = self.body.add_int(self.step, self.turn - lag - low)
            self.row_masks[key] = self.body.compare("ult", distance, high - low)
        return self.row_masks[key]

    def in_plane(self, shape: FieldShape, at: Position) -> int:
        """Cells between the thread's first own cell and a position, in a field."""
        return cells_between(self.geometry, shape, at)

    def plane_mask(
        self, emit: Emitter, shape: FieldShape, step: SSAValue | None, shift: int
    ) -> SSAValue | None:
        """
        Plane `step + shift` lies in the field; None where that is certain. The step is that of this turn of the loop if
        it is None, as in a steady loop.
        """
        if not is_plane_tested(self.geometry, shape, self.turn - shift, steady=step is None):
            return None
        step = self.step if step is None else step
        assert self.stream is not None and step is not None
        low, high = shape.lower[self.stream], shape.upper[self.stream]
        return emit.compare("ult", emit.add_int(step, shift - low), high - low)

    def chunk_mask(self, lag: int) -> SSAValue:
        """The plane `lag` steps back is one that this chunk stores."""
        key = (lag, 0, -1)
        if key not in self.row_masks:
            assert self.count is not None
            distance = self.body.add_int(self.count, self.turn - lag - self.geometry.fill)
            self.row_masks[key] = self.body.compare("ult", distance, self.height())
        return self.row_masks[key]


def queue_field(
    kernel: KernelOp, arguments: dict[SSAValue, SSAValue], buffer: SSAValue
) -> SSAValue:
    """The kernel's field argument that a buffer argument of the thread-level function stands for."""
    for field in kernel.body.block.args:
        if arguments.get(field) is buffer:
            return field
    raise KeyError("the buffer is no argument of the kernel")
