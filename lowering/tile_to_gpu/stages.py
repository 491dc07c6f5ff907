"""The stages of a kernel, one stream step at a time, as the code of one thread."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import arith, gpu, scf
from xdsl.dialects.builtin import i32
from xdsl.ir import Block, SSAValue

from timetile.dialects import nvvm, simt
from timetile.dialects.simt import CELL_BYTES
from timetile.dialects.syntax import element_type
from timetile.dialects.tile import (
    ApplyOp,
    ExchangeOp,
    KernelOp,
    LoadOp,
    StageOp,
    StoreOp,
    queue_type,
)
from timetile.dialects.tile_attributes import MemoryAttr, RegistersAttr
from timetile.lowering.emitter import Emitter
from timetile.lowering.tile_to_gpu.barriers import place_barriers
from timetile.lowering.tile_to_gpu.cells import CellFunction
from timetile.lowering.tile_to_gpu.placement import Placement, PrefetchRing
from timetile.lowering.tile_to_gpu.planes import (
    EdgeMail,
    Guard,
    Plane,
    PlaneReader,
    Position,
    Queue,
    SharedPlane,
    Sides,
    cells_between,
)
from timetile.lowering.tile_to_gpu.prefetch import PadCopy, Staging
from timetile.lowering.tile_to_gpu.rings import Address, add_offsets, carried_offsets
from timetile.lowering.tile_to_gpu.thread import Thread, as_index, index_width, plane_base
from timetile.passes.analysis.geometry import VECTOR_BYTES, FieldShape, Geometry
from timetile.passes.multi_queue_buffering import taps_of_step

FULL_WARP = -1

WORTH_SKIPPING = 6
"""Cells of the overlap along an axis from which a load is masked to what is needed."""

LONGEST_TRIPLE = 1000
"""Taps of a step beyond which one guarded loop serves head, steady part and tail: its guards weigh
little beside so much arithmetic, and three copies would be slow to compile. So do guards where no halo
is apart from its data: they only keep loads inside their fields."""


class VariantEmitter:
    """Emits one variant of a kernel's stream loop into a block."""

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
        self.geometry, self.thread = geometry, thread
        self.guarded = guarded
        """Cells may lie outside the bounds along the in-plane axes."""
        self.stream_guarded = True
        """Planes may lie outside the bounds along the stream: in the head and the tail of a chunk."""
        self.kernel: KernelOp = geometry.kernel
        self.arguments, self.functions, self.placement = arguments, functions, placement
        self.stream = self.kernel.stream_axis
        self.width = index_width(geometry)
        self.bases: dict[tuple[FieldShape, SSAValue], SSAValue] = {}
        self.crossings: dict[tuple[int, int, int], bool] = {}
        self.masks: dict[tuple[object, ...], SSAValue | None] = {}
        self.cells = geometry.axes[-1].layout.cells
        self.rows = geometry.axes[0].layout.cells if len(geometry.axes) == 2 else 1
        self.barriers = place_barriers(placement.orders)
        self.queues = self.make_queues()
        self.reaches = {queue: self.reach_of(queue) for queue in self.queues}

    def reach_of(self, queue: SSAValue) -> list[tuple[int, int]]:
        """How far readers look from their own cell in older planes: below and above, rows and cells."""
        reach = [(0, 0), (0, 0)]
        for use in queue.uses:
            stage = use.operation
            if isinstance(stage, ExchangeOp) and stage.what.data == "edges":
                taken = self.reach_of(stage.result)
                reach = [(max(a, c), max(b, d)) for (a, b), (c, d) in zip(reach, taken)]
            if not isinstance(stage, ApplyOp):
                continue
            for tap in stage.tap_list:
                if stage.queues[tap.operand] is queue:
                    moved = self.in_plane_offset(tap.offset)
                    reach = [(max(a, -d), max(b, d)) for (a, b), d in zip(reach, moved)]
        return reach

    # The queues, with the places that `placement` gave them.

    def make_queues(self) -> dict[SSAValue, Queue]:
        queues: dict[SSAValue, Queue] = {}
        for stage in self.kernel.stages:
            for number, result in enumerate(stage.results):
                kind = queue_type(result)
                queue = Queue(result, kind.element, kind.lag.data)
                queue.shared = self.placement.shared.get(result)
                queue.mail = self.placement.mails.get(result)
                match stage:
                    case LoadOp():
                        guard = stage.halo if stage.halo is not None else None
                        queue.guard = None if guard is None else self.guard(guard)
                    case ApplyOp() if stage.otherwise:
                        queue.guard = queues[stage.otherwise[number]].guard
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

    def guard(self, field: SSAValue) -> Guard:
        return Guard(self.arguments[field], FieldShape.of(field))

    # Masks, made once ahead of the loop.

    def mask(self, key: tuple[object, ...], make: Callable[[], SSAValue | None]) -> SSAValue | None:
        if key not in self.masks:
            self.masks[key] = make()
        return self.masks[key]

    def outside(self, shape: FieldShape, at: Position, sides: Sides) -> SSAValue:
        """A position is beyond the bounds on one of the sides, and in the halo that the field has there."""

        def make() -> SSAValue | None:
            beyond: list[SSAValue] = []
            inside: list[SSAValue | None] = []
            several = sum(map(any, sides)) > 1
            for k, (below, above) in enumerate(sides):
                axis = self.geometry.axes[k].axis
                shift = at[1] if k == len(sides) - 1 else at[0]
                place = self.thread.axes[k].coordinate
                low, high = self.geometry.lower[axis], self.geometry.upper[axis]
                if below:
                    beyond.append(self.within(place, shift, shape.lower[axis], low))
                if above:
                    beyond.append(self.within(place, shift, high, shape.upper[axis]))
                if several or not (below or above):
                    inside.append(self.within(place, shift, shape.lower[axis], shape.upper[axis]))
            return self.setup.all_of([self.setup.any_of(beyond), *inside])

        mask = self.mask(("outside", shape, at, sides), make)
        assert mask is not None
        return mask

    def plane_in_field(self, shape: FieldShape, lag: int) -> SSAValue | None:
        """The plane `lag` steps back lies in the field, halo included."""
        if self.stream is None or not self.stream_guarded:
            return None
        return self.plane_between(lag, shape.lower[self.stream], shape.upper[self.stream])

    def within(self, value: SSAValue, shift: int, low: int, high: int) -> SSAValue:
        """`low <= value + shift < high`."""

        def make() -> SSAValue:
            distance = self.setup.add_int(value, shift - low)
            return self.setup.compare("ult", distance, high - low)

        mask = self.mask(("within", value, shift, low, high), make)
        assert mask is not None
        return mask

    def shifts(self, at: Position) -> tuple[int, ...]:
        """A position, per in-plane axis."""
        return at[2 - len(self.geometry.axes) :]

    def owned(self, at: Position, view: Thread) -> SSAValue | None:
        """The tile stores the cells at a position: they are its own, and in bounds."""

        def make() -> SSAValue | None:
            parts: list[SSAValue | None] = []
            for tiling, axis, shift in zip(self.geometry.axes, view.axes, self.shifts(at)):
                low, high = tiling.overlap_low, tiling.overlap_low + tiling.useful
                if (low, high) != (0, tiling.layout.extent):
                    parts.append(self.within(axis.in_tile, shift, low, high))
                if self.guarded:
                    bounds = self.geometry.lower[tiling.axis], self.geometry.upper[tiling.axis]
                    parts.append(self.within(axis.coordinate, shift, *bounds))
            return self.setup.all_of(parts)

        return self.mask(("owned", at, view.axes[-1].coordinate), make)

    def in_field(self, shape: FieldShape, at: Position, view: Thread) -> SSAValue | None:
        """A position lies in a field, halo included, as far as its in-plane axes go."""
        if not self.guarded:
            return None

        def make() -> SSAValue | None:
            parts: list[SSAValue | None] = []
            for tiling, axis, shift in zip(self.geometry.axes, view.axes, self.shifts(at)):
                bounds = shape.lower[tiling.axis], shape.upper[tiling.axis]
                parts.append(self.within(axis.coordinate, shift, *bounds))
            return self.setup.all_of(parts)

        return self.mask(("in field", shape, at, view.axes[-1].coordinate), make)

    # The loop.

    def emit(self) -> None:
        """Emit the whole variant."""
        for ring in self.placement.shifting_rings:
            ring.shifted.clear()
        for ring in self.placement.prefetches:
            self.start_prefetch(ring)
        if self.stream is None:
            self.body = self.setup
            self.step: SSAValue | None = None
            self.index_cache: dict[tuple[FieldShape, SSAValue], SSAValue] = {}
            self.run_step(0)
            return
        state = self.initial_state()
        head, steady, tail = self.segments()
        if taps_of_step(self.kernel) > LONGEST_TRIPLE or not self.geometry.reads_halos:
            self.emit_loop(head, self.end(), state)
            return
        state = self.emit_loop(head, steady, state)
        self.stream_guarded = False
        state = self.emit_loop(steady, tail, state)
        self.stream_guarded = True
        self.emit_loop(tail, self.end(), state)

    def end(self) -> SSAValue:
        """
        The step after the last one that stores. It is computed where it is needed, from what the stores'
        masks need anyway: registers are scarce.
        """
        last = self.setup.sub_int(self.height(), self.negative_first())
        return self.setup.add_int(last, self.geometry.drain)

    def height(self) -> SSAValue:
        """The planes of the chunk."""
        mask = self.mask(
            ("height",), lambda: self.setup.sub_int(self.thread.last, self.thread.first)
        )
        assert mask is not None
        return mask

    def negative_first(self) -> SSAValue:
        """The chunk's first plane, negated."""
        mask = self.mask(
            ("negative first",), lambda: self.setup.sub_int(self.setup.int(0), self.thread.first)
        )
        assert mask is not None
        return mask

    def segments(self) -> tuple[SSAValue, SSAValue, SSAValue]:
        """
        The first step, the first of the steady loop, and the first of the tail. In the steady loop no
        plane that a step touches lies outside the bounds.
        """
        assert self.stream is not None
        emit, geometry, period = self.setup, self.geometry, self.geometry.period
        low, high = geometry.lower[self.stream], geometry.upper[self.stream]
        start = emit.add_int(self.thread.first, -geometry.fill)

        def turns(distance: SSAValue) -> SSAValue:
            """Steps of the whole turns of the loop that fit a distance, none for a negative one."""
            distance = emit.binary(arith.MaxSIOp, distance, emit.int(0))
            count = (
                emit.binary(arith.DivUIOp, distance, emit.int(period)) if period > 1 else distance
            )
            return emit.mul_int(count, period)

        length = emit.sub_int(emit.add_int(self.thread.last, geometry.drain), start)
        length = turns(emit.add_int(length, period - 1))
        negative = emit.sub_int(emit.int(0), start)
        ahead = period - 1 + geometry.ahead - min(geometry.smallest_lag, 0)
        head = turns(emit.add_int(negative, low + geometry.largest_lag + period - 1))
        tail = turns(emit.add_int(negative, high - ahead))
        head = emit.binary(arith.MinSIOp, head, length)
        tail = emit.binary(arith.MinSIOp, emit.binary(arith.MaxSIOp, tail, head), length)
        return start, emit.add_int(start, head), emit.add_int(start, tail)

    def carried(self) -> list[Queue]:
        """The queues whose planes pass from step to step in registers."""
        return [queue for queue in self.queues.values() if queue.depth]

    def initial_state(self) -> list[SSAValue]:
        """What the loop carries before the first step."""
        state: list[SSAValue] = []
        for queue in self.carried():
            state += [self.unset(queue)] * (queue.depth * self.rows * self.cells)
        for ring in self.placement.shifting_rings:
            state += carried_offsets(self.setup, ring)
        return state

    def emit_loop(self, low: SSAValue, high: SSAValue, state: list[SSAValue]) -> list[SSAValue]:
        """One loop over steps; returns what it carries out."""
        block = Block(arg_types=[i32, *(value.type for value in state)])
        self.body = self.setup.into(block)
        self.step = block.args[0]
        self.index_cache = {}
        arguments = iter(block.args[1:])
        for queue in self.carried():
            queue.planes = [
                {at: next(arguments) for at in self.own_positions()} for _ in range(queue.depth)
            ]
        rings = self.placement.shifting_rings
        for ring in rings:
            ring.shifted = [next(arguments) for _ in range(ring.slots)]
        for turn in range(self.geometry.period):
            self.run_step(turn)
        results: list[SSAValue] = []
        for queue in self.carried():
            for plane in queue.planes[: queue.depth]:
                results += [plane[at] for at in self.own_positions()]
        for ring in rings:
            results += ring.shifted
        block.add_op(scf.YieldOp(*results))
        loop = scf.ForOp(low, high, self.setup.int(self.geometry.period), state, block)
        return list(self.setup.add(loop).results)

    def unset(self, queue: Queue) -> SSAValue:
        value = self.mask(
            ("unset", queue.element), lambda: self.setup.add(simt.UnsetOp(queue.element)).result
        )
        assert value is not None
        return value

    def own_positions(self) -> list[Position]:
        return [(row, cell) for row in range(self.rows) for cell in range(self.cells)]

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
            if self.step is not None:
                base = self.moved_to(self.body, base, shape, self.step)
            self.index_cache[key] = base
        return self.index_cache[key]

    def moved_to(
        self, emit: Emitter, base: SSAValue, shape: FieldShape, step: SSAValue
    ) -> SSAValue:
        """A cell of plane 0 of the program's coordinates, in plane `step`."""
        assert self.stream is not None
        moved = emit.mul_int(emit.extend(step, self.width), shape.strides[self.stream])
        return emit.add_int(moved, base)

    def run_step(self, turn: int) -> None:
        """All stages, once."""
        self.turn = turn
        self.reader = PlaneReader(
            self.body,
            self.geometry,
            self.thread,
            index_of=self.index_of,
            outside=self.outside,
            plane_in_field=self.plane_in_field,
            guarded=self.guarded,
            step=self.step,
            turn=turn,
            crossings=self.crossings,
        )
        for ring in self.placement.rings:
            ring.computed.clear()
        self.row_masks: dict[tuple[int, int, int], SSAValue] = {}
        for number, stage in enumerate(self.kernel.stages):
            if number in self.barriers:
                self.synchronise()
            self.run_stage(number, stage)
        if self.guarded:
            self.fetch_halos()
        for queue in self.queues.values():
            if self.guarded and queue.guard is not None and queue.depth:
                self.reader.legalise(queue, self.reaches[queue.value])
            keep = queue.depth if turn + 1 == self.geometry.period else queue.depth + 1
            queue.planes = queue.planes[:keep]
        for ring in self.placement.shifting_rings:
            ring.rotate()

    def fetch_halos(self) -> None:
        """Ask early for the cells outside the bounds that planes will be legalised with."""
        first: dict[SSAValue, Queue] = {}
        for queue in self.queues.values():
            if queue.guard is not None and queue.depth:
                known = first.setdefault(queue.guard.field, queue)
                if queue.lag < known.lag:
                    first[queue.guard.field] = queue
        ahead = self.geometry.ahead
        for queue in first.values() if ahead else ():
            assert queue.guard is not None
            reach = self.reaches[queue.value]
            self.reader.fetch_halo(queue.guard, queue.element, queue.lag - ahead, reach)

    def synchronise(self) -> None:
        """The threads of the tile wait for each other."""
        self.body.add(simt.PhaseOp(self.turn, -1, 0))
        if self.placement.one_warp:
            self.synchronise_warp()
        else:
            self.body.add(gpu.BarrierOp())

    def synchronise_warp(self) -> None:
        """The lanes of the warp wait for each other."""
        self.body.add(nvvm.WarpSyncOp(self.body.int(FULL_WARP)))

    def run_stage(self, number: int, stage: StageOp) -> None:
        match stage:
            case LoadOp():
                if not isinstance(stage.home, MemoryAttr):
                    self.body.add(simt.PhaseOp(self.turn, number, 0))
                    self.finish(self.queues[stage.result], self.load(stage))
            case ApplyOp():
                planes: list[Plane] = [{} for _ in stage.res]
                for row in range(self.rows):
                    self.body.add(simt.PhaseOp(self.turn, number, row))
                    for cell in range(self.cells):
                        for plane, value in zip(planes, self.apply(stage, (row, cell))):
                            plane[row, cell] = value
                for result, plane in zip(stage.res, planes):
                    self.finish(self.queues[result], plane)
            case ExchangeOp():
                self.publish(number, stage)
            case StoreOp():
                self.store(number, stage)

    def finish(self, queue: Queue, plane: Plane) -> None:
        """A new plane is there: halos along the stream, its place in shared memory, its age 0."""
        if self.stream_guarded and queue.guard is not None and not self.holds_halo(queue):
            plane = self.override_rows(queue, queue.guard, plane)
        if queue.shared is not None:
            self.write_plane(queue.shared, plane, queue.shared.base)
            queue.planes = [plane]
        else:
            queue.planes.insert(0, plane)

    def holds_halo(self, queue: Queue) -> bool:
        """Planes outside the bounds along the stream were copied from the halo already."""
        if self.stream is None:
            return True
        return any(r.is_tiles and r.load.result is queue.value for r in self.placement.prefetches)

    # Stages.

    def apply(self, stage: ApplyOp, at: Position) -> list[SSAValue]:
        """One cell of a stage."""
        arguments: list[SSAValue] = []
        for tap in stage.tap_list:
            queue = self.queues[stage.queues[tap.operand]]
            moved = self.in_plane_offset(tap.offset)
            position = (at[0] + moved[0], at[1] + moved[1])
            arguments.append(self.reader.read(queue, stage.age(tap), position, moved))
        arguments += [self.arguments[scalar] for scalar in stage.scalars]
        arguments += [self.coordinate(axis, stage.lag, at) for axis in stage.index_axes]
        results = self.functions[stage.cell.string_value()].inline(self.body, arguments)
        if stage.box is None:
            return results
        inside = self.inside_box(stage, at)
        chosen: list[SSAValue] = []
        for queue, result in zip(stage.otherwise, results):
            source = self.queues[queue]
            age = stage.lag - source.lag
            old = self.reader.read(source, age, at, (0, 0))
            chosen.append(self.body.add(arith.SelectOp(inside, result, old)).result)
        return chosen

    def in_plane_offset(self, offset: tuple[int, ...]) -> tuple[int, int]:
        """The part of a tap's offset that lies in the plane: rows and cells."""
        axes = self.kernel.plane_axes
        return (offset[axes[0]] if len(axes) == 2 else 0, offset[axes[-1]])

    def inside_box(self, stage: ApplyOp, at: Position) -> SSAValue:
        """The cell lies in the stage's own box."""
        assert stage.box is not None
        low, high = tuple(stage.box.lb), tuple(stage.box.ub)
        parts: list[SSAValue | None] = []
        for tiling, axis, shift in zip(self.geometry.axes, self.thread.axes, self.shifts(at)):
            parts.append(self.within(axis.coordinate, shift, low[tiling.axis], high[tiling.axis]))
        if self.stream is not None:
            parts.append(self.plane_between(stage.lag, low[self.stream], high[self.stream]))
        mask = self.body.all_of(parts)
        assert mask is not None
        return mask

    def coordinate(self, axis: int, lag: int, at: Position) -> SSAValue:
        """The program's coordinate of a cell along an axis, as an index."""
        if axis == self.stream:
            assert self.step is not None
            return as_index(self.body, self.body.add_int(self.step, self.turn - lag))
        k = self.kernel.plane_axes.index(axis)
        shift = at[1] if k == len(self.thread.axes) - 1 else at[0]
        return as_index(self.body, self.body.add_int(self.thread.axes[k].coordinate, shift))

    def plane_between(self, lag: int, low: int, high: int) -> SSAValue:
        """The plane `lag` steps back lies in [low, high)."""
        key = (lag, low, high)
        if key not in self.row_masks:
            assert self.step is not None
            distance = self.body.add_int(self.step, self.turn - lag - low)
            self.row_masks[key] = self.body.compare("ult", distance, high - low)
        return self.row_masks[key]

    def override_rows(self, queue: Queue, guard: Guard, plane: Plane) -> Plane:
        """Where the whole plane is outside the bounds along the stream, take it from the halo."""
        assert self.stream is not None
        low, high = self.geometry.lower[self.stream], self.geometry.upper[self.stream]
        shape = guard.shape
        spans = [
            (a, b)
            for a, b in ((shape.lower[self.stream], low), (high, shape.upper[self.stream]))
            if a < b
        ]
        if not spans:
            return plane
        outside = self.body.any_of([self.plane_between(queue.lag, a, b) for a, b in spans])
        width = self.geometry.access_width(queue_field(self.kernel, self.arguments, guard.field))
        index = self.index_of(shape)
        replaced: Plane = {}
        for row in range(self.rows):
            for start in range(0, self.cells, width):
                group = [(row, start + k) for k in range(width)]
                offset = self.reader.stream_offset(shape, queue.lag)
                offset += self.in_plane(shape, (row, start))
                mask = self.body.all_of([outside, self.in_field(shape, (row, start), self.thread)])
                assert mask is not None
                own = [plane[at] for at in group]
                op = simt.OverrideOp(own, guard.field, index, offset, mask)
                replaced.update(zip(group, self.body.add(op).res))
        return replaced

    def load(self, stage: LoadOp) -> Plane:
        """The thread's own cells of a field's plane, from its prefetch ring or from memory."""
        assert stage.data is not None
        prefetch = self.placement.prefetch_of(stage)
        if prefetch is not None:
            return self.take_prefetched(prefetch)
        shape, field = FieldShape.of(stage.data), self.arguments[stage.data]
        width = self.geometry.access_width(stage.data)
        element = element_type(stage.data)
        plane: Plane = {}
        for row in range(self.rows):
            for start in range(0, self.cells, width):
                shift = self.turn - stage.lag
                mask = self.load_mask(
                    self.body, stage, shape, self.step, shift, (row, start), self.thread
                )
                offset = self.reader.stream_offset(shape, stage.lag)
                offset += self.in_plane(shape, (row, start))
                op = simt.LoadOp(field, self.index_of(shape), offset, [element] * width, mask)
                for k, value in enumerate(self.body.add(op).cells):
                    plane[row, start + k] = value
        return plane

    def in_plane(self, shape: FieldShape, at: Position) -> int:
        """Cells between the thread's first own cell and a position, in a field."""
        return cells_between(self.geometry, shape, at)

    def load_mask(
        self,
        emit: Emitter,
        load: LoadOp,
        shape: FieldShape,
        step: SSAValue | None,
        shift: int,
        at: Position,
        view: Thread,
    ) -> SSAValue | None:
        """
        Plane `step + shift` and the position lie in the field, and somebody needs them; None where
        that is certain.
        """
        parts: list[SSAValue | None] = [self.needed(load, at, view)]
        parts.append(self.in_field(shape, at, view))
        parts.append(self.plane_mask(emit, shape, step, shift))
        return emit.all_of(parts)

    def plane_mask(
        self, emit: Emitter, shape: FieldShape, step: SSAValue | None, shift: int
    ) -> SSAValue | None:
        """Plane `step + shift` lies in the field; None where that is certain."""
        if step is None or self.stream is None or not self.stream_guarded:
            return None
        low, high = shape.lower[self.stream], shape.upper[self.stream]
        return emit.compare("ult", emit.add_int(step, shift - low), high - low)

    def needed(self, load: LoadOp, at: Position, view: Thread) -> SSAValue | None:
        """
        The position is one that the stores depend on: what is read at its own cell only need not be
        loaded where tiles overlap. None where nearly all of the tile is needed.
        """
        extent = self.geometry.extents[load.result]
        parts: list[SSAValue | None] = []
        for tiling, axis, shift in zip(self.geometry.axes, view.axes, self.shifts(at)):
            low = tiling.overlap_low - extent.low[tiling.axis]
            high = tiling.overlap_low + tiling.useful + extent.high[tiling.axis]
            # Groups of a vector are loaded whole.
            low -= self.geometry.vector - 1
            high += self.geometry.vector - 1
            if low + tiling.layout.extent - high >= WORTH_SKIPPING:
                parts.append(self.within(axis.in_tile, shift, low, high))
        key = ("needed", load, at, view.axes[-1].coordinate)
        return self.mask(key, lambda: self.setup.all_of(parts))

    # Prefetching with asynchronous copies into a ring that each lane reads alone.

    def start_prefetch(self, ring: PrefetchRing) -> None:
        """Start the copies of the first planes."""
        first = self.setup.add_int(self.thread.first, -self.geometry.fill)
        for k in range(ring.ahead):
            step = self.setup.add_int(first, k)
            slot = ring.ring.slot(self.setup, first, k, 0, 0)

            def index_of(view: Thread, step: SSAValue = step) -> SSAValue:
                base = self.base_of(ring.shape, view)
                return self.moved_to(self.setup, base, ring.shape, step)

            self.copy_plane(self.setup, ring, slot, step, 0, index_of)
            self.setup.add(nvvm.CpAsyncCommitGroupOp())
        ring.ring.computed.clear()

    def copy_plane(
        self,
        emit: Emitter,
        ring: PrefetchRing,
        slot: Address,
        step: SSAValue,
        turn: int,
        index_of: Callable[[Thread], SSAValue],
    ) -> None:
        """
        Start copying the thread's share of plane `step + turn - lag`; where a plane outside the bounds
        is read by neighbours, from the halo.
        """
        assert self.stream is not None
        shift = turn - ring.load.lag
        if ring.halo is None or not self.stream_guarded:
            self.copy_cells(emit, ring, ring.source, slot, step, shift, index_of)
            return
        low, high = self.geometry.lower[self.stream], self.geometry.upper[self.stream]
        inside = emit.compare("ult", emit.add_int(step, shift - low), high - low)
        # Both branches count from the same cells.
        for view in (ring.view, self.thread):
            index_of(view)
        blocks = [Block(), Block()]
        for block, source in zip(blocks, (ring.source, ring.halo)):
            self.copy_cells(emit.into(block), ring, source, slot, step, shift, index_of)
            block.add_op(scf.YieldOp())
        emit.add(scf.IfOp(inside, [], [blocks[0]], [blocks[1]]))

    def copy_cells(
        self,
        emit: Emitter,
        ring: PrefetchRing,
        source: SSAValue,
        slot: Address,
        step: SSAValue,
        shift: int,
        index_of: Callable[[Thread], SSAValue],
    ) -> None:
        """Start copying the thread's share of plane `step + shift`, and of the pads around it."""
        assert self.stream is not None
        buffer, plane = ring.ring.buffer, shift * ring.shape.strides[self.stream]
        size = ring.copies[0].width * CELL_BYTES[ring.element]
        target, index = add_offsets(emit, ring.copied_from, slot.index), index_of(ring.view)
        for vector in ring.copies:
            mask = self.load_mask(emit, ring.load, ring.shape, step, shift, vector.at, ring.view)
            to, offset = slot.offset + vector.place, plane + self.in_plane(ring.shape, vector.at)
            emit.add(simt.CopyAsyncOp(buffer, target, to, source, index, offset, size, mask))
        if ring.pads:
            index = index_of(self.thread)
        for number, pad in enumerate(ring.pads):
            # Who has nothing to copy must not fill what another thread copies.
            part = emit if pad.valid is None else emit.into(Block())
            target = add_offsets(part, pad.slot_offset, slot.index)
            moved = part.add_int(index, pad.distance)
            lies_in = self.pad_mask(ring, number, pad)
            mask = part.all_of([lies_in, self.plane_mask(part, ring.shape, step, shift)])
            to = slot.offset
            part.add(simt.CopyAsyncOp(buffer, target, to, source, moved, plane, size, mask))
            if pad.valid is not None:
                part.add(scf.YieldOp())
                emit.add(scf.IfOp(pad.valid, [], [part.block]))

    def pad_mask(self, ring: PrefetchRing, number: int, pad: PadCopy) -> SSAValue | None:
        """What a thread copies for the tile's surroundings lies in the field."""
        if not self.guarded:
            return None

        def make() -> SSAValue | None:
            parts: list[SSAValue | None] = []
            for tiling, coordinate in zip(self.geometry.axes, pad.coordinates):
                low, high = ring.shape.lower[tiling.axis], ring.shape.upper[tiling.axis]
                distance = self.setup.add_int(coordinate, -low)
                parts.append(self.setup.compare("ult", distance, high - low))
            return self.setup.all_of(parts)

        return self.mask(("pad", ring.load.result, number), make)

    def take_prefetched(self, ring: PrefetchRing) -> Plane:
        """Wait for this step's plane, read it, and start the copy of a later one."""
        assert self.step is not None
        if ring.waits:
            self.body.add(nvvm.CpAsyncWaitGroupOp(self.placement.pending_groups))
            if any(other.is_dealt for other in self.placement.prefetches):
                # Lanes read what other lanes copied, and overwrite what others have read.
                self.synchronise_warp()
        slot = ring.ring.slot(self.body, self.step, self.turn, 0, 0)
        index = add_offsets(self.body, ring.read_from, slot.index)
        plane: Plane = {}
        for vector in ring.reads:
            types = [ring.element] * vector.width
            op = simt.LoadOp(ring.ring.buffer, index, slot.offset + vector.place, types)
            row, start = vector.at
            for k, value in enumerate(self.body.add(op).cells):
                plane[row, start + k] = value
        later = ring.ring.slot(self.body, self.step, self.turn, -ring.ahead, 0)
        turn = self.turn + ring.ahead

        def index_of(view: Thread) -> SSAValue:
            return self.index_of(ring.shape, view)

        self.copy_plane(self.body, ring, later, self.step, turn, index_of)
        if ring.commits:
            self.body.add(nvvm.CpAsyncCommitGroupOp())
        return plane

    # Shared planes and mail.

    def write_plane(self, shared: SharedPlane, plane: Plane, base: int) -> None:
        """Write the thread's own cells to this step's slot."""
        slot = shared.ring.slot(self.body, self.step, self.turn, 0, base)
        index = add_offsets(self.body, shared.own, slot.index)
        width = min(VECTOR_BYTES // CELL_BYTES[shared.element], self.cells)
        while self.cells % width:
            width //= 2
        for row in range(self.rows):
            for start in range(0, self.cells, width):
                cells = [plane[row, start + k] for k in range(width)]
                offset = slot.offset + row * shared.pitch + start
                self.body.add(simt.StoreOp(cells, shared.ring.buffer, index, offset))

    def publish(self, number: int, stage: ExchangeOp) -> None:
        """Write what neighbours will read."""
        queue = self.queues[stage.result]
        assert queue.source is not None
        if queue.copied:
            return
        plane = queue.source.planes[queue.hold]
        if queue.shared is not None:
            self.body.add(simt.PhaseOp(self.turn, number, 0))
            self.write_plane(queue.shared, plane, 0)
            return
        mail = queue.mail
        assert mail is not None
        slot = mail.ring.slot(self.body, self.step, self.turn, 0, 0)
        index = add_offsets(self.body, mail.own, slot.index)
        if mail.along_rows:
            self.publish_rows(number, mail, plane, index, slot.offset)
        else:
            self.publish_cells(number, mail, plane, index, slot.offset)

    def publish_rows(
        self, number: int, mail: EdgeMail, plane: Plane, index: SSAValue | None, offset: int
    ) -> None:
        """The first and the last rows of the warp, all lanes."""
        width = min(self.cells, VECTOR_BYTES // CELL_BYTES[mail.element])
        slots = [(row, row) for row in range(mail.width)]
        slots += [(self.rows - mail.width + k, mail.width + k) for k in range(mail.width)]
        for row, target in slots:
            self.body.add(simt.PhaseOp(self.turn, number, row))
            for start in range(0, self.cells, width):
                cells = [plane[row, start + k] for k in range(min(width, self.cells - start))]
                at = offset + target * mail.row_cells + start
                self.body.add(simt.StoreOp(cells, mail.ring.buffer, index, at))

    def publish_cells(
        self, number: int, mail: EdgeMail, plane: Plane, index: SSAValue | None, offset: int
    ) -> None:
        """The first and the last cells of the warp, by the lanes that hold them."""
        assert mail.lane_position is not None
        self.body.add(simt.PhaseOp(self.turn, number, 0))
        moved = add_offsets(self.body, index, mail.lane_position)
        warp_cells = self.cells * 32
        for cell in range(self.cells):
            for low, high, target in (
                (0, mail.width, cell),
                (warp_cells - mail.width, warp_cells, cell - warp_cells + 2 * mail.width),
            ):
                mask = self.lane_between(mail.lane_position, cell, low, high)
                if mask is not None:
                    op = simt.StoreOp(
                        [plane[0, cell]], mail.ring.buffer, moved, offset + target, mask
                    )
                    self.body.add(op)

    def lane_between(self, position: SSAValue, cell: int, low: int, high: int) -> SSAValue | None:
        """The lane's cell lies in [low, high) of its warp; None where no lane's does."""
        if not any(low <= lane * self.cells + cell < high for lane in range(32)):
            return None

        def make() -> SSAValue:
            distance = self.setup.add_int(position, cell - low)
            return self.setup.compare("ult", distance, high - low)

        return self.mask(("lane", position, cell, low, high), make)

    def store(self, number: int, stage: StoreOp) -> None:
        """Write the tile's own cells of the newest plane."""
        queue, width = self.queues[stage.queue], self.geometry.access_width(stage.field)
        staging = self.placement.staging.get(stage.field)
        if self.guarded and not self.geometry.bounds_cut_between(width):
            # Few tiles; cells that the bounds cut from their vector are stored alone.
            width, staging = 1, None
        plane = queue.planes[0]
        for row in range(self.rows):
            self.body.add(simt.PhaseOp(self.turn, number, row))
            if staging is None:
                cells = {
                    start: [plane[row, start + k] for k in range(width)]
                    for start in range(0, self.cells, width)
                }
                self.store_row(stage, row, cells, self.thread)
            else:
                cells = self.deal_row(staging, [plane[row, k] for k in range(self.cells)])
                self.store_row(stage, row, cells, staging.view)

    def store_row(
        self, stage: StoreOp, row: int, cells: dict[int, list[SSAValue]], view: Thread
    ) -> None:
        """Write vectors of a row, by their first cells in the thread's view."""
        queue, shape = self.queues[stage.queue], FieldShape.of(stage.field)
        field = self.arguments[stage.field]
        for start, vector in cells.items():
            masks: list[SSAValue | None] = [self.owned((row, start), view)]
            if self.stream is not None:
                masks.append(self.chunk_mask(queue.lag))
            offset = self.reader.stream_offset(shape, queue.lag)
            offset += self.in_plane(shape, (row, start))
            mask, index = self.body.all_of(masks), self.index_of(shape, view)
            self.body.add(simt.StoreOp(vector, field, index, offset, mask))

    def deal_row(self, staging: Staging, row: list[SSAValue]) -> dict[int, list[SSAValue]]:
        """Hand a row over to the lanes that write it, through shared memory: vectors by first cell."""
        self.synchronise_warp()
        for vector in staging.writes:
            cells = row[vector.at[1] : vector.at[1] + vector.width]
            self.body.add(simt.StoreOp(cells, staging.buffer, staging.written_from, vector.place))
        self.synchronise_warp()
        dealt: dict[int, list[SSAValue]] = {}
        for vector in staging.reads:
            types = [staging.element] * vector.width
            op = simt.LoadOp(staging.buffer, staging.read_from, vector.place, types)
            dealt[vector.at[1]] = list(self.body.add(op).cells)
        return dealt

    def chunk_mask(self, lag: int) -> SSAValue:
        """The plane `lag` steps back is one that this chunk stores."""
        key = (lag, 0, -1)
        if key not in self.row_masks:
            assert self.step is not None
            plane = self.body.add_int(self.step, self.turn - lag)
            distance = self.body.add_int(plane, self.negative_first())
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
