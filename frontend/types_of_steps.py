"""Whether a step has a meaning for arrays of some types; tracing knows no arrays yet."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from timetile.frontend.errors import SourcePlace, StencilError
from timetile.frontend.field_types import DType
from timetile.frontend.operations import Access, Time
from timetile.frontend.steps import Step, walk
from timetile.frontend.symbols import (
    Assignment,
    Recorder,
    StepStatement,
)
from timetile.frontend.typed_values import TypedStep

TRIED: tuple[DType, ...] = ("float64", "int64", "uint64", "bool")
"""Types of arrays for which a step may be right."""

MANY_FIELDS = 4
"""The most fields of a statement whose types are all tried."""


def check_types(
    recorder: Recorder,
    name: str,
    fields: Sequence[str],
    place: SourcePlace,
) -> None:
    """
    Raise StencilError for statements that are wrong for arrays of every type: the error for arrays
    of floats. A statement with many fields of several types is checked in a call.
    """
    step = Step(
        name, place, recorder.rank or 1, dict.fromkeys(fields, ()), (), tuple(recorder.statements),
        frozenset(), None,
    )  # fmt: skip
    wrong: StencilError | None = None
    for kind in TRIED:
        try:
            return TypedStep(step, dict.fromkeys(step.fields, kind)).check()
        except StencilError as problem:
            wrong = wrong or problem
    assert wrong is not None
    if not all(is_right_for_some_types(step, made) for made in step.statements):
        raise wrong


def is_right_for_some_types(step: Step, made: StepStatement) -> bool:
    """Whether a statement has a meaning for some types of its fields, or may have one."""
    fields = sorted(fields_behind(step, made))
    if len(fields) > MANY_FIELDS:
        return True
    for kinds in product(TRIED, repeat=len(fields)):
        types: dict[str, DType] = dict.fromkeys(step.fields, "float64")
        types.update(zip(fields, kinds, strict=True))
        try:
            TypedStep(step, types).stored(made)
        except StencilError:
            continue
        return True
    return False


def fields_behind(step: Step, made: StepStatement) -> set[str]:
    """The fields of a statement, its temporaries' fields included."""
    found = {made.field} if isinstance(made, Assignment) else set[str]()
    for value in walk([made.value]):
        match value.operation:
            case Access(field=name, time=Time.INSIDE):
                found |= fields_behind(step, step.temporaries[name])
            case Access(field=name):
                found.add(name)
            case _:
                pass
    return found & set(step.fields)
