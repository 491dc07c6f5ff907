"""The lists and tables of a run's points, in the memory of a state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from timetile.dialects.point_lists import PointLayout
from timetile.dialects.temporal import PointKind
from timetile.frontend.boxes import Box, box_of
from timetile.frontend.errors import StencilError
from timetile.frontend.points import Points, PointUse, check_cells
from timetile.frontend.steps import Step
from timetile.runtime.arithmetic.points import cells_of_steps, packed_list

Array = NDArray[Any]

FEWEST_ROWS, FEWEST_ENTRIES = 16, 8
"""The least rows of a table, and the least entries of a list: fewer have the same program."""

TABLE_NUMBERS = 1 << 24
"""Most numbers of a table: a run with more takes its steps in pieces."""

POINT_TYPES = ("float64", "float32")
"""The types of fields with points."""


@dataclass(frozen=True)
class PointRoom:
    """The sizes of a list and its table in a program."""

    entries: int
    columns: int
    rows: int


Rooms = tuple[tuple[str, PointRoom], ...]
"""The sizes of the lists of a step, by argument."""


def power_above(number: int, least: int) -> int:
    """The least power of two that is at least a number, and at least `least`."""
    return max(least, 1 << max(number - 1, 0).bit_length())


def rooms_of(step: Step, points: Mapping[str, Points], steps: int) -> Rooms:
    """
    The sizes for a run: powers of two, so that runs with about as many points share a program.
    """
    widths: dict[str, tuple[int, int]] = {}
    for use in step.points:
        entries = power_above(len(points[use.name].weights), FEWEST_ENTRIES)
        columns = power_above(points[use.name].count, 1)
        widths[use.name] = entries, columns if use.kind is PointKind.INJECT else entries
    widest = max((columns for _, columns in widths.values()), default=1)
    most = max(1, TABLE_NUMBERS // widest)
    rows = min(power_above(steps, FEWEST_ROWS), 1 << most.bit_length() - 1)
    return tuple((name, PointRoom(*sizes, rows)) for name, sizes in widths.items())


def check_points(step: Step, given: Mapping[str, object], first: int, steps: int) -> None:
    """
    Raise TypeError for objects other than points, ValueError for sources without numbers for all
    steps, and for receivers with numbers.
    """
    for use in step.points:
        points = given[use.name]
        if not isinstance(points, Points):
            raise TypeError(
                f"{use.name} is a {type(points).__name__}; pass timetile.Points(places, values)"
            )
        if use.kind is PointKind.SAMPLE and points.values is not None:
            raise ValueError(f"{use.name} reads, and takes no values; pass the places alone")
        if use.kind is PointKind.INJECT:
            known = 0 if points.values is None else len(points.values)
            if points.values is None or known < first + steps:
                raise ValueError(
                    f"{use.name} has values for {known} steps, and the run ends with step "
                    f"{first + steps - 1}; pass a number for each step, from 0 on"
                )


def check_unsampled(step: Step) -> None:
    """Raise ValueError for a step whose points read, where no state has the samples."""
    for use in step.points:
        if use.kind is PointKind.SAMPLE:
            raise ValueError(
                f"{use.name} reads in every step, and snapshots have no samples; call advance with "
                "keep="
            )


def point_box(step: Step, use: PointUse, shape: Sequence[int]) -> Box:
    """The cells of the last assignment to the field of points. Raises StencilError without one."""
    made = [item for item in step.assignments if item.field == use.field]
    if not made:
        raise StencilError(
            f"{use.field} gets no new values, and points of {use.name} use new values; assign "
            f"{use.field}.next",
            use.place,
        )
    return box_of(step, made[-1], shape)


class PointTables:
    """The lists of one argument of a run, and the table for some steps at a time."""

    def __init__(
        self, step: Step, use: PointUse, points: Points, room: PointRoom, shape: Sequence[int],
        dtype: str, first: int, beside: Array | None = None,
    ):  # fmt: skip
        if dtype not in POINT_TYPES:
            raise TypeError(
                f"{use.field} has points and elements of {dtype}; pass an array of float64 or "
                "float32"
            )
        self.use, self.points, self.room, self.first = use, points, room, first
        check_cells(use.name, points.cells, shape)
        check_box(use, points.cells, point_box(step, use, shape))
        layout = PointLayout(tuple(shape), room.entries)
        self.places, order = packed_list(layout, points.cells, points.points, beside)
        self.weights = np.zeros(room.entries, dtype)
        self.weights[: len(order)] = points.weights[order]
        self.table = np.zeros(room.rows * room.columns, dtype)
        self.place_of_entry = np.argsort(order)
        """The place in the list of each entry of the points."""
        self.samples: list[Array] = []

    def begin(self, done: int, steps: int) -> None:
        """Fill the table for some steps, after the steps done."""
        if self.use.kind is PointKind.SAMPLE or self.points.values is None:
            return
        rows = self.table.reshape(self.room.rows, self.room.columns)
        values = self.points.values[self.first + done : self.first + done + steps]
        if values.ndim == 1:
            values = values[:, None]
        rows[:steps, : self.points.count] = values

    def end(self, table: Any, steps: int) -> None:
        """Note the sums of each point, from a receiver's table after some steps."""
        rows = table.reshape(self.room.rows, self.room.columns)[:steps]
        products = rows[:, self.place_of_entry]
        sums = np.zeros((self.points.count, steps), rows.dtype)
        with np.errstate(all="ignore"):
            # In the order of the entries: equal bits for any order of the list.
            np.add.at(sums, self.points.points, products.T)
        self.samples.append(sums.T)

    def sampled(self) -> Array:
        """The sums of all steps so far, of shape (steps, points)."""
        if not self.samples:
            return np.zeros((0, self.points.count), self.table.dtype)
        return np.concatenate(self.samples)


def tables_of(
    step: Step,
    points: Mapping[str, Points],
    rooms: Rooms,
    shape: Sequence[int],
    types: Mapping[str, str],
    first: int,
) -> list[PointTables]:
    """The lists and tables of a run from a step on, which know of each other's cells."""
    slow: list[Array] = []
    for use, (_, room) in zip(step.points, rooms):
        cells = points[use.name].cells
        check_cells(use.name, cells, shape)
        slow.append(cells_of_steps(PointLayout(tuple(shape), room.entries), use.kind, cells))
    beside = np.concatenate(slow) if slow else None
    return [
        PointTables(step, use, points[use.name], room, shape, types[use.field], first, beside)
        for use, (_, room) in zip(step.points, rooms)
    ]


def check_box(use: PointUse, cells: Array, box: Box) -> None:
    """Raise ValueError for a cell that the step does not assign."""
    low, high = np.array(box).T
    outside = ((cells < low) | (cells >= high)).any(axis=1)
    if outside.any():
        cell = tuple(map(int, cells[outside][0]))
        raise ValueError(
            f"{use.name} reaches cell {cell}, and the step gives {use.field} new values in "
            f"{' x '.join(f'[{a}, {b})' for a, b in box)} only; move the point inside"
        )
