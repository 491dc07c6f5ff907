"""Rewrites of the code of threads shared by several passes."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import gpu
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from timetile.dialects.verified import block_of


def functions_of(module: ModuleOp) -> list[gpu.FuncOp]:
    """The code of all kernels."""
    inside = (op.body.block.ops if isinstance(op, gpu.ModuleOp) else (op,) for op in module.ops)
    return [op for ops in inside for op in ops if isinstance(op, gpu.FuncOp)]


def blocks_inside(op: Operation) -> list[Block]:
    """
    All blocks inside an operation, an outer block before inner ones. The blocks of a kernel are
    few: looking for blocks is cheaper than a walk over all operations.
    """
    found: list[Block] = []
    for block in (block for region in op.regions for block in region.blocks):
        found.append(block)
        for inner in block.ops:
            if inner.regions:
                found += blocks_inside(inner)
    return found


def replace_results(op: Operation, *values: SSAValue) -> None:
    """Replace an operation's results by values, and erase the operation."""
    for old, new in zip(op.results, values, strict=True):
        old.replace_all_uses_with(new)
    op.detach()
    op.erase()


def move_before(ops: Sequence[Operation], before: Operation) -> None:
    """Move operations before another operation."""
    block = block_of(before)
    for op in ops:
        op.detach()
        block.insert_op_before(op, before)
