"""A stream step of a kernel: stages in order, synchronisation in between, and the step's end."""

from __future__ import annotations

from xdsl.dialects import arith, gpu
from xdsl.ir import SSAValue

from timetile.dialects import simt
from timetile.dialects.cell_types import CELL_BYTES
from timetile.dialects.tile import ApplyOp, ExchangeOp, StageOp, StoreOp
from timetile.lowering.tile_to_gpu.halos import patch_at_end
from timetile.lowering.tile_to_gpu.message_buffers import Meeting
from timetile.lowering.tile_to_gpu.messages import post_messages, take_messages
from timetile.lowering.tile_to_gpu.publishing import send_outgoing
from timetile.lowering.tile_to_gpu.scopes import (
    StepScope,
    StreamStep,
    VariantScope,
    is_first_thread,
    once,
    step_number,
)
from timetile.lowering.tile_to_gpu.stages import run_by_rows, run_stage
from timetile.lowering.tile_to_gpu.thread import block_beside
from timetile.passes.analysis.geometry.filling import first_step


def run_step(step: StepScope) -> None:
    """Emit all stages, once."""
    if step.code.kernel.reads_memory and len(step.code.rows) > 1:
        run_by_rows(step)
        return
    code, arrivals = step.code, step.code.placement.arrivals
    if arrivals is not None and isinstance(step, StreamStep):
        step.mark_shared(-1)
        step.emit.add(simt.WaitOp(arrivals, step_number(step, 1)))
        take_messages(step, code.exchanges.values())
    stages = list(enumerate(code.kernel.stages))
    if code.is_split:
        # Neighbours' edges are read before own edges are sent: afterwards neighbours may overwrite
        # edges.
        stages.sort(key=lambda entry: isinstance(entry[1], ExchangeOp))
    for number, stage in stages:
        if number in code.barriers:
            synchronise(step, code.barriers.index(number))
        if number in code.warp_barriers:
            step.mark_shared(number)
            step.synchronise_warp()
        if not is_idle(step, stage):
            run_stage(step, number, stage)
    if code.is_split:
        step.mark(len(stages), len(code.rows), private=True)
    patch_at_end(step)
    if isinstance(step, StreamStep):
        end_step(step, len(stages))


def is_idle(step: StepScope, stage: StageOp) -> bool:
    """The stage's first plane is not due in a loop that fills the pipeline."""
    filling = step.loop.filling if isinstance(step, StreamStep) else None
    if filling is None or not isinstance(stage, ApplyOp | StoreOp):
        return False
    return first_step(step.code.geometry, stage) >= filling


def end_step(step: StreamStep, stages: int) -> None:
    """
    End a step of a stream: queues drop planes without later readers, shifting slots shift, and the
    other blocks and warps of the tile hear of the step.
    """
    code, arrivals = step.code, step.code.placement.arrivals
    ends = step.turn + 1 == step.loop.copies
    for queue in code.queues.values():
        del step.planes(queue)[queue.depth if ends else queue.depth + 1 :]
    if code.is_split or code.meeting is not None:
        step.mark_shared(stages)
        send_outgoing(step)
        post_messages(step)
    step.loop.slots.rotate()
    if arrivals is not None:
        # `order-threads` moves the arrival to an earlier place.
        number = step_number(step, 0)
        step.emit.add(simt.ArriveOp(arrivals, number, expected_bytes(step.variant)))


@once
def expected_bytes(variant: VariantScope) -> SSAValue | None:
    """
    The bytes sent by the blocks beside in a step, expected by a single thread of the block; None in
    tiles of one block.
    """
    code, emit = variant.code, variant.emit
    if not code.layout.has_cluster:
        return None
    sent = {-1: 0, 1: 0}
    for buffer in code.placement.edge_buffers.values():
        edge_bytes = buffer.edges.edge_cells * CELL_BYTES[buffer.element]
        for edge, _ in buffer.peers:
            sent[edge.side] += edge_bytes
    total = emit.int(0)
    for side, count in sent.items():
        _, there = block_beside(emit, code.thread, side, code.layout)
        total = emit.add_int(total, emit.select(there, emit.int(count), emit.int(0)))
    return emit.select(is_first_thread(variant), total, emit.int(0))


def synchronise(step: StepScope, count: int) -> None:
    """
    Let the threads of the tile wait for each other, at the step's barrier number `count`. Messages
    of the blocks beside are taken in every step, even if the blocks meet less often.
    """
    code, streams = step.code, isinstance(step, StreamStep)
    step.emit.add(simt.MarkOp(step.turn, -1, 0))
    meeting = None if streams and count else code.meeting
    if meeting is not None:
        if step.turn % code.barrier_steps == 0:
            number = meeting_number(step, meeting, count)
            step.emit.add(meeting.barrier(number, code.layout.blocks))
    elif isinstance(step, StreamStep) and step.turn % code.barrier_steps:
        pass
    elif code.placement.one_warp:
        step.synchronise_warp()
    elif not (step.arriving and code.takes_for_others):
        # With arriving messages, the barrier comes after taking the messages.
        step.emit.add(gpu.BarrierOp())
    if meeting is not None and streams:
        take_messages(step, code.exchanges.values())
    if step.arriving:
        take_messages(step, step.arriving)
        step.arriving.clear()


def meeting_number(step: StepScope, meeting: Meeting, count: int) -> SSAValue:
    """
    The number of a barrier at which all blocks of the tile wait: once a step or less often; without
    a stream, at every barrier.
    """
    code = step.code
    if not isinstance(step, StreamStep):
        number = step.variant.emit.mul_int(meeting.turn.steps_before, len(code.barriers))
        return step.variant.emit.add_int(number, count + 1)
    if code.barrier_steps == 1:
        return step_number(step, -1)
    steps = step.emit.int(code.barrier_steps)
    before = step.emit.binary(arith.DivUIOp, step_number(step, 0), steps)
    return step.emit.add_int(before, 1)
