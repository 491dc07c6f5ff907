"""Functions of a step: a choice, a cell's coordinates, the size of the arrays."""

from __future__ import annotations

from timetile.frontend.errors import error
from timetile.frontend.operations import Argument, Coordinate, Extent
from timetile.frontend.values import Value, choice

MOST_AXES = 3

STEP = "step number"
"""The name of the step's number among the series: no name of an argument."""


def where(condition: Value, if_true: Value | float, if_false: Value | float) -> Value:
    """
    `if_true` where the condition holds, else `if_false`, cell by cell; both are computed. Raises
    StencilError where the first argument is no condition.
    """
    return choice(condition, if_true, if_false)


def coordinate(axis: int) -> Value:
    """
    The cell's place along an axis of the arrays, an integer from 0 on: equal to
    `np.indices(u.shape)[axis]`. Raises StencilError for an axis other than 0 to 2.
    """
    return Value(Coordinate(checked_axis(axis)))


def extent(axis: int) -> Value:
    """
    The number of cells of the arrays along an axis, an integer: `u.shape[axis]`. Raises
    StencilError for an axis other than 0 to 2.
    """
    return Value(Extent(checked_axis(axis)))


def step() -> Value:
    """
    The number of the step, an integer, equal for all cells: from `first_step` of a run on, 0 unless
    given.
    """
    return Value(Argument(STEP))


def checked_axis(axis: object) -> int:
    """A valid axis. Raises StencilError for other objects."""
    if not isinstance(axis, int) or not 0 <= axis < MOST_AXES:
        raise error(
            f"an axis is an int from 0 to {MOST_AXES - 1}, got {axis!r}; write the first as 0"
        )
    return axis
