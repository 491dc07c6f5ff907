"""Arithmetic, and the numbers of threads and blocks."""

from __future__ import annotations

import numpy as np
from xdsl.dialects import arith, gpu
from xdsl.ir import Operation

from timetile.dialects import simt
from timetile.runtime.arithmetic.cells import dtype_of, join, meaning_of, split
from timetile.runtime.executors.simt.machine import Machine, SimtHandler
from timetile.runtime.executors.simt.memory import Mask, some


def arithmetic(op: Operation) -> SimtHandler:
    """How an operation of arithmetic runs: the meaning and the operands are looked up once."""
    operands, result = tuple(op.operands), op.results[0]
    meaning = meaning_of(op)
    if not operands:
        value = meaning()

        def run_constant(m: Machine, op: Operation, active: Mask) -> None:
            m.define(result, value)

        return run_constant

    def run(m: Machine, op: Operation, active: Mask) -> None:
        values = m.values
        unset = m.any_unset(operands)
        if unset is not None and isinstance(op, arith.SelectOp):
            unset = select_unset(m, op)
            unset = unset if some(unset) else None
        values[result] = meaning(*[values[v] for v in operands])
        m.unset[result] = unset

    return run


def run_arithmetic(m: Machine, op: Operation, active: Mask) -> None:
    """Run an operation of arithmetic that occurs seldom."""
    arithmetic(op)(m, op, active)


def select_unset(m: Machine, op: arith.SelectOp) -> Mask:
    """The threads in which a selection is unset: the condition or the selected value is."""
    none = np.zeros(m.count, dtype=bool)
    masks = [m.unset_of(value) for value in op.operands]
    condition, a, b = (none if mask is None else mask for mask in masks)
    return condition | np.where(m.spread(op.cond), a, b)


def run_split(m: Machine, op: simt.SplitOp, active: Mask) -> None:
    """Split a 64-bit value into halves."""
    low, high = split(m.values[op.value])
    m.define(op.low, low, m.unset_of(op.value))
    m.define(op.high, high, m.unset_of(op.value))


def run_join(m: Machine, op: simt.JoinOp, active: Mask) -> None:
    """Join two halves to a 64-bit value."""
    joined = join(m.values[op.low], m.values[op.high], dtype_of(op.result.type))
    m.define(op.result, joined, m.any_unset(op.operands))


def run_unset(m: Machine, op: simt.UnsetOp, active: Mask) -> None:
    """Make an unset value."""
    zero = np.zeros(m.count, dtype=dtype_of(op.result.type))
    m.define(op.result, zero, np.full(m.count, True))


def run_thread_id(m: Machine, op: gpu.ThreadIdOp, active: Mask) -> None:
    """Give each thread its number in the block."""
    m.define(op.result, m.clocks.threads % m.block)


def run_block_id(m: Machine, op: gpu.BlockIdOp, active: Mask) -> None:
    """Give each thread the number of its block."""
    m.define(op.result, m.clocks.blocks)


def ignore(m: Machine, op: Operation, active: Mask) -> None:
    """Nothing happens."""


VALUES: dict[type[Operation], SimtHandler] = {
    simt.ReciprocalOp: run_arithmetic,
    simt.ReciprocalRootOp: run_arithmetic,
    simt.FmaUpOp: run_arithmetic,
    simt.UnsetOp: run_unset,
    simt.SplitOp: run_split,
    simt.JoinOp: run_join,
    gpu.ThreadIdOp: run_thread_id,
    gpu.BlockIdOp: run_block_id,
    simt.MarkOp: ignore,
    gpu.ReturnOp: ignore,
}
