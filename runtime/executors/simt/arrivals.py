"""Arrivals and waits of warps, and cells sent to other blocks and counted there."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from xdsl.ir import Operation

from timetile.dialects import simt
from timetile.dialects.tile import LANES
from timetile.runtime.executors.simt.accesses import write
from timetile.runtime.executors.simt.errors import SimtError
from timetile.runtime.executors.simt.machine import Machine, SimtHandler, ThreadStrand, Waiter
from timetile.runtime.executors.simt.memory import Buffer, Ints, Mask


@dataclass
class Peer:
    """A buffer of shared memory in other blocks of the cluster, by rank, one for each thread."""

    buffer: Buffer
    rank: Ints


def run_expect(m: Machine, op: simt.ExpectOp, active: Mask) -> None:
    """
    Make a block's arrivals ready. Phases are counted beside the words: the record says which warps
    know of the readiness.
    """
    if op.warps.value.data * LANES != m.block:
        raise SimtError(op, f"a block has {m.block // LANES} warps")
    for warp in np.unique(m.clocks.warps[active]):
        time = m.clocks.times(np.array([warp]))[0]
        m.phases.ready[warp // m.clocks.block_warps] = (warp, time)


def check_ready(m: Machine, op: Operation, warp: int, block: int) -> None:
    """Raise SimtError unless a warp knows the block's arrivals to be ready."""
    made = m.phases.ready.get(block)
    known = made is not None and (
        made[0] == warp or m.clocks.known[warp, made[0] % m.clocks.team_warps] > made[1]
    )
    if not known:
        raise SimtError(op, "no earlier barrier shows the arrivals as initialised")


def run_arrive(m: Machine, op: simt.ArriveOp, active: Mask) -> None:
    """Let warps arrive in a phase."""
    warps = m.whole_warps(op, active)
    for warp in warps:
        check_ready(m, op, warp, warp // m.clocks.block_warps)
    phase = m.spread(op.phase)[warps * LANES]
    expected = np.zeros_like(warps)
    if op.bytes is not None:
        per_warp = m.spread(op.bytes).astype(np.int64).reshape(-1, LANES).sum(axis=1)
        expected = per_warp[warps]
    m.clocks.tick(warps)
    m.events += 1
    for warp, number, count in zip(warps, phase, expected):
        m.phases.arrive(warp // m.clocks.block_warps, number, count, m.clocks.known[warp])


def run_wait_arrivals(m: Machine, op: simt.WaitOp, active: Mask) -> ThreadStrand:
    """Let warps wait for the end of a phase."""
    warps = m.whole_warps(op, active)
    numbers = m.spread(op.phase)[warps * LANES]
    for warp, number in zip(warps, numbers):
        block = warp // m.clocks.block_warps
        check_ready(m, op, warp, block)
        m.phases.waited.add((block, number))
        if number < 0:
            continue
        complete = partial(m.phases.is_complete, block, number, m.clocks.block_warps)
        missing = f"waits for phase {number}, which is not complete"
        yield from m.wait_until(complete, op, missing)
        if m.phases.is_complete(block, number + 1, m.clocks.block_warps):
            raise SimtError(op, f"waits for phase {number}, and the next one is complete")
        m.clocks.acquire(warp, m.phases.known[block, number])
    return []


def run_peer(m: Machine, op: simt.PeerOp, active: Mask) -> None:
    """Name the buffer in another block, given by rank for each thread."""
    m.values[op.result] = Peer(m.values[op.buffer], m.spread(op.rank))


def run_send(m: Machine, op: simt.SendOp, active: Mask) -> None:
    """
    Send cells to another block. Cells arrive at once; a warp waiting for the phase learns the
    sender's knowledge.
    """
    peer: Peer = m.values[op.buffer]
    buffer, taking = peer.buffer, m.selected(active, op.mask, op)
    cell, _ = m.addresses(buffer, op.index, op.offset.value.data, False)
    block = m.clocks.blocks // m.cluster * m.cluster + peer.rank
    write(m, op, buffer, taking, cell, block * buffer.cells, keep=False)
    phase, size = m.spread(op.phase), len(op.cells) * buffer.data.itemsize
    warps, lanes = np.unique(m.clocks.warps[taking], return_counts=True)
    m.clocks.tick_send(warps)
    m.events += 1
    for warp, count in zip(warps, lanes):
        thread = warp * LANES + int(np.argmax(taking[warp * LANES : (warp + 1) * LANES]))
        known = m.clocks.known[warp]
        check_ready(m, op, warp, int(block[thread]))
        m.phases.receive(int(block[thread]), int(phase[thread]), count * size, known)


ARRIVALS: dict[type[Operation], SimtHandler] = {
    simt.ExpectOp: run_expect,
    simt.ArriveOp: run_arrive,
    simt.PeerOp: run_peer,
    simt.SendOp: run_send,
}


ARRIVALS_THAT_WAIT: dict[type[Operation], Waiter] = {
    simt.WaitOp: run_wait_arrivals,
}
