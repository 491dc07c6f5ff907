"""The work of a process that makes rivals of a chosen schedule; see `rivals.py`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice

from timetile.dialects.tile import ScratchOp
from timetile.dialects.tile.schedule import ScheduleAttr
from timetile.passes.diagnostics import LOGGER, CompileError
from timetile.passes.scheduling.candidates import Candidate
from timetile.passes.scheduling.choose_schedule import ModelChoice
from timetile.runtime.kernels.choosing_process import MadeRivals, RivalsJob
from timetile.runtime.kernels.measured import (
    ChosenSchedule,
    schedule_of,
    schedules_text,
    written_schedules,
)
from timetile.runtime.kernels.of_program import ProgramKernels
from timetile.runtime.kernels.planning import launched_by, planned_function
from timetile.runtime.kernels.tuning import best_of_kinds, ranked_above, replaced
from timetile.runtime.machine.forks import begin_beside

MOST_RIVALS = 3
"""Most rivals of a schedule."""

WORTH_TRYING = 0.8
"""The least predicted speed of a rival, as a share of the best."""


def kind_of_rival(schedule: ScheduleAttr) -> tuple[object, ...]:
    """What the model cannot tell apart well: schedules of a kind differ in other entries."""
    each = schedule.data
    return each.tile, each.cells, each.form, each.resident, each.reads_memory, each.cuts


def rivals_of(choice: ModelChoice, chosen: ChosenSchedule) -> Iterator[Candidate]:
    """The best candidate of each kind but the chosen one's, the best first."""
    own = kind_of_rival(schedule_of(chosen.schedule))

    def kind(candidate: Candidate) -> tuple[object, ...]:
        return kind_of_rival(ScheduleAttr(candidate.schedule))

    fast = best_of_kinds(ranked_above(choice, WORTH_TRYING), kind)
    return (each for each in fast if kind(each) != own and choice.trials.lowers(each))


def scratch_buffers(kernels: ProgramKernels, steps: int) -> int:
    """The scratch buffers of a run of some steps."""
    (loop,) = kernels.loops
    plan = planned_function(loop, kernels.facts_of(loop), steps)
    return sum(isinstance(op, ScratchOp) for op in plan.walk())


def make_kernels(kernels: ProgramKernels, steps: int) -> bool:
    """Put the kernels for `steps` steps, and for one step, into the cache. False if one failed."""
    (loop,) = kernels.loops
    try:
        facts = kernels.facts_of(loop)
        for count in (steps, 1):
            for name in launched_by(planned_function(loop, facts, count)):
                kernels.kernel(name)
    except CompileError as error:
        LOGGER.info("%s is not tried: %s", schedules_text(kernels.given or ()), error)
        return False
    return True


def made_rivals(job: RivalsJob) -> MadeRivals:
    """Rivals that take no more memory than the chosen schedule, made side by side."""
    own = ProgramKernels(job.module(), job.options, job.cache)
    chosen = written_schedules(own.tiled)
    (choice,), (schedule,) = own.model_choices, chosen
    if choice is None or schedule is None:
        return MadeRivals(chosen, ())
    most = scratch_buffers(own, job.steps)
    rivals = (own.with_schedules(replaced(chosen, 0, each)) for each in rivals_of(choice, schedule))
    fitting = (each for each in rivals if scratch_buffers(each, job.steps) <= most)
    found = list(islice(fitting, MOST_RIVALS))
    makers = [partial(make_kernels, each, job.steps) for each in found]
    begun = [begin_beside(each) for each in makers[1:]]
    made = [*(each() for each in makers[:1]), *(result() for result in begun)]
    given = (each.given for each, went in zip(found, made) if went)
    return MadeRivals(chosen, tuple(each for each in given if each is not None))
