"""Loops and branches: threads on different ways are strands, running in turn."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
from xdsl.dialects import scf
from xdsl.ir import Operation

from timetile.runtime.executors.simt.machine import Machine, ThreadStrand, Waiter
from timetile.runtime.executors.simt.memory import Mask, some


def run_for(m: Machine, op: scf.ForOp, active: Mask) -> ThreadStrand:
    """Run a loop."""
    index, *carried = op.body.block.args
    position = m.spread(op.lb).copy()
    high, step = m.spread(op.ub), m.spread(op.step)
    for argument, initial in zip(carried, op.iter_args):
        m.define(argument, m.spread(initial), m.unset_of(initial))
    running = active & (position < high)
    while some(running):
        m.define(index, position)
        results = yield from m.run_block(op.body.block, running)
        merged = [
            m.merge(running, (m.spread(new), m.unset_of(new)), m.known(argument))
            for argument, new in zip(carried, results)
        ]
        for argument, (value, unset) in zip(carried, merged):
            m.define(argument, value, unset)
        position = np.where(running, position + step, position)
        running = running & (position < high)
    for result, argument in zip(op.results, carried):
        m.define(result, *m.known(argument))
    return []


def run_if(m: Machine, op: scf.IfOp, active: Mask) -> ThreadStrand:
    """Both sides, in turns where one waits for the other."""
    condition = m.spread(op.cond)
    sides = {True: op.true_region.blocks, False: op.false_region.blocks}
    strands = {
        side: m.run_block(blocks[0], mask)
        for side, blocks in sides.items()
        if blocks and some(mask := active & (condition == side))
    }
    results = yield from run_strands(m, strands)
    taken, other = ([m.known(v) for v in results.get(side, [])] for side in (True, False))
    for k, result in enumerate(op.results):
        if not taken or not other:
            m.define(result, *(taken or other)[k])
        else:
            m.define(result, *m.merge(condition, taken[k], other[k]))
    return []


def run_strands(
    m: Machine, strands: dict[bool, ThreadStrand]
) -> Generator[None, None, dict[bool, list[Any]]]:
    """Run strands in turns until all are done; yields where none can go on."""
    results: dict[bool, list[Any]] = {}
    while True:
        before = m.events
        for side in [side for side in strands if side not in results]:
            try:
                next(strands[side])
            except StopIteration as done:
                results[side] = done.value
                m.events += 1
        if len(results) == len(strands):
            return results
        if m.events == before:
            yield


CONTROL_THAT_WAIT: dict[type[Operation], Waiter] = {
    scf.ForOp: run_for,
    scf.IfOp: run_if,
}
