"""The number and the slot of a message between blocks in a step."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from timetile.lowering.tile_to_gpu.message_buffers import MessageBuffers, MessageSlots
from timetile.lowering.tile_to_gpu.rings import Address
from timetile.lowering.tile_to_gpu.scopes import StepScope, StreamStep, once, step_number


def message_number(step: StepScope, buffers: MessageBuffers, passed: int) -> SSAValue | None:
    """
    The number of the message sent `passed` steps ago; 0 before the first message. Without a stream
    each exchange has a single message. None if blocks meet at barriers.
    """
    if buffers.meeting is not None:
        return None
    if not isinstance(step, StreamStep):
        return step.variant.emit.add_int(buffers.turn.steps_before, 1)
    number = step_number(step, passed - 1)
    if passed < 2:
        return number
    return step.emit.binary(arith.MaxSIOp, number, step.emit.int(0))


def message_slot(step: StepScope, slots: MessageSlots, age: int) -> Address:
    """
    The slot of the message of the given age in steps. Messages are counted over all tiles of a
    block, and so the plane's number alone does not give the slot.
    """
    count, words = slots.slots, slots.slot_words
    if count == 1 or not isinstance(step, StreamStep):
        return Address(None, 0)
    if slots.fixed:
        return Address(None, (step.turn - age) % count * words)
    return Address(slot_start(step, count, words, age), 0)


@once
def slot_start(step: StreamStep, slots: int, words: int, age: int) -> SSAValue:
    """The first word of the slot that holds the message `age` steps old."""
    emit = step.emit
    number = emit.add_int(step_number(step, age), slots)
    return emit.mul_int(emit.binary(arith.RemUIOp, number, emit.int(slots)), words)
