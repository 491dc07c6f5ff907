"""
Steps in Python drawn at random: fields of floats, integers and truth values, coefficients of fewer
axes, all boundaries, regions and points, powers, quotients, choices of -0.0, scalars and
coordinates; values a step earlier, new values, temporaries, repeated assignments, the number of the
step, and series.
"""

from __future__ import annotations

from random import Random

import numpy as np

from support.drawn_models import (
    NEXT,
    PREV,
    REACH,
    SCALARS,
    Assignment,
    DrawnModel,
    Region,
)
from support.drawn_values import Grower, Node
from timetile.dialects.temporal.boundary import Kind
from timetile.frontend.boundaries import FieldSide

SHAPES: dict[int, tuple[int, ...]] = {1: (71,), 2: (9, 41), 3: (6, 7, 37)}
"""The largest arrays, by the number of axes."""

INTEGERS = (
    ("int8",), ("int16",), ("int32",), ("int64",), ("uint8",), ("uint16",), ("uint32",),
    ("uint64",), ("int8", "uint8"), ("int32", "uint16"), ("int64", "uint8"), ("bool", "int16"),
)  # fmt: skip
"""Types of integers that meet in one integer type."""


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
    has_series, numbers = random.random() < 0.2, list[Node]()
    numbers += [Node("series")] if has_series else []
    numbers += [Node("step")] if random.random() < 0.2 else []
    grower = Grower(random, rank, types, narrow, REACH, tuple(SCALARS), tuple(numbers))
    if random.random() < 0.25:
        grower.floats.append(f"u{PREV}")
    temporaries: dict[str, Node] = {}
    for number in range(random.choice((0, 0, 1, 2))):
        temporaries[f"t{number}"] = grower.temporary(2)
        grower.floats.append(f"t{number}")
    assignments = drawn_assignments(random, grower, shape, types, narrow)
    found = DrawnModel(
        shape, types, narrow, sides, tuple(assignments), temporaries, has_series
    ).with_needed_temporaries()
    return found if any(name not in narrow for name in found.reads) else drawn_model(random)


def drawn_assignments(
    random: Random,
    grower: Grower,
    shape: tuple[int, ...],
    types: dict[str, str],
    narrow: dict[str, tuple[int, ...]],
) -> list[Assignment]:
    """One to three assignments; later ones may read new values, and may be repeated."""
    targets = [name for name in types if name not in narrow]
    assignments: list[Assignment] = []
    news = random.random() < 0.3
    for number in range(1 + random.choice((0, 0, 1, 2))):
        target = random.choice(targets)
        region = None if number == 0 else drawn_region(random, shape)
        turns = random.choice((1, 2, 3)) if news and number else 1
        assignments.append(Assignment(target, region, grower.stored(types[target]), turns))
        if news:
            # Of a field with new values, neighbours on one side old and on the other side new would
            # be the order of Gauss and Seidel, and no step.
            grower.read_new(target, NEXT)
    return assignments


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
