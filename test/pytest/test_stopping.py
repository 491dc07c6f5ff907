"""Runs that end when a condition holds: steps and bits of a NumPy loop with the same numbers."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import timetile
from support.fixed_order import in_order
from support.steps import noise
from timetile import Field, Scalar, Series, temporary
from timetile.runtime.program.compiled_program import Executor

pytestmark = pytest.mark.usefixtures("chosen_among_few")


INNER = np.s_[1:-1, 1:-1]


@timetile.stencil
def jacobi(u: Field, f: Field):
    u.next = 0.25 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - f[0, 0])


def relaxed(u: Any, f: Any) -> Any:
    """The field after a step of Jacobi."""
    new = u.copy()
    around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
    new[INNER] = 0.25 * (around - f[INNER])
    return new


def always() -> bool:
    return True


def on(model: timetile.Model, executor: Executor, **options: Any) -> timetile.Model:
    """A step on an executor, with each operation rounded."""
    return model.on(executor=executor, fp_contract="off", cache=False, **options)


@pytest.mark.covering
@pytest.mark.parametrize("every", [1, 7])
@pytest.mark.parametrize("executor", ["cpu", "numpy", "planes"])
def test_jacobi_ends_at_a_tolerance(executor: Executor, every: int):
    f = np.zeros((13, 18))
    f[4, 9] = 1.0

    def converged(u: Field) -> bool:
        return timetile.maximum(abs(u.next[0, 0] - u[0, 0])) < 1e-3

    state = on(jacobi, executor).advance({"u": 0 * f, "f": f}, 300, every=every, until=converged)
    u, steps, change = 0 * f, 0, np.inf
    while change >= 1e-3:
        for _ in range(every):
            new = relaxed(u, f)
            change, u, steps = np.abs(new - u).max(), new, steps + 1
    assert (state.steps, state.stopped) == (steps, True)
    assert np.array_equal(state["u"], u) and state["f"] is f


@pytest.mark.covering
@pytest.mark.parametrize("executor", ["cpu", "numpy", "planes", "simt", "ptx"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_sum_has_the_bits_of_its_order(executor: Executor, dtype: str):
    """Arithmetic on numbers is NumPy's, of the arrays' type; the function may keep the numbers."""
    found: list[Any] = []

    def keep(u: Field, f: Field) -> None:
        change = temporary(u.next[0, 0] - u[0, 0])
        found.append(np.sqrt(timetile.total(change[0, 0] * change[0, 0])))
        found.append(timetile.minimum(u.next[0, 1] + f[0, 0]))

    u, f = noise(9, 40).astype(dtype), noise(9, 40).astype(dtype)
    state = on(jacobi, executor).advance({"u": u, "f": f}, 6, every=2, until=keep)
    assert (state.steps, state.stopped) == (6, False)
    wanted: list[Any] = []
    for step in range(6):
        new = relaxed(u, f).astype(dtype)
        if step % 2:
            wanted.append(np.sqrt(in_order("total", (new - u) * (new - u))))
            wanted.append((new[:, 1:] + f[:, :-1]).min())
        u = new
    assert found == wanted and {type(number) for number in found} == {np.dtype(dtype).type}


@pytest.mark.parametrize("executor", ["cpu", "planes"])
def test_a_wave_has_three_levels_and_a_boundary(executor: Executor):
    """`u.next`, `u` and `u.prev` are the levels of the latest step, continued by the boundary."""

    @timetile.stencil(boundary="periodic")
    def wave(u: Field, c: Scalar, push: Series):
        u.next = 2 * u[0] - u.prev[0] + c * (u[-1] - 2 * u[0] + u[1]) + push[0]

    found: list[float] = []

    def keep(u: Field, c: Scalar) -> bool:
        number = timetile.total(c * (u.next[1] - u[0]) * u.prev[-1])
        found.append(float(number))
        return len(found) == 3

    u, push = noise(33), noise(40)
    state = on(wave, executor).advance(
        {"u": u}, 20, until=keep, every=4, first_step=2, c=0.1, push=push
    )
    now = old = u
    wanted: list[float] = []
    for step in range(12):
        beside = np.roll(now, 1) - 2 * now + np.roll(now, -1)
        new = 2 * now - old + 0.1 * beside + push[2 + step]
        if step % 4 == 3:
            product = 0.1 * (np.roll(new, -1) - now) * np.roll(old, 1)
            wanted.append(float(in_order("total", product)))
        old, now = now, new
    assert state.steps == 12 and found == wanted
    assert np.array_equal(state["u"], now) and np.array_equal(state["u.prev"], old)


def test_a_run_goes_on_after_its_end_and_is_pickled():
    f = noise(12, 12)
    model = on(jacobi, "cpu")
    once = model.advance({"u": f, "f": f}, 10, every=5, until=always)
    assert (once.steps, once.stopped) == (5, True)
    again = pickle.loads(pickle.dumps(once))
    assert (again.steps, again.stopped, set(again)) == (5, True, {"u", "f"})
    whole = model.advance({"u": f, "f": f}, 11)
    assert (whole.steps, whole.stopped) == (11, False)
    assert np.array_equal(model.advance(again, 6)["u"], whole["u"])


def of_another_field(v: Field) -> bool:
    return True


def of_new_values_that_are_none(f: Field) -> bool:
    return timetile.total(f.next[0, 0]) > 1


def of_values_not_kept(u: Field) -> bool:
    return timetile.total(u.prev[0, 0]) > 1


def of_the_step_number(u: Field) -> bool:
    return timetile.total(timetile.step() + u[0, 0]) > 1


def of_cells_outside(u: Field) -> bool:
    return timetile.total(u[9, 0]) > 1


def of_one_cell(u: Field) -> bool:
    return bool(u[0, 0] > 1)


def of_a_field(u: Field) -> bool:
    return u == 1


def of_a_method(u: Any) -> bool:
    return u.max() < 1


def of_a_number(u: Field) -> Any:
    return timetile.maximum(u[0, 0])


REFUSED: list[tuple[Any, type[Exception], str]] = [
    (of_another_field, TypeError, r"until takes v, and jacobi .* has u, f; name arguments of"),
    (of_new_values_that_are_none, timetile.StencilError, r"and the step assigns f no new values"),
    (of_values_not_kept, timetile.StencilError, r"u.prev is read, and the step does not read it"),
    (of_the_step_number, timetile.StencilError, "the number of the step is state.steps"),
    (of_cells_outside, timetile.StencilError, r"no cell of arrays of shape .9, 9. has all reads"),
    (of_one_cell, timetile.StencilError, "a value of a cell has no truth value"),
    (of_a_field, timetile.StencilError, r"in until=, a number of all cells: timetile.maximum"),
    (of_a_method, timetile.StencilError, "'max'; in until=, numbers of all cells are compared"),
    (of_a_number, TypeError, "by a truth value whether the run ends, got .*; return a comparison"),
]


@pytest.mark.parametrize(("condition", "kind", "reason"), REFUSED)
def test_a_condition_without_a_meaning_is_refused(
    condition: Any, kind: type[Exception], reason: str
):
    with pytest.raises(kind, match=reason):
        jacobi.advance({"u": noise(9, 9), "f": noise(9, 9)}, 4, until=condition)


def test_a_run_is_checked_after_a_positive_number_of_steps():
    with pytest.raises(ValueError, match="a run stops after every so many steps, 1 or more, got 0"):
        jacobi.advance({"u": noise(9, 9), "f": noise(9, 9)}, 4, every=0, until=always)


def test_a_step_takes_no_number_of_all_cells():
    reason = "total is a number of all cells, and a step computes one cell; call it in a condition"
    with pytest.raises(timetile.StencilError, match=reason):

        @timetile.stencil
        def normalised(u: Field):
            u.next = u[0] / timetile.total(u[0])
