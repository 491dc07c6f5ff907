"""
Steps in Python drawn at random, and their evaluation with NumPy: fields of floats, integers and
truth values, coefficients of fewer axes, all boundaries, regions and points, powers, quotients,
choices of -0.0, scalars and coordinates.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

import timetile
from support.drawn_values import Grower, Node, evaluated, taps_of
from support.padded import padded
from support.reference import extreme
from timetile import Field, Model, Scalar
from timetile.dialects.temporal.boundary import Kind
from timetile.frontend.boundaries import Boundary, FieldSide

Array = np.ndarray[Any, Any]
Region = tuple[slice, ...]

REACH = 2
"""The longest distance of a read."""

SHAPES: dict[int, tuple[int, ...]] = {1: (71,), 2: (9, 41), 3: (6, 7, 37)}
"""The largest arrays, by the number of axes."""

SCALARS = {"k": 0.37, "rate": -1.25}

INTEGERS = (
    ("int8",), ("int16",), ("int32",), ("int64",), ("uint8",), ("uint16",), ("uint32",),
    ("uint64",), ("int8", "uint8"), ("int32", "uint16"), ("int64", "uint8"), ("bool", "int16"),
)  # fmt: skip
"""Types of integers that meet in one integer type."""


@dataclass(frozen=True)
class Assignment:
    """`target.next[region] = value`; None for all cells."""

    target: str
    region: Region | None
    value: Node


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

    @property
    def used(self) -> list[str]:
        """The fields of the step, in order."""
        taps = [tap for made in self.assignments for tap in taps_of(made.value)]
        names = {made.target for made in self.assignments} | {name for name, _ in taps}
        return [name for name in self.types if name in names]

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

        def step(**given: Any) -> None:
            for made in self.assignments:
                value = evaluated(made.value, Symbols(given))
                if made.region is None:
                    given[made.target].next = value
                else:
                    given[made.target].next[made.region] = value

        return model_with(step, self.used, list(SCALARS), self.boundary)

    def text(self) -> str:
        """The step as text."""
        lines = [
            f"{name}: {kind}, {self.narrow.get(name, 'all axes')}, {self.sides.get(name)}"
            for name, kind in self.types.items()
        ]
        lines += [f"{each.target}.next[{each.region}] = {each.value}" for each in self.assignments]
        return "\n".join([f"shape {self.shape}", *lines])

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
        with np.errstate(all="ignore"):
            for _ in range(steps):
                new = {name: array.copy() for name, array in now.items()}
                for made in self.assignments:
                    box = self.box(made)
                    value = evaluated(made.value, Cells(self, now, box))
                    new[made.target][box] = np.asarray(value)
                now = new
        return now

    def box(self, made: Assignment) -> Region:
        """The cells with a new value: all their reads lie in arrays, or in a boundary."""
        found: list[slice] = []
        for axis, size in enumerate(self.shape):
            region = slice(None) if made.region is None else made.region[axis]
            low, high, _ = region.indices(size)
            for name, offset in taps_of(made.value):
                below, above = self.sides.get(name, ((Kind.KEEP, Kind.KEEP),) * len(self.shape))[
                    axis
                ]
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
) -> Model:
    """A model of a function that takes any fields and scalars by name."""
    plain = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(name, plain, annotation=Field) for name in fields]
    parameters += [inspect.Parameter(name, plain, annotation=Scalar) for name in scalars]
    step.__dict__["__signature__"] = inspect.Signature(parameters)
    return timetile.stencil(boundary=boundary)(step)


class Symbols:
    """The reads and operations of a value, recorded by timetile."""

    def __init__(self, given: dict[str, Any]):
        self.given = given

    def tap(self, name: str, offset: tuple[int | None, ...]) -> Any:
        return self.given[name][offset]

    def scalar(self, name: str) -> Any:
        return self.given[name]

    def coordinate(self, axis: int, kind: str) -> Any:
        return timetile.coordinate(axis).astype(kind)

    def power(self, base: Any, exponent: int) -> Any:
        return base**exponent

    def extreme(self, word: str, first: Any, second: Any) -> Any:
        return np.maximum(first, second) if word == "maximum" else np.minimum(first, second)


class Cells:
    """The reads and operations of a value, of the cells of a box at once."""

    def __init__(self, model: DrawnModel, arrays: dict[str, Array], box: Region):
        self.model, self.arrays, self.box = model, arrays, box

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
            for pair in self.model.sides.get(name, keeps)
        ]
        around = padded(array, [(low, high) for low, high in sides], REACH, SCALARS)
        return around[
            tuple(
                slice(REACH + (step or 0) + box.start, REACH + (step or 0) + box.stop)
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


def drawn_model(random: Random) -> DrawnModel:
    """A step of one to three axes, and one to three assignments."""
    rank = random.randint(1, 3)
    shape = tuple(random.randint(5, largest) for largest in SHAPES[rank])
    types: dict[str, str] = {"u": random.choice(("float32", "float64"))}
    if random.random() < 0.3:
        types["v"] = random.choice(("float32", "float64"))
    if random.random() < 0.5:
        types |= {f"n{k}": kind for k, kind in enumerate(random.choice(INTEGERS))}
    if random.random() < 0.3:
        types["mask"] = "bool"
    narrow: dict[str, tuple[int, ...]] = {}
    if rank > 1 and random.random() < 0.4:
        axes = tuple(sorted(random.sample(range(rank), random.randint(1, rank - 1))))
        types["profile"], narrow["profile"] = types["u"], axes
    sides = {
        name: tuple(drawn_sides(random, kind) for _ in shape)
        for name, kind in types.items()
        if name not in narrow and random.random() < 0.6
    }
    sides = {
        name: pairs
        for name, pairs in sides.items()
        if any(side is not Kind.KEEP for pair in pairs for side in pair)
    }
    grower = Grower(random, rank, types, narrow, REACH, tuple(SCALARS))
    assignments: list[Assignment] = []
    for target in random.sample([name for name in types if name not in narrow], 1):
        assignments.append(Assignment(target, None, grower.stored(types[target])))
    for _ in range(random.choice((0, 0, 1, 2))):
        target = random.choice([name for name in types if name not in narrow])
        assignments.append(
            Assignment(target, drawn_region(random, shape), grower.stored(types[target]))
        )
    found = DrawnModel(shape, types, narrow, sides, tuple(assignments))
    reads = [tap for made in assignments for tap in taps_of(made.value)]
    return found if any(name not in narrow for name, _ in reads) else drawn_model(random)


def drawn_sides(random: Random, kind: str) -> tuple[FieldSide, FieldSide]:
    """The sides of an axis: cells beyond an array of integers have a number of the type."""
    if random.random() < 0.3:
        return Kind.PERIODIC, Kind.PERIODIC
    number = 1.0 if np.dtype(kind).kind != "f" else random.choice((0.0, 0.5, -0.0))
    others: list[FieldSide] = [Kind.KEEP, Kind.MIRROR, Kind.REFLECT, number]
    if np.dtype(kind).kind == "f":
        others.append("rate")
    return random.choice(others), random.choice(others)


def drawn_region(random: Random, shape: tuple[int, ...]) -> Region:
    """A box of cells, a row or a point away from the rim."""
    region: list[slice] = []
    for size in shape:
        low = random.randint(0, size - 1)
        if random.random() < 0.3:
            region.append(slice(None))
        elif random.random() < 0.5:
            region.append(slice(low, low + 1))
        else:
            region.append(slice(low, random.randint(low + 1, size)))
    return tuple(region)
