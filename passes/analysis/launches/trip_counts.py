"""Trip counts stated by the program, and the launches of a plan for such a count."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from timetile.dialects.temporal import LoopOp
from timetile.passes.analysis.cells.constants import integer_constant
from timetile.passes.analysis.launches.launch_planning import deepest_launch, plan
from timetile.passes.analysis.launches.liveness import loop_rotation

FOLDED: dict[type[Operation], Callable[[int, int], int]] = {
    arith.AddiOp: lambda a, b: a + b,
    arith.SubiOp: lambda a, b: a - b,
    arith.MuliOp: lambda a, b: a * b,
    arith.MaxSIOp: max,
    arith.MinSIOp: min,
}
"""Operations on integers computing trip counts."""


def folded(value: SSAValue) -> int | None:
    """The integer of a value computed from constants; None if not constant."""
    owner = value.owner
    if not isinstance(owner, Operation) or isinstance(owner, arith.ConstantOp):
        return integer_constant(value)
    if isinstance(owner, arith.IndexCastOp):
        return folded(owner.input)
    is_quotient = isinstance(owner, arith.CeilDivSIOp)
    if not is_quotient and type(owner) not in FOLDED:
        return None
    left, right = (folded(operand) for operand in owner.operands)
    if left is None or right is None:
        return None
    if is_quotient:
        return None if right == 0 else -(-left // right)
    return FOLDED[type(owner)](left, right)


def constant_steps(loop: LoopOp) -> int | None:
    """
    How many steps a time loop takes, if the program says so, 0 for a negative number; else None.
    """
    steps = folded(loop.steps)
    return None if steps is None else max(steps, 0)


def most_steps_at_once(loop: LoopOp) -> int | None:
    """
    The most steps of one launch of a time loop, as the last steps need other launches. None if the
    program does not state the number of steps.
    """
    steps = constant_steps(loop)
    if steps is None or not loop.updates:
        return None
    return deepest_launch(loop_rotation(loop), steps)


def depths_taken(loop: LoopOp, depths: Sequence[int]) -> tuple[int, ...]:
    """
    The depths, of the given ones, with a launch in the loop's plan, and 1. All depths if the
    program does not state the number of steps.
    """
    steps = constant_steps(loop)
    if steps is None or not loop.updates:
        return tuple(depths)
    found = plan(loop_rotation(loop), depths, steps)
    taken = {launch.steps for launch in found.launches} | {1}
    return tuple(depth for depth in depths if depth in taken)
