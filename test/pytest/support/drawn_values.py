"""Values of a cell drawn at random as trees, and their evaluation by symbols or by arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Protocol

import numpy as np

import timetile

Offset = tuple[int | None, ...]
"""A distance along each axis; None along the missing axes of a field."""


@dataclass(frozen=True)
class Node:
    """An operation on smaller values; `given` is what the operation needs besides."""

    word: str
    operands: tuple[Node, ...] = ()
    given: Any = None

    def __str__(self) -> str:
        given = "" if self.given is None else f"[{self.given}]"
        return f"{self.word}{given}" + f"({', '.join(map(str, self.operands))})" * bool(
            self.operands
        )


class Around(Protocol):
    """The reads and operations that differ between symbols and arrays."""

    def tap(self, name: str, offset: Offset) -> Any: ...
    def scalar(self, name: str) -> Any: ...
    def step(self) -> Any: ...
    def series(self) -> Any: ...
    def coordinate(self, axis: int, kind: str) -> Any: ...
    def power(self, base: Any, exponent: int) -> Any: ...
    def extreme(self, word: str, first: Any, second: Any) -> Any: ...


def taps_of(node: Node) -> Iterator[tuple[str, Offset]]:
    """The reads of a value: fields and offsets."""
    if node.word == "tap":
        yield node.given
    for operand in node.operands:
        yield from taps_of(operand)


def moved(node: Node, distance: Offset) -> Node:
    """The value of the cell at a distance."""
    if node.word == "tap":
        name, offset = node.given
        there = tuple(
            None if step is None else step + (far or 0)
            for step, far in zip(offset, distance, strict=True)
        )
        return replace(node, given=(name, there))
    return replace(node, operands=tuple(moved(operand, distance) for operand in node.operands))


def without(temporaries: Mapping[str, Node], node: Node) -> Node:
    """The value with each read of a temporary replaced by the temporary's value at that cell."""
    if node.word == "tap" and node.given[0] in temporaries:
        return moved(temporaries[node.given[0]], node.given[1])
    return replace(node, operands=tuple(without(temporaries, operand) for operand in node.operands))


def evaluated(node: Node, around: Around) -> Any:
    """A value as a symbol, or as an array of cells."""
    parts = [evaluated(operand, around) for operand in node.operands]
    match node.word:
        case "tap":
            return around.tap(*node.given)
        case "number":
            return node.given
        case "scalar":
            return around.scalar(node.given)
        case "step":
            return around.step()
        case "series":
            return around.series()
        case "coordinate":
            return around.coordinate(*node.given)
        case "power":
            return around.power(parts[0], node.given)
        case "maximum" | "minimum":
            return around.extreme(node.word, parts[0], parts[1])
        case "where":
            choose: Any = timetile.where if isinstance(parts[1], timetile.Value) else np.where
            return choose(*parts)
        case "as":
            return parts[0].astype(node.given)
        case "quotient":
            return parts[0] / (abs(parts[1]) + 1)
        case "root":
            return np.sqrt(abs(parts[0]))
        case "floor":
            return np.floor(parts[0])
        case "absolute":
            return abs(parts[0])
        case "shift left":
            return parts[0] << (parts[1] & 7)
        case "shift right":
            return parts[0] >> (parts[1] & 7)
        case "not":
            return ~parts[0]
        case word:
            return operated(word, *parts)


def operated(word: str, a: Any, b: Any) -> Any:
    """The result of an operator of Python."""
    match word:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "//":
            return a // b
        case "%":
            return a % b
        case "&":
            return a & b
        case "|":
            return a | b
        case "^":
            return a ^ b
        case "<":
            return a < b
        case "<=":
            return a <= b
        case "==":
            return a == b
        case _:
            return a != b


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
        kinds = {name: np.dtype(kind).kind for name, kind in types.items()}
        self.floats = [name for name, kind in kinds.items() if kind == "f"]
        self.whole = [name for name, kind in kinds.items() if kind in "iu"]
        self.truth = [name for name, kind in kinds.items() if kind == "b"]
        self.places = types[self.whole[0]] if self.whole else "int32"
        """The type of coordinates: a type that meets the fields of integers in one type."""

    def stored(self, kind: str) -> Node:
        """A value for a field of a type; floats lie between -1 and 1."""
        if kind == "bool":
            return self.condition(3)
        if np.dtype(kind).kind != "f":
            return Node("as", (self.integer(3),), kind)
        value = self.number(4)
        return Node("quotient", (value, value))

    def read_new(self, name: str, end: str) -> None:
        """Read the new values of a field from now on: by the field's name with an end."""
        for names in (self.floats, self.whole, self.truth):
            names[:] = [name + end if each == name else each for each in names]

    def tap(self, names: list[str]) -> Node:
        """A neighbour's cell."""
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
        """A number or a scalar, without a type of its own."""
        if self.numbers and self.random.random() < 0.3:
            return self.random.choice(self.numbers)
        if self.random.random() < 0.4:
            return Node("scalar", (), self.random.choice(self.scalars))
        return Node("number", (), self.random.choice((0.5, -1.25, 3.0, 2, -0.0, 0.1, 1e-3)))

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
        if draw < 0.58:
            return Node("quotient", (first, self.number(depth - 1)))
        if draw < 0.66:
            return Node("power", (first,), self.random.randint(2, 8))
        if draw < 0.74:
            chosen = self.random.choice((first, self.plain_number()))
            return Node("where", (self.condition(depth - 1), first, chosen))
        if draw < 0.82:
            return Node(self.random.choice(("root", "floor", "absolute")), (first,))
        if draw < 0.88:
            word = self.random.choice(("maximum", "minimum"))
            return Node(word, (first, self.number(depth - 1)))
        weighted = Node("*", (self.integer(depth - 1), Node("number", (), 0.01)))
        return Node("+", (first, weighted))

    def temporary(self, depth: int) -> Node:
        """A float of reads of floats; other cells may read the value."""
        draw = self.random.random()
        if depth == 0 or draw < 0.1:
            return self.tap(self.floats)
        first = self.temporary(depth - 1)
        if draw < 0.5:
            return Node(self.random.choice("+-*"), (first, self.temporary(depth - 1)))
        if draw < 0.7:
            return Node(self.random.choice("+-*"), (first, self.plain_number()))
        if draw < 0.8:
            return Node("quotient", (first, self.temporary(depth - 1)))
        return Node(self.random.choice(("root", "floor", "absolute")), (first,))

    def integer(self, depth: int) -> Node:
        """An integer with the type of fields of integers, or of a coordinate."""
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
