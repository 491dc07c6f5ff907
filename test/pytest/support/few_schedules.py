"""
Quick choices: among few schedules, the first or drawn ones, for tests of bits, as schedules end
with equal bits; among a schedule of each kind, for tests of explanations; or by the model alone,
for tests of code.
"""

from __future__ import annotations

from collections.abc import Generator, Hashable, Iterator
from contextlib import contextmanager
from itertools import islice
from random import Random

import pytest

from timetile.dialects.temporal import LoopOp
from timetile.dialects.tile.schedule import Schedule
from timetile.passes.loops.split_regions import StepInRegions
from timetile.passes.scheduling import candidates, choose_schedule
from timetile.passes.scheduling.candidates import Trials
from timetile.passes.scheduling.memory_schedules import memory_schedules
from timetile.passes.scheduling.schedule_space import schedules
from timetile.passes.targets.target import Target
from timetile.runtime.kernels import assembled_choice

CONSIDERED = 2
"""Considered schedules of a loop, beside schedules with reads of memory."""

DRAWN = 3
"""Schedules drawn for a loop. If none fits, a step a launch reads memory."""

DEEPEST = 3
"""The deepest kernel considered: with depths 1 and 2, a plan has every kind of launch."""

ALL_DEPTHS = Trials.depths


def first_depths(trials: Trials, schedule: Schedule, given: int | None) -> range:
    """The given depth, or the first considered depths."""
    found = ALL_DEPTHS(trials, schedule, given)
    return found if given is not None else found[:DEEPEST]


def first_schedules(
    loop: LoopOp, target: Target, step: StepInRegions | None = None
) -> Iterator[Schedule]:
    """The first schedules of the search, and all schedules with reads of memory."""
    yield from islice(schedules(loop, target), CONSIDERED)
    yield from memory_schedules(StepInRegions(loop))


def schedules_of_kinds(
    loop: LoopOp, target: Target, step: StepInRegions | None = None
) -> Iterator[Schedule]:
    """The first schedule of each kind, and all schedules with reads of memory."""
    kinds: set[Hashable] = set()
    for each in schedules(loop, target):
        kind = each.tile, each.resident, each.form, each.sync
        if each.reads_memory or kind not in kinds:
            kinds.add(kind)
            yield each


@contextmanager
def model_alone() -> Generator[None]:
    """Schedules are chosen by the model, and no kernel is assembled for the choice."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(assembled_choice, "assembler_version", lambda: None)
        yield


@contextmanager
def few_schedules() -> Generator[None]:
    """Schedules are chosen among few, and depths among the first, by the model alone."""
    with model_alone(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(choose_schedule, "schedules", first_schedules)
        patch.setattr(Trials, "depths", first_depths)
        yield


@contextmanager
def drawn_schedules(random: Random) -> Generator[None]:
    """
    Schedules are chosen among a few drawn at random, by the model alone: a test of bits sees many
    kinds of schedules, and no pair searches for long.
    """

    def drawn(
        loop: LoopOp, target: Target, step: StepInRegions | None = None
    ) -> Iterator[Schedule]:
        every = [*schedules(loop, target), *memory_schedules(StepInRegions(loop))]
        yield from random.sample(every, min(DRAWN, len(every)))

    with model_alone(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(choose_schedule, "schedules", drawn)
        yield


@contextmanager
def one_of_each_kind() -> Generator[None]:
    """Schedules are chosen and compared among one schedule of each kind, by the model alone."""
    with model_alone(), pytest.MonkeyPatch.context() as patch:
        for module in (choose_schedule, candidates):
            patch.setattr(module, "schedules", schedules_of_kinds)
        yield
