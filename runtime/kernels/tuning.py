"""The choice of schedules by measuring.

The default and the model's best schedules of different kinds are measured one after the other, in a
limit of time. A schedule that leaves other bits than the default is not taken. Measuring itself is
a `Bench`: the GPU, or anything else that answers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from math import lcm
from typing import Protocol

from timetile.dialects.tile.schedule import ScheduleAttr
from timetile.passes.diagnostics import LOGGER, CompileError
from timetile.passes.scheduling.candidates import Candidate
from timetile.passes.scheduling.choose_schedule import ModelChoice
from timetile.passes.scheduling.schedule_space import schedules
from timetile.runtime.kernels.loops import loops_of
from timetile.runtime.kernels.measured import (
    ChosenSchedule,
    ChosenSchedules,
    MeasuredRow,
    schedules_text,
    written_schedules,
)
from timetile.runtime.kernels.of_program import ProgramKernels

LIMIT_SECONDS = 20.0
"""The limit of time of tuning, unless given."""

MOST_MEASURED = 12
"""Most schedules of a loop measured beside the default."""

WORTH_MEASURING = 0.4
"""The least predicted speed of a measured schedule, as a share of the best."""

SEVERAL = 2
"""Launches of each loop in a compared run."""


class Bench(Protocol):
    """Runs kernels of a program on its fields."""

    def seconds(self, kernels: ProgramKernels, steps: int) -> float:
        """Seconds a step, measured in runs whose length is a multiple of `steps`."""
        ...

    def agree(self, one: ProgramKernels, other: ProgramKernels, steps: int) -> bool:
        """Whether runs of a number of steps on equal fields end with equal bits."""
        ...


Ready = Iterable[ProgramKernels]

Make = Callable[[list[ProgramKernels]], Ready]
"""Compiles kernels, and gives each when ready, in any order."""

Clock = Callable[[], float]

Tell = Callable[[int, int], None]
"""Told the number of measured schedules, and of all."""


def one_by_one(kernels: list[ProgramKernels]) -> Ready:
    """Kernels compiled at first use."""
    return kernels


def say_nothing(done: int, everything: int) -> None:
    """Show no progress."""


def kind_of_candidate(candidate: Candidate) -> tuple[object, ...]:
    """Candidates of a kind differ in sizes alone: the model is good at telling those apart."""
    schedule = candidate.schedule
    return (
        candidate.depth, schedule.tile, schedule.form, schedule.resident, schedule.reads_memory,
        schedule.cuts,
    )  # fmt: skip


def best_of_kinds(
    ranked: Iterable[Candidate], kind: Callable[[Candidate], tuple[object, ...]]
) -> list[Candidate]:
    """The first candidate of each kind."""
    first: dict[tuple[object, ...], Candidate] = {}
    for candidate in ranked:
        first.setdefault(kind(candidate), candidate)
    return list(first.values())


def ranked_above(choice: ModelChoice, least: float) -> list[Candidate]:
    """The candidates with at least a share of the best worth, the best first."""
    ranked = sorted((choice.chosen, *choice.others), key=lambda each: -each.worth)
    return [each for each in ranked if each.worth >= least * ranked[0].worth]


def of_one_step_more(choice: ModelChoice, depth: int) -> list[Candidate]:
    """
    The best streamed candidate of one step more than a depth, if any: the model may have left it
    out for registers (elastic waves in 2D, one H200: 147 GPts/s by 7 steps, and 143 by 6).
    """
    if choice.depth is not None:
        return []
    trials = choice.trials.spilling()
    every = schedules(trials.loop, trials.target, trials.step)
    streamed = (each for each in every if not each.resident)
    return [each for each in trials.compared(depth + 1, streamed).found if trials.lowers(each)][:1]


def considered(choice: ModelChoice, chosen: ChosenSchedule | None) -> list[Candidate]:
    """
    The candidates to measure beside a chosen schedule: the best, one of a step more than the chosen
    one, the best of each kind, then the others.
    """
    fast = ranked_above(choice, WORTH_MEASURING)
    best = best_of_kinds(fast, kind_of_candidate)
    behind = [each for each in fast if all(each is not other for other in best)]
    lowering = (each for each in (*best, *behind) if choice.trials.lowers(each))
    few = [each for each, _ in zip(lowering, range(MOST_MEASURED))]
    more: list[Candidate] = []
    if chosen is not None and all(each.depth != chosen.depth + 1 for each in best):
        more = of_one_step_more(choice, chosen.depth)
    return [*few[:1], *more, *few[1:]][:MOST_MEASURED]


def replaced(chosen: ChosenSchedules, number: int, candidate: Candidate) -> ChosenSchedules:
    """Schedules with another one for a loop."""
    new = ChosenSchedule(candidate.depth, str(ScheduleAttr(candidate.schedule)))
    return (*chosen[:number], new, *chosen[number + 1 :])


def steps_of(chosen: ChosenSchedules) -> int:
    """The least number of steps made by the deepest kernels of all loops alone."""
    return lcm(*(each.depth for each in chosen if each is not None))


@dataclass
class Tuning:
    """A search for the fastest schedules of a program."""

    kernels: ProgramKernels
    """With the model's schedules."""
    bench: Bench
    cells: int
    """Cell updates of a step."""
    limit: float = LIMIT_SECONDS
    make: Make = one_by_one
    clock: Clock = time.monotonic
    tell: Tell = say_nothing
    rows: list[MeasuredRow] = field(default_factory=list[MeasuredRow])
    """What was measured, the default first."""

    def run(self) -> list[MeasuredRow]:
        """
        Measure the default, and other schedules until the limit of time. Raises CompileError if no
        loop has another schedule.
        """
        self.end = self.clock() + self.limit
        default = written_schedules(self.kernels.tiled)
        loops = loops_of(self.kernels.source)
        choices = {
            number: choice
            for number, choice in enumerate(self.kernels.model_choices)
            if choice is not None and loops[number].sweep is None
        }
        if not choices:
            raise CompileError(
                "no time loop of the program has schedules to choose from; run the program as it is"
            )
        first = self.kernels.with_schedules(default)
        self.measure(first, first, default)
        best = default
        for number, choice in choices.items():
            others = [replaced(best, number, each) for each in considered(choice, best[number])]
            self.measure_all(first, [each for each in others if each not in self.measured()])
            best = max(self.rows, key=lambda row: row.gcells_per_second).chosen
        if len(self.rows) > 1:
            self.measure_again(first)
        return self.rows

    def measure_again(self, first: ProgramKernels) -> None:
        """
        Measure the default once more, and count the better time: at the first time the GPU may have
        been idle, with low clocks.
        """
        assert first.given is not None
        rate = self.cells / self.bench.seconds(first, steps_of(first.given)) / 1e9
        known = self.rows[0]
        self.rows[0] = replace(known, gcells_per_second=max(rate, known.gcells_per_second))

    def measured(self) -> set[ChosenSchedules]:
        """The schedules measured so far."""
        return {row.chosen for row in self.rows}

    def measure_all(self, default: ProgramKernels, others: list[ChosenSchedules]) -> None:
        """Measure schedules in the order of their completion, in the limit of time."""
        made = {self.kernels.with_schedules(each): each for each in others}
        everything = len(self.rows) + len(made)
        ready: Iterator[ProgramKernels] = iter(self.make(list(made)))
        while self.clock() < self.end:
            kernels = next(ready, None)
            if kernels is None:
                break
            self.measure(default, kernels, made[kernels])
            self.tell(len(self.rows), everything)

    def measure(
        self, default: ProgramKernels, kernels: ProgramKernels, chosen: ChosenSchedules
    ) -> None:
        """Measure schedules, unless they leave other bits than the default, or do not compile."""
        assert default.given is not None
        together = SEVERAL * lcm(steps_of(default.given), steps_of(chosen))
        answer = partial(self.bench.agree, default, kernels, together)
        try:
            equal = kernels is default or answer()
            seconds = self.bench.seconds(kernels, steps_of(chosen)) if equal else 0.0
        except (CompileError, RuntimeError) as error:
            if kernels is default:
                raise
            LOGGER.info("%s is left out: %s", schedules_text(chosen), error)
            return
        if not equal:
            LOGGER.warning(
                "%s leaves other bits than the default after %d steps, and is not taken; please "
                "report the program",
                schedules_text(chosen),
                together,
            )
        self.rows.append(MeasuredRow(chosen, self.cells / seconds / 1e9 if seconds else 0.0))
