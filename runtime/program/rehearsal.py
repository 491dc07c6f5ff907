"""
A run without its work: refusals of a program of several loops are known before any array changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects import stencil
from xdsl.dialects.func import FuncOp, ReturnOp

from timetile.dialects.temporal import LoopOp
from timetile.passes.raising.memory import ALIASES
from timetile.runtime.executors.handlers import check_loop
from timetile.runtime.host.functions import SCALARS, Host, HostValues, is_scalar
from timetile.runtime.host.loop_facts import KnownLoops
from timetile.runtime.native.loops import rotated

QUIET = (LoopOp, ReturnOp, stencil.ExternalStoreOp, *ALIASES)
"""Operations, besides those on scalars, without an effect on memory in a rehearsal."""


def is_worth_it(function: FuncOp) -> bool:
    """
    Whether a refusal may come after a loop has run, and the function can be rehearsed: the function
    only names, counts and loops.
    """
    ops = list(function.body.block.ops)
    late = [op for op in ops if isinstance(op, LoopOp | stencil.ExternalStoreOp)]
    return len(late) > 1 and all(
        isinstance(op, QUIET) or type(op) in SCALARS or is_scalar(op) for op in ops
    )


def rehearse(function: FuncOp, values: Sequence[Any], steps: int | None, loops: KnownLoops) -> None:
    """
    Raise CompileError if a run on these values would be refused. Buffers rotate, and nothing else
    happens.
    """

    def turn(loop: LoopOp, operands: Sequence[Any], made: HostValues) -> Sequence[Any]:
        count, *buffers = operands
        total = max(int(count) if steps is None or loop.sweep is not None else steps, 0)
        check_loop(loop, buffers, made, loops.of(loop))
        return rotated(buffers, loop.rotation, total)

    Host({LoopOp: turn}, steps).run(function, values)
