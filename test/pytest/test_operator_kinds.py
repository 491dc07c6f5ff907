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

pytestmark = pytest.mark.usefixtures("chosen_among_few")


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
def test_operators_of_a_coordinate_and_a_number_are_numpys(number: float):
    """Two columns an operator: the number is the second operand in one, the first in the other."""

    @timetile.stencil
    def stepped(u: timetile.Field) -> None:
        place, value = LARGE * timetile.coordinate(0), u[0, 0]
        for pair, apply in enumerate(OPERATORS.values()):
            column, rows = timetile.coordinate(1), timetile.coordinate(0)
            value = timetile.where(column == 2 * pair, apply(place, number), value)
            value = timetile.where(column == 2 * pair + 1, apply(number, rows + 1), value)
        u.next = value

    wanted = list[np.ndarray[Any, Any]]()
    with np.errstate(over="ignore"):
        for name in OPERATORS:
            wanted.append(reference(name, LARGE * np.arange(SIZE), number))
            wanted.append(reference(name, number, np.arange(SIZE) + 1))
    zeros = np.zeros((SIZE, len(wanted)))
    for run in (stepped.on(executor="numpy"), stepped.on(executor="planes", depth=1)):
        for column, found in enumerate(run.advance({"u": zeros})["u"].T):
            name = list(OPERATORS)[column // 2]
            np.testing.assert_allclose(found, wanted[column], rtol=1e-13, err_msg=name)


# Truth values.

OF_TRUTH: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "*": operator.mul,
    "/": lambda a, b: a / (1 + b),
    "**": lambda a, b: a**2 + b,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "fmax": np.fmax,
    "fmin": np.fmin,
    "absolute": lambda a, b: abs(a) + b,
    "square": lambda a, b: np.square(a) * b,
    "three": lambda a, b: a + b + (a * b),
    "counted": lambda a, b: 0 + a + b,
    "counted from 1.0": lambda a, b: a + 1.0 + b,
    "times": lambda a, b: a * 2.5 - 3 * b,
    "^": lambda a, b: a ^ b,
}


@pytest.mark.parametrize("name", OF_TRUTH)
def test_arithmetic_on_truth_values_is_numpys(name: str):
    apply = OF_TRUTH[name]

    @timetile.stencil
    def stepped(u: timetile.Field, v: timetile.Field) -> None:
        u.next = apply(u[0] > 0, v[0] > 0)

    u, v = np.array([1.0, 1.0, -1.0, -1.0] * 3), np.array([1.0, -1.0, 1.0, -1.0] * 3)
    run = stepped.on(executor="numpy").advance({"u": u, "v": v})
    np.testing.assert_array_equal(run["u"], np.asarray(apply(u > 0, v > 0), dtype=float))


def test_a_truth_value_beside_a_coordinate_is_an_integer():
    """NumPy's integers wrap around at 64 bits; floats would not."""

    @timetile.stencil
    def stepped(u: timetile.Field) -> None:
        u.next = ((u[0] > 0) + 100_000 * timetile.coordinate(0)) ** 4

    u = np.array([1.0, -1.0] * 6)
    run = stepped.on(executor="numpy").advance({"u": u})
    np.testing.assert_array_equal(run["u"], ((u > 0) + 100_000 * np.arange(12)) ** 4)


DIFFERENCES: dict[str, Callable[[Any, Any], Any]] = {
    "a - b": operator.sub,
    "-a": lambda a, b: -a,
    "np.subtract": np.subtract,
}


@pytest.mark.parametrize("name", DIFFERENCES)
def test_a_difference_of_truth_values_is_refused_as_numpy_refuses(name: str):
    apply = DIFFERENCES[name]

    def stepped(u: timetile.Field) -> None:
        u.next = apply(u[0] > 0, u[1] > 0)

    with pytest.raises(timetile.StencilError, match=r"no difference, as in NumPy; write a \^ b"):
        timetile.stencil(stepped)
    with pytest.raises(TypeError):
        apply(np.array([True]), np.array([True]))


# Bounds, and powers.

CLIPS: tuple[Callable[[Any], Any], ...] = (
    lambda a: np.clip(a, -0.5, 0.5),
    lambda a: np.clip(a, a_min=-0.5, a_max=0.5),
    lambda a: np.clip(a, -0.5, a_max=0.5),
    lambda a: np.clip(a, min=-0.5, max=0.5),
    lambda a: np.clip(a, None, 0.5),
    lambda a: np.clip(a, -0.5, None),
    lambda a: np.clip(a=a, a_min=-0.5, a_max=None),
)


@pytest.mark.parametrize("number", range(len(CLIPS)))
def test_clip_takes_its_bounds_in_every_spelling_of_numpy(number: int):
    clip = CLIPS[number]

    @timetile.stencil
    def stepped(u: timetile.Field) -> None:
        u.next = clip(u[0])

    u = np.linspace(-1.0, 1.0, 9)
    run = stepped.on(executor="numpy").advance({"u": u})
    np.testing.assert_array_equal(run["u"], clip(u))


def clip_into(value: Any) -> Any:
    """A call of NumPy's `clip` with an array for the result."""
    return np.clip(value, 0.0, 1.0, out=np.zeros(3))


def test_clip_into_an_array_is_refused_by_name():
    def stepped(u: timetile.Field) -> None:
        u.next = clip_into(u[0])

    with pytest.raises(timetile.StencilError, match=r"np\.clip takes no out in a step"):
        timetile.stencil(stepped)


POWER = """
!field = !stencil.field<[0,64]xf64>
!temp = !stencil.temp<?xf64>
func.func @powers(%u: !field, %q: !field) {
  %x = stencil.load %u : !field -> !temp
  %y = stencil.apply(%a = %x : !temp) -> (!temp) {
    %v = stencil.access %a[0] : !temp
    %n = arith.constant EXPONENT : i32
    %p = math.fpowi %v, %n : f64, i32
    stencil.return %p : f64
  }
  stencil.store %y to %q(<[0], [64]>) : !temp to !field
  return
}
"""


@pytest.mark.parametrize("exponent", range(1, 9))
def test_powers_of_a_step_and_of_ir_have_equal_bits(exponent: int):
    @timetile.stencil
    def stepped(u: timetile.Field) -> None:
        u.next = u[0] ** exponent

    u, q = np.random.default_rng(exponent).uniform(0.5, 2.0, 64), np.zeros(64)
    text = POWER.replace("EXPONENT", str(exponent))
    timetile.compile(text, executor="numpy", cache=False)(u.copy(), q)
    run = stepped.on(executor="numpy").advance({"u": u})["u"]
    assert run.tobytes() == q.tobytes()
