"""The schedules of a program, chosen beside its first runs.

A choice lowers and assembles several kernels, for seconds. Runs begin with kernels of a single
step, made in a part of the time, and go over to the chosen kernels once these are made
(`runtime/executors/early_steps.py`): no bit depends on a schedule. Who asks for facts about the
chosen kernels, or for the kernels, waits.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from timetile.dialects.temporal import LoopOp
from timetile.dialects.tile.schedule import ScheduleAttr
from timetile.lowering.plan_launches import PlannedKernel, kernels_period
from timetile.passes.analysis.launches.liveness import loop_rotation
from timetile.passes.scheduling.memory_schedules import considers_memory
from timetile.passes.tiling.step_parts import memory_schedule
from timetile.runtime.kernels.choosing_process import ChoiceJob, ChoosingProcess, MadeChoice
from timetile.runtime.kernels.kernel import decode_facts
from timetile.runtime.kernels.measured import ChosenSchedule, ChosenSchedules
from timetile.runtime.kernels.planning import launched_by, planned_function
from timetile.runtime.machine.forks import VARIABLE as PROCESSES
from timetile.runtime.machine.teams import available_threads, stated_number

if TYPE_CHECKING:
    from timetile.runtime.kernels.of_program import ProgramKernels

VARIABLE = "TIMETILE_WAIT_FOR_SCHEDULES"
"""The variable of the environment that lets every run wait for its schedule if it is 1."""


def waits() -> bool:
    """
    Whether every run waits for its schedule: as the environment says, on a single core, and where
    no further Python can be started.
    """
    return os.environ.get(VARIABLE) == "1" or not begins_processes()


def begins_processes() -> bool:
    """Whether a further Python can be started, and has a core of its own."""
    python = Path(sys.executable or "").name.startswith(("python", "pypy"))
    alone = (stated_number(PROCESSES) or available_threads()) == 1
    return python and not alone and not hasattr(sys, "frozen")


def schedule_without_search(loop: LoopOp) -> ChosenSchedule | None:
    """
    The schedule of a step that reads every tap from memory, a cell a thread; None where kernels
    reading memory are never considered.
    """
    if not loop.updates or loop.sweep is not None or not considers_memory(loop):
        return None
    return ChosenSchedule(1, str(ScheduleAttr(memory_schedule(loop))))


class ChoiceBesideRuns:
    """The choice of a program's schedules beside its runs; none before `is_allowed` is set."""

    def __init__(self, kernels: ProgramKernels):
        self.kernels = kernels
        self.is_allowed = False
        """Whether runs may begin before the choice, as those on one GPU."""
        self.process: ChoosingProcess | None = None
        self.made: MadeChoice | None = None
        self.is_over = False
        """Whether the choice is made, or the next to ask makes it."""
        self.has_failed = False

    @cached_property
    def quick(self) -> ProgramKernels:
        """Kernels of a single step, quickly made: without a search where memory can be read."""
        own = self.kernels
        given = tuple(map(schedule_without_search, own.loops))
        options = replace(own.options, depth=1)
        return type(own)(own.source, options, own.cache, None, given if any(given) else None)

    def may_begin(self, loop: LoopOp) -> bool:
        """Whether a run of a loop may begin before its schedule is chosen."""
        if not self.is_allowed or self.is_over or loop.sweep is not None:
            return False
        own = self.kernels
        if own.options.depth is not None or own.options.passes is not None:
            return False
        if self.process is not None:
            return True
        return not waits() and own.chosen is None and own.kept_facts is None

    def begin(self, loop: LoopOp, steps: int) -> None:
        """Begin the choice for a run, if the run may begin before and no choice is begun yet."""
        own = self.kernels
        with own.one_compilation:
            if self.process is None and self.may_begin(loop):
                number = own.loops.index(loop)
                self.process = ChoosingProcess(
                    ChoiceJob.of(own.source, own.options, own.cache, number, steps)
                )

    @property
    def is_ready(self) -> bool:
        """Whether the choice is made, or has failed."""
        process = self.process
        return process is None or process.is_ready

    def steps_left(self, loop: LoopOp, steps: int, rest: int) -> int:
        """
        How many of the last `rest` steps, in a run of `steps`, go to the chosen kernels: so many
        that their plan launches the same kernels as the whole run's. 0 for few steps, and after a
        failed choice.
        """
        own = self.kernels
        with own.one_compilation:
            self.taken()
            if self.has_failed:
                return 0
            facts = own.facts_of(loop)
        first, period = kernels_period(loop_rotation(loop), facts)
        left = max(0, steps - -(-(steps - rest) // period) * period)
        # The plan of few steps may end with other kernels.
        known = left >= first or own.made.keys() >= set(
            launched_by(planned_function(loop, facts, left))
        )
        return left if known else 0

    def taken(self) -> MadeChoice | None:
        """
        The choice, waited for if begun; None if none was begun, or after a failure. No other choice
        is begun from now on.
        """
        self.is_over = True
        process, self.process = self.process, None
        if process is not None:
            self.made, self.has_failed = process.result(), bool(process.failure)
            if self.made is not None:
                self.kernels.made.update(self.made.kernels)
                self.kernels.remarks.update(dict.fromkeys(self.made.remarks))
                self.kernels.choice.seen = self.made.seen
        return self.made

    def facts(self) -> list[list[PlannedKernel]] | None:
        """The facts about the chosen kernels; None without a choice made beside runs."""
        made = self.taken()
        return None if made is None else decode_facts(made.facts)

    def schedules(self) -> ChosenSchedules | None:
        """The chosen schedules; None without a choice made beside runs."""
        made = self.taken()
        return None if made is None else made.schedules
