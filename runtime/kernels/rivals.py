"""The rivals of a program's schedule, made beside a long run and timed on the run's own steps.

The model orders schedules of one kind well, and may err by a quarter between kinds. A process makes
kernels of the best schedule of other kinds for a run (`executors/rival_runs.py`).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from timetile.dialects.temporal import LoopOp
from timetile.passes.diagnostics import LOGGER
from timetile.runtime.kernels.beside import begins_processes
from timetile.runtime.kernels.choosing_process import MadeRivals, RivalsJob, RivalsProcess
from timetile.runtime.kernels.measured import Measured, MeasuredRow, best_first
from timetile.runtime.kernels.program_titles import title_of, updates_of_step

if TYPE_CHECKING:
    from timetile.runtime.kernels.of_program import ProgramKernels

TRIALS = "TIMETILE_TRIALS"
"""The variable of the environment: with 0, no run tries rivals."""


class RivalSchedules:
    """The rivals of the schedule of a program with a single time loop."""

    def __init__(self, kernels: ProgramKernels):
        self.kernels = kernels
        self.process: RivalsProcess | None = None
        self.steps = 0
        """The steps of a run, for the kernels of the run's plan."""
        self.step_seconds = 0.0
        """The time of a step with the chosen kernels; 0 before a measurement."""
        self.is_trying = self.is_over = False
        self.winner: ProgramKernels | None = None
        """The fastest kernels, in place of the chosen kernels."""

    def may_begin(self, loop: LoopOp) -> bool:
        """Whether a run of a loop may try rivals."""
        own = self.kernels
        if self.is_over or own.records is None or own.cache is None or loop.sweep is not None:
            return False
        if own.given is not None or own.options.depth is not None or own.options.passes is not None:
            return False
        if os.environ.get(TRIALS) == "0" or not begins_processes():
            return False
        return len(own.loops) == 1 and own.record is None

    def enter(self) -> bool:
        """Whether a run may try now: one at a time. The run leaves at its end."""
        with self.kernels.one_compilation:
            entered = not self.is_trying and not self.is_over
            self.is_trying = self.is_trying or entered
        return entered

    def leave(self) -> None:
        """End a run that entered."""
        self.is_trying = False

    def begin(self, steps: int) -> None:
        """Begin to make rivals for a run, unless begun before."""
        own = self.kernels
        if self.process is None:
            self.steps = steps
            job = RivalsJob.of(own.source, own.options, own.cache, 0, steps)
            self.process = RivalsProcess(job)

    @property
    def is_ready(self) -> bool:
        """Whether rivals are made, or the process has failed."""
        return self.process is None or self.process.is_ready

    def taken(self) -> MadeRivals | None:
        """The rivals made; None after a failure: no run tries again."""
        process = self.process
        if process is not None and process.made is not None:
            return process.made
        self.is_over = True
        if process is not None:
            LOGGER.info("no schedule is tried beside the chosen one: %s", process.failure)
        return None

    def keep(self, made: MadeRivals, seconds: dict[ProgramKernels, float]) -> None:
        """
        Keep the measured seconds of a step, of the chosen kernels and of rivals. A clearly faster
        rival wins.
        """
        own, cells = self.kernels, updates_of_step(self.kernels)
        assert own.records is not None
        rows = [
            MeasuredRow(each.given or made.chosen, cells / taken / 1e9)
            for each, taken in seconds.items()
        ]
        default, record = rows[0].gcells_per_second, tuple(best_first(rows))
        own.records.keep(
            own.model_key,
            Measured(title_of(own), own.records.device, record, default, in_run=True),
        )
        own.records.is_new = self.is_over = True
        others = (each for each in seconds if each.given == record[0].chosen)
        self.winner = next(others, None)
