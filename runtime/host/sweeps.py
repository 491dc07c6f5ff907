"""How the host runs a sweep along an axis, and notes the sweep in the record of a run."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from xdsl.ir import Operation

from timetile.dialects.boxes import sizes_of
from timetile.dialects.temporal import SweepOp
from timetile.passes.diagnostics import refuse
from timetile.runtime.host.functions import HostHandler, HostValues
from timetile.runtime.host.memory_protocol import Memory
from timetile.runtime.host.run_record import LoopRun, RunRecord


def sweep_handler(memory: Memory, record: RunRecord) -> dict[type[Operation], HostHandler]:
    """The host handler of sweeps. CompileError where two names of a sweep are one field."""

    def run(op: SweepOp, operands: Sequence[Any], values: HostValues) -> Sequence[Any]:
        given = dict(zip(op.operands, operands))
        fields = {field: given[field] for field in (*op.targets, *op.sources)}
        written = [fields[target] for target in op.targets]
        memories = [id(buffer) for buffer in fields.values()]
        if any(memories.count(id(buffer)) > 1 for buffer in written):
            refuse(op, "two fields of the sweep are one; give each name a separate field")
        memory.sweep(op, fields, {scalar: given[scalar] for scalar in op.scalars})
        cells = prod(sizes_of(op.box))
        record.add(LoopRun(1, cells, written, is_sweep=True))
        return []

    return {SweepOp: run}
