"""Values of a cell drawn at random as trees, and their evaluation by symbols or by arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

import timetile

Offset = tuple[int | None, ...]
"""A distance along each axis; None along the missing axes of a field."""

NEXT, PREV = ".next", ".prev"
"""The ends of the names of other reads of a field: of its new value, and of a step earlier."""

SERIES = "pulse"
"""The name of the series of a step."""

SCALARS = {"k": 0.37, "rate": -1.25}


def field_of(name: str) -> str:
    """The field of a read: of `u`, of `u.next` and of `u.prev`."""
    return name.partition(".")[0]


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
    def alone(self, value: Node) -> Any: ...
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


def operations_of(node: Node) -> int:
    """The number of operations of a value, equal ones once for each use."""
    return bool(node.operands) + sum(map(operations_of, node.operands))


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
    if node.word == "alone":
        return around.alone(node.operands[0])
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
        case "one by root":
            return 1 / np.sqrt(abs(parts[0]) + 0.5)
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


def is_float(kind: str) -> bool:
    """Whether a type, by NumPy's name, is of floats."""
    return kind in ("float16", "bfloat16", "float32", "float64")


def operated(word: str, a: Any, b: Any) -> Any:
    """The result of an operator of Python."""
    match word:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "/":
            return a / b
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
