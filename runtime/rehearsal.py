"""A run without its work: what a program of several loops is refused for is known before any array changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects import stencil
from xdsl.dialects.func import FuncOp, ReturnOp

from timetile.dialects.temporal import LoopOp
from timetile.passes.raising.memory import ALIASES
from timetile.runtime.executors import check_loop
from timetile.runtime.host import SCALARS, Host, Values, is_scalar
from timetile.runtime.loop_facts import KnownLoops
from timetile.runtime.native import rotated

QUIET = (LoopOp, ReturnOp, stencil.ExternalStoreOp, *ALIASES)
"""Operations, besides those of scalars, that change no memory when they are rehearsed."""


def is_worth_it(function: FuncOp) -> bool:
    """Something may be refused after a loop has run, and the function can be rehearsed: it only names, counts and loops."""
    ops = list(function.body.block.ops)
    late = [op for op in ops if isinstance(op, LoopOp | stencil.ExternalStoreOp)]
    return len(late) > 1 and all(
        isinstance(op, QUIET) or type(op) in SCALARS or is_scalar(op) for op in ops
    )


def rehearse(function: FuncOp, values: Sequence[Any], steps: int | None, loops: KnownLoops) -> None:
    """CompileError where a run on these values would be refused; buffers take turns, and nothing else happens."""

    def turn(loop: LoopOp, operands: Sequence[Any], made: Values) -> Sequence[Any]:
        count, *buffers = operands
        total = max(int(count) if steps is None or loop.sweep is not None else steps, 0)
        check_loop(loop, buffers, made, loops.of(loop))
        return rotated(buffers, loop.rotation, total)

    Host({LoopOp: turn}, steps).run(function, values)
