"""The loops of a variant over the stream steps of a chunk.

Guards along the stream are needed near the ends of the domain only: a guarded head, a steady loop
in which no plane can lie outside the bounds, and a guarded tail run the same stages. In long code,
head and tail are one loop, run before the steady loop and again after it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from xdsl.dialects import arith, gpu, scf
from xdsl.dialects.builtin import i32
from xdsl.ir import Block, SSAValue

from timetile.dialects import nvvm, simt
from timetile.dialects.tile import StoreOp
from timetile.lowering.emitter import Emitter
from timetile.lowering.tile_to_gpu.code import KernelCode
from timetile.lowering.tile_to_gpu.copies import start_prefetch
from timetile.lowering.tile_to_gpu.loop_bounds import chunk_end, segments, turns_end
from timetile.lowering.tile_to_gpu.numbers import no_numbers, store_numbers, stores_of_numbers
from timetile.lowering.tile_to_gpu.point_addends import AddendsOfLists
from timetile.lowering.tile_to_gpu.point_kept import keep_values
from timetile.lowering.tile_to_gpu.point_levels import gathered_addends, has_more_values
from timetile.lowering.tile_to_gpu.point_lines import has_planes_of_points
from timetile.lowering.tile_to_gpu.point_steps import (
    earliest_step,
    end_of_runs,
    first_steps,
    next_steps,
    runs_at,
    runs_in_chunk,
    take_planes,
)
from timetile.lowering.tile_to_gpu.point_traces import begin_traces, note_traces
from timetile.lowering.tile_to_gpu.queues import Plane
from timetile.lowering.tile_to_gpu.rings import RingSlots, first_offsets
from timetile.lowering.tile_to_gpu.scopes import (
    LoopScope,
    ResidentStep,
    StreamStep,
    VariantScope,
    is_first_thread,
    synchronise_warp,
    unset_cell,
)
from timetile.lowering.tile_to_gpu.steps import run_step
from timetile.passes.analysis.geometry.filling import filling_loops, may_fill
from timetile.passes.analysis.queues.storage import taps_of_step

LONGEST_PAIR = 1000
"""
Taps of a step from which on a single guarded loop serves head, steady part and tail. Guards cost
little beside so much arithmetic, and two copies would be slow to compile. On the rim a single loop
also serves kernels with divisions or roots, because of the long code of exact results.
"""


FEW_TAPS = 600
"""
Most taps, in one turn of all variants' loops together, for which head and tail have own loops.
Longer code gains from one loop for both: up to a fifth, and nearly half of the time to compile
(measured: heat in 2D with insulated edges, 3240 taps, 1981 to 2377 GCells/s). Short code loses, for
a few registers more: j3d7pt in FP64, 560 taps, 644 to 612.
"""


def emit_variant(code: KernelCode, emit: Emitter, *, guarded: bool) -> None:
    """
    Emit one variant of a kernel; `guarded`: cells may lie outside the bounds along the in-plane
    axes.
    """
    variant = VariantScope(code, emit, guarded)
    begin_tile(variant)
    if code.stream is None:
        step = ResidentStep(variant)
        step.numbers.update(no_numbers(variant))
        run_step(step)
        store_numbers(variant, step.numbers)
        return
    for ring in code.placement.prefetches:
        start_prefetch(variant, code.stream, ring)
    loops, points = StreamLoops(variant, code.stream), has_planes_of_points(code.kernel)
    if points:
        loops.emit_around_points()
    elif not has_steady_loop(variant):
        loops.emit(chunk_end(variant))
    elif is_short(code):
        loops.emit_three()
    else:
        loops.emit_parts()
    store_numbers(variant, loops.numbers)
    leave(variant)


def emit_both_variants(code: KernelCode, emit: Emitter, inside: SSAValue) -> bool:
    """
    Emit both variants of a kernel as one, if the rim has a single loop: it is also the head and the
    tail of the tiles `inside` the rim. False, and nothing is emitted, for other kernels.
    """
    inner = VariantScope(code, emit, guarded=False, around=(rim := VariantScope(code, emit, True)))
    if code.stream is None or is_cell_by_cell(code):
        return False
    if has_steady_loop(rim) or not has_steady_loop(inner):
        return False
    begin_tile(rim)
    for ring in code.placement.prefetches:
        start_prefetch(rim, code.stream, ring)
    loops = StreamLoops(rim, code.stream)
    emit_loops = loops.emit_parts
    if has_planes_of_points(code.kernel):
        emit_loops = loops.emit_around_points
    emit_loops(inner, inside)
    store_numbers(rim, loops.numbers)
    leave(rim)
    return True


def is_cell_by_cell(code: KernelCode) -> bool:
    """On the rim, a thread that reads memory takes its cells one after the other."""
    return code.kernel.reads_memory and len(code.geometry.thread_positions) > 1


def begin_tile(variant: VariantScope) -> None:
    """
    Before the first tile a thread prepares the word for arrivals of the block's warps, and a
    barrier makes the word visible. Before later tiles the barrier makes sure: shared memory has no
    reader, and no copy is on the way.
    """
    code, emit = variant.code, variant.emit
    arrivals, before = code.placement.arrivals, code.thread.steps_before
    joined = code.geometry.joins_columns
    if (before is not None or joined) and code.placement.prefetches:
        emit.add(nvvm.CpAsyncWaitGroupOp(0))
    if joined:
        synchronise_warp(emit)
    if arrivals is not None:
        expect = Block([simt.ExpectOp(arrivals, code.layout.warps), scf.YieldOp()])
        one = is_first_thread(variant)
        if before is not None:
            one = emit.binary(arith.AndIOp, one, emit.compare("eq", before, 0))
        emit.add(scf.IfOp(one, [], [expect]))
    if arrivals is not None or before is not None:
        emit.add(simt.ClusterBarrierOp() if code.layout.has_cluster else gpu.BarrierOp())


def leave(variant: VariantScope) -> None:
    """Wait, at the end of a block, until all messages to the block have arrived."""
    code, emit = variant.code, variant.emit
    arrivals = code.placement.arrivals
    if arrivals is None or not code.layout.has_cluster:
        return
    emit.add(simt.WaitOp(arrivals, emit.add_int(turns_end(variant), -1)))


def has_steady_loop(variant: VariantScope) -> bool:
    """Head and tail have a separate loop, so that the steady loop needs no guards."""
    code = variant.code
    long = taps_of_step(code.kernel) > LONGEST_PAIR or (code.divides and variant.guarded)
    guards = any(halo.guard is not None for halo in code.halos.values())
    guards |= code.stream in code.kernel.continued_axes
    return guards and not long


def is_short(code: KernelCode) -> bool:
    """Whether head and tail have loops of their own."""
    variants = 2 if code.geometry.has_both_kinds else 1
    return variants * taps_of_step(code.kernel) * code.geometry.period <= FEW_TAPS


def initial_state(variant: VariantScope) -> list[SSAValue]:
    """
    The state before the first loop: unset planes, offsets of shifting slots, numbers of no cells.
    """
    code, state = variant.code, list[SSAValue]()
    for queue in code.loop_queues:
        cells = queue.depth * len(code.geometry.thread_positions)
        state += [unset_cell(variant, queue.element)] * cells
    for ring in code.placement.shifting_rings:
        state += first_offsets(variant.emit, ring)
    return [*state, *no_numbers(variant).values()]


EmitTurn = Callable[[Emitter, SSAValue, SSAValue], None]
"""Emits the loops of a turn, from its number and its first step."""


class StreamLoops:
    """
    The loops of a variant along an axis, one after the other: `at` is the next step, and `state`
    the values carried out of the last loop.
    """

    def __init__(self, variant: VariantScope, axis: int):
        self.variant, self.axis = variant, axis
        self.at: SSAValue = variant.emit.int(0)
        self.state = initial_state(variant)

    @property
    def numbers(self) -> dict[StoreOp, SSAValue]:
        """The thread's numbers after the last loop."""
        stages = stores_of_numbers(self.variant.code.kernel)
        return dict(zip(stages, self.state[len(self.state) - len(stages) :]))

    def emit_three(self) -> None:
        """Emit a guarded head, a steady loop without guards along the stream, a guarded tail."""
        emit, (steady, tail) = self.variant.emit, segments(self.variant)
        self.fill_pipeline(steady, tail)
        filled = self.at
        self.emit(steady)
        if may_fill(self.variant.code.kernel):
            self.at = emit.binary(arith.MaxSIOp, steady, filled)
        self.emit(tail, is_steady=True)
        self.emit(chunk_end(self.variant))

    def emit_parts(
        self, steady_variant: VariantScope | None = None, inside: SSAValue | None = None
    ) -> None:
        """
        Emit a loop with guards along the stream and a steady loop without, both run twice: for the
        head and the steady part of the chunk, then for the tail. The steady loop may be of another
        variant, for tiles `inside` the rim; the guarded loop alone serves all other tiles.
        """
        guarded = self.variant
        steady = self.variant = steady_variant or guarded
        self.fill_pipeline(*segments(steady), inside)

        def emit_turn(part: Emitter, number: SSAValue, at: SSAValue) -> None:
            begin, end = segments(guarded)
            first = part.value_of(part.all_of([part.compare("eq", number, 0), inside]))
            self.variant = guarded
            self.emit(part.select(first, begin, chunk_end(guarded)))
            self.variant, self.at = steady, part.binary(arith.MaxSIOp, self.at, at)
            self.emit(part.select(first, end, chunk_end(guarded)), is_steady=True)

        self.emit_turns(guarded, steady, emit_turn, self.variant.emit.int(2))

    def emit_around_points(
        self, steady_variant: VariantScope | None = None, inside: SSAValue | None = None
    ) -> None:
        """
        Three loops, run as often as runs of planes with points ask for: the steps of a run, then
        steps with guards and steady steps up to the next run. `inside` is None for a variant with
        a steady loop of its own, and for a variant without any.
        """
        guarded, emit = self.variant, self.variant.emit
        steady = steady_variant or guarded
        has_steady = has_steady_loop(steady)
        begin_traces(guarded)
        twice = emit.add_int(emit.mul_int(runs_in_chunk(guarded), 2), 2)
        head = tail = emit.int(0)
        if has_steady:
            self.variant = steady
            head, tail = segments(steady)
            self.fill_pipeline(head, tail, inside)

        def emit_turn(part: Emitter, _: SSAValue, at: SSAValue) -> None:
            runs = runs_at(guarded, at)
            take_planes(guarded, runs)
            # Blocks that arrive at each other's steps all take whole turns.
            whole = turns_end(guarded)
            end = part.binary(arith.MinSIOp, end_of_runs(guarded, runs, at), whole)
            end = part.binary(arith.MinSIOp, end, earliest_step(guarded, next_steps(runs)))
            end = part.binary(arith.MaxSIOp, end, at)
            self.variant = guarded
            self.emit(end, has_points=True)
            begin = earliest_step(guarded, first_steps(runs_at(guarded, end)))
            begin = part.binary(arith.MaxSIOp, begin, end)
            guards = whole
            if has_steady:
                goes_on = part.value_of(part.all_of([inside, part.compare("slt", end, tail)]))
                guards = part.select(goes_on, head, whole)
            guards = part.binary(arith.MinSIOp, guards, begin)
            guards = part.binary(arith.MaxSIOp, guards, end)
            self.emit(guards)
            if has_steady:
                self.variant = steady
                until = part.binary(arith.MinSIOp, begin, tail)
                self.emit(part.binary(arith.MaxSIOp, until, guards), is_steady=True)

        self.emit_turns(guarded, steady, emit_turn, twice)
        note_traces(guarded)

    def emit_turns(
        self, guarded: VariantScope, steady: VariantScope, emit_turn: EmitTurn, turns: SSAValue
    ) -> None:
        """Emit a loop around several loops: `emit_turn` emits one turn."""
        emit = guarded.emit
        block = Block(arg_types=[i32, i32, *(value.type for value in self.state)])
        number, at, *state = block.args
        filled, self.at, self.state = [self.at, *self.state], at, state
        guarded.emit = steady.emit = part = emit.into(block)
        emit_turn(part, number, at)
        block.add_op(scf.YieldOp(self.at, *self.state))
        guarded.emit = steady.emit = emit
        made = emit.add(scf.ForOp(emit.int(0), turns, emit.int(1), filled, block))
        self.at, self.state = made.results[0], list(made.results[1:])

    def fill_pipeline(
        self, steady: SSAValue, tail: SSAValue, inside: SSAValue | None = None
    ) -> None:
        """
        Emit loops from the first step on, without the levels not yet due. Only for chunks with all
        planes of these steps inside the bounds; of several variants, for tiles `inside` the rim.
        """
        variant, emit = self.variant, self.variant.emit
        ends = () if variant.guarded else filling_loops(variant.code.geometry)
        if not ends:
            return
        whole = [emit.compare("eq", steady, 0), emit.compare("sge", tail, ends[-1])]
        if has_planes_of_points(variant.code.kernel):
            first = earliest_step(variant, first_steps(runs_at(variant, self.at)))
            whole.append(emit.compare("sge", first, ends[-1]))
        fills = emit.value_of(emit.all_of([*whole, inside]))
        start = self.at
        for end in ends:
            self.emit(emit.select(fills, emit.int(end), start), is_steady=True, filling=end)

    def emit(
        self,
        end: SSAValue,
        *,
        is_steady: bool = False,
        filling: int | None = None,
        has_points: bool = False,
    ) -> None:
        """
        One loop over steps, up to a step. The body of a loop for planes with points has a single
        step, if the kernel allows: code of points is long, and the loop runs a few steps.
        """
        code, emit = self.variant.code, self.variant.emit
        is_rolled = has_points and code.allows_single_steps
        if is_rolled and code.is_alone:
            keep_values(self.variant, self.at, end)
        block = Block(arg_types=[i32, *(value.type for value in self.state)])
        count, *carried = block.args
        into = emit.into(block)
        copies = 1 if is_rolled else code.geometry.period
        scope = LoopScope(
            self.variant, into, self.axis, count, RingSlots(count, {}, is_rolled=is_rolled),
            is_steady, filling, {}, copies, has_points,
        )  # fmt: skip
        gathered = gathered_addends(StreamStep(scope, 0)) if is_rolled and code.is_alone else {}
        if gathered:
            results = self.around_addends(scope, gathered, carried)
        else:
            results = self.steps(scope, carried)
        block.add_op(scf.YieldOp(*results))
        made = emit.add(scf.ForOp(self.at, end, emit.int(copies), self.state, block))
        self.at, self.state = end, list(made.results)

    def steps(self, scope: LoopScope, carried: Sequence[SSAValue]) -> list[SSAValue]:
        """The steps of a loop's body: the values carried out, from the values carried in."""
        code, values = self.variant.code, iter(carried)
        positions, rings = code.geometry.thread_positions, code.placement.shifting_rings
        planes: dict[SSAValue, list[Plane]] = {
            queue.value: [{at: next(values) for at in positions} for _ in range(queue.depth)]
            for queue in code.loop_queues
        }
        slots = {ring: [next(values) for _ in range(ring.slots)] for ring in rings}
        numbers = dict(zip(stores_of_numbers(code.kernel), values))
        slotted = scope.slots.with_shifted(slots)
        loop = replace(scope, slots=slotted, planes=planes, numbers=numbers, memo={})
        for turn in range(loop.copies):
            run_step(StreamStep(loop, turn))
        results: list[SSAValue] = []
        for queue in code.loop_queues:
            for plane in planes[queue.value][: queue.depth]:
                results += [plane[at] for at in positions]
        return [*results, *loop.slots.carried(rings), *numbers.values()]

    def around_addends(
        self, scope: LoopScope, gathered: AddendsOfLists, carried: Sequence[SSAValue]
    ) -> list[SSAValue]:
        """A step whose levels take their addends, or look into the lists where there are more."""
        many = has_more_values(scope.emit, gathered)
        blocks = [Block(), Block()]
        for block, addends in zip(blocks, ({}, gathered)):
            inner = replace(scope, emit=scope.emit.into(block), gathered=addends)
            block.add_op(scf.YieldOp(*self.steps(inner, carried)))
        kinds = [value.type for value in carried]
        return list(scope.emit.add(scf.IfOp(many, kinds, [blocks[0]], [blocks[1]])).results)
