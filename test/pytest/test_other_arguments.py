"""An argument of another kind is refused in a sentence of this package, with a way out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import timetile
from timetile import Field, Points, Scalar

U = np.zeros(9)


@timetile.stencil
def step(u: Field):
    u.next = 0.5 * u[0] + 0.25 * (u[-1] + u[1])


@timetile.stencil
def with_sources(u: Field, dt: Scalar, shots: Points):
    u.next = u[0] + dt
    shots.add(u)


sourced: Any = with_sources.on(executor="numpy")
model: Any = step.on(executor="numpy")
points: Any = Points


def assign(u: Field) -> None:
    u.next = 0


def of_a_cell(u: Field) -> object:
    return u[0] > 1


def advanced(steps: Any = 1, **options: Any) -> Any:
    return model.advance({"u": U}, steps, **options)


REFUSED: dict[str, Callable[[], object]] = {
    "steps is an int, got array": lambda: advanced(np.array([2])),
    "until is a function of arguments of step .* got 3; pass lambda u": lambda: advanced(until=3),
    "until is a function of arguments of step .* max": lambda: advanced(until=max),
    "write a.any": lambda: advanced(until=lambda: np.array([True, False])),
    "write timetile.maximum.* in place of": lambda: advanced(until=of_a_cell),
    "its folder is missing; make .* '/nowhere/kept.h5'": lambda: advanced(
        keep="/nowhere/kept.h5", every=1
    ),
    "needs timetile.Points for shots; pass shots=": lambda: sourced.advance({"u": U}, 1, dt=0.1),
    "needs a number for dt; pass dt=": lambda: sourced.advance({"u": U}, 1),
    "u.next is assigned in a condition": lambda: advanced(until=assign),
    "threads is a number from 1 on, got .2.": lambda: model.on(executor="cpu", threads="2").program(
        (9,)
    ),
    "threads is a number from 1 on, got array": lambda: model.on(
        executor="cpu", threads=np.array([1, 2])
    ).program((9,)),
    "depth is a number from 1 to .*, got array": lambda: model.on(depth=np.array([1, 2])).program(
        (9,)
    ),
    "a shape has an int for each axis, got 9; pass": lambda: model.program(9),
    r"a shape has an int for each axis, got \(9.0,\); pass": lambda: model.program((9.0,)),
    "a type is a name or a type of NumPy's, got None; pass": lambda: model.program((9,), None),
    "a type is a name or a type of NumPy's, got 3; pass": lambda: model.program((9,), {"u": 3}),
    "the type of a field is one of .* got 'complex64'": lambda: model.module((9,), np.complex64),
    "needs a type for u; give it by field": lambda: model.program((9,), {"v": "float32"}),
    "steps is not negative, got -1": lambda: model.program((9,)).explain(-1),
    "steps is an int, got 'a'": lambda: model.program((9,)).explain("a"),
    "places are an array of real numbers, got 'abc'; pass": lambda: points("abc"),
    "places are an array of real numbers, got .* pass": lambda: points([[1], [1, 2]]),
    "weights are an array of real numbers, got .*1j.; pass": lambda: points.of_entries([[1]], [1j]),
    "points are numbers from 0 on, got -1; pass": lambda: points.of_entries([[1]], [1.0], [-1]),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_an_argument_of_another_kind_is_refused_in_a_sentence(reason: str):
    with pytest.raises((TypeError, ValueError, OSError, timetile.StencilError), match=reason):
        REFUSED[reason]()


@pytest.mark.parametrize("given", [np.float32, np.dtype("f4"), {"u": np.float32}])
def test_a_type_is_given_as_numpy_takes_it(given: Any):
    assert model.program((9,), given) is model.program((9,), "float32")


def test_a_condition_takes_arguments_by_place_and_has_defaults():
    def close(u: Field, /, tolerance: float = 1.0) -> bool:
        return timetile.maximum(u[0]) < tolerance

    assert advanced(4, until=close).steps == 1


def test_a_function_without_a_step_is_refused():
    with pytest.raises(timetile.StencilError, match="the step assigns no new values; write"):
        timetile.stencil(lambda: None)
