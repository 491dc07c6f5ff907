"""
A choice among few schedules, for tests of bits: every schedule ends with the same bits, and most of
the time of a small program is spent on the choice.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from itertools import islice

import pytest

from timetile.dialects.temporal import LoopOp
from timetile.dialects.tile.schedule import Schedule
from timetile.passes.scheduling import choose_schedule
from timetile.passes.scheduling.memory_schedules import memory_schedules
from timetile.passes.scheduling.schedule_space import schedules
from timetile.passes.targets.target import Target
from timetile.runtime.kernels import assembled_choice

CONSIDERED = 2
"""Considered schedules of a loop, beside those that read memory."""


def first_schedules(loop: LoopOp, target: Target) -> Iterator[Schedule]:
    """The first schedules of the search, and those that read memory."""
    yield from islice(schedules(loop, target), CONSIDERED)
    yield from memory_schedules(loop)


@contextmanager
def few_schedules() -> Generator[None]:
    """Schedules are chosen among few, by the model alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choose_schedule, "schedules", first_schedules)
        patch.setattr(assembled_choice, "assembler_version", lambda: None)
        yield
