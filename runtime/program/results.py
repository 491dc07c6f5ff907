"""The result of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from xdsl.dialects import scf
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, SSAValue

from timetile.dialects.temporal import LoopOp
from timetile.passes.raising.memory import memory_of


@dataclass(frozen=True)
class RunResult:
    """
    The result of a run. `latest[k]` is the argument with the last version written by time loop k
    (one for each buffer written by a step). `steps` are the steps of each loop, `cells` the updated
    cells, `seconds` the time of the run without transfers (0 for asynchronous runs). `returned` are
    the function's results: numbers, or positions of returned arguments.

    `buffers` are the arguments of the call, with fields in the order for a following call: rotating
    buffers have changed places after an odd number of steps. `program(*result.buffers, steps=5)`
    after a run of 5 steps leaves the result of one run of 10.
    """

    latest: tuple[tuple[int, ...], ...]
    steps: tuple[int, ...]
    cells: int
    seconds: float = field(compare=False)
    returned: tuple[Any, ...] = ()
    buffers: tuple[Any, ...] = field(default=(), compare=False, repr=False)

    @property
    def gcells_per_second(self) -> float:
        """Cell updates per nanosecond."""
        return self.cells / self.seconds / 1e9 if self.seconds else 0.0


def begins_with(loop: LoopOp | scf.ForOp) -> Sequence[SSAValue]:
    """The fields at the beginning of a loop, one for each result."""
    return loop.buffers if isinstance(loop, LoopOp) else loop.iter_args


def argument_of(value: SSAValue, function: FuncOp) -> int | None:
    """
    The function's argument behind a field: through other names, and through loops by the role of
    entry. None if no argument is behind.
    """
    value = memory_of(value)
    while not isinstance(value, BlockArgument):
        op = value.owner
        if not isinstance(op, LoopOp | scf.ForOp):
            return None
        value = memory_of(begins_with(op)[op.results.index(value)])
    return value.index if value.block is function.body.block else None


def is_sweep(op: LoopOp | scf.ForOp) -> bool:
    """Whether a loop is a sweep: its buffers stay in place."""
    return isinstance(op, LoopOp) and op.sweep is not None


def next_order(
    function: FuncOp, made: Mapping[SSAValue, Any], values: Sequence[Any]
) -> tuple[int, ...]:
    """
    The arguments, by position, of a call that continues after a call with these values, which made
    `made`. Arguments stay in place if no order continues the call, as for two loops rotating one
    argument with different others.
    """
    places: Mapping[int, int] = {id(value): k for k, value in enumerate(values)}
    order = list(range(len(values)))
    for op in function.body.block.ops:
        if not isinstance(op, LoopOp | scf.ForOp) or is_sweep(op):
            continue
        for begin, end in zip(begins_with(op), op.results):
            position = argument_of(begin, function)
            if position is not None and id(made.get(end)) in places:
                order[position] = places[id(made[end])]
    return tuple(order) if len(set(order)) == len(order) else tuple(range(len(values)))
