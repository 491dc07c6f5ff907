"""A model is copied, pickled and sent to other processes, before and after a run."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

import numpy as np
import pytest

import timetile


@timetile.stencil
def doubled(u: timetile.Field) -> None:
    u.next = 2.0 * u[0]


COPIES: dict[str, Callable[[timetile.Model], timetile.Model]] = {
    "pickle": lambda model: pickle.loads(pickle.dumps(model)),
    "deepcopy": copy.deepcopy,
    "copy": copy.copy,
}


@pytest.mark.parametrize("name", COPIES)
def test_a_copy_after_a_run_gives_the_same_state(name: str):
    model = doubled.on(executor="numpy")
    state = {"u": np.arange(5.0)}
    expected = model.advance(state)["u"]
    made = COPIES[name](model)
    np.testing.assert_array_equal(made.advance(state)["u"], expected)
    assert made.program((5,)) is not model.program((5,))
    np.testing.assert_array_equal(model.advance(state)["u"], expected)
