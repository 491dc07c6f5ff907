"""Runs that try other schedules on their own steps.

A long run on one GPU goes on in pieces while a process makes rivals of the chosen schedule. Then
each rival runs two pieces, the second piece timed, and the fastest kernels run the rest. A piece
leaves all buffers as the plain loop does: a trial costs little, and changes no bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from timetile.dialects.temporal import LoopOp
from timetile.lowering.plan_launches import kernels_period
from timetile.passes.analysis.launches.liveness import loop_rotation, written_cells
from timetile.passes.diagnostics import LOGGER
from timetile.runtime.executors.edge_runs import later
from timetile.runtime.kernels.edge_kernels import Outside
from timetile.runtime.kernels.of_program import ProgramKernels
from timetile.runtime.kernels.planning import launched_by, planned_function

if TYPE_CHECKING:
    from timetile.runtime.executors.runners import PlannedRunner

LONG_SECONDS = 1.0
"""The least time left of a run that begins to make rivals."""

TRIAL_SECONDS = 0.5
"""The least time left of a run that tries rivals."""

PIECE_SECONDS = 0.05
"""The time of a piece."""

SLOW = 2e10
"""Cell updates a second of a slow program: runs without a chance to be long are not timed."""

MANY = 32
"""Times the least number of steps: the steps of a run where few single steps do not matter."""


@dataclass
class LongRun:
    """A run in pieces."""

    loop: LoopOp
    left: int
    """Steps left."""
    buffers: Sequence[Any]
    outside: Outside

    def go_on(self, runner: PlannedRunner, steps: int) -> None:
        """Run a number of steps."""
        around = list(self.outside.values())
        self.buffers = runner.run(self.loop, steps, self.buffers, around)
        self.outside = later(self.outside, steps)
        self.left -= steps

    def timed(self, runner: PlannedRunner, steps: int) -> float:
        """Run a number of steps: the seconds of a step."""
        start = runner.now()
        self.go_on(runner, steps)
        return (runner.now() - start) / steps


class Entrant:
    """A runner, and how many steps its kernels take in a run of `steps`."""

    def __init__(self, runner: PlannedRunner, loop: LoopOp, steps: int):
        self.runner, self.steps = runner, steps
        facts = runner.kernels.facts_of(loop)
        self.first, self.period = kernels_period(loop_rotation(loop), facts)

    @property
    def least(self) -> int:
        """From this number of steps on, a number below has a plan with the kernels."""
        return self.first + self.period

    def below(self, steps: int) -> int:
        """The most steps up to a number, at least `least`, whose plan takes the kernels."""
        return steps - (steps - self.steps) % self.period

    def finish(self, run: LongRun) -> None:
        """Run the rest of a run. Single steps are few."""
        run.go_on(self.runner, self.below(run.left))
        while run.left:
            run.go_on(self.runner, 1)


class RivalRuns:
    """Runs time loops of a runner, and tries rivals of the chosen kernels in long runs."""

    def __init__(self, own: PlannedRunner):
        self.own = own
        self.others: dict[ProgramKernels, PlannedRunner] = {}
        """The runners of rivals."""
        self.cells: dict[LoopOp, int] = {}
        """Cell updates of a step."""
        self.made: dict[int, bool] = {}
        """Whether the winner's kernels are made for a number of steps."""

    def taken(self) -> Sequence[PlannedRunner]:
        """The runners of rivals; none are kept."""
        others, self.others = self.others, {}
        return list(others.values())

    def of(self, kernels: ProgramKernels) -> PlannedRunner:
        """The runner of rival kernels."""
        if kernels not in self.others:
            self.others[kernels] = self.own.with_kernels(kernels)
        return self.others[kernels]

    def run(
        self, loop: LoopOp, steps: int, total: int, buffers: Sequence[Any], outside: Outside
    ) -> Sequence[Any]:
        """
        Run the last steps of a run with `total` steps: the plans for both numbers launch equal
        kernels.
        """
        rivals = self.own.kernels.rivals
        tries = self.is_worth_timing(loop, steps) and rivals.enter()
        if not tries and rivals.winner is None:
            return self.own.run(loop, steps, buffers, list(outside.values()))
        run = LongRun(loop, steps, buffers, outside)
        if not tries:
            self.with_winner(run)
            return run.buffers
        try:
            self.in_pieces(run, Entrant(self.own, loop, total))
        finally:
            rivals.leave()
        return run.buffers

    def with_winner(self, run: LongRun) -> None:
        """Run with the winner where kernels are made for all steps, or for most steps."""
        kernels = self.own.kernels.rivals.winner
        assert kernels is not None
        if run.left not in self.made:
            self.made[run.left] = has_made(kernels, run.loop, run.left)
        winner = Entrant(self.of(kernels), run.loop, self.own.kernels.rivals.steps)
        if self.made[run.left]:
            run.go_on(winner.runner, run.left)
        elif run.left >= MANY * winner.least:
            winner.finish(run)
        else:
            run.go_on(self.own, run.left)

    def is_worth_timing(self, loop: LoopOp, steps: int) -> bool:
        """Whether a run may be long, as far as is known, and may try rivals."""
        rivals = self.own.kernels.rivals
        if (
            rivals.is_over
            or steps * (rivals.step_seconds or self.most_seconds(loop)) < LONG_SECONDS
        ):
            return False
        return rivals.may_begin(loop) and self.own.begins_early()

    def most_seconds(self, loop: LoopOp) -> float:
        """Seconds of a step of a slow program."""
        if loop not in self.cells:
            self.cells[loop] = written_cells(loop)
        return self.cells[loop] / SLOW

    def in_pieces(self, run: LongRun, own: Entrant) -> None:
        """Run in pieces if the run is long, and try rivals once these are made."""
        rivals = self.own.kernels.rivals
        fastest = own
        # Runs of few steps have other plans, and other kernels.
        if own.steps >= own.least and run.left >= 4 * own.least and self.is_long(run, own):
            rivals.begin(own.steps)
            piece = own.below(max(own.least, round(PIECE_SECONDS / rivals.step_seconds)))
            least = TRIAL_SECONDS / rivals.step_seconds
            while not rivals.is_ready and run.left - piece >= max(least, own.least):
                rivals.step_seconds = run.timed(self.own, piece)
            if rivals.is_ready and run.left >= least:
                fastest = self.fastest(run, own)
        if fastest is own and run.left < own.least:
            run.go_on(self.own, run.left)
        else:
            fastest.finish(run)

    def is_long(self, run: LongRun, own: Entrant) -> bool:
        """Time steps if not yet timed: whether the steps left take long."""
        rivals, steps = self.own.kernels.rivals, own.below(own.least)
        if not rivals.step_seconds:
            # The first piece loads its kernels.
            run.go_on(self.own, steps)
            seconds = run.timed(self.own, steps)
            while seconds * steps < PIECE_SECONDS / 2 and run.left >= 4 * steps:
                steps = own.below(2 * steps)
                seconds = run.timed(self.own, steps)
            rivals.step_seconds = seconds
        return run.left * rivals.step_seconds >= LONG_SECONDS

    def fastest(self, run: LongRun, own: Entrant) -> Entrant:
        """
        Let the chosen kernels and all rivals run pieces: the fastest. A run that ends before keeps
        nothing.
        """
        rivals = self.own.kernels.rivals
        made = rivals.taken()
        if made is None:
            return own
        kernels = [self.own.kernels.with_schedules(given) for given in made.rivals]
        entrants = [own]
        for each in kernels:
            if has_made(each, run.loop, rivals.steps) and self.of(each).loads():
                entrants.append(Entrant(self.of(each), run.loop, rivals.steps))
        seconds: dict[ProgramKernels, float] = {}
        step = rivals.step_seconds
        for each in (*entrants, own):
            piece = each.below(max(each.least, round(PIECE_SECONDS / step)))
            if run.left - 2 * piece < max(entrant.least for entrant in entrants):
                return own
            run.go_on(each.runner, piece)
            known, found = seconds.get(each.runner.kernels), run.timed(each.runner, piece)
            seconds[each.runner.kernels] = found if known is None else min(known, found)
        rivals.keep(made, seconds)
        LOGGER.info("seconds of a step of the chosen schedule and rivals: %s", seconds.values())
        return next((e for e in entrants if e.runner.kernels is rivals.winner), own)


def has_made(kernels: ProgramKernels, loop: LoopOp, steps: int) -> bool:
    """Whether the kernels of a run of some steps are made, here or in the cache."""
    if kernels.kept_facts is None:
        return False
    plan = planned_function(loop, kernels.facts_of(loop), steps)
    kernels.made |= {
        name: found
        for name in launched_by(plan)
        if name not in kernels.made and (found := kernels.cached(name)) is not None
    }
    return kernels.made.keys() >= set(launched_by(plan))
