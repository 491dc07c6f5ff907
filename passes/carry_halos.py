"""carry-halos: cells outside the bounds come from an older level, not from memory again.

Before: `%u0 = tile.load %src`, with its halo around it, and for the second level
```
%h2 = tile.load halo %src                                               : !tile.queue<f64, lag 2>
%u2 = tile.apply @cell(%u1[-1, 0], %u1[0, 0], %u1[1, 0]) else %h2       : !tile.queue<f64, lag 2>
```
After:
```
%u2 = tile.apply @cell(%u1[-1, 0], %u1[0, 0], %u1[1, 0]) else %u0       : !tile.queue<f64, lag 2>
```
A level that is written to the buffer of an older one has the same cells outside the bounds. The older
plane is still kept, as neighbours along the stream read it last in just this step: beside the bounds the
guard is a select between registers, where it was a load. (Whole planes outside the bounds, which only the
first and the last turns of a chunk meet, are still read from memory: there selects cost more registers.)

1. The older level must keep the plane anyway: nothing is stored longer for the sake of cells outside. So
   this comes when lags are final, after `register-streaming`.
2. Where sums are split, the older plane is gone when the last part is made, but there when the first
   is: outside the bounds the partial sums carry its cells through.
3. Others stay: asymmetric stencils that look ahead further than back, and rotations of three buffers whose halos
   are not known to be in common, read their halo from memory.
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
    StageOp,
    queue_lag,
    queue_type,
    taps_of,
)
from timetile.passes.analysis.queues.lags import oldest_age
from timetile.passes.rewriting import replace_apply


def halo_of(queue: SSAValue) -> SSAValue | None:
    """The field that a queue takes its cells outside the bounds from, where they are read from memory."""
    load = queue.owner
    return load.halo if isinstance(load, LoadOp) and load.data is None else None


def keeps(queue: SSAValue, reader: ApplyOp) -> bool:
    """The plane that the reader makes is still there in the queue, for the sake of other readers."""
    age = reader.lag - queue_lag(queue)
    return 0 <= age <= oldest_age(queue, reader.kernel.stream_axis)


def partial_sum(stage: ApplyOp) -> ApplyOp | None:
    """
    The stage whose only reader is this one, cell by cell: the earlier part of a split sum. It can hold
    cells in their place where it is of their type.
    """
    element = queue_type(stage.res[0]).element
    for queue in stage.queues:
        part = queue.owner
        if not isinstance(part, ApplyOp) or len(part.res) != 1 or part.otherwise:
            continue
        if queue_type(queue).element != element:
            continue
        readers = list(taps_of(queue))
        only = all(use.operation is stage for use in queue.uses)
        if only and len(readers) == 1 and not any(readers[0][1].offset):
            return part
    return None


def carriers(stage: ApplyOp, older: SSAValue) -> list[ApplyOp]:
    """The stages through which an older level's cells reach this one, the first first; or none."""
    if keeps(older, stage):
        return [stage]
    part = partial_sum(stage) if len(stage.res) == 1 else None
    earlier = [] if part is None else carriers(part, older)
    return [*earlier, stage] if earlier else []


def carry(stage: ApplyOp, holders: dict[SSAValue, SSAValue]) -> ApplyOp:
    """
    Let a stage take its cells outside the bounds from older levels, where they keep them. `holders` are
    the latest queues that hold the cells of a field outside the bounds.
    """
    taken = list(stage.otherwise)
    for number, queue in enumerate(taken):
        field = halo_of(queue)
        if field is None or field not in holders:
            continue
        older = holders[field]
        if path := carriers(stage, older):
            for part in path[:-1]:
                older = replace_apply(part, otherwise=[older]).res[0]
            taken[number] = older
    return replace_apply(stage, otherwise=taken)


def carry_halos(kernel: KernelOp) -> None:
    """Rewrite one kernel."""
    holders: dict[SSAValue, SSAValue] = {}
    for stage in kernel.stages:
        match stage:
            case LoadOp(data=SSAValue() as data):
                # Data that has its halo around it holds its own.
                holders[stage.halo or data] = stage.result
            case ApplyOp(replaces_cells=True):
                fields = [halo_of(queue) for queue in stage.otherwise]
                stage = carry(stage, holders)
                holders.update(
                    (field, result) for field, result in zip(fields, stage.res) if field is not None
                )
            case _:
                pass
    for stage in kernel.stages:
        if is_unread_halo(stage):
            Rewriter.erase_op(stage)


def is_unread_halo(stage: StageOp) -> bool:
    """The stage brings cells outside the bounds that nobody takes any more."""
    return isinstance(stage, LoadOp) and stage.data is None and stage.result.first_use is None


class CarryHalosPass(ModulePass):
    """Carry halos in every kernel; see the module's documentation."""

    name = "carry-halos"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in [k for k in op.ops if isinstance(k, KernelOp)]:
            if kernel.stream_axis is not None:
                carry_halos(kernel)
