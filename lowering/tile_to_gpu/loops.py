"""The loops of a variant over the stream steps of a chunk.

Guards along the stream are needed near the ends of the domain only: a guarded head, a steady loop
in which no plane can lie outside the bounds, and a guarded tail run the same stages.
"""

from __future__ import annotations

from xdsl.dialects import arith, gpu, scf
from xdsl.dialects.builtin import i32
from xdsl.ir import Block, SSAValue

from timetile.dialects import nvvm, simt
from timetile.lowering.emitter import Emitter
from timetile.lowering.tile_to_gpu.code import KernelCode
from timetile.lowering.tile_to_gpu.copies import start_prefetch
from timetile.lowering.tile_to_gpu.queues import Plane
from timetile.lowering.tile_to_gpu.rings import RingSlots, first_offsets
from timetile.lowering.tile_to_gpu.scopes import (
    LoopScope,
    ResidentStep,
    StreamStep,
    VariantScope,
    chunk_height,
    chunk_start,
    is_first_thread,
    synchronise_warp,
    unset_cell,
)
from timetile.lowering.tile_to_gpu.steps import run_step
from timetile.lowering.tile_to_gpu.thread import chunk_steps, whole_turns
from timetile.passes.analysis.geometry.field_access import steady_steps
from timetile.passes.analysis.geometry.filling import filling_loops, may_fill
from timetile.passes.analysis.queues.storage import taps_of_step

LONGEST_TRIPLE = 1000
"""
Taps of a step from which on a single guarded loop serves head, steady part and tail. Guards cost
little beside so much arithmetic, and three copies would be slow to compile. On the rim a single
loop also serves kernels with divisions or roots, because of the long code of exact results.
"""


def emit_variant(code: KernelCode, emit: Emitter, *, guarded: bool) -> None:
    """
    Emit one variant of a kernel; `guarded`: cells may lie outside the bounds along the in-plane
    axes.
    """
    variant = VariantScope(code, emit, guarded)
    begin_tile(variant)
    if code.stream is None:
        run_step(ResidentStep(variant))
        return
    for ring in code.placement.prefetches:
        start_prefetch(variant, code.stream, ring)
    loops = StreamLoops(variant, code.stream)
    if has_three_loops(variant):
        loops.emit_three()
    else:
        loops.emit(chunk_end(variant))
    leave(variant)


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
    """A block ends after the arrival of all messages to the block."""
    code, emit = variant.code, variant.emit
    arrivals = code.placement.arrivals
    if arrivals is None or not code.layout.has_cluster:
        return
    steps = chunk_steps(emit, code.geometry, code.thread.first, code.thread.last)
    emit.add(simt.WaitOp(arrivals, emit.add_int(steps, -1)))


def has_three_loops(variant: VariantScope) -> bool:
    """Head and tail have separate loops, so that the steady loop needs no guards."""
    code = variant.code
    long = taps_of_step(code.kernel) > LONGEST_TRIPLE or (code.divides and variant.guarded)
    guards = any(halo.guard is not None for halo in code.halos.values())
    guards |= code.stream in code.kernel.continued_axes
    return guards and not long


def chunk_end(variant: VariantScope) -> SSAValue:
    """
    The steps of the chunk, up to the last storing step. Computed at each use, from values of the
    stores' masks, as registers are scarce.
    """
    geometry = variant.code.geometry
    return variant.emit.add_int(chunk_height(variant), geometry.fill + geometry.drain)


def segments(variant: VariantScope) -> tuple[SSAValue, SSAValue]:
    """
    The first step of the steady loop, and the first of the tail, counted from the chunk's first. In
    the steady loop no queue's newest plane lies outside the bounds (`steady_steps`).
    """
    code, emit, geometry = variant.code, variant.emit, variant.code.geometry
    length = chunk_steps(emit, geometry, code.thread.first, code.thread.last)
    negative = emit.sub_int(emit.int(0), chunk_start(variant))
    steps = steady_steps(geometry)
    head = whole_turns(emit, geometry, emit.add_int(negative, steps.start + geometry.period - 1))
    tail = whole_turns(emit, geometry, emit.add_int(negative, steps.stop))
    head = emit.binary(arith.MinSIOp, head, length)
    return head, emit.binary(arith.MinSIOp, emit.binary(arith.MaxSIOp, tail, head), length)


def initial_state(variant: VariantScope) -> list[SSAValue]:
    """The state before the first loop: unset planes, and the offsets of shifting slots."""
    code, state = variant.code, list[SSAValue]()
    for queue in code.loop_queues:
        cells = queue.depth * len(code.geometry.thread_positions)
        state += [unset_cell(variant, queue.element)] * cells
    for ring in code.placement.shifting_rings:
        state += first_offsets(variant.emit, ring)
    return state


class StreamLoops:
    """
    The loops of a variant along an axis, one after the other: `at` is the next step, and `state`
    the values carried out of the last loop.
    """

    def __init__(self, variant: VariantScope, axis: int):
        self.variant, self.axis = variant, axis
        self.at = variant.emit.int(0)
        self.state = initial_state(variant)

    def emit_three(self) -> None:
        """A guarded head, a steady loop without guards along the stream, and a guarded tail."""
        emit, (steady, tail) = self.variant.emit, segments(self.variant)
        self.fill_pipeline(steady, tail)
        filled = self.at
        self.emit(steady)
        if may_fill(self.variant.code.kernel):
            self.at = emit.binary(arith.MaxSIOp, steady, filled)
        self.emit(tail, is_steady=True)
        self.emit(chunk_end(self.variant))

    def fill_pipeline(self, steady: SSAValue, tail: SSAValue) -> None:
        """
        Loops from the first step on, without the levels not yet due. Only for chunks with all
        planes of these steps inside the bounds.
        """
        variant, emit = self.variant, self.variant.emit
        ends = () if variant.guarded else filling_loops(variant.code.geometry)
        if not ends:
            return
        inside = emit.binary(
            arith.AndIOp,
            emit.compare("eq", steady, 0),
            emit.compare("sge", tail, ends[-1]),
        )
        start = self.at
        for end in ends:
            self.emit(emit.select(inside, emit.int(end), start), is_steady=True, filling=end)

    def emit(self, end: SSAValue, *, is_steady: bool = False, filling: int | None = None) -> None:
        """One loop over steps, up to a step."""
        code, emit = self.variant.code, self.variant.emit
        positions, rings = code.geometry.thread_positions, code.placement.shifting_rings
        block = Block(arg_types=[i32, *(value.type for value in self.state)])
        count, *carried = block.args
        values = iter(carried)
        planes: dict[SSAValue, list[Plane]] = {
            queue.value: [{at: next(values) for at in positions} for _ in range(queue.depth)]
            for queue in code.loop_queues
        }
        slots = RingSlots(
            count, {ring: [next(values) for _ in range(ring.slots)] for ring in rings}
        )
        into = emit.into(block)
        loop = LoopScope(self.variant, into, self.axis, count, slots, is_steady, filling, planes)
        for turn in range(code.geometry.period):
            run_step(StreamStep(loop, turn))
        results: list[SSAValue] = []
        for queue in code.loop_queues:
            for plane in planes[queue.value][: queue.depth]:
                results += [plane[at] for at in positions]
        results += slots.carried(rings)
        block.add_op(scf.YieldOp(*results))
        period = emit.int(code.geometry.period)
        made = emit.add(scf.ForOp(self.at, end, period, self.state, block))
        self.at, self.state = end, list(made.results)
