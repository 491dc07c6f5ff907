"""Operations of the lanes of a warp together."""

from __future__ import annotations

import numpy as np
from xdsl.ir import Operation

from timetile.dialects import nvvm, simt
from timetile.dialects.tile import LANES
from timetile.runtime.executors.simt.errors import SimtError
from timetile.runtime.executors.simt.machine import Machine, SimtHandler
from timetile.runtime.executors.simt.memory import Mask


def run_shuffle(m: Machine, op: simt.ShuffleOp, active: Mask) -> None:
    """Give each lane the value of another lane."""
    m.check_whole_warps(op, active)
    delta = op.delta.value.data
    source = m.clocks.threads + delta
    inside = (source // LANES == m.clocks.warps) & (source >= 0)
    source = np.where(inside, source, m.clocks.threads)
    unset = ~inside
    old = m.unset_of(op.value)
    if old is not None:
        unset = unset | old[source]
    m.define(op.result, m.spread(op.value)[source], unset)


def run_pick(m: Machine, op: simt.PickOp, active: Mask) -> None:
    """Give each lane the value of the lane that it names."""
    m.check_whole_warps(op, active)
    source = m.clocks.warps * LANES + m.spread(op.lane) % LANES
    old, chosen = m.unset_of(op.value), m.unset_of(op.lane)
    unset = np.zeros(source.shape, bool) if old is None else old[source]
    if chosen is not None:
        unset = unset | chosen
    m.define(op.result, m.spread(op.value)[source], unset)


def run_uniform(m: Machine, op: simt.UniformOp, active: Mask) -> None:
    """Give all lanes the value of the first lane. Raises SimtError for different values."""
    m.check_whole_warps(op, active)
    value = m.spread(op.value)
    first = value.reshape(-1, LANES)[:, :1]
    if ((value.reshape(-1, LANES) != first) & active.reshape(-1, LANES)).any():
        raise SimtError(op, "the lanes of a warp differ")
    m.define(op.result, value)


def run_all(m: Machine, op: simt.AllOp, active: Mask) -> None:
    """Vote in each warp. Lanes with an unset condition vote, too, as on a GPU."""
    m.check_whole_warps(op, active)
    together = m.spread(op.value).reshape(-1, LANES).all(axis=1)
    m.define(op.result, np.repeat(together, LANES))


def run_warp_sync(m: Machine, op: Operation, active: Mask) -> None:
    """Synchronise the lanes of warps."""
    m.check_whole_warps(op, active)
    m.clocks.warp_syncs[active] += 1


WARPS: dict[type[Operation], SimtHandler] = {
    simt.ShuffleOp: run_shuffle,
    simt.PickOp: run_pick,
    simt.UniformOp: run_uniform,
    simt.AllOp: run_all,
    nvvm.WarpSyncOp: run_warp_sync,
}
