"""Programs of traced steps, made only where the cache holds none made before."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import fields
from functools import partial
from hashlib import sha256

from xdsl.dialects.builtin import ModuleOp

from timetile.frontend.field_types import FieldTypes
from timetile.frontend.point_runs import Rooms
from timetile.frontend.steps import Step
from timetile.runtime.loading.made import MadeProgram

SETS = ("second", "weak", "members")
"""The parts of a step with sets, whose order in a pickle differs between processes."""


def digest_of_step(step: Step) -> str:
    """A digest of a traced step, equal for equal steps; the places of the source count."""
    values, *_ = step.__reduce__()[1]
    parts = {each.name: getattr(step, each.name) for each in fields(step)}
    in_order = [
        sorted(step.second), sorted(step.weak),
        [(label, sorted(names)) for label, names in step.members],
    ]  # fmt: skip
    others = {name: part for name, part in parts.items() if name not in SETS}
    return sha256(pickle.dumps((values, others, in_order))).hexdigest()


def made_step(
    step: Step,
    shape: tuple[int, ...],
    types: FieldTypes,
    rooms: Rooms,
    make: Callable[[tuple[int, ...], FieldTypes, Rooms], ModuleOp],
) -> MadeProgram | ModuleOp:
    """
    A step's program, made by `make`, for the given array shape, field types and sizes of point
    lists. A step that cannot be pickled is made at once.
    """
    try:
        digest = digest_of_step(step)
    except (pickle.PicklingError, TypeError, AttributeError):
        return make(shape, types, rooms)
    return MadeProgram(
        f"step {digest} {shape} {sorted(types.items())} {rooms}", partial(make, shape, types, rooms)
    )
