"""Values of several places are made once for each place, with equal bits on every executor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import timetile
from timetile.dialects.temporal import LoopOp
from timetile.runtime.program.compiled_program import Executor

pytestmark = pytest.mark.usefixtures("chosen_among_few")

STEPS = 3


def long_sum(at: Any) -> Any:
    """A value of many operations, of cells named by two distances."""
    total = at(0, 0)
    for k in range(1, 9):
        total = (total + at(0, 1)) * (0.5 / k) - at(1, -1) * 0.25
    return total


def of_places(at: Any) -> Any:
    """Sums at four places around a cell."""

    def moved(x: int, y: int) -> Any:
        def read(i: int, j: int) -> Any:
            return at(i + x, j + y)

        return long_sum(read)

    sums = [moved(x, y) for x, y in PLACES]
    return sums[0] * sums[1] - 0.5 * sums[2] + sums[3]


PLACES = ((-1, 0), (1, 0), (0, -1), (0, 1))


@timetile.stencil(reach=2)
def step(u: timetile.Field, v: timetile.Field):
    def now(i: int, j: int):
        return u[i, j]

    def then(i: int, j: int):
        return u.next[i, j]

    u.next = 0.25 * of_places(now)
    v.next = v[0, 0] + 0.25 * of_places(then)


def drawn() -> tuple[Any, Any]:
    rng = np.random.default_rng(3)
    return rng.random((23, 30)), rng.random((23, 30))


def left(executor: Executor) -> list[Any]:
    u, v = drawn()
    state = step.on(executor=executor, cache=False).advance({"u": u, "v": v}, steps=STEPS)
    return [state["u"], state["v"]]


def read_from(array: Any) -> Any:
    """The cells of the inner box of an array, moved by two distances."""

    def read(i: int, j: int) -> Any:
        return array[2 + i : 21 + i, 2 + j : 28 + j]

    return read


def expected() -> list[Any]:
    """The fields by NumPy."""
    u, v = drawn()
    for _ in range(STEPS):
        new, further = u.copy(), v.copy()
        new[2:21, 2:28] = 0.25 * of_places(read_from(u))
        further[2:21, 2:28] = v[2:21, 2:28] + 0.25 * of_places(read_from(new))
        u, v = new, further
    return [u, v]


def test_a_value_at_several_places_is_a_field_of_the_loop():
    """Values before and after an update of the step are different values."""
    program = step.on(executor="cpu", cache=False).program((23, 30))
    (loop,) = (op for op in program.module.walk() if isinstance(op, LoopOp))
    assert (
        len([update for update in loop.updates if update.cell.string_value().endswith("_once")])
        == 2
    )


@pytest.mark.parametrize("executor", ["numpy", "cpu", "planes"])
def test_shared_values_have_the_numbers_of_numpy(executor: Executor):
    for right, found in zip(expected(), left(executor), strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-12)


@pytest.mark.parametrize("executor", ["cpu", "planes"])
def test_executors_agree_on_shared_values(executor: Executor):
    for right, found in zip(left("numpy"), left(executor), strict=True):
        assert right.tobytes() == found.tobytes()
