"""order-threads: what does not need this step's plane comes first, from the last level down.

Before: `fetch, u1 row, u2 row, ..., store`          (as the stages stand)
After:  `partial sums of u12, ..., u1; fetch; the last term of u1, u2, ...; store`

The newest plane of every level enters a cell's sum last. Everything before that term reads planes of
earlier steps, so it can run before the fetch has arrived; taken from the last level down, a partial
sum replaces the oldest plane of the level above, which has just been read for the last time. This is
what lets planes age by renaming at an unrolling of two, without moves, and keeps register use low.

1. The marks that `lower-tile-to-gpu` left give each operation its step, stage and row.
2. Late is what waits, synchronises, touches shared memory or writes, and what depends on it.
3. Early operations are ordered by the largest stage that needs them, descending; late ones stay.
   The marks are erased.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.context import Context
from xdsl.dialects import gpu, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from timetile.dialects import nvvm, simt
from timetile.dialects.simt import GLOBAL_SPACE, address_space


def is_anchored(op: Operation) -> bool:
    """The operation keeps its place: it waits, synchronises, writes, or reads what others write."""
    if op.regions:
        return any(is_anchored(inner) for inner in op.walk() if not inner.regions)
    match op:
        case simt.StoreOp() | simt.CopyAsyncOp() | gpu.BarrierOp() | nvvm.WarpSyncOp():
            return True
        case nvvm.CpAsyncCommitGroupOp() | nvvm.CpAsyncWaitGroupOp():
            return True
        case simt.LoadOp() | simt.OverrideOp():
            return address_space(op.buffer) != GLOBAL_SPACE
        case _:
            return False


def used_values(op: Operation) -> Iterator[SSAValue]:
    """The operands of an operation and of all that it holds."""
    if not op.regions:
        yield from op.operands
        return
    for inner in op.walk():
        yield from inner.operands


def phases(block: Block) -> Iterator[tuple[int, list[tuple[Operation, int]]]]:
    """The operations of each copy of the body, with their stages, in order."""
    step, stage = -1, 0
    group: list[tuple[Operation, int]] = []
    for op in block.ops:
        if isinstance(op, simt.PhaseOp):
            if op.step.value.data != step:
                yield step, group
                group = []
            step, stage = op.step.value.data, op.stage.value.data
        elif not isinstance(op, scf.YieldOp | gpu.ReturnOp):
            group.append((op, stage))
    yield step, group


def order_step(group: list[tuple[Operation, int]]) -> list[Operation]:
    """Early operations from the last stage down, then the late ones as they stood."""
    members = {op for op, _ in group}
    late: set[Operation] = set()
    for op, _ in group:
        if is_anchored(op) or any(value.owner in late for value in used_values(op)):
            late.add(op)
    needed_by: dict[Operation, int] = {}
    for op, stage in reversed(group):
        if op in late:
            continue
        largest = needed_by[op] = max(needed_by.get(op, -1), stage)
        for value in used_values(op):
            owner = value.owner
            if isinstance(owner, Operation) and owner in members:
                needed_by[owner] = max(needed_by.get(owner, -1), largest)
    early = [op for op, _ in group if op not in late]
    early.sort(key=lambda op: -needed_by[op])
    return early + [op for op, _ in group if op in late]


def order_block(block: Block) -> None:
    """Order the operations of one loop body, or of a tile without a stream axis."""
    ordered = [
        order_step(group) if step >= 0 else [op for op, _ in group] for step, group in phases(block)
    ]
    terminator = block.last_op
    for op in list(block.ops):
        if isinstance(op, simt.PhaseOp):
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
        marks = (inner.parent for inner in op.walk() if isinstance(inner, simt.PhaseOp))
        for block in dict.fromkeys(marks):
            assert block is not None
            order_block(block)
