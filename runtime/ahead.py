"""Which kernels a run launches: asked of the plans, before the run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.ir import Operation, SSAValue

from timetile.dialects.tile import LaunchOp
from timetile.runtime.arithmetic import evaluate
from timetile.runtime.host import SCALARS, is_scalar
from timetile.runtime.planning import planned_function
from timetile.runtime.program import CompiledProgram


def scalar_of(value: SSAValue, known: dict[SSAValue, Any]) -> Any:
    """A number that arguments and constants decide; None where the run decides it."""
    if value in known or not isinstance(value.owner, Operation):
        return known.get(value)
    op = value.owner
    operands = [scalar_of(operand, known) for operand in op.operands]
    if any(operand is None for operand in operands):
        return None
    if type(op) in SCALARS:
        return SCALARS[type(op)](*operands)
    return evaluate(op, operands) if is_scalar(op) else None


def kernels_of_run(
    program: CompiledProgram, values: Sequence[Any], steps: int | None
) -> Sequence[str]:
    """The kernels that a run with these arguments launches, as far as that is known before it."""
    known: dict[SSAValue, Any] = dict(zip(program.function.body.block.args, values))
    found: dict[str, None] = {}
    for loop in program.kernels.loops:
        count = steps if steps is not None and loop.sweep is None else scalar_of(loop.steps, known)
        if count is None:
            continue
        plan = planned_function(loop, program.kernels.facts_of(loop), max(int(count), 0))
        launches = (op for op in plan.walk() if isinstance(op, LaunchOp))
        found.update(dict.fromkeys(launch.kernel.string_value() for launch in launches))
    return list(found)
