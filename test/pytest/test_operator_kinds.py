"""
The operators of a step give NumPy's numbers for every pair of kinds: integers (coordinates) stay
integers among themselves, and a float makes the result a float.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import timetile

OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": lambda a, b: a / b,
    "**": lambda a, b: a**b,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "<": lambda a, b: timetile.where(a < b, 1.0, 2.0),
    "==": lambda a, b: timetile.where(a == b, 1.0, 2.0),
}

NUMBERS = (3, 3.0, 7, 7.0, 2.5)
SIZE = 20
LARGE = 100_000
"""A factor whose seventh power leaves 64 bits for the larger coordinates."""


def reference(name: str, first: Any, second: Any) -> np.ndarray[Any, Any]:
    """NumPy's result. Comparisons are of numbers, so that a choice takes one of two."""
    if name in "<==":
        chosen = first < second if name == "<" else first == second
        return np.where(chosen, 1.0, 2.0)
    return np.asarray(OPERATORS[name](first, second), dtype=float)


@pytest.mark.parametrize("number", NUMBERS, ids=repr)
@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_of_a_coordinate_and_a_number_is_numpys(name: str, number: float):
    apply = OPERATORS[name]

    @timetile.stencil
    def stepped(u: timetile.Field, v: timetile.Field) -> None:
        place = LARGE * timetile.coordinate(0)
        u.next = u[0] + apply(place, number)
        v.next = v[0] + apply(number, timetile.coordinate(0) + 1)

    place = LARGE * np.arange(SIZE)
    with np.errstate(over="ignore"):
        wanted = reference(name, place, number)
        other = reference(name, number, np.arange(SIZE) + 1)
    for executor in ("numpy", "planes"):
        zeros = {"u": np.zeros(SIZE), "v": np.zeros(SIZE)}
        run = stepped.on(executor=executor).advance(zeros)
        np.testing.assert_allclose(run["u"], wanted, rtol=1e-13)
        np.testing.assert_allclose(run["v"], other, rtol=1e-13)
