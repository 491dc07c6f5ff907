"""Drawn steps with sources and receivers: any cells, several entries in one cell, any weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

from support.drawn_fields import Array
from support.drawn_models import Arrays, DrawnModel, How, cells_get_values, on
from support.drawn_steps import drawn_model
from support.drawn_values import is_float
from timetile import Model, Points

MOST_ENTRIES = 40


@dataclass(frozen=True)
class DrawnUse:
    """A list of points, `adds` to a field or noted: the cells, weights and points of entries."""

    name: str
    field: str
    adds: bool
    cells: tuple[tuple[int, ...], ...]
    weights: tuple[float, ...]
    points: tuple[int, ...]

    @property
    def count(self) -> int:
        """The number of points."""
        return max(self.points, default=-1) + 1

    def values(self, steps: int) -> Array:
        """The values of all points in each step."""
        return np.random.default_rng(steps + 7).uniform(-1, 1, (steps, self.count))

    def given(self, steps: int, rank: int) -> Points:
        """The points of a run."""
        cells = np.array(self.cells, np.int64).reshape(-1, rank)
        points = np.array(self.points, np.int64)
        values = self.values(steps) if self.adds else None
        return Points.of_entries(cells, np.array(self.weights), points, values)

    def add(self, field: Array, step: int, steps: int) -> None:
        """Add the values of a step, entry by entry."""
        kind, values = field.dtype.type, self.values(steps)
        for cell, weight, point in zip(self.cells, self.weights, self.points, strict=True):
            field[cell] += kind(weight) * kind(values[step, point])

    def read(self, field: Array) -> Array:
        """The sums of all points, entry by entry."""
        sums, kind = np.zeros(self.count, field.dtype), field.dtype.type
        for cell, weight, point in zip(self.cells, self.weights, self.points, strict=True):
            sums[point] += kind(weight) * field[cell]
        return sums


@dataclass(frozen=True)
class DrawnPoints:
    """A step with lists of points."""

    model: DrawnModel
    uses: tuple[DrawnUse, ...]

    def text(self) -> str:
        """The step and its lists."""
        return "\n".join([self.model.text(), *map(str, self.uses)])

    def timetile_model(self) -> Model:
        """The step, for timetile."""

        def after(given: dict[str, Any]) -> None:
            for use in self.uses:
                points: Any = given[use.name]
                (points.add if use.adds else points.read)(given[use.field])

        return self.model.model([use.name for use in self.uses], after)

    def found(self, how: How) -> Arrays:
        """The arrays and the sums after some steps, by timetile."""
        rank = len(self.model.fields.shape)
        given: dict[str, Any] = {use.name: use.given(how.steps, rank) for use in self.uses}
        given |= self.model.numbers(how.steps)
        with cells_get_values():
            state = on(self.timetile_model(), how).advance(
                self.model.arrays(how.steps), how.steps, **given
            )
        return {**dict(state), **state.samples}

    def expected(self, how: How) -> Arrays:
        """The arrays and the sums after some steps, by NumPy."""
        levels = self.model.begun(self.model.arrays(how.steps))
        sums: dict[str, list[Array]] = {use.name: [] for use in self.uses if not use.adds}
        with np.errstate(all="ignore"):
            for step in range(how.steps):
                levels = self.model.stepped(levels, self.model.numbers(how.steps), step)
                for use in self.uses:
                    if use.adds:
                        use.add(levels.now[use.field], step, how.steps)
                    else:
                        sums[use.name].append(use.read(levels.now[use.field]))
        noted = {
            use.name: np.array(sums[use.name], levels.now[use.field].dtype).reshape(
                how.steps, use.count
            )
            for use in self.uses
            if not use.adds
        }
        return levels.now | levels.before | noted


def drawn_points(random: Random) -> DrawnPoints:
    """A step with one to three lists of points of its fields of floats."""
    model = drawn_model(random)
    last = {made.target: made for made in model.assignments}
    boxes = {
        name: model.box(made) for name, made in last.items() if is_float(model.fields.types[name])
    }
    names = [name for name, box in boxes.items() if all(low.start < low.stop for low in box)]
    if not names:
        return drawn_points(random)
    uses = tuple(
        drawn_use(random, f"points{k}", field := random.choice(names), boxes[field])
        for k in range(random.choice((1, 2, 2, 3)))
    )
    return DrawnPoints(model, uses)


def drawn_use(random: Random, name: str, field: str, box: Sequence[slice]) -> DrawnUse:
    """A list of points in a box; some entries share a cell."""
    count = random.choice((0, 1, 1, random.randint(2, MOST_ENTRIES)))
    cells: list[tuple[int, ...]] = []
    for _ in range(count):
        if cells and random.random() < 0.3:
            cells.append(random.choice(cells))
        else:
            cells.append(tuple(random.randrange(each.start, each.stop) for each in box))
    weights = tuple(random.choice((1.0, 0.5, -0.25, 0.1, 0.0)) for _ in cells)
    points = tuple(random.randrange(max(1, count // 2)) for _ in cells)
    return DrawnUse(name, field, random.random() < 0.6, tuple(cells), weights, points)
