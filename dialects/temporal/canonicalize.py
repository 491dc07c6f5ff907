"""
Canonicalization of the temporal dialect: removes operations without effect, by facts of the
operation or of its step alone.

Kernels of a loop depend on the loop's updates and the numbers of its buffers: updates and buffers
of a loop with a schedule or with kernels stay.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern
from xdsl.traits import SymbolTable
from xdsl.transforms.canonicalization_patterns.utils import const_evaluate_operand

from timetile.dialects.temporal.boundary import BoundaryAttr
from timetile.dialects.temporal.fields import GatherOp, ScratchOp
from timetile.dialects.temporal.footprints import Footprint, is_written_again
from timetile.dialects.temporal.loop import LoopOp
from timetile.dialects.temporal.points import PointKind
from timetile.dialects.temporal.sweep import SweepOp
from timetile.dialects.temporal.update import UpdateOp


def cycle_of(loop: LoopOp, role: int) -> list[int]:
    """The buffers whose places buffer `role` takes, step by step."""
    cycle = [role]
    while (after := loop.rotation[cycle[-1]]) != role:
        cycle.append(after)
    return cycle


def is_settled(loop: LoopOp) -> bool:
    """Kernels or a schedule were made for the loop."""
    return loop.schedule is not None or bool(loop.kernel_names)


class RemoveIdleLoop(RewritePattern):
    """A loop of no steps, or without updates: each result is a buffer."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: LoopOp, rewriter: PatternRewriter, /) -> None:
        steps = const_evaluate_operand(op.steps)
        if steps != 0 and op.updates:
            return
        cycles = [cycle_of(op, role) for role in range(len(op.buffers))]
        if steps is None and any(len(cycle) > 1 for cycle in cycles):
            return
        moved = 0 if steps is None or steps < 0 else steps
        rewriter.replace(op, [], [op.buffers[cycle[moved % len(cycle)]] for cycle in cycles])


class DropIdleBuffers(RewritePattern):
    """Removes from the loop buffers that neither rotate nor appear in an update."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: LoopOp, rewriter: PatternRewriter, /) -> None:
        block, count = op.body.block, len(op.buffers)
        kept = [k for k in range(count) if op.rotation[k] != k or block.args[k].first_use]
        if is_settled(op) or len(kept) == count:
            return
        for k in reversed(range(count)):
            if k not in kept:
                rewriter.erase_block_argument(block.args[k])
        new = LoopOp(
            op.steps,
            [op.buffers[k] for k in kept],
            [kept.index(op.rotation[k]) for k in kept],
            op.detach_region(op.body),
        )
        new.properties.update({k: v for k, v in op.properties.items() if k != "rotate"})
        new.attributes.update(op.attributes)
        new.location = op.location
        results = dict(zip(kept, new.res))
        rewriter.replace(op, new, [results.get(k, op.buffers[k]) for k in range(count)])


class SimplifyBoundary(RewritePattern):
    """Removes a boundary that keeps all cells, and writes equal sides once."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: UpdateOp, rewriter: PatternRewriter, /) -> None:
        if op.outside is None:
            return
        kinds = op.outside.kinds
        if op.outside.keeps_all:
            op.outside = None
        # The text of a number tells 0.0 from -0.0; `==` does not.
        elif len(kinds) > 1 and len(set(map(repr, kinds))) == 1:
            op.outside = BoundaryAttr(kinds[0])
        else:
            return
        rewriter.notify_op_modified(op)


def loop_of(op: UpdateOp) -> LoopOp | None:
    """The loop of an update, unless the loop is settled."""
    loop = op.parent_op()
    return loop if isinstance(loop, LoopOp) and not is_settled(loop) else None


def notes_cells(op: UpdateOp) -> bool:
    """Samples of the update note cells for other readers than updates."""
    return any(made.kind is PointKind.SAMPLE for made in op.point_sets)


class EraseSelfUpdate(RewritePattern):
    """Erases an update that copies each cell onto itself."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: UpdateOp, rewriter: PatternRewriter, /) -> None:
        function = SymbolTable.lookup_symbol(op, op.cell)
        if loop_of(op) is None or op.outside is not None or not isinstance(function, FuncOp):
            return
        if op.point_uses:
            return
        if function.is_declaration or len(function.body.blocks) != 1:
            return
        block = function.body.block
        end = block.last_op
        if not isinstance(end, ReturnOp):
            return
        here = (0,) * op.rank
        read: dict[SSAValue, SSAValue] = {
            argument: op.sources[tap.operand]
            for argument, tap in zip(block.args, op.tap_list)
            if tap.offset == here
        }
        if [read.get(value) for value in end.arguments] == list(op.targets):
            rewriter.erase(op)


class EraseOverwritten(RewritePattern):
    """An update with cells all written by a later update of the step, before any read."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: UpdateOp, rewriter: PatternRewriter, /) -> None:
        if loop_of(op) is None or op.outside is not None or notes_cells(op):
            return
        if is_written_again(Footprint(op), map(Footprint, later_updates(op))):
            rewriter.erase(op)


def later_updates(op: UpdateOp) -> Iterator[UpdateOp]:
    """The updates of a step after one of them, up to an operation of another kind."""
    later = op.next_op
    while isinstance(later, UpdateOp):
        yield later
        later = later.next_op


class EraseUnread(RewritePattern):
    """An update of scratch fields of the function, without a reader."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: UpdateOp, rewriter: PatternRewriter, /) -> None:
        loop = loop_of(op)
        if loop is None or notes_cells(op):
            return
        if all(is_unread(loop, target) for target in op.targets):
            rewriter.erase(op)


def is_unread(loop: LoopOp, target: SSAValue) -> bool:
    """Nothing reads a buffer of the loop: no update, and nothing before or after the loop."""
    block: Block = loop.body.block
    if target not in block.args:
        return False
    for role in cycle_of(loop, block.args.index(target)):
        buffer = loop.buffers[role]
        if not isinstance(buffer.owner, ScratchOp) or not buffer.has_one_use():
            return False
        if loop.res[role].first_use is not None:
            return False
        if not all(is_written(use.operation, use.index) for use in block.args[role].uses):
            return False
    return True


def is_written(op: object, operand: int) -> bool:
    """The operand of an operation is a target."""
    if isinstance(op, GatherOp):
        return operand == 0
    return isinstance(op, UpdateOp | SweepOp) and operand < len(op.targets)


class EraseUnreadGather(RewritePattern):
    """A gather into a scratch field of the function, without a reader."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: GatherOp, rewriter: PatternRewriter, /) -> None:
        uses = op.target.uses
        if isinstance(op.target.owner, ScratchOp) and all(
            is_written(use.operation, use.index) for use in uses
        ):
            rewriter.erase(op)
