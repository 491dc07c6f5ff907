"""The kernels launched by a run, from its plans, before the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xdsl.ir import Operation, SSAValue

from timetile.dialects.temporal import LoopOp
from timetile.dialects.tile import LaunchOp
from timetile.runtime.host.arrays import is_numpy_array
from timetile.runtime.host.functions import SCALARS, is_scalar, number_of_scalars
from timetile.runtime.host.halos import compared_in_turn, halos_differ
from timetile.runtime.kernels.of_program import ProgramKernels
from timetile.runtime.kernels.planning import planned_function
from timetile.runtime.program.compiled_program import CompiledProgram


def scalar_of(value: SSAValue, known: dict[SSAValue, Any]) -> Any:
    """A number decided by arguments and constants; None if only the run decides."""
    if value in known or not isinstance(value.owner, Operation):
        return known.get(value)
    op = value.owner
    operands = [scalar_of(operand, known) for operand in op.operands]
    if any(operand is None for operand in operands):
        return None
    return number_of_scalars(op, operands) if type(op) in SCALARS or is_scalar(op) else None


def has_common_halos(
    kernels: ProgramKernels, loop: LoopOp, steps: int, known: Mapping[SSAValue, Any]
) -> bool:
    """Whether a run will take the kernels for common halos, as its NumPy arrays stand."""
    if not kernels.compares_halos(loop, steps):
        return False
    turns = compared_in_turn(loop)
    found = map(known.get, loop.buffers)
    buffers = [array for array in found if is_numpy_array(array)]
    if not turns or len(buffers) < len(loop.buffers):
        return False
    return not any(
        halos_differ(frame, buffers[first], buffers[other]) for frame, first, other in turns
    )


def kernels_of_run(
    program: CompiledProgram, values: Sequence[Any], steps: int | None
) -> Sequence[tuple[ProgramKernels, str]]:
    """
    The kernels launched by a run with these arguments, as far as known before the run, each with
    its program.
    """
    known: dict[SSAValue, Any] = dict(zip(program.function.body.block.args, values))
    found: dict[tuple[ProgramKernels, str], None] = {}
    for loop in program.kernels.loops:
        count = steps if steps is not None and loop.sweep is None else scalar_of(loop.steps, known)
        if count is None:
            continue
        count = max(int(count), 0)
        kernels, own = program.kernels.for_steps(loop, count)
        if kernels is program.kernels and has_common_halos(kernels, loop, count, known):
            kernels, own = kernels.common, kernels.common_loop(loop)
        kernels.expect(own, count)
        plan = planned_function(own, kernels.facts_of(own), count)
        launches = (op for op in plan.walk() if isinstance(op, LaunchOp))
        found.update(dict.fromkeys((kernels, each.kernel.string_value()) for each in launches))
    return list(found)
