"""Turns of a loop over rows of sums: one stream step or two."""

from __future__ import annotations

import pytest

import timetile
from timetile.dialects.tile.kinds import Form
from timetile.dialects.tile.schedule import Schedule
from timetile.passes.scheduling.candidates import Candidate, Trials
from timetile.passes.targets.target import target_named
from timetile.runtime.kernels.loops import loops_of
from timetile.runtime.kernels.of_program import raise_program
from timetile.runtime.kernels.options import Options


@timetile.stencil
def mean(u: timetile.Field, count: timetile.Scalar):
    total = 0.0
    for i in (-1, 0, 1):
        for j in (-1, 0, 1):
            total = total + u[i, j]
    u.next = total / count


@pytest.mark.parametrize(("levels", "steps"), [(5, 2), (6, 1)])
def test_two_turns_with_quotients_fit_the_instruction_cache(levels: int, steps: int):
    """The loop holds both sides of each branch: 2055 instructions at five levels, 2449 at six."""
    module = raise_program(mean.module((8192, 8192), "float64"), Options(halos="common"))
    trials = Trials(loops_of(module)[0], module, target_named("h200"))
    found = trials.attempt(Schedule(form=Form.ROWS, pack=8, occupancy=1), levels)
    assert isinstance(found, Candidate)
    assert (found.schedule.period or 1) == steps
