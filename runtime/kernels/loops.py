"""The time loops of a module."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from timetile.dialects.temporal import LoopOp


def loops_of(module: ModuleOp) -> list[LoopOp]:
    """The time loops of a module, in order."""
    return [op for op in module.walk() if isinstance(op, LoopOp)]
