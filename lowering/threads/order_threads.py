"""order-threads: operations independent of this step's plane come first, from the last level down.

Before, in the order of stages:
```
simt.mark step 0 stage 0 row 0
%new = simt.load %ring[%i + 0] : f64
simt.mark step 0 stage 1 row 0
%p1 = arith.addf %u0, %h : f64
%q1 = arith.addf %p1, %new : f64
simt.mark step 0 stage 2 row 0
%p2 = arith.mulf %u1, %k : f64
%q2 = arith.addf %p2, %q1 : f64
simt.store %q2 to %field[%i + 100]
```
After: partial sums from the last level down, the fetch, and the last terms:
```
%p2 = arith.mulf %u1, %k : f64
%p1 = arith.addf %u0, %h : f64
%new = simt.load %ring[%i + 0] : f64
%q1 = arith.addf %p1, %new : f64
%q2 = arith.addf %p2, %q1 : f64
simt.store %q2 to %field[%i + 100]
```

The newest plane of every level enters a cell's sum last. All earlier terms read planes of earlier
steps, and can run before the fetch has arrived. Taken from the last level down, a partial sum
replaces the oldest plane of the level above, just read for the last time. Planes can thus age by
renaming at an unrolling of two, without moves and with few registers.

If the warps of a tile arrive and wait instead of passing a barrier, rows shared with other warps
come first, then the warp arrives, and inner rows follow: meanwhile other warps may catch up.

1. Marks left by `lower-tile-to-gpu` give each operation its step, stage and row.
2. Late operations wait, synchronise, touch shared memory or write, or depend on such operations.
3. Early operations are ordered by the largest stage that needs them, descending; late operations
   stay. The marks are erased.

The pass is a walk and no rewrite pattern: it orders a whole block.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import gpu, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from timetile.dialects import nvvm, simt
from timetile.dialects.simt import GLOBAL_SPACE, address_space
from timetile.lowering.threads.rewriting import blocks_inside
from timetile.passes.not_raised import BEFORE_THREADS, remark_without_loops

ANCHORED: frozenset[type[Operation]] = frozenset(
    {
        *(simt.StoreOp, simt.CopyAsyncOp, gpu.BarrierOp, nvvm.WarpSyncOp),
        *(simt.ArriveOp, simt.WaitOp, simt.SendOp, simt.ClusterBarrierOp),
        *(simt.PostOp, simt.TakeOp, simt.TileBarrierOp),
        *(simt.LaunchesEndedOp, simt.EndLaunchOp),
        *(nvvm.CpAsyncCommitGroupOp, nvvm.CpAsyncWaitGroupOp),
    }
)
"""Operations that wait, synchronise or write."""


def is_anchored(op: Operation) -> bool:
    """
    Whether the operation keeps its place: it waits, synchronises, writes, or reads cells written by
    other threads.
    """
    if op.regions:
        return any(is_anchored(inner) for inner in op.walk() if not inner.regions)
    if type(op) in ANCHORED:
        return True
    reads = isinstance(op, simt.LoadOp | simt.OverrideOp)
    return reads and address_space(op.place[0]) != GLOBAL_SPACE


def used_values(op: Operation) -> Iterator[SSAValue]:
    """The operands of an operation and of all operations inside."""
    if not op.regions:
        yield from op.operands
        return
    for inner in op.walk():
        yield from inner.operands


@dataclass(frozen=True)
class Mark:
    """The place of an operation: stage, row, and whether the row is shared with other warps."""

    stage: int
    row: int
    inner: bool


MarkedStep = list[tuple[Operation, Mark]]
"""The operations of one copy of the body, in order."""


def marked(block: Block) -> Iterator[tuple[int, MarkedStep]]:
    """The operations of each copy of the body, with marks, in order."""
    step, mark = -1, Mark(0, 0, False)
    group: MarkedStep = []
    for op in block.ops:
        if isinstance(op, simt.MarkOp):
            if op.step.value.data != step:
                yield step, group
                group = []
            step = op.step.value.data
            mark = Mark(op.stage.value.data, op.row.value.data, op.inner is not None)
        elif not isinstance(op, scf.YieldOp | gpu.ReturnOp):
            group.append((op, mark))
    yield step, group


def late_operations(group: MarkedStep) -> set[Operation]:
    """The operations with a fixed place, and dependent operations."""
    late: set[Operation] = set()
    for op, _ in group:
        if is_anchored(op) or any(value.owner in late for value in used_values(op)):
            late.add(op)
    return late


def early_operations(group: MarkedStep, late: set[Operation]) -> list[tuple[Operation, Mark]]:
    """All other operations, by the largest stage that needs them, descending."""
    members = {op for op, _ in group}
    needed_by: dict[Operation, int] = {}
    for op, mark in reversed(group):
        if op in late:
            continue
        largest = needed_by[op] = max(needed_by.get(op, -1), mark.stage)
        for value in used_values(op):
            owner = value.owner
            if isinstance(owner, Operation) and owner in members:
                needed_by[owner] = max(needed_by.get(owner, -1), largest)
    early = [(op, mark) for op, mark in group if op not in late]
    early.sort(key=lambda entry: -needed_by[entry[0]])
    return early


def order_step(group: MarkedStep) -> list[Operation]:
    """
    Early operations from the last stage down, then late operations in the old order. If warps
    arrive and wait, first all operations of rows shared with other warps, up to the arrival; then
    the other rows, one after the other.
    """
    late = late_operations(group)
    early = early_operations(group, late)
    behind = [(op, mark) for op, mark in group if op in late]
    if not any(isinstance(op, simt.ArriveOp) for op, _ in group):
        return [op for op, _ in early + behind]
    ordered = early + behind
    shared = {mark.row for _, mark in group if not mark.inner}
    turns = sorted({mark.row for _, mark in group}, key=lambda row: (row not in shared, row))
    wanted = [op for op, mark in ordered if not mark.inner]
    for row in turns:
        wanted += [op for op, mark in ordered if mark.inner and mark.row == row]
    return with_operands(wanted, {op for op, _ in group})


def with_operands(wanted: list[Operation], members: set[Operation]) -> list[Operation]:
    """The operations in this order, with each operand's maker before its users."""
    ordered: dict[Operation, None] = {}
    waiting = wanted[::-1]
    while waiting:
        op = waiting[-1]
        owners = (value.owner for value in used_values(op))
        missing = [
            owner
            for owner in owners
            if isinstance(owner, Operation) and owner in members and owner not in ordered
        ]
        if missing and op not in ordered:
            waiting += reversed(missing)
        else:
            ordered[waiting.pop()] = None
    return list(ordered)


def order_block(block: Block) -> None:
    """Order the operations of one loop body, or of a tile without a stream axis."""
    ordered = [
        order_step(group) if step >= 0 else [op for op, _ in group] for step, group in marked(block)
    ]
    terminator = block.last_op
    for op in list(block.ops):
        if isinstance(op, simt.MarkOp):
            op.detach()
            op.erase()
        elif op is not terminator:
            op.detach()
    for ops in ordered:
        if terminator is None:
            block.add_ops(ops)
        else:
            block.insert_ops_before(ops, terminator)


class OrderThreadsPass(ModulePass):
    """Order every stream loop; see the module's documentation."""

    name = "order-threads"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        remark_without_loops(self, op, BEFORE_THREADS)
        for block in blocks_inside(op):
            if any(type(inner) is simt.MarkOp for inner in block.ops):
                order_block(block)
