"""
Steps in Python as data, for timetile and for NumPy. Steps are drawn in `drawn_steps.py`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import timetile
from support.drawn_values import Node, evaluated, taps_of, without
from support.padded import padded
from support.reference import extreme
from timetile import Field, Model, Scalar, Series
from timetile.dialects.temporal.boundary import Kind
from timetile.frontend.boundaries import Boundary, FieldSide

Array = np.ndarray[Any, Any]
Region = tuple[slice, ...]

REACH = 2
"""The longest distance of a read."""

WIDTH = 3 * REACH
"""The longest distance of a read by a temporary of a temporary from the reader."""

NEXT, PREV = ".next", ".prev"
"""The ends of the names of other reads of a field: of its new value, and of a step earlier."""

SERIES = "pulse"
"""The name of the series of a step."""


def field_of(name: str) -> str:
    """The field of a read: of `u`, of `u.next` and of `u.prev`."""
    return name.partition(".")[0]


SCALARS = {"k": 0.37, "rate": -1.25}


@dataclass(frozen=True)
class Assignment:
    """`target.next[region] = value`; None for all cells."""

    target: str
    region: Region | None
    value: Node
    turns: int = 1
    """How often the assignment is repeated in a step."""


@dataclass(frozen=True)
class DrawnModel:
    """A step as data, with arrays of a shape and of a type for each field."""

    shape: tuple[int, ...]
    types: dict[str, str]
    narrow: dict[str, tuple[int, ...]]
    """The axes of coefficients of fewer axes."""
    sides: dict[str, tuple[tuple[FieldSide, FieldSide], ...]]
    """The sides of each field with a boundary other than `keep`."""
    assignments: tuple[Assignment, ...]
    temporaries: dict[str, Node] = field(default_factory=dict[str, Node])
    """Values of a step that other cells read, by name; each may read those before."""
    has_series: bool = False

    def value(self, made: Assignment) -> Node:
        """The assigned value without temporaries."""
        value = made.value
        for name in reversed(self.temporaries):
            value = without({name: self.temporaries[name]}, value)
        return value

    @property
    def reads(self) -> list[str]:
        """All reads by name."""
        return [name for made in self.assignments for name, _ in taps_of(self.value(made))]

    @property
    def used(self) -> list[str]:
        """The fields of the step, in order."""
        names = {made.target for made in self.assignments} | set(map(field_of, self.reads))
        return [name for name in self.types if name in names]

    def numbers(self, steps: int) -> dict[str, Any]:
        """The numbers of a run: each is a number of float32."""
        if not self.has_series:
            return dict(SCALARS)
        rng = np.random.default_rng(steps)
        return {**SCALARS, SERIES: rng.integers(-16, 17, max(steps, 1)) / 8}

    def arrays(self, seed: int) -> dict[str, Array]:
        """Random arrays: integers of the whole range of their type, floats of both signs."""
        rng, found = np.random.default_rng(seed), dict[str, Array]()
        for name in self.used:
            axes = self.narrow.get(name, range(len(self.shape)))
            shape, kind = tuple(self.shape[axis] for axis in axes), np.dtype(self.types[name])
            if kind == np.bool_:
                found[name] = rng.random(shape) < 0.5
            elif kind.kind == "f":
                found[name] = rng.uniform(-1, 1, shape).astype(kind)
            else:
                ends = np.iinfo(kind)
                found[name] = rng.integers(ends.min, ends.max, shape, kind, endpoint=True)
        return found

    def model(self) -> Model:
        """The step, for timetile."""

        def assign(made: Assignment, given: dict[str, Any]) -> None:
            value = evaluated(made.value, Symbols(given))
            if made.region is None:
                given[made.target].next = value
            else:
                given[made.target].next[made.region] = value

        def step(**given: Any) -> None:
            for name, value in self.temporaries.items():
                given[name] = timetile.temporary(evaluated(value, Symbols(given)))
            for made in self.assignments:
                if made.turns == 1:
                    assign(made, given)
                else:
                    for _ in timetile.repeat(made.turns):
                        assign(made, given)

        series = [SERIES] if self.has_series else []
        return model_with(step, self.used, list(SCALARS), self.boundary, series)

    def text(self) -> str:
        """The step as text."""
        lines = [
            f"{name}: {kind}, {self.narrow.get(name, 'all axes')}, {self.sides.get(name)}"
            for name, kind in self.types.items()
        ]
        lines += [f"{name} = {value}" for name, value in self.temporaries.items()]
        lines += [
            f"{each.turns} times {each.target}.next[{each.region}] = {each.value}"
            for each in self.assignments
        ]
        return "\n".join([f"shape {self.shape}", *lines])

    def with_needed_temporaries(self) -> DrawnModel:
        """The step without temporaries that nothing reads."""
        needed, left = dict[str, Node](), [made.value for made in self.assignments]
        for name in reversed(self.temporaries):
            if any(read == name for value in left for read, _ in taps_of(value)):
                needed = {name: self.temporaries[name], **needed}
                left.append(self.temporaries[name])
        return replace(self, temporaries=needed)

    @property
    def boundary(self) -> Boundary:
        """The boundary as written by a user."""

        def written(side: FieldSide) -> Any:
            return side.value if isinstance(side, Kind) else timetile.value(side)

        return {
            name: tuple((written(low), written(high)) for low, high in self.sides[name])
            for name in self.used
            if name in self.sides
        }

    def after(self, arrays: dict[str, Array], steps: int) -> dict[str, Array]:
        """The arrays after some steps, by NumPy."""
        now = dict(arrays)
        before = {
            name: arrays[field_of(name)] for name in sorted(set(self.reads)) if name.endswith(PREV)
        }
        numbers = self.numbers(steps)
        made = [(each, self.value(each), self.box(each)) for each in self.assignments]
        with np.errstate(all="ignore"):
            for step in range(steps):
                new = {name: array.copy() for name, array in now.items()}
                for each, value, box in made:
                    for _ in range(each.turns):
                        known = now | before | {name + NEXT: array for name, array in new.items()}
                        cells = np.asarray(evaluated(value, Cells(self, known, box, numbers, step)))
                        new[each.target] = new[each.target].copy()
                        new[each.target][box] = cells
                before = {name: now[field_of(name)] for name in before}
                now = new
        return now | before

    def box(self, made: Assignment) -> Region:
        """The cells with a new value: all their reads lie in arrays, or in a boundary."""
        found: list[slice] = []
        for axis, size in enumerate(self.shape):
            region = slice(None) if made.region is None else made.region[axis]
            low, high, _ = region.indices(size)
            for name, offset in taps_of(self.value(made)):
                keeps = ((Kind.KEEP, Kind.KEEP),) * len(self.shape)
                below, above = self.sides.get(field_of(name), keeps)[axis]
                distance = offset[axis]
                if distance is not None and below is Kind.KEEP:
                    low = max(low, -distance)
                if distance is not None and above is Kind.KEEP:
                    high = min(high, size - distance)
            found.append(slice(low, max(low, high)))
        return tuple(found)


def model_with(
    step: Callable[..., None],
    fields: Sequence[str],
    scalars: Sequence[str] = (),
    boundary: Boundary = "keep",
    series: Sequence[str] = (),
) -> Model:
    """A model of a function that takes any fields, scalars and series by name."""
    plain = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(name, plain, annotation=Field) for name in fields]
    parameters += [inspect.Parameter(name, plain, annotation=Scalar) for name in scalars]
    parameters += [inspect.Parameter(name, plain, annotation=Series) for name in series]
    step.__dict__["__signature__"] = inspect.Signature(parameters)
    return timetile.stencil(boundary=boundary)(step)


class Symbols:
    """The reads and operations of a value, recorded by timetile."""

    def __init__(self, given: dict[str, Any]):
        self.given = given

    def tap(self, name: str, offset: tuple[int | None, ...]) -> Any:
        read = self.given[field_of(name)]
        if name.endswith(NEXT):
            return read.next[offset]
        return (read.prev if name.endswith(PREV) else read)[offset]

    def scalar(self, name: str) -> Any:
        return self.given[name]

    def step(self) -> Any:
        return timetile.step()

    def series(self) -> Any:
        return self.given[SERIES][0]

    def coordinate(self, axis: int, kind: str) -> Any:
        return timetile.coordinate(axis).astype(kind)

    def power(self, base: Any, exponent: int) -> Any:
        return base**exponent

    def extreme(self, word: str, first: Any, second: Any) -> Any:
        return np.maximum(first, second) if word == "maximum" else np.minimum(first, second)


class Cells:
    """The reads and operations of a value, of the cells of a box at once."""

    def __init__(
        self,
        model: DrawnModel,
        arrays: dict[str, Array],
        box: Region,
        numbers: dict[str, Any],
        number: int,
    ):
        self.model, self.arrays, self.box = model, arrays, box
        self.numbers, self.number = numbers, number

    def step(self) -> Any:
        return self.number

    def series(self) -> Any:
        return float(self.numbers[SERIES][self.number])

    def tap(self, name: str, offset: tuple[int | None, ...]) -> Any:
        array = self.arrays[name]
        if name in self.model.narrow:
            at = [
                slice(self.box[axis].start + step, self.box[axis].stop + step)
                for axis, step in enumerate(offset)
                if step is not None
            ]
            wide = [None if step is None else slice(None) for step in offset]
            return array[tuple(at)][tuple(wide)]
        keeps = ((0.0, 0.0),) * array.ndim
        sides = [
            tuple(0.0 if side is Kind.KEEP else side for side in pair)
            for pair in self.model.sides.get(field_of(name), keeps)
        ]
        around = padded(array, [(low, high) for low, high in sides], WIDTH, SCALARS)
        return around[
            tuple(
                slice(WIDTH + (step or 0) + box.start, WIDTH + (step or 0) + box.stop)
                for step, box in zip(offset, self.box, strict=True)
            )
        ]

    def scalar(self, name: str) -> Any:
        """A number of the step's float type: float32 where all arrays go into float32."""
        used = [self.model.types[name] for name in self.model.used]
        of_f32 = np.result_type(*used) == np.float32
        return float(np.float32(SCALARS[name])) if of_f32 else SCALARS[name]

    def coordinate(self, axis: int, kind: str) -> Any:
        start, stop = int(self.box[axis].start), int(self.box[axis].stop)
        places = np.arange(start, stop, dtype=np.int64).astype(kind)
        return places[tuple(slice(None) if k == axis else None for k in range(len(self.box)))]

    def power(self, base: Any, exponent: int) -> Any:
        """Products from the highest bit of the exponent down."""
        result = base
        for bit in f"{exponent:b}"[1:]:
            result = result * result
            result = result * base if bit == "1" else result
        return result

    def extreme(self, word: str, first: Any, second: Any) -> Any:
        if np.result_type(first, second).kind == "f":
            kind = np.result_type(first, second)
            both = np.asarray(first, kind), np.asarray(second, kind)
            return extreme(greatest=word == "maximum", skips_nan=False)(*both)
        return np.maximum(first, second) if word == "maximum" else np.minimum(first, second)
