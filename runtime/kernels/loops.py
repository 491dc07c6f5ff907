"""The time loops of a module."""

from __future__ import annotations

from xdsl.dialects.builtin import IndexType, ModuleOp
from xdsl.dialects.func import FuncOp

from timetile.dialects.temporal import LoopOp
from timetile.dialects.verified import ancestor_of


def loops_of(module: ModuleOp) -> list[LoopOp]:
    """The time loops of a module, in order."""
    return [op for op in module.walk() if isinstance(op, LoopOp)]


def take_steps(loop: LoopOp) -> None:
    """Let a time loop take its number of steps from a new argument of its function."""
    function = ancestor_of(loop, FuncOp)
    block = function.body.block
    loop.operands[0] = block.insert_arg(IndexType(), len(block.args))
    function.update_function_type()
