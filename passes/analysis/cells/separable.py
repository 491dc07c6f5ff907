"""Weighted sums of rank 1: weights on a grid of cells that are products of weights along axes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import isfinite

from xdsl.dialects.builtin import Float32Type
from xdsl.ir import Attribute, BlockArgument

from timetile.dialects.cell_types import stored_number
from timetile.passes.analysis.cells.sums import Allows, Offset, Term, constant_factor

WEIGHT_BOUND = 4
"""
How far a weight may differ from the product of weights along axes, in units of the last place
(2^-52 of the weight in FP64, 2^-23 in FP32). Rounded products of exact weights differ by less
than three units.
"""

Weights = Mapping[Offset, float]
"""The weights of a field's cells, by offset."""


@dataclass(frozen=True)
class WeightedTap:
    """A term that is a cell times a number: the argument's number, and the signed weight."""

    argument: int
    weight: float
    term: Term


@dataclass(frozen=True)
class LineSum:
    """A sum along one axis: offsets and weights. The largest weight is 1."""

    axis: int
    weights: tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class Separation:
    """Sums along axes, each of the results of the one before, and the weights of the last one's."""

    lines: tuple[LineSum, ...]
    weights: Weights


def weighted_tap(term: Term, taps: int, allows: Allows) -> WeightedTap | None:
    """A term as a cell of the first `taps` arguments times a number; None for another term."""
    value, weight = term.value, 1.0
    if (found := constant_factor(value)) is not None and value.has_one_use():
        product, value, weight = found
        if not isfinite(weight) or not allows(product):
            return None
    if not isinstance(value, BlockArgument) or value.index >= taps:
        return None
    return WeightedTap(value.index, -weight if term.negative else weight, term)


def separated(weights: Weights, kind: Attribute) -> Separation | None:
    """
    Weights of rank 1 as sums along axes, the last axis first; None for weights of a higher rank,
    and where less than half of the products would be saved.
    """
    lines: list[LineSum] = []
    while (found := split_off(weights, kind)) is not None:
        line, weights = found
        lines.append(line)
    return Separation(tuple(lines), weights) if lines else None


def split_off(weights: Weights, kind: Attribute) -> tuple[LineSum, Weights] | None:
    """The sum along the last axis, and the weights of its results; None without gain or rank 1."""
    axes = [axis for axis in range(len(next(iter(weights)))) if varies(weights, axis)]
    if len(axes) < 2:
        return None
    axis = axes[-1]
    rows: dict[Offset, dict[int, float]] = {}
    for offset, weight in weights.items():
        rows.setdefault((*offset[:axis], 0, *offset[axis + 1 :]), {})[offset[axis]] = weight
    places = sorted(next(iter(rows.values())))
    if any(sorted(row) != places for row in rows.values()):
        return None
    if 2 * (len(rows) + len(places)) > len(rows) * len(places):
        return None
    pivot, place = max(
        ((r, k) for r in rows for k in places), key=lambda at: abs(rows[at[0]][at[1]])
    )
    if rows[pivot][place] == 0.0:
        return None
    along = {
        k: as_constant(Fraction(rows[pivot][k]) / Fraction(rows[pivot][place]), kind)
        for k in places
    }
    across = {row: rows[row][place] for row in rows}
    if not all(is_near(rows[r][k], across[r], along[k], kind) for r in rows for k in places):
        return None
    return LineSum(axis, tuple(along.items())), across


def varies(weights: Weights, axis: int) -> bool:
    """The offsets differ along an axis."""
    return len({offset[axis] for offset in weights}) > 1


def as_constant(number: Fraction, kind: Attribute) -> float:
    """A number as a constant of a type."""
    return stored_number(float(number), kind)


def is_near(weight: float, first: float, second: float, kind: Attribute) -> bool:
    """The weight is the product of two weights, up to `WEIGHT_BOUND` units of the last place."""
    unit = Fraction(1, 2**23 if isinstance(kind, Float32Type) else 2**52)
    difference = abs(Fraction(weight) - Fraction(first) * Fraction(second))
    return difference <= WEIGHT_BOUND * unit * abs(Fraction(weight))


def grids(offsets: Sequence[Offset]) -> Iterator[list[Offset]]:
    """Sets of cells that may be grids: all, then the cells off the axes in each pair of axes."""
    yield list(offsets)
    for pair in combinations(range(len(offsets[0])), 2):
        yield [
            offset
            for offset in offsets
            if all((distance != 0) == (axis in pair) for axis, distance in enumerate(offset))
        ]
