"""Barriers inside a block, across a cluster, and across all blocks that share a tile."""

from __future__ import annotations

from functools import partial

import numpy as np
from xdsl.dialects import gpu
from xdsl.ir import Operation

from timetile.dialects import simt
from timetile.dialects.tile import LANES
from timetile.runtime.executors.simt.errors import SimtError
from timetile.runtime.executors.simt.machine import Machine, SimtHandler, ThreadStrand, Waiter
from timetile.runtime.executors.simt.memory import Mask


def run_barrier(m: Machine, op: Operation, active: Mask) -> None:
    """Run a barrier of a block."""
    waiting = active.reshape(m.grid, m.block)
    if (waiting.any(axis=1) != waiting.all(axis=1)).any():
        raise SimtError(op, "only some threads of a block reach it")
    m.clocks.meet(m.whole_warps(op, active), m.clocks.block_warps)
    m.clocks.warp_syncs[active] += 1


def run_cluster_barrier(m: Machine, op: Operation, active: Mask) -> ThreadStrand:
    """Run a barrier of a cluster."""
    yield from gather(m, op, active, "only some threads of a cluster reach it")
    return []


def gather(m: Machine, op: Operation, active: Mask, missing: str) -> ThreadStrand:
    """
    Let the active warps wait for the other warps of their teams, which may come to the barrier
    elsewhere.
    """
    warps, team = m.whole_warps(op, active), m.clocks.team_warps
    keys = [(int(warp) // team, int(m.passed[warp])) for warp in warps]
    m.passed[warps] += 1
    m.gathered.update(keys)
    m.events += 1
    for key in dict.fromkeys(keys):
        yield from m.wait_until(partial(all_gathered, m, key), op, missing)
        if m.gathered[key] == team:
            # The first thread to go on merges the clocks of all threads.
            m.gathered[key] += 1
            m.clocks.meet(np.arange(key[0] * team, (key[0] + 1) * team), team)
    m.clocks.warp_syncs[active] += 1
    return []


def all_gathered(m: Machine, key: tuple[int, int]) -> bool:
    """Whether all warps of a team have come to the barrier given by team and number."""
    return m.gathered[key] >= m.clocks.team_warps


def run_tile_barrier(m: Machine, op: simt.TileBarrierOp, active: Mask) -> ThreadStrand:
    """
    Run a barrier of the blocks of a tile: all blocks come to each barrier, in the order of numbers.
    """
    warps = m.whole_warps(op, active)
    number = m.spread(op.number)[warps * LANES]
    if (number != m.passed[warps] + 1).any():
        raise SimtError(op, "the barriers of a tile are not numbered one after the other")
    if op.blocks.value.data * m.clocks.block_warps != m.clocks.team_warps:
        raise SimtError(op, f"a tile has {m.clocks.team_warps} warps")
    yield from gather(m, op, active, "only some blocks of a tile reach it")
    return []


BARRIERS: dict[type[Operation], SimtHandler] = {
    gpu.BarrierOp: run_barrier,
}


BARRIERS_THAT_WAIT: dict[type[Operation], Waiter] = {
    simt.ClusterBarrierOp: run_cluster_barrier,
    simt.TileBarrierOp: run_tile_barrier,
}
