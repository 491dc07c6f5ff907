"""
Nested sums in odd orders, of numbers so few and short that sums are exact: every order of terms has
the bits of the program's own order, but for the sign of zeros.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import numpy as np

from support.drawn_fields import DrawnFields
from support.drawn_models import Arrays, Assignment, DrawnModel, How, on
from support.drawn_steps import drawn_fields, grower_of
from support.drawn_values import Node
from support.grown_values import Grower
from timetile.dialects.temporal.boundary import Kind
from timetile.frontend.boundaries import FieldSide

WEIGHTS = (2.0, -1.0, 0.5, -0.25, 3.0)
"""Factors of terms: short numbers of both signs."""

BITS = {"float32": 24, "float64": 53}
"""The bits of the numbers of a type."""

BEGIN = (4.0, 0)
"""The greatest number of the arrays, and the power of two that divides all."""


@dataclass(frozen=True)
class DrawnSums:
    """A step of linear sums, whose terms may change places."""

    model: DrawnModel

    def text(self) -> str:
        """The step."""
        return f"sums with fp_reassoc on\n{self.model.text()}"

    def arrays(self, seed: int) -> Arrays:
        """Small integers."""
        rng = np.random.default_rng(seed)
        found = self.model.arrays(seed)
        for array in found.values():
            array[...] = rng.integers(-4, 5, array.shape)
        return found

    def steps(self, how: How) -> int:
        """The number of steps with exact sums, and at most those asked for."""
        (made,), (greatest, unit) = self.model.statements, BEGIN
        assert isinstance(made, Assignment)
        most = min(BITS[self.model.fields.types[name]] for name in self.model.used)
        for step in range(how.steps):
            found, low = bounds(self.model.value(made), greatest, unit)
            greatest, unit = max(found, greatest), min(low, unit)
            if np.log2(greatest) - unit > most:
                return step
        return how.steps

    def found(self, how: How) -> Arrays:
        """The arrays after some steps, with zeros of one sign."""
        model = on(self.model.model(), how).on(fp_reassoc="on")
        steps = self.steps(how)
        numbers = self.model.numbers(steps)
        return unsigned(dict(model.advance(self.arrays(how.steps), steps, **numbers)))

    def expected(self, how: How) -> Arrays:
        """The arrays after some steps in the order of the program."""
        steps = self.steps(how)
        return unsigned(self.model.after(self.arrays(how.steps), steps, self.model.numbers(steps)))


def bounds(node: Node, greatest: float, unit: int) -> tuple[float, int]:
    """
    The greatest sum of magnitudes, and the power of two that divides all terms and partial sums.
    """
    match node.word:
        case "tap":
            return greatest, unit
        case "number":
            return abs(
                node.given
            ), 0 if node.given % 1 == 0 else -1 if node.given % 0.5 == 0 else -2
        case "*":
            (one, low), (other, down) = (bounds(each, greatest, unit) for each in node.operands)
            return one * other, low + down
        case _:
            (one, low), (other, down) = (bounds(each, greatest, unit) for each in node.operands)
            return one + other, min(low, down)


def unsigned(arrays: Arrays) -> Arrays:
    """Arrays with 0.0 for -0.0."""
    return {name: array + array.dtype.type(0) for name, array in arrays.items()}


def exact(side: FieldSide) -> FieldSide:
    """A side whose numbers, if any, are zeros."""
    return side if isinstance(side, Kind) else 0.0


def drawn_sums(random: Random) -> DrawnSums:
    """A step of one sum, with sums in terms."""
    drawn = drawn_fields(random)
    types = {name: kind for name, kind in drawn.types.items() if kind in BITS}
    sides = {
        name: tuple((exact(low), exact(high)) for low, high in pairs)
        for name, pairs in drawn.sides.items()
        if name in types
    }
    fields = DrawnFields(drawn.shape, types, drawn.narrow, sides)
    grower = grower_of(random, fields)
    target = random.choice(fields.targets)
    value = drawn_sum(random, grower, 4)
    return DrawnSums(DrawnModel(fields, (Assignment(target, None, value),)))


def drawn_sum(random: Random, grower: Grower, depth: int) -> Node:
    """A sum or a difference: the first term, the last or both may be sums or products of sums."""
    if depth == 0:
        return grower.tap(grower.floats)
    first = drawn_sum(random, grower, depth - random.choice((1, 1, 2)) if depth > 1 else 0)
    if random.random() < 0.3:
        return Node("*", (first, Node("number", (), random.choice(WEIGHTS))))
    second = drawn_sum(random, grower, random.randint(0, depth - 1))
    both = (first, second) if random.random() < 0.5 else (second, first)
    return Node(random.choice("++-"), both)
