"""Points of a step: places between cells at which sources add values, and receivers read."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from timetile.dialects.temporal import PointKind
from timetile.frontend.errors import SourcePlace, current_place, error

if TYPE_CHECKING:
    from timetile.frontend.symbols import Field, Recorder

Array = NDArray[Any]


@dataclass(frozen=True)
class PointUse:
    """`points.add(u)` or `points.read(u)` in a step, by the names of the arguments."""

    name: str
    field: str
    kind: PointKind
    place: SourcePlace


class Points:
    """
    Points of a run: sources, with a number for each step, or receivers. As the type of an argument
    of a step, points are used after the step's assignments:

    ```
    @timetile.stencil
    def wave(u: timetile.Field, c: timetile.Scalar, shot: timetile.Points, traces: timetile.Points):
        u.next = 2 * u[0] - u.prev[0] + c * (u[-1] - 2 * u[0] + u[1])
        shot.add(u)
        traces.read(u)

    shot = timetile.Points([[40.5]], np.sin(np.arange(100)))
    state = wave.advance(state, 100, c=0.5, shot=shot, traces=timetile.Points([[10], [90.2]]))
    state.samples["traces"]  # shape (100, 2)
    ```

    `places` has shape (points, axes), in cells of the arrays from 0 on, and may lie between cells:
    each point has the nearest cells along each axis, with linear weights. `values` has shape
    (steps,), one number for all points, or (steps, points); receivers have none.

    `cells` (entries, axes), `weights` (entries) and `points` (entries), the number of each entry's
    point, are the list of a run. `times` and `of_entries` make other lists.
    """

    def __init__(self, places: ArrayLike, values: ArrayLike | None = None):
        at = array_of_numbers("places", places, np.float64)
        if at.ndim != 2 or not np.isfinite(at).all():
            raise ValueError(
                f"places have shape (points, axes) and finite numbers, got shape {at.shape}; pass "
                "one row for each point"
            )
        self.count = len(at)
        self.cells: Array
        self.weights: Array
        self.points: Array
        self.cells, self.weights, self.points = linear_entries(at)
        self.values: Array | None = checked_values(values, self.count)

    @classmethod
    def of_entries(
        cls,
        cells: ArrayLike,
        weights: ArrayLike,
        points: ArrayLike | None = None,
        values: ArrayLike | None = None,
    ) -> Self:
        """
        Points with any weights: `cells` has shape (entries, axes), `weights` shape (entries,), and
        `points` the number of each entry's point (by default each entry is a point). Raises
        ValueError for other shapes, and for cells that are no integers.
        """
        made = cls.__new__(cls)
        at = array_of_numbers("cells", cells)
        given = array_of_numbers("weights", weights, np.float64)
        numbers = np.arange(given.size) if points is None else array_of_numbers("points", points)
        if at.ndim != 2 or at.dtype.kind not in "iu" or numbers.dtype.kind not in "iu":
            raise ValueError(
                f"cells are integers of shape (entries, axes), and points integers, got {at.dtype} "
                f"of shape {at.shape} and {numbers.dtype}; pass np.array(cells, dtype=np.int64)"
            )
        if given.shape != (len(at),) or numbers.shape != (len(at),):
            raise ValueError(
                f"{len(at)} entries have a weight and a point each, got shapes {given.shape} and "
                f"{numbers.shape}; pass one number for each entry"
            )
        if (numbers < 0).any():
            raise ValueError(
                f"points are numbers from 0 on, got {numbers.min()}; pass the number of each "
                "entry's point"
            )
        made.cells, made.weights, made.points = at.astype(np.int64), given, numbers.astype(np.int64)
        made.count = int(numbers.max(initial=-1)) + 1
        made.values = checked_values(values, made.count)
        return made

    def times(self, array: ArrayLike) -> Self:
        """
        The points with each entry's weight times the array's number at the entry's cell: a source
        divided by a coefficient takes `points.times(1 / coefficient)`. Raises ValueError for cells
        outside the array.
        """
        made = type(self).__new__(type(self))
        made.__dict__.update(self.__dict__)
        factors = array_of_numbers("factors", array, np.float64)
        check_cells("points", self.cells, factors.shape)
        made.weights = self.weights * factors[tuple(self.cells.T)]
        return made

    def add(self, field: Field) -> None:
        """
        In a step: add, after the step's assignments, each point's number for the step to the new
        values of its cells, times the weights. Raises StencilError outside of a step.
        """
        raise error("points.add is called on the points of a run; make points an argument")

    def read(self, field: Field) -> None:
        """
        In a step: note, after the step's assignments, the new values of each point's cells, times
        the weights. A run gives the sums of each step and point as `state.samples[name]`. Raises
        StencilError outside of a step.
        """
        raise error("points.read is called on the points of a run; make points an argument")


@runtime_checkable
class NamedField(Protocol):
    """A field among the arguments of a step."""

    def name_of_field(self) -> str:
        """The name of the argument."""
        ...


class PointsArgument(Points):
    """The points among the arguments of a step function."""

    def __init__(self, recorder: Recorder, name: str):
        self._recorder, self._name = recorder, name

    def __repr__(self) -> str:
        return f"<timetile points {self._name}>"

    def add(self, field: Field) -> None:
        """Add values to the field."""
        self._use(PointKind.INJECT, "add", field)

    def read(self, field: Field) -> None:
        """Note cells of the field."""
        self._use(PointKind.SAMPLE, "read", field)

    def _use(self, kind: PointKind, call: str, field: object) -> None:
        """Note a use of the points."""
        if not isinstance(field, NamedField):
            raise error(f"{self._name}.{call} takes a field of the step, got {field!r}; name one")
        name = field.name_of_field()
        if any(use.name == self._name for use in self._recorder.points):
            raise error(f"{self._name} is used twice in the step; pass the points as two arguments")
        if self._recorder.around or self._recorder.sweep is not None:
            raise error(
                f"{self._name}.{call} is called in a repeat or a sweep; call it at the end of the "
                "step"
            )
        self._recorder.points.append(PointUse(self._name, name, kind, current_place()))


def linear_entries(places: Array) -> tuple[Array, Array, Array]:
    """The nearest cells to each place: cell, weight and point, zero weights left out."""
    count, rank = places.shape
    base = np.floor(places)
    far = places - base
    sides = np.array(list(product((0, 1), repeat=rank)), np.int64).reshape(-1, rank)
    cells = base.astype(np.int64)[:, None] + sides
    parts = np.where(sides == 1, far[:, None], 1.0 - far[:, None])
    weights = parts.prod(axis=2)
    points: Array = np.indices((count, len(sides)))[0]
    used = weights != 0
    return cells[used], weights[used], points[used]


def array_of_numbers(what: str, given: ArrayLike, kind: DTypeLike | None = None) -> Array:
    """
    An array of given numbers. Raises ValueError for rows of several lengths, and for others than
    numbers of a kind.
    """
    with suppress(TypeError, ValueError):
        found = np.asarray(given)
        if kind is None or not np.iscomplexobj(found):
            return np.asarray(found, kind)
    raise ValueError(f"{what} are an array of real numbers, got {given!r}; pass an array")


def checked_values(values: ArrayLike | None, count: int) -> Array | None:
    """The numbers of points, a row for each step. Raises TypeError or ValueError for others."""
    if values is None:
        return None
    found = array_of_numbers("values", values)
    if found.dtype.kind not in "fiu":
        raise TypeError(f"points have a number for each step, got {values!r}; pass an array")
    if found.ndim not in (1, 2) or (found.ndim == 2 and found.shape[1] != count):
        raise ValueError(
            f"values have shape (steps,) or (steps, {count}), got {found.shape}; pass a number for "
            "each step and point"
        )
    return found


def check_cells(name: str, cells: Array, shape: Sequence[int]) -> None:
    """Raise ValueError for cells of other axes, or outside arrays of a shape."""
    if cells.shape[1] != len(shape):
        raise ValueError(
            f"{name} has places along {cells.shape[1]} axes, and the arrays have {len(shape)}; "
            "pass a number for each axis"
        )
    outside = ((cells < 0) | (cells >= np.array(shape))).any(axis=1)
    if outside.any():
        cell = tuple(map(int, cells[outside][0]))
        raise ValueError(
            f"{name} reaches cell {cell} outside arrays of shape {tuple(shape)}; move the point "
            "inside"
        )
