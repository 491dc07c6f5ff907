"""Steps with sweeps drawn at random: recurrences of one or two fields along any axis, both ways."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from support.drawn_fields import DrawnFields
from support.drawn_models import Assignment, DrawnModel, Statement, SweptAssignments
from support.drawn_steps import drawn_fields, drawn_region, grower_of, usable
from support.drawn_values import NEXT, Node, field_of, is_float
from support.grown_values import Grower


def swept_model(random: Random) -> DrawnModel:
    """A step of one or two sweeps, with assignments before and behind."""
    fields = drawn_fields(random)
    if random.random() < 0.9:
        # A sweep reads no cell beyond an array.
        fields = replace(fields, sides={})
    grower, statements = grower_of(random, fields), list[Statement]()
    if random.random() < 0.4:
        statements.append(assignment(random, grower, fields))
    for _ in range(random.choice((1, 1, 2))):
        statements.append(drawn_sweep(random, grower, fields))
    if random.random() < 0.3:
        statements.append(assignment(random, grower, fields))
    return usable(DrawnModel(fields, tuple(statements))) or swept_model(random)


def assignment(random: Random, grower: Grower, fields: DrawnFields) -> Assignment:
    """An assignment to all cells, or to some cells as the beginning of a recurrence."""
    target = random.choice(fields.targets)
    region = drawn_region(random, fields.shape) if random.random() < 0.5 else None
    made = Assignment(target, region, grower.stored(fields.types[target]))
    grower.read_new(target, NEXT)
    return made


def kind_of(kind: str) -> str:
    """The kind of a field's type, of `Grower.near`."""
    return "f" if is_float(kind) else "b" if kind == "bool" else "i"


def drawn_sweep(random: Random, grower: Grower, fields: DrawnFields) -> SweptAssignments:
    """A sweep of one or two fields: each may read the places before of all."""
    rank = len(fields.shape)
    axis, descending = random.randrange(rank), random.random() < 0.5
    targets = random.sample(fields.targets, min(len(fields.targets), random.choice((1, 1, 2))))
    lists = (grower.floats, grower.whole, grower.truth)
    for names in lists:
        # Of a swept field, cells of the beginning of the step may be read anywhere.
        names[:] = [field_of(name) if field_of(name) in targets else name for name in names]
    for target in targets:
        near = grower.near[kind_of(fields.types[target])]
        for distance in random.choice(((1,), (1, 2), (1, 3))):
            near.append(swept_read(target, rank, axis, distance if descending else -distance))
    region = drawn_region(random, fields.shape) if random.random() < 0.2 else None
    made: list[Assignment] = []
    for target in targets:
        made.append(Assignment(target, region, grower.stored(fields.types[target])))
        grower.near[kind_of(fields.types[target])].append(swept_read(target, rank, axis, 0))
    for near in grower.near.values():
        near.clear()
    for target in targets:
        grower.read_new(target, NEXT)
    return SweptAssignments(axis, descending, tuple(made))


def swept_read(name: str, rank: int, axis: int, distance: int) -> Node:
    """The new value of a field at a distance along an axis."""
    offset = tuple(distance if k == axis else 0 for k in range(rank))
    return Node("tap", (), (f"{name}{NEXT}", offset))
