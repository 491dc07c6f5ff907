"""The stages of a kernel, one stream step at a time, as the code of one thread: loops, stages, halos."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from xdsl.dialects import arith, gpu, scf
from xdsl.dialects.builtin import i32
from xdsl.ir import Block, SSAValue

from timetile.dialects import nvvm, simt
from timetile.dialects.simt import CELL_BYTES
from timetile.dialects.syntax import element_type
from timetile.dialects.tile import (
    ApplyOp,
    ExchangeOp,
    LoadOp,
    MemoryAttr,
    StageOp,
    StoreOp,
)
from timetile.lowering.tile_to_gpu.cells import Late
from timetile.lowering.tile_to_gpu.copies import start_prefetch, take_prefetched
from timetile.lowering.tile_to_gpu.messages import post_messages, take_messages
from timetile.lowering.tile_to_gpu.ownership import load_mask
from timetile.lowering.tile_to_gpu.planes import (
    Guard,
    Plane,
    PlaneReader,
    Position,
    Queue,
)
from timetile.lowering.tile_to_gpu.publishing import publish, send_outgoing, write_plane
from timetile.lowering.tile_to_gpu.rings import carried_offsets
from timetile.lowering.tile_to_gpu.storing import store
from timetile.lowering.tile_to_gpu.thread import (
    Thread,
    as_index,
    block_beside,
    chunk_steps,
    whole_turns,
)
from timetile.lowering.tile_to_gpu.variant import FAR_CELLS, Variant, queue_field
from timetile.passes.analysis.geometry.field_access import halo_spans, steady_steps
from timetile.passes.analysis.geometry.filling import filling_loops, first_step, may_fill
from timetile.passes.analysis.geometry.plane_geometry import FieldShape, moved_by
from timetile.passes.analysis.queues.storage import taps_of_step

LONGEST_TRIPLE = 1000
"""Taps of a step beyond which one guarded loop serves head, steady part and tail: its guards weigh
little beside so much arithmetic, and three copies would be slow to compile. So does one on the rim where cells divide
or take roots, whose exact side is long."""


def begin_tile(v: Variant) -> None:
    """
    Before the first tile one thread makes the word ready in which the block's warps arrive, and the others
    see it. Before the next ones nobody reads any more what is in shared memory, and nothing is on its way there.
    """
    arrivals, said = v.placement.arrivals, v.thread.said
    joined = v.geometry.joins_columns
    if (said is not None or joined) and v.placement.prefetches:
        v.setup.add(nvvm.CpAsyncWaitGroupOp(0))
    if joined:
        v.synchronise_warp()
    if arrivals is not None:
        assert v.kernel.layout is not None
        expect = Block([simt.ExpectOp(arrivals, v.kernel.layout.warps), scf.YieldOp()])
        one = v.is_first_thread()
        if said is not None:
            one = v.setup.binary(arith.AndIOp, one, v.setup.compare("eq", said, 0))
        v.setup.add(scf.IfOp(one, [], [expect]))
    if arrivals is not None or said is not None:
        assert v.kernel.layout is not None
        cluster = v.kernel.layout.has_cluster
        v.setup.add(simt.ClusterBarrierOp() if cluster else gpu.BarrierOp())


class VariantEmitter(Variant):
    """Emits one variant of a kernel's stream loop into a block."""

    def emit(self) -> None:
        """Emit the whole variant."""
        for ring in self.placement.shifting_rings:
            ring.shifted.clear()
        begin_tile(self)
        for ring in self.placement.prefetches:
            start_prefetch(self, ring)
        if self.stream is None:
            self.run_step(0)
            return
        state, start = self.initial_state(), self.setup.int(0)
        if not self.has_three_loops():
            self.emit_loop(start, self.end(), state)
        else:
            steady, tail = self.segments()
            state, filled = self.fill_pipeline(state, start, steady, tail)
            state = self.emit_loop(filled, steady, state)
            self.stream_guarded = False
            if may_fill(self.kernel):
                steady = self.setup.binary(arith.MaxSIOp, steady, filled)
            state = self.emit_loop(steady, tail, state)
            self.stream_guarded = True
            self.emit_loop(tail, self.end(), state)
        self.leave()

    def fill_pipeline(
        self, state: list[SSAValue], start: SSAValue, steady: SSAValue, tail: SSAValue
    ) -> tuple[list[SSAValue], SSAValue]:
        """
        Loops from the first step on that leave out the levels whose first plane is not yet due, in chunks all of whose
        planes lie inside the bounds then; what is carried out of them, and the step that comes next.
        """
        ends = () if self.guarded else filling_loops(self.geometry)
        if not ends:
            return state, start
        inside = self.setup.binary(
            arith.AndIOp,
            self.setup.compare("eq", steady, 0),
            self.setup.compare("sge", tail, ends[-1]),
        )
        self.stream_guarded = False
        done = start
        for end in ends:
            self.filling = end
            following = self.setup.select(inside, self.setup.int(end), start)
            state = self.emit_loop(done, following, state)
            done = following
        self.filling = None
        self.stream_guarded = True
        return state, done

    def is_idle(self, stage: StageOp) -> bool:
        """The stage's first plane is not due in the loop that fills the pipeline."""
        if self.filling is None or not isinstance(stage, ApplyOp | StoreOp):
            return False
        return first_step(self.geometry, stage) >= self.filling

    def has_three_loops(self) -> bool:
        """Head and tail have loops of their own, so that the steady one is without guards."""
        divides = any(function.divides for function in self.functions.values())
        long = taps_of_step(self.kernel) > LONGEST_TRIPLE or (divides and self.guarded)
        guards = any(queue.guard is not None for queue in self.queues.values())
        return guards and not long

    def end(self) -> SSAValue:
        """
        The steps of the chunk, up to the last one that stores. They are counted where that is needed, from what the
        stores' masks need anyway: registers are scarce.
        """
        return self.setup.add_int(self.height(), self.geometry.fill + self.geometry.drain)

    def segments(self) -> tuple[SSAValue, SSAValue]:
        """
        The first step of the steady loop, and the first of the tail, counted from the chunk's first. In the steady
        loop no queue's newest plane lies outside the bounds (`steady_steps`).
        """
        emit, geometry, period = self.setup, self.geometry, self.geometry.period
        length = chunk_steps(emit, geometry, self.thread.first, self.thread.last)
        negative = emit.sub_int(emit.int(0), self.start())
        steps = steady_steps(geometry)
        head = whole_turns(emit, geometry, emit.add_int(negative, steps.start + period - 1))
        tail = whole_turns(emit, geometry, emit.add_int(negative, steps.stop))
        head = emit.binary(arith.MinSIOp, head, length)
        return head, emit.binary(arith.MinSIOp, emit.binary(arith.MaxSIOp, tail, head), length)

    def loop_queues(self) -> list[Queue]:
        """The queues whose planes pass from step to step in registers."""
        return [queue for queue in self.queues.values() if queue.depth]

    def initial_state(self) -> list[SSAValue]:
        """What the loop carries before the first step."""
        state: list[SSAValue] = []
        for queue in self.loop_queues():
            state += [self.unset(queue)] * (queue.depth * len(self.geometry.thread_positions))
        for ring in self.placement.shifting_rings:
            state += carried_offsets(self.setup, ring)
        return state

    def emit_loop(self, low: SSAValue, high: SSAValue, state: list[SSAValue]) -> list[SSAValue]:
        """One loop over steps; returns what it carries out."""
        block = Block(arg_types=[i32, *(value.type for value in state)])
        self.body = self.setup.into(block)
        self.count = block.args[0]
        self.index_cache, self.far_planes, self.next_cells = {}, {}, {}
        arguments = iter(block.args[1:])
        for queue in self.loop_queues():
            queue.planes = [
                {at: next(arguments) for at in self.geometry.thread_positions}
                for _ in range(queue.depth)
            ]
        rings = self.placement.shifting_rings
        for ring in rings:
            ring.shifted = [next(arguments) for _ in range(ring.slots)]
        for turn in range(self.geometry.period):
            self.run_step(turn)
        results: list[SSAValue] = []
        for queue in self.loop_queues():
            for plane in queue.planes[: queue.depth]:
                results += [plane[at] for at in self.geometry.thread_positions]
        for ring in rings:
            results += ring.shifted
        block.add_op(scf.YieldOp(*results))
        loop = scf.ForOp(low, high, self.setup.int(self.geometry.period), state, block)
        return list(self.setup.add(loop).results)

    def run_step(self, turn: int) -> None:
        """All stages, once."""
        self.turn = turn
        self.reader = PlaneReader(
            self.body,
            self.geometry,
            self.thread,
            plane_at=self.plane_at,
            outside=self.outside,
            inside=self.inside,
            plane_in_field=self.plane_in_field,
            guarded=self.guarded,
            count=self.count,
            turn=turn,
            crossings=self.crossings,
        )
        self.row_masks, self.phases, self.letter_slots = {}, {}, {}
        if self.placement.arrivals is not None:
            self.mark_shared(-1)
            self.body.add(simt.WaitOp(self.placement.arrivals, self.phase(1)))
            take_messages(self, self.queues.values())
        stages = list(enumerate(self.kernel.stages))
        if self.is_split:
            # What neighbours sent is read before anything is sent to them: it may be overwritten then.
            stages.sort(key=lambda entry: isinstance(entry[1], ExchangeOp))
        for number, stage in stages:
            if number in self.barriers:
                self.synchronise(self.barriers.index(number))
            if number in self.warp_barriers:
                self.mark_shared(number)
                self.synchronise_warp()
            if not self.is_idle(stage):
                self.run_stage(number, stage)
        if self.is_split:
            self.mark(len(stages), len(self.rows), private=True)
        if self.guarded:
            self.fetch_halos()
            for queue in self.queues.values():
                if queue.guard is not None and queue.depth and not queue.born_legal:
                    queue.planes[0] = queue.legal or self.legal_plane(queue)
                    queue.legal = None
        for queue in self.queues.values():
            queue.waiting.clear()
            keep = queue.depth if turn + 1 == self.geometry.period else queue.depth + 1
            queue.planes = queue.planes[:keep]
        for ring in self.placement.shifting_rings:
            ring.rotate()
        if self.count is not None and (self.is_split or self.meets_at_barriers):
            self.mark_shared(len(stages))
            send_outgoing(self)
            post_messages(self)
        if self.placement.arrivals is not None:
            # `order-threads` lets the warp arrive earlier.
            words, phase = self.placement.arrivals, self.phase(0)
            self.body.add(simt.ArriveOp(words, phase, self.expected_bytes()))

    def expected_bytes(self) -> SSAValue | None:
        """
        What the blocks beside send in a step: one thread of the block expects it. None in tiles of one
        block.
        """
        assert self.kernel.layout is not None
        if not self.kernel.layout.has_cluster:
            return None

        def make() -> SSAValue:
            sent = {-1: 0, 1: 0}
            for mail in self.placement.mails.values():
                edge_bytes = mail.width * mail.row_cells * CELL_BYTES[mail.element]
                for edge, _ in mail.peers:
                    sent[edge.side] += edge_bytes
            total = self.setup.int(0)
            assert self.kernel.layout is not None
            for side, count in sent.items():
                _, there = block_beside(self.setup, self.thread, side, self.kernel.layout)
                one = self.setup.select(there, self.setup.int(count), self.setup.int(0))
                total = self.setup.add_int(total, one)
            return self.setup.select(self.is_first_thread(), total, self.setup.int(0))

        return self.mask(("expected bytes",), make)

    def leave(self) -> None:
        """A block goes when all that others send it has come."""
        assert self.kernel.layout is not None
        if self.placement.arrivals is None or not self.kernel.layout.has_cluster:
            return
        steps = chunk_steps(self.setup, self.geometry, self.thread.first, self.thread.last)
        self.setup.add(simt.WaitOp(self.placement.arrivals, self.setup.add_int(steps, -1)))

    def fetch_halos(self) -> None:
        """Ask early for the cells outside the bounds that planes will be legalised with."""
        first: dict[SSAValue, Queue] = {}
        for queue in self.queues.values():
            reads_memory = queue.guard is not None and queue.older is None
            if reads_memory and (queue.depth or queue.born_legal):
                assert queue.guard is not None
                known = first.setdefault(queue.guard.field, queue)
                if queue.lag < known.lag:
                    first[queue.guard.field] = queue
        ahead = self.geometry.ahead
        for queue in first.values() if ahead else ():
            assert queue.guard is not None
            reach = self.reaches.of(queue)
            self.reader.fetch_halo(queue.guard, queue.element, queue.lag - ahead, reach)

    def synchronise(self, count: int) -> None:
        """
        The threads of the tile wait for each other, at the barrier of a step that has this count. Where the blocks
        of a tile meet every so many steps only, what they sent is taken in each nevertheless.
        """
        self.body.add(simt.PhaseOp(self.turn, -1, 0))
        together = self.meets_at_barriers and (self.count is None or count == 0)
        if together:
            if self.turn % self.barrier_steps == 0:
                self.meet(count)
        elif self.placement.one_warp:
            self.synchronise_warp()
        elif not (self.arriving and self.takes_for_others):
            # Else the barrier stands behind what is taken.
            self.body.add(gpu.BarrierOp())
        if together and self.count is not None:
            take_messages(self, self.queues.values())
        if self.arriving:
            take_messages(self, self.arriving)
            self.arriving.clear()

    def meet(self, count: int) -> None:
        """All blocks of the tile wait for each other: once a step, or at every barrier without a stream."""
        inboxes, layout = self.placement.inboxes, self.kernel.layout
        assert inboxes is not None and layout is not None
        if self.count is not None and self.barrier_steps == 1:
            number = self.phase(-1)
        elif self.count is not None:
            steps = self.body.int(self.barrier_steps)
            before = self.body.binary(arith.DivUIOp, self.phase(0), steps)
            number = self.body.add_int(before, 1)
        else:
            assert self.thread.said is not None
            number = self.setup.mul_int(self.thread.said, len(self.barriers))
            number = self.setup.add_int(number, count + 1)
        self.body.add(simt.TileBarrierOp(inboxes.buffer, inboxes.counter, number, layout.blocks))

    def run_stage(self, number: int, stage: StageOp) -> None:
        match stage:
            case LoadOp():
                if not isinstance(stage.home, MemoryAttr):
                    self.mark_shared(number)
                    self.finish(number, self.queues[stage.result], self.load(number, stage))
            case ApplyOp():
                planes: list[Plane] = [{} for _ in stage.res]
                for line, row in enumerate(self.rows):
                    self.mark(number, line)
                    for cell in range(self.cells):
                        for plane, value in zip(planes, self.apply(stage, (*row, cell))):
                            plane[*row, cell] = value
                for result, plane in zip(stage.res, planes):
                    self.finish(number, self.queues[result], plane)
            case ExchangeOp():
                publish(self, number, stage)
                queue = self.queues[stage.result]
                if self.count is None and queue.letters is not None:
                    post_messages(self)
                    self.arriving.append(queue)
            case StoreOp():
                store(self, number, stage)

    def finish(self, number: int, queue: Queue, plane: Plane) -> None:
        """A new plane is there: halos along the stream, its place in shared memory, its age 0."""
        if self.stream_guarded and queue.guard is not None and not self.holds_halo(queue):
            plane = self.override_rows(number, queue, queue.guard, plane)
        if queue.shared is not None:
            write_plane(self, queue.shared, plane, queue.shared.base)
            queue.planes = [plane]
            return
        queue.planes.insert(0, plane)
        if self.guarded and queue.born_legal:
            queue.planes[0] = self.legal_plane(queue, number)
        elif self.guarded and queue.older is not None and queue.depth:
            queue.legal = self.legal_plane(queue, number)

    def legal_plane(self, queue: Queue, number: int | None = None) -> Plane:
        """
        The newest plane, its cells outside the bounds replaced as far as any reader looks; as a part of the
        stage of this number that made it, if it is given.
        """
        plane: Plane = {}
        for line, row in enumerate(self.rows):
            if number is not None:
                self.mark(number, line)
            plane.update(self.reader.legal_row(queue, self.reaches.of(queue), row))
        return plane

    def holds_halo(self, queue: Queue) -> bool:
        """Planes outside the bounds along the stream were copied from the halo already."""
        if self.stream is None:
            return True
        return any(r.is_tiles and r.load.result is queue.value for r in self.placement.prefetches)

    def apply(self, stage: ApplyOp, at: Position) -> list[SSAValue]:
        """One cell of a stage."""
        arguments: list[SSAValue | Late] = []
        queues = stage.queues
        for tap in stage.tap_list:
            queue = self.queues[queues[tap.operand]]
            load = queue.value.owner
            if isinstance(load, LoadOp) and load.offset is not None:
                arguments.append(partial(self.cell_in_memory, load, load.offset, at))
                continue
            moved = self.kernel.in_plane(tap.offset)
            position = moved_by(at, moved)
            reach = self.reaches.of_tap(stage, moved)
            arguments.append(self.reader.read(queue, stage.age(tap), position, reach))
        arguments += [self.arguments[scalar] for scalar in stage.scalars]
        arguments += [self.coordinate(axis, stage.lag, at) for axis in stage.index_axes]
        function = self.functions[stage.cell.string_value()]
        made = self.queues[stage.res[0]]
        cut = made.crossing if self.guarded else None
        results = function.inline(
            self.body, arguments, cut, lambda partial: self.carry(made, at, partial)
        )
        if stage.box is None:
            return results
        inside = self.inside_box(stage, at)
        chosen: list[SSAValue] = []
        for queue, result in zip(stage.otherwise, results):
            source = self.queues[queue]
            age = stage.lag - source.lag
            old = self.reader.read(source, age, at, self.reaches.own_cell)
            chosen.append(self.body.select(inside, result, old))
        return chosen

    def cell_in_memory(self, load: LoadOp, offset: tuple[int, ...], at: Position) -> SSAValue:
        """The cell of a field so far from one of the thread's own, read once."""
        assert load.data is not None
        key = (load.result, 0, at)
        if key not in self.reader.fetched:
            shape, field = FieldShape.of(load.data), self.arguments[load.data]
            beside = self.kernel.in_plane(offset)
            place = moved_by(at, beside)
            lag = load.lag - (0 if self.stream is None else offset[self.stream])
            # The own cell may be stored by the thread that has it: nobody else reads it.
            view = self.inside_view() if any(offset) else self.thread
            index, distance = self.plane_at(shape, lag, view)
            distance += self.in_plane(shape, place)
            if abs(distance) >= FAR_CELLS:
                index, distance = self.body.add_int(index, distance), 0
            mask = None
            if view is self.thread:
                inside = self.in_field(shape, place, view, beside=beside)
                mask = self.body.all_of([inside, self.plane_in_field(shape, lag)])
            op = simt.LoadOp(field, index, distance, [element_type(load.data)], mask)
            (self.reader.fetched[key],) = self.body.add(op).cells
        return self.reader.fetched[key]

    def inside_view(self) -> Thread:
        """
        A thread that reads for a cell inside the bounds whatever its own is, so that all that it taps lies in the
        fields: it stores nothing of the others. Where threads have several cells, the own one.
        """
        single = self.stream is None and len(self.geometry.thread_positions) == 1
        if not (self.guarded and single and self.kernel.reads_memory):
            return self.thread
        return replace(
            self.thread,
            axes=tuple(
                replace(place, coordinate=self.moved_inside(tiling.axis, place.coordinate))
                for tiling, place in zip(self.geometry.axes, self.thread.axes, strict=True)
            ),
        )

    def moved_inside(self, axis: int, coordinate: SSAValue) -> SSAValue:
        """A coordinate, or the nearest one inside the bounds."""
        emit, low = self.setup, self.geometry.lower[axis]
        last = self.geometry.upper[axis] - 1

        def make() -> SSAValue:
            above = emit.binary(arith.MaxSIOp, coordinate, emit.int(low))
            return emit.binary(arith.MinSIOp, above, emit.int(last))

        return self.known(("moved inside", axis), make)

    def inside_box(self, stage: ApplyOp, at: Position) -> SSAValue:
        """The cell lies in the stage's own box."""
        assert stage.box is not None
        low, high = tuple(stage.box.lb), tuple(stage.box.ub)
        parts: list[SSAValue | None] = []
        for tiling, axis, shift in zip(self.geometry.axes, self.thread.axes, at, strict=True):
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
        return as_index(self.body, self.body.add_int(self.thread.axes[k].coordinate, at[k]))

    def carry(self, queue: Queue, at: Position, partial: SSAValue) -> SSAValue:
        """
        An older level's cell in place of a partial sum outside the bounds, unless later steps keep it anyway: it
        waits there for the level to be made, and its own register is free for the next.
        """
        assert queue.older is not None
        sides = self.reader.sides(at, self.reaches.of(queue))
        kept = queue.behind < queue.older.depth
        if kept or not any(map(any, sides)):
            return partial
        old = queue.older.planes[queue.behind][at]
        queue.waiting[at] = self.body.select(self.inside(at, sides), partial, old)
        return queue.waiting[at]

    def override_rows(self, number: int, queue: Queue, guard: Guard, plane: Plane) -> Plane:
        """Where the whole plane is outside the bounds along the stream, take it from the halo."""
        assert self.stream is not None
        shape = guard.shape
        spans = [span for span in halo_spans(self.geometry, shape, self.stream) if span]
        if not spans:
            return plane
        outside = self.body.any_of(
            [self.plane_between(queue.lag, span.start, span.stop) for span in spans]
        )
        width = self.geometry.access_width(queue_field(self.kernel, self.arguments, guard.field))
        index, distance = self.plane_at(shape, queue.lag)
        replaced: Plane = {}
        for line, row in enumerate(self.rows):
            self.mark(number, line)
            for start in range(0, self.cells, width):
                group = [(*row, start + k) for k in range(width)]
                offset = distance + self.in_plane(shape, group[0])
                mask = self.body.all_of([outside, self.in_field(shape, group[0], self.thread)])
                assert mask is not None
                own = [plane[at] for at in group]
                op = simt.OverrideOp(own, guard.field, index, offset, mask)
                replaced.update(zip(group, self.body.add(op).res))
        return replaced

    def load(self, number: int, stage: LoadOp) -> Plane:
        """The thread's own cells of a field's plane, from its prefetch ring or from memory."""
        assert stage.data is not None
        prefetch = self.placement.prefetch_of(stage)
        if prefetch is not None:
            return take_prefetched(self, number, prefetch)
        shape, field = FieldShape.of(stage.data), self.arguments[stage.data]
        width = self.geometry.access_width(stage.data, inside=not self.guarded)
        element = element_type(stage.data)
        index, distance = self.plane_at(shape, stage.lag)
        plane: Plane = {}
        for row in self.rows:
            for start in range(0, self.cells, width):
                shift = self.turn - stage.lag
                at = (*row, start)
                step = self.guarded_step
                mask = load_mask(self, self.body, stage, shape, step, shift, at, self.thread)
                offset = distance + self.in_plane(shape, at)
                op = simt.LoadOp(field, index, offset, [element] * width, mask)
                for k, value in enumerate(self.body.add(op).cells):
                    plane[*row, start + k] = value
        return plane
