"""Messages between blocks, the number of a launch, and plain words ordered by barriers instead."""

from __future__ import annotations

import numpy as np
from xdsl.ir import Operation

from timetile.dialects import simt
from timetile.dialects.cell_types import CELL_BYTES
from timetile.runtime.arithmetic.cells import dtype_of
from timetile.runtime.executors.simt.errors import SimtError
from timetile.runtime.executors.simt.machine import Machine, SimtHandler, ThreadStrand, Waiter
from timetile.runtime.executors.simt.memory import Buffer, Ints, Mask
from timetile.runtime.executors.simt.messages import Messages


def message_words(m: Machine, op: simt.PostOp | simt.TakeOp, k: int, active: Mask) -> Ints:
    """Where cell k of a message begins, for the active threads."""
    at = np.full(m.count, op.places[k], dtype=np.int64)
    if op.index is not None:
        at = at + m.spread(op.index).astype(np.int64)
    return at[active]


def messages_in(m: Machine, op: simt.PostOp | simt.TakeOp) -> Messages:
    """The messages of a buffer in this launch."""
    buffer: Buffer = m.values[op.buffer]
    if buffer not in m.messages:
        m.messages[buffer] = Messages(buffer.cells, m.clocks)
    return m.messages[buffer]


def run_post(m: Machine, op: simt.PostOp, active: Mask) -> None:
    """Post a message."""
    if op.number is None:
        post_plainly(m, op, active)
        return
    messages, who = messages_in(m, op), m.clocks.threads[active]
    number = m.spread(op.number)[active]
    for k, cell in enumerate(op.cells):
        unset = m.unset_of(cell)
        at, own = message_words(m, op, k, active), m.spread(cell)[active]
        messages.post(op, at, who, number, own, None if unset is None else unset[active])
    m.events += 1


def post_plainly(m: Machine, op: simt.PostOp, active: Mask) -> None:
    """Post plain words, one a cell, ordered by barriers."""
    buffer, who = m.values[op.buffer], m.clocks.threads[active]
    for k, cell in enumerate(op.cells):
        at, own = message_words(m, op, k, active), m.spread(cell)[active]
        buffer.check_bounds(op, at)
        buffer.note_write(op, at, who, m.clocks)
        buffer.data[at] = own.view(f"i{own.dtype.itemsize}")
        unset = m.unset_of(cell)
        buffer.unset[at] = False if unset is None else unset[active]


def take_plainly(m: Machine, op: simt.TakeOp, active: Mask) -> None:
    """Take plain words, one a cell, ordered by barriers."""
    buffer, who = m.values[op.buffer], m.clocks.threads[active]
    for k, result in enumerate(op.cells):
        at = message_words(m, op, k, active)
        buffer.check_bounds(op, at)
        buffer.note_read(op, at, who, m.clocks)
        kind = np.dtype(dtype_of(result.type))
        cells = buffer.data[at].astype(f"i{kind.itemsize}").view(kind)
        m.define(result, *m.spread_over(active, cells, buffer.unset[at]))


def run_take(m: Machine, op: simt.TakeOp, active: Mask) -> ThreadStrand:
    """Take a message."""
    m.check_whole_warps(op, active)
    if op.number is None:
        take_plainly(m, op, active)
        return []
    messages, who = messages_in(m, op), m.clocks.threads[active]
    number = m.spread(op.number)[active]
    places = [message_words(m, op, k, active) for k in range(len(op.cells))]
    words = CELL_BYTES[op.cell_types[0]] // 4
    yield from m.wait_until(
        lambda: all(messages.have_come(op, at, number, words) for at in places),
        op,
        f"waits for message {int(number.max())}, which nobody sends",
    )
    for result, at in zip(op.cells, places):
        cells = np.zeros(who.size, dtype=dtype_of(result.type))
        unset = messages.take(at, who, cells)
        m.define(result, *m.spread_over(active, cells, unset))
    return []


def run_launches_ended(m: Machine, op: simt.LaunchesEndedOp, active: Mask) -> None:
    """Read how many launches have ended."""
    buffer: Buffer = m.values[op.words]
    if buffer in m.ended:
        raise SimtError(op, "counts the launches before one that has ended")
    m.numbered.setdefault(buffer, set()).update(m.clocks.blocks[active].tolist())
    count = np.full(int(active.sum()), buffer.data[0], dtype=np.int32)
    m.define(op.count, *m.spread_over(active, count, np.full(count.size, False)))


def run_end_launch(m: Machine, op: simt.EndLaunchOp, active: Mask) -> None:
    """End the launch, whose number all blocks know."""
    buffer: Buffer = m.values[op.words]
    missing = set(range(m.grid)) - m.numbered.get(buffer, set())
    if missing:
        raise SimtError(op, f"ends a launch whose number block {min(missing)} does not know")
    if active.sum() > 1 or buffer in m.ended:
        raise SimtError(op, "ends a launch that another thread ends")
    buffer.data[0] = m.spread(op.number)[active][0]
    m.ended.add(buffer)


POSTING: dict[type[Operation], SimtHandler] = {
    simt.PostOp: run_post,
    simt.LaunchesEndedOp: run_launches_ended,
    simt.EndLaunchOp: run_end_launch,
}


POSTING_THAT_WAIT: dict[type[Operation], Waiter] = {
    simt.TakeOp: run_take,
}
