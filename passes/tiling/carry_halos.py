"""carry-halos: cells outside the bounds come from an older level instead of from memory.

Before: `%u0 = tile.load %src`, with the halo around the data, and for the second level
```
%h2 = tile.load halo %src                                               : !tile.queue<f64, lag 2>
%u2 = tile.apply @cell(%u1[-1, 0], %u1[0, 0], %u1[1, 0]) else %h2       : !tile.queue<f64, lag 2>
```
After:
```
%u2 = tile.apply @cell(%u1[-1, 0], %u1[0, 0], %u1[1, 0]) else %u0       : !tile.queue<f64, lag 2>
```
Two levels written to one buffer have equal cells outside the bounds. The older plane is kept
anyway, since neighbours along the stream read the plane last in this very step: the guard becomes a
select between registers instead of a load. (Whole planes outside the bounds, met by the first and
the last turns of a chunk only, are still read from memory: selects cost more registers there.)

1. The older level must keep the plane anyway: no plane is stored longer for cells outside the
   bounds. So the pass runs when lags are final, after `register-streaming`.
2. In split sums the older plane is gone when the last part is made, but present for the first part:
   outside the bounds the partial sums carry the older cells.
3. Other levels read their halo from memory: asymmetric stencils that look ahead further than back,
   and rotations of three buffers without common halos.

The pass is a walk and no rewrite pattern: it remembers, for each field, the last queue with the
field's cells outside the bounds.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from timetile.dialects.tile import (
    ApplyOp,
    KernelOp,
    LoadOp,
    queue_lag,
    queue_type,
    taps_of,
)
from timetile.passes.analysis.geometry.outside import halo_field, is_unread_halo
from timetile.passes.analysis.queues.lags import oldest_age
from timetile.passes.not_raised import remark_without_loops
from timetile.passes.rewriting import replace_apply


def keeps(queue: SSAValue, reader: ApplyOp) -> bool:
    """Whether the queue still has the reader's plane, kept for other readers."""
    age = reader.lag - queue_lag(queue)
    return 0 <= age <= oldest_age(queue, reader.kernel.stream_axis)


def partial_sum(stage: ApplyOp) -> ApplyOp | None:
    """
    The earlier part of a split sum: a stage read by this stage alone, cell by cell. None unless the
    part can hold the cells' type.
    """
    element = queue_type(stage.res[0]).element
    for queue in stage.queues:
        part = queue.owner
        if not isinstance(part, ApplyOp) or len(part.res) != 1 or part.outside:
            continue
        if queue_type(queue).element != element:
            continue
        readers = list(taps_of(queue))
        only = all(use.operation is stage for use in queue.uses)
        if only and len(readers) == 1 and not any(readers[0][1].offset):
            return part
    return None


def carriers(stage: ApplyOp, older: SSAValue) -> list[ApplyOp]:
    """
    The stages through which cells of an older level reach this stage, the first stage first; empty
    if none.
    """
    if keeps(older, stage):
        return [stage]
    part = partial_sum(stage) if len(stage.res) == 1 else None
    earlier = [] if part is None else carriers(part, older)
    return [*earlier, stage] if earlier else []


def carry(stage: ApplyOp, holders: dict[SSAValue, SSAValue]) -> ApplyOp:
    """
    Let a stage take cells outside the bounds from older levels keeping such cells. `holders` are,
    for each field, the latest queue with the field's cells outside the bounds.
    """
    taken = list(stage.outside)
    for number, queue in enumerate(taken):
        field = halo_field(queue)
        if field is None or field not in holders:
            continue
        older = holders[field]
        if path := carriers(stage, older):
            for part in path[:-1]:
                older = replace_apply(part, outside=[older]).res[0]
            taken[number] = older
    return replace_apply(stage, outside=taken)


def carry_halos(kernel: KernelOp) -> None:
    """Rewrite one kernel."""
    holders: dict[SSAValue, SSAValue] = {}
    for stage in kernel.stages:
        match stage:
            case LoadOp(data=SSAValue() as data):
                # A field at home is stored with its own halo.
                holders[stage.halo or data] = stage.result
            case ApplyOp(replaces_cells=True):
                fields = [halo_field(queue) for queue in stage.outside]
                stage = carry(stage, holders)
                holders.update(
                    (field, result) for field, result in zip(fields, stage.res) if field is not None
                )
            case _:
                pass
    for stage in kernel.stages:
        if is_unread_halo(stage):
            Rewriter.erase_op(stage)


class CarryHalosPass(ModulePass):
    """Carry halos in every kernel; see the module's documentation."""

    name = "carry-halos"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        remark_without_loops(self, op, "raise-time-loop,device-tiling")
        for kernel in [k for k in op.ops if isinstance(k, KernelOp)]:
            if kernel.stream_axis is not None:
                carry_halos(kernel)
