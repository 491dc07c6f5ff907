"""The cost of a constraint: predictions with and without a system's name, or a given field."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import ModuleOp

from timetile.dialects.temporal import LoopOp
from timetile.passes.cost.launch import predict
from timetile.passes.cost.terms import Cost
from timetile.passes.scheduling.choose_schedule import ChooseSchedulePass, fitting
from timetile.passes.scheduling.constraints import Constraints, kernels_placed_by
from timetile.passes.systems.system import SystemPass
from timetile.runtime.program.compiled_program import CompiledProgram

CHOOSES = "leave out --pipeline: the cost model then chooses the schedule"
"""The way from given passes to the default."""


def of_pipeline(program: CompiledProgram, loop: LoopOp, cost: Cost) -> Iterator[str]:
    """
    What leaving out the given passes, or one constraint of `choose-schedule`, changes: a sentence
    each. Predictions are GCells/s; other given passes have none.
    """
    given = program.kernels.options.given.tile
    choosing = [item for item in given if isinstance(item, ChooseSchedulePass)]
    constraints = choosing[0].constraints if choosing else Constraints()
    named = any(isinstance(item, SystemPass) for item in given)
    if not (constraints or named):
        yield CHOOSES
        return
    free = predicted_without(program, loop, Constraints())
    yield f"{CHOOSES}{beside(free, cost)}"
    if len(constraints.values) < 2:
        return
    for name in constraints.values:
        other = predicted_without(program, loop, constraints.without(name))
        option = name.replace("_", "-")
        yield f"leave out {option} of choose-schedule: the others stay{beside(other, cost)}"


def predicted_without(program: CompiledProgram, loop: LoopOp, left: Constraints) -> float:
    """
    GCells/s of the best schedule under the constraints that are left, 0 without one. The kernels
    are placed: comparisons know nothing of planes asked for in shared memory.
    """
    target, module = program.kernels.options.target, program.module
    found = fitting(loop, module, target, None, left)
    if found is None:
        return 0.0
    if not left:
        return found.cost.gcells_per_second
    schedule = left.late(found.schedule)
    deepest = kernels_placed_by(loop, module, found.depth, schedule, target)[0]
    around = deepest.get_toplevel_object()
    assert isinstance(around, ModuleOp)
    return predict(deepest, around, target).gcells_per_second


def beside(speed: float, cost: Cost) -> str:
    """The prediction for another schedule, beside the given passes' own."""
    if not speed:
        return ""
    own = cost.gcells_per_second
    return f", with {speed:.0f} GCells/s predicted in place of {own:.0f}"
