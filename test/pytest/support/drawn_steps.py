"""
Steps in Python drawn at random: fields of floats, integers and truth values, coefficients of fewer
axes, all boundaries, regions and points, powers, quotients, choices of -0.0, scalars and
coordinates; values a step earlier, new values, temporaries, repeated assignments, the number of the
step, and series.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from support.drawn_fields import DrawnFields, Region
from support.drawn_models import Assignment, DrawnModel
from support.drawn_values import NEXT, PREV, SCALARS, Node, field_of, is_float, moved
from support.grown_values import Grower
from timetile.dialects.temporal.boundary import Kind
from timetile.frontend.boundaries import FieldSide

SHAPES: dict[int, tuple[int, ...]] = {1: (71,), 2: (9, 41), 3: (6, 7, 37)}
"""The largest arrays, by the number of axes."""

SCALES = {"float32": (1e-36, 1e-30, 1e30), "float64": (1e-300, 1e-160, 1e150)}
"""Magnitudes far from 1: quotients and roots of such numbers have code of their own."""

MOST_OPERATIONS = 120
"""
Operations of a step's cells at most: compilation searches schedules for a time that grows with the
operations, and quotients of quotients of temporaries would have thousands.
"""

MOST_PARTS = 128
"""
Parts of a box at most, with cells beyond edges of their own: each may be an update of a step, and
the search for a schedule takes a minute for some hundred updates.
"""

REACH = 2
"""The longest distance of a read."""

INTEGERS = (
    ("int8",), ("int16",), ("int32",), ("int64",), ("uint8",), ("uint16",), ("uint32",),
    ("uint64",), ("int8", "uint8"), ("int32", "uint16"), ("int64", "uint8"), ("bool", "int16"),
)  # fmt: skip
"""Types of integers that meet in one integer type."""

FLOATS = ("float32", "float64")

STORED = ("float16", "bfloat16", "float16", "float32", "float64")
"""Types of fields with floats of 16 bits among them."""


def drawn_fields(random: Random, floats: Sequence[str] = FLOATS) -> DrawnFields:
    """Fields of one to three axes."""
    rank = random.randint(1, 3)
    shape = drawn_shape(random, rank)
    types: dict[str, str] = {"u": random.choice(floats)}
    if random.random() < 0.3:
        types["v"] = random.choice(floats)
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
    scales = {
        name: random.choice(SCALES[kind])
        for name, kind in types.items()
        if kind in SCALES and random.random() < 0.15
    }
    return DrawnFields(shape, types, narrow, sides, scales)


def drawn_shape(random: Random, rank: int) -> tuple[int, ...]:
    """A shape, whose rows often end at the end of a vector, a cell before or a cell behind."""
    *others, row = (random.randint(5, largest) for largest in SHAPES[rank])
    if random.random() < 0.5:
        row = max(5, row // 4 * 4 + random.randint(-1, 1))
    return (*others, row)


def drawn_model(random: Random, floats: Sequence[str] = FLOATS) -> DrawnModel:
    """A step of one to three axes, and one to three assignments."""
    fields = drawn_fields(random, floats)
    return drawn_step(random, fields)


def grower_of(random: Random, fields: DrawnFields, numbers: Sequence[Node] = ()) -> Grower:
    """A grower of values of fields."""
    rank = len(fields.shape)
    return Grower(random, rank, fields.types, fields.narrow, REACH, tuple(SCALARS), tuple(numbers))


def drawn_step(random: Random, fields: DrawnFields, *, looks_back: bool = True) -> DrawnModel:
    """A step that assigns given fields one to three times, and may read values a step earlier."""
    has_series, numbers = random.random() < 0.2, list[Node]()
    numbers += [Node("series")] if has_series else []
    numbers += [Node("step")] if random.random() < 0.2 else []
    grower = grower_of(random, fields, numbers)
    if looks_back and random.random() < 0.25:
        grower.floats.append(f"u{PREV}")
    temporaries: dict[str, Node] = {}
    for number in range(random.choice((0, 0, 1, 2))):
        temporaries[f"t{number}"] = grower.temporary(2)
        grower.floats.append(f"t{number}")
    assignments = drawn_assignments(random, grower, fields)
    found = usable(DrawnModel(fields, tuple(assignments), temporaries, has_series))
    return found or drawn_step(random, fields, looks_back=looks_back)


def usable(model: DrawnModel) -> DrawnModel | None:
    """
    The step without unused temporaries; None for a step without reads of a field of all axes,
    without assigned cells, with reads of a value a step earlier of an unassigned field, or with
    more operations than MOST_OPERATIONS, or parts than MOST_PARTS.
    """
    found = model.with_needed_temporaries()
    reads_cells = any(name not in found.fields.narrow for name in found.reads)
    # A value a step earlier is of an assigned field.
    read_before = {field_of(name) for name in found.reads if name.endswith(PREV)}
    if not reads_cells or not read_before <= set(found.written):
        return None
    boxes = [found.boxes(made) for made in found.statements]
    has_cells = all(low.start < low.stop for each in boxes for box in each for low in box)
    fits = found.operations <= MOST_OPERATIONS and found.most_parts <= MOST_PARTS
    return found if fits and has_cells and all(boxes) else None


def drawn_assignments(random: Random, grower: Grower, fields: DrawnFields) -> list[Assignment]:
    """One to three assignments; later ones may read new values, and may be repeated."""
    assignments: list[Assignment] = []
    news = random.random() < 0.3
    for number in range(1 + random.choice((0, 0, 1, 2))):
        target = random.choice(fields.targets)
        region = None if number == 0 else drawn_region(random, fields.shape)
        turns = random.choice((1, 2, 3)) if news and number else 1
        value = grower.stored(fields.types[target])
        assignments.append(Assignment(target, region, value, turns))
        if news:
            # Of a field with new values, neighbours on one side old and on the other side new would
            # be the order of Gauss and Seidel, and no step.
            grower.read_new(target, NEXT)
    return assignments


def repeating_model(random: Random) -> DrawnModel:
    """A step whose value has one long part at several places around the cell."""
    fields = drawn_fields(random)
    rank, grower = len(fields.shape), grower_of(random, fields)
    target = random.choice([name for name in fields.targets if is_float(fields.types[name])])
    part, total = grower.temporary(random.randint(2, 4)), grower.tap(grower.floats)
    for number in range(random.randint(3, 6)):
        place = tuple(random.randint(-2, 2) for _ in range(rank))
        weighted = Node("*", (moved(part, place), Node("number", (), 0.1 * (number + 1))))
        total = Node(random.choice("+-*"), (total, weighted))
    value = Node("quotient", (total, total))
    return usable(DrawnModel(fields, (Assignment(target, None, value),))) or repeating_model(random)


def drawn_sides(random: Random, kind: str) -> tuple[FieldSide, FieldSide]:
    """The sides of an axis: cells beyond an array of integers have a number of the type."""
    if random.random() < 0.3:
        return Kind.PERIODIC, Kind.PERIODIC
    number = random.choice((0.0, 0.5, -0.0)) if is_float(kind) else 1.0
    others: list[FieldSide] = [Kind.KEEP, Kind.MIRROR, Kind.REFLECT, number]
    if is_float(kind):
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
