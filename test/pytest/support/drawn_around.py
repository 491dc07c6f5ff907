"""Drawn values, evaluated in two ways: as symbols of timetile, and as arrays of NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import timetile
from support.drawn_fields import Array, DrawnFields, Region, computing, dtype_of
from support.drawn_values import NEXT, PREV, SERIES, Node, evaluated, field_of
from support.padded import padded
from support.reference import extreme
from timetile.dialects.temporal.boundary import Kind

WIDTH = 10
"""The longest distance of a read from the reader, through temporaries and moved values."""


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

    def alone(self, value: Node) -> Any:
        return evaluated(value, self)

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


class Numbers:
    """Values of scalars alone, each operation rounded in the type of the step's numbers."""

    def __init__(self, scalars: dict[str, Any], kind: Any):
        self.scalars, self.kind = scalars, kind

    def scalar(self, name: str) -> Any:
        return self.kind(self.scalars[name])

    def alone(self, value: Node) -> Any:
        return evaluated(value, self)

    def tap(self, name: str, offset: tuple[int | None, ...]) -> Any:
        raise AssertionError("a value of scalars alone reads no cell")

    def coordinate(self, axis: int, kind: str) -> Any:
        raise AssertionError("a value of scalars alone is equal for all cells")

    def step(self) -> Any:
        raise AssertionError("a value of scalars alone is equal for all steps")

    series = step

    def power(self, base: Any, exponent: int) -> Any:
        return products(base, exponent)

    def extreme(self, word: str, first: Any, second: Any) -> Any:
        return greater_or_less(word, first, second)


class Cells:
    """The reads and operations of a value, of the cells of a box at once."""

    def __init__(
        self,
        fields: DrawnFields,
        used: Sequence[str],
        arrays: dict[str, Array],
        box: Region,
        numbers: dict[str, Any],
        number: int,
    ):
        self.fields, self.arrays, self.box = fields, arrays, box
        self.numbers, self.number = numbers, number
        self.kind = fields.number_type(used)

    def step(self) -> Any:
        return self.number

    def series(self) -> Any:
        return float(self.numbers[SERIES][self.number])

    def tap(self, name: str, offset: tuple[int | None, ...]) -> Any:
        field = field_of(name)
        kind, axes = dtype_of(computing(self.fields.types[field])), range(len(offset))
        axes = self.fields.narrow.get(field, axes)
        starts = [self.box[axis].start + (offset[axis] or 0) for axis in axes]
        sizes = [self.box[axis].stop - self.box[axis].start for axis in axes]
        array, width = self.continued(name), WIDTH * (field in self.fields.sides)
        at = tuple(slice(width + low, width + low + n) for low, n in zip(starts, sizes))
        wide = tuple(None if step is None else slice(None) for step in offset)
        return array[at].astype(kind)[wide]

    def continued(self, name: str) -> Array:
        """The array of a field, continued beyond its sides."""
        array, field = self.arrays[name], field_of(name)
        if field not in self.fields.sides:
            return array
        sides = [
            (0.0 if low is Kind.KEEP else low, 0.0 if high is Kind.KEEP else high)
            for low, high in self.fields.sides[field]
        ]
        return padded(array, sides, WIDTH, self.numbers)

    def scalar(self, name: str) -> Any:
        """A number of the step's float type."""
        return float(self.kind(self.numbers[name]))

    def alone(self, value: Node) -> Any:
        return float(evaluated(value, Numbers(self.numbers, self.kind)))

    def coordinate(self, axis: int, kind: str) -> Any:
        start, stop = int(self.box[axis].start), int(self.box[axis].stop)
        places = np.arange(start, stop, dtype=np.int64).astype(kind)
        return places[tuple(slice(None) if k == axis else None for k in range(len(self.box)))]

    def power(self, base: Any, exponent: int) -> Any:
        return products(base, exponent)

    def extreme(self, word: str, first: Any, second: Any) -> Any:
        return greater_or_less(word, first, second)


def products(base: Any, exponent: int) -> Any:
    """A power by products from the highest bit of the exponent down."""
    result = base
    for bit in f"{exponent:b}"[1:]:
        result = result * result
        result = result * base if bit == "1" else result
    return result


def greater_or_less(word: str, first: Any, second: Any) -> Any:
    """The greater or the lesser of two numbers; of zeros, -0.0 is the lesser."""
    kind = np.result_type(first, second)
    if kind.kind == "f":
        both = np.asarray(first, kind), np.asarray(second, kind)
        return extreme(greatest=word == "maximum", skips_nan=False)(*both)
    return np.maximum(first, second) if word == "maximum" else np.minimum(first, second)
