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
        for run in runs_of(program.kernels, loop, max(int(count), 0), known):
            found.update(dict.fromkeys(kernels_of_loop(*run)))
    return list(found)


LoopStart = tuple[ProgramKernels, LoopOp, int, Mapping[SSAValue, Any]]
"""A run of a loop: kernels, the loop, the number of steps, and known values."""


def runs_of(
    kernels: ProgramKernels, loop: LoopOp, steps: int, known: Mapping[SSAValue, Any]
) -> list[LoopStart]:
    """What a loop's run consists of: one run, or several if the loop has edge cells."""
    found = kernels.edges.of(loop, steps)
    if found is None:
        return [(kernels, loop, steps, known)]
    number, edges = found
    variants = [(kernels.edges.continued, steps - edges.first - edges.last)]
    if edges.fills:
        variants.append((kernels.edges.filling, 1))
    own = [(kernels, loop, count, known) for count in (edges.first, edges.last) if count]
    others: list[LoopStart] = []
    for each, count in variants:
        given = {each.values[name]: value for name, value in known.items()}
        others.append((each.kernels, each.kernels.loops[number], count, given))
    return own + others


def kernels_of_loop(
    kernels: ProgramKernels, loop: LoopOp, steps: int, known: Mapping[SSAValue, Any]
) -> list[tuple[ProgramKernels, str]]:
    """The kernels launched by a run of a loop, each with the program of the kernel."""
    taken, own = kernels.for_steps(loop, steps)
    if taken is kernels and has_common_halos(kernels, loop, steps, known):
        taken, own = kernels.common, kernels.common_loop(loop)
    taken.expect(own, steps)
    plan = planned_function(own, taken.facts_of(own), steps)
    launches = (op for op in plan.walk() if isinstance(op, LaunchOp))
    return [(taken, each.kernel.string_value()) for each in launches]
