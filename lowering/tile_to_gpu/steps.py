"""A stream step of a kernel: stages in order, synchronisation in between, and the step's end."""

from __future__ import annotations

from xdsl.dialects import arith, gpu
from xdsl.ir import SSAValue

from timetile.dialects import simt
from timetile.dialects.simt import CELL_BYTES
from timetile.dialects.tile import ApplyOp, ExchangeOp, StageOp, StoreOp
from timetile.lowering.tile_to_gpu.halos import patch_at_end
from timetile.lowering.tile_to_gpu.messages import post_messages, take_messages
from timetile.lowering.tile_to_gpu.publishing import send_outgoing
from timetile.lowering.tile_to_gpu.scopes import (
    LoopScope,
    StepScope,
    VariantScope,
    is_first_thread,
    once,
    step_number,
)
from timetile.lowering.tile_to_gpu.stages import run_stage
from timetile.lowering.tile_to_gpu.thread import block_beside
from timetile.passes.analysis.geometry.filling import first_step


def run_step(loop: LoopScope, turn: int) -> None:
    """All stages, once."""
    step, code = StepScope(loop, turn), loop.code
    arrivals = code.placement.arrivals
    if arrivals is not None:
        step.mark_shared(-1)
        step.body.add(simt.WaitOp(arrivals, step_number(step, 1)))
        take_messages(step, code.queues.values())
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
        if not is_idle(loop, stage):
            run_stage(step, number, stage)
    if code.is_split:
        step.mark(len(stages), len(code.rows), private=True)
    patch_at_end(step)
    age_planes(step)
    if step.count is not None and (code.is_split or code.meets_at_barriers):
        step.mark_shared(len(stages))
        send_outgoing(step)
        post_messages(step)
    if arrivals is not None:
        # `order-threads` moves the arrival to an earlier place.
        number = step_number(step, 0)
        step.body.add(simt.ArriveOp(arrivals, number, expected_bytes(step.variant)))


def is_idle(loop: LoopScope, stage: StageOp) -> bool:
    """The stage's first plane is not due in a loop that fills the pipeline."""
    if loop.filling is None or not isinstance(stage, ApplyOp | StoreOp):
        return False
    return first_step(loop.code.geometry, stage) >= loop.filling


def age_planes(step: StepScope) -> None:
    """End a step: queues drop planes without later readers, and shifting slots shift."""
    ends = step.turn + 1 == step.code.geometry.period
    for queue in step.code.queues.values():
        del step.planes(queue)[queue.depth if ends else queue.depth + 1 :]
    step.loop.slots.rotate()


@once
def expected_bytes(variant: VariantScope) -> SSAValue | None:
    """
    The bytes sent by the blocks beside in a step, expected by a single thread of the block; None in
    tiles of one block.
    """
    code, emit = variant.code, variant.setup
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
    The threads of the tile wait for each other, at the step's barrier number `count`. Messages of
    the blocks beside are taken in every step, even if the blocks meet less often.
    """
    code = step.code
    step.body.add(simt.MarkOp(step.turn, -1, 0))
    together = code.meets_at_barriers and (step.count is None or count == 0)
    if together:
        if step.turn % code.barrier_steps == 0:
            meet(step, count)
    elif code.placement.one_warp:
        step.synchronise_warp()
    elif not (step.arriving and code.takes_for_others):
        # With arriving messages, the barrier comes after taking the messages.
        step.body.add(gpu.BarrierOp())
    if together and step.count is not None:
        take_messages(step, code.queues.values())
    if step.arriving:
        take_messages(step, step.arriving)
        step.arriving.clear()


def meet(step: StepScope, count: int) -> None:
    """
    All blocks of the tile wait for each other: once a step, or at every barrier without a stream.
    """
    code, buffers = step.code, step.code.placement.message_buffers
    assert buffers is not None
    if step.count is not None and code.barrier_steps == 1:
        number = step_number(step, -1)
    elif step.count is not None:
        steps = step.body.int(code.barrier_steps)
        before = step.body.binary(arith.DivUIOp, step_number(step, 0), steps)
        number = step.body.add_int(before, 1)
    else:
        before = code.thread.steps_before
        assert before is not None
        number = step.setup.mul_int(before, len(code.barriers))
        number = step.setup.add_int(number, count + 1)
    blocks = code.layout.blocks
    step.body.add(simt.TileBarrierOp(buffers.buffer, buffers.counter, number, blocks))
