"""Values of a cell, grown at random from reads of fields, scalars and numbers."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

import numpy as np

from support.drawn_values import Node, is_float

DIVISORS = (118, 3.0, -7.0, 2, 0.1, 49, 1e-3, 1e30, -1e-30)
"""Divisors whose quotients are products, with and without a correction, exact or far from 1."""


class Grower:
    """
    Draws values. The first operand of an operation reads cells: numbers and scalars without a type
    of their own take the other operand's.
    """

    def __init__(
        self,
        random: Random,
        rank: int,
        types: Mapping[str, str],
        narrow: Mapping[str, tuple[int, ...]],
        reach: int,
        scalars: tuple[str, ...],
        numbers: tuple[Node, ...] = (),
    ):
        self.numbers = numbers
        """Numbers that change from step to step."""
        self.random, self.rank, self.narrow = random, rank, narrow
        self.reach, self.scalars = reach, scalars
        kinds = {
            name: "f" if is_float(kind) else np.dtype(kind).kind for name, kind in types.items()
        }
        self.floats = [name for name, kind in kinds.items() if kind == "f"]
        self.whole = [name for name, kind in kinds.items() if kind in "iu"]
        self.truth = [name for name, kind in kinds.items() if kind == "b"]
        self.places = types[self.whole[0]] if self.whole else "int32"
        """The type of coordinates: a type that meets the fields of integers in one type."""
        self.near: dict[str, list[Node]] = {"f": [], "i": [], "b": []}
        """Reads of single cells, by the kind of the field: each is drawn as often as others."""

    def stored(self, kind: str) -> Node:
        """A value for a field of a type; floats lie between -1 and 1."""
        if kind == "bool":
            return self.condition(3)
        if not is_float(kind):
            return Node("as", (self.integer(3),), kind)
        value = self.number(4)
        return Node("quotient", (value, value))

    def read_new(self, name: str, end: str) -> None:
        """Read the new values of a field from now on: by the field's name with an end."""
        for names in (self.floats, self.whole, self.truth):
            names[:] = [name + end if each == name else each for each in names]

    def tap(self, names: list[str]) -> Node:
        """A neighbour's cell."""
        near = self.near["f" if names is self.floats else "i" if names is self.whole else "b"]
        if near and self.random.random() < 0.5:
            return self.random.choice(near)
        name, far = self.random.choice(names), self.reach if self.random.random() < 0.3 else 1
        offset = tuple(
            None
            if axis not in self.narrow.get(name, range(self.rank))
            else 0
            if name in self.narrow
            else self.random.randint(-far, far)
            for axis in range(self.rank)
        )
        return Node("tap", (), (name, offset))

    def plain_number(self) -> Node:
        """A number or scalars, without a type of their own."""
        if self.random.random() < 0.15:
            return Node("alone", (self.of_scalars(2),))
        if self.numbers and self.random.random() < 0.3:
            return self.random.choice(self.numbers)
        if self.random.random() < 0.4:
            return Node("scalar", (), self.random.choice(self.scalars))
        return Node("number", (), self.random.choice((0.5, -1.25, 3.0, 2, -0.0, 0.1, 1e-3)))

    def divisor(self) -> Node:
        """A number or a scalar other than zero."""
        if self.random.random() < 0.3:
            return Node("scalar", (), self.random.choice(self.scalars))
        return Node("number", (), self.random.choice(DIVISORS))

    def of_scalars(self, depth: int) -> Node:
        """Quotients, roots and products of scalars, equal for all cells."""
        scalar = Node("scalar", (), self.random.choice(self.scalars))
        if depth == 0:
            return scalar
        first, draw = self.of_scalars(depth - 1), self.random.random()
        if draw < 0.4:
            return Node("quotient", (first, self.of_scalars(depth - 1)))
        if draw < 0.6:
            return Node("root", (first,))
        if draw < 0.7:
            return Node("power", (first,), self.random.randint(2, 5))
        return Node(self.random.choice("+-*"), (first, scalar))

    def number(self, depth: int) -> Node:
        """A float."""
        draw = self.random.random()
        if depth == 0 or draw < 0.1:
            return self.tap(self.floats)
        first = self.number(depth - 1)
        if draw < 0.35:
            return Node(self.random.choice("+-*"), (first, self.number(depth - 1)))
        if draw < 0.5:
            return Node(self.random.choice("+-*"), (first, self.plain_number()))
        if draw < 0.56:
            return Node("quotient", (first, self.number(depth - 1)))
        if draw < 0.63:
            return Node("/", (first, self.divisor()))
        if draw < 0.68:
            return Node("power", (first,), self.random.randint(2, 8))
        if draw < 0.75:
            chosen = self.random.choice((first, self.plain_number()))
            return Node("where", (self.condition(depth - 1), first, chosen))
        if draw < 0.82:
            word = self.random.choice(("root", "one by root", "floor", "absolute"))
            return Node(word, (first,))
        if draw < 0.88:
            word = self.random.choice(("maximum", "minimum"))
            return Node(word, (first, self.number(depth - 1)))
        weighted = Node("*", (self.integer(depth - 1), Node("number", (), 0.01)))
        return Node("+", (first, weighted))

    def temporary(self, depth: int) -> Node:
        """A float computed from reads of floats; other cells may read the value."""
        draw = self.random.random()
        if depth == 0 or draw < 0.1:
            return self.tap(self.floats)
        first = self.temporary(depth - 1)
        if draw < 0.5:
            return Node(self.random.choice("+-*"), (first, self.temporary(depth - 1)))
        if draw < 0.7:
            return Node(self.random.choice("+-*"), (first, self.plain_number()))
        if draw < 0.76:
            return Node("quotient", (first, self.temporary(depth - 1)))
        if draw < 0.8:
            return Node("/", (first, self.divisor()))
        return Node(self.random.choice(("root", "floor", "absolute")), (first,))

    def integer(self, depth: int) -> Node:
        """An integer, typed like fields of integers or like a coordinate."""
        draw = self.random.random()
        if depth == 0 or draw < 0.15:
            if self.whole and self.random.random() < 0.8:
                return self.tap(self.whole)
            return Node("coordinate", (), (self.random.randrange(self.rank), self.places))
        first = self.integer(depth - 1)
        if draw < 0.4:
            return Node(self.random.choice("+-*"), (first, self.integer(depth - 1)))
        if draw < 0.5:
            small = Node("number", (), self.random.randint(0, 7))
            return Node(self.random.choice(("+", "-", "*", "//", "%", "&")), (first, small))
        if draw < 0.62:
            return Node(self.random.choice(("//", "%")), (first, self.integer(depth - 1)))
        if draw < 0.72:
            return Node(self.random.choice("&|^"), (first, self.integer(depth - 1)))
        if draw < 0.8:
            word = self.random.choice(("shift left", "shift right"))
            return Node(word, (first, self.integer(depth - 1)))
        if draw < 0.86:
            return Node("power", (first,), self.random.randint(2, 4))
        if draw < 0.93:
            word = self.random.choice(("maximum", "minimum"))
            return Node(word, (first, self.integer(depth - 1)))
        return Node("where", (self.condition(depth - 1), first, self.integer(depth - 1)))

    def condition(self, depth: int) -> Node:
        """A truth value."""
        draw = self.random.random()
        if self.truth and (depth == 0 or draw < 0.3):
            return self.tap(self.truth)
        if depth > 0 and draw < 0.5:
            both = self.condition(depth - 1), self.condition(depth - 1)
            return Node(self.random.choice("&|^+*"), both)
        if depth > 0 and draw < 0.6:
            return Node("not", (self.condition(depth - 1),))
        word, less = self.random.choice(("<", "<=", "==", "!=")), max(0, depth - 1)
        if draw < 0.8:
            return Node(word, (self.number(less), self.number(less)))
        return Node(word, (self.integer(less), self.integer(less)))
