"""Runs in pieces: a run of many steps as several calls, each continuing after the call before. The
fields end with the bits of one call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from xdsl.dialects import llvm, scf, stencil
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation
from xdsl.irdl import IRDLOperation

from timetile.dialects.temporal import BroadcastOp, LoopOp, PointRunOp, ScratchOp
from timetile.passes.diagnostics import refuse
from timetile.passes.raising.memory import ALIASES, is_memory
from timetile.passes.raising.raise_time_loop import TIME_LOOP
from timetile.runtime.host.functions import IGNORED, SCALARS, is_scalar
from timetile.runtime.host.loop_facts import copies_layers
from timetile.runtime.machine.whole_numbers import whole_number
from timetile.runtime.program.results import argument_of, begins_with

State = TypeVar("State")


def checked_count(value: object, what: str) -> int:
    """A whole number, Python's or NumPy's. Raises TypeError for others, and for a truth value."""
    count = whole_number(value)
    if count is None:
        raise TypeError(f"{what}, got {value!r}")
    return count


def checked_steps(steps: object) -> int:
    """A number of steps. Raises TypeError for no int, ValueError for a negative number."""
    count = checked_count(steps, "the number of steps is an int")
    if count < 0:
        raise ValueError(f"the number of steps is not negative, got {steps}")
    return count


def checked_first(first: object) -> int:
    """The number of a run's first step. Raises TypeError for no int, ValueError for less than 0."""
    count = checked_count(first, "the number of the first step is an int")
    if count < 0:
        raise ValueError(f"the first step has a number of 0 or more, got {first}")
    return count


@dataclass(frozen=True)
class Span:
    """
    The steps of a run: how many in place of the program's trip counts, where given, and the number
    of the first.
    """

    steps: int | None = None
    first: int = 0

    @staticmethod
    def checked(steps: int | None, first: int) -> Span:
        """
        The steps asked for by a caller. Raises TypeError for no ints, ValueError for impossible
        numbers.
        """
        if steps is not None:
            steps = checked_steps(steps)
        first = checked_first(first)
        if first and steps is None:
            raise ValueError("a run from first_step on needs a number of steps; give steps=, too")
        return Span(steps, first)


REPEATABLE: tuple[type[IRDLOperation], ...] = (
    *ALIASES, *IGNORED, ReturnOp, stencil.ExternalStoreOp, llvm.UndefOp, llvm.InsertValueOp,
    BroadcastOp, ScratchOp, PointRunOp,
)  # fmt: skip
"""
Operations around a time loop with equal results in every call, and without a change of the caller's
memory.
"""


def is_time_loop(op: Operation) -> bool:
    """Whether the trip count of an operation is a number of time steps."""
    if isinstance(op, LoopOp):
        return op.sweep is None
    return isinstance(op, scf.ForOp) and TIME_LOOP in op.attributes


def has_time_loop(function: FuncOp) -> bool:
    """Some operation of a function advances time."""
    return any(map(is_time_loop, function.body.walk()))


def check_pieces(function: FuncOp) -> None:
    """
    Raise CompileError unless calls one after the other leave what one call with all their steps
    leaves.
    """
    loops = [op for op in function.body.block.ops if is_time_loop(op)]
    if not loops:
        for op in filter(is_time_loop, function.body.walk()):
            refuse(
                op,
                "the loop is inside another operation, and would start again in each piece of the "
                "run; write a function of the time loop alone",
            )
        refuse(
            function,
            "the function has no time loop, and a run stops between steps of a time loop; call "
            "the program once for each step",
        )
    if len(loops) > 1:
        refuse(
            loops[1],
            "the loop is the second time loop of the function, and a run stops between the steps "
            "of a single loop; write a function for each loop",
        )
    for op in function.body.block.ops:
        if op is loops[0] or isinstance(op, REPEATABLE) or type(op) in SCALARS or is_scalar(op):
            continue
        if isinstance(op, LoopOp) and isinstance(loops[0], LoopOp) and copies_layers(op, loops[0]):
            continue
        refuse(
            op,
            "the operation is outside the time loop, and would run again in each piece of the "
            "run; move the operation to another function",
        )
    check_state(function, loops[0])


def check_state(function: FuncOp, loop: Operation) -> None:
    """
    Raise CompileError unless all values carried by a time loop from step to step lie in arguments
    of the function.
    """
    if not isinstance(loop, LoopOp | scf.ForOp):
        return
    for begin in begins_with(loop):
        if not is_memory(begin.type):
            refuse(
                loop,
                f"the loop carries a value of type {begin.type} from step to step, lost at a "
                "run's stops; keep the value in a memref that is an argument",
            )
        # A scratch field holds the values of a single step.
        if argument_of(begin, function) is None and not isinstance(begin.owner, ScratchOp):
            refuse(
                loop,
                "the loop carries a field that is not an argument; make the field an argument, "
                "so that a run can go on",
            )
    for op in loop.walk():
        if op is not loop and is_time_loop(op):
            refuse(
                op,
                "the time loop is inside another time loop, and runs stop in neither; write a "
                "single loop",
            )


def in_pieces(
    run: Callable[[State, int, int], State], state: State, steps: int, every: int, first: int = 0
) -> Iterator[tuple[int, State]]:
    """
    A run of `steps` steps with a stop after every `every` steps and at the end: yields the number
    of the next step, and the state. `run` takes a state, a number of steps and the number of the
    first, and returns the state afterwards. Raises ValueError, before any run, for a negative
    number of steps, or an `every` below 1.
    """
    steps = checked_steps(steps)
    if checked_count(every, "a run stops after every so many steps, an int") < 1:
        raise ValueError(f"a run stops after every so many steps, 1 or more, got {every}")

    def pieces(state: State) -> Iterator[tuple[int, State]]:
        for done in range(0, steps, every):
            count = min(every, steps - done)
            state = run(state, count, first + done)
            yield first + done + count, state

    return pieces(state)
