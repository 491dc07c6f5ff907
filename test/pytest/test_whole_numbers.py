"""Counts are whole numbers, Python's or NumPy's; a truth value is none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import timetile


@timetile.stencil
def halved(u: timetile.Field) -> None:
    u.next = 0.5 * u[0]


MODEL = halved.on(executor="numpy")
STATE = {"u": np.ones(6)}


CALLS: dict[str, Callable[[Any], object]] = {
    "advance": lambda truth: MODEL.advance(STATE, truth),
    "first step": lambda truth: MODEL.advance(STATE, 2, first_step=truth),
    "snapshots": lambda truth: MODEL.snapshots(STATE, truth, 1),
    "every": lambda truth: MODEL.snapshots(STATE, 4, truth),
    "program": lambda truth: MODEL.program((6,))(np.ones(6), np.ones(6), steps=truth),
    "stream": lambda truth: MODEL.program((6,))(np.ones(6), np.ones(6), steps=2, stream=truth),
}


@pytest.mark.parametrize("truth", [True, np.True_])
@pytest.mark.parametrize("name", CALLS)
def test_truth_values_are_no_numbers(name: str, truth: object):
    with pytest.raises(TypeError):
        CALLS[name](truth)


@pytest.mark.parametrize("every", [0, -1, np.int64(-1)])
def test_a_stop_after_no_steps_is_refused_by_name(every: int):
    with pytest.raises(ValueError, match="stops after every so many steps, 1 or more, got"):
        MODEL.snapshots(STATE, 4, every)


def test_numpy_integers_are_numbers():
    steps: Any = np.int64(2)
    more: Any = np.int32(3)
    own: Any = np.int16(0)
    np.testing.assert_array_equal(MODEL.advance(STATE, steps)["u"], np.full(6, 0.25))
    assert [done for done, _ in MODEL.snapshots(STATE, more, steps)] == [2, 3]
    first, end = np.int64(1), np.uint8(3)

    @timetile.stencil
    def marked(u: timetile.Field) -> None:
        u.next = u[own]
        u.next[first:end] = 2.0

    run = marked.on(executor="numpy").advance(STATE)["u"]
    np.testing.assert_array_equal(run, [1, 2, 2, 1, 1, 1])
    with pytest.raises(timetile.StencilError, match="has a slice without a step"):

        @timetile.stencil
        def _(u: timetile.Field) -> None:
            u.next = u[0]
            u.next[False:True] = 2.0
