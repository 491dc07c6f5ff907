"""Checks of a state: an array for each field, of sizes and types that go together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from operator import index
from typing import Any, TypeVar, cast

import numpy as np

from timetile.frontend.arrays import check_array, shape_of, type_of
from timetile.frontend.field_types import (
    ARRAY_DTYPES,
    DType,
    FieldTypes,
    computing_type,
    holds_integers,
)
from timetile.frontend.functions import STEP
from timetile.frontend.steps import Step
from timetile.frontend.symbols import Series

A = TypeVar("A")


def is_mapping(state: object) -> bool:
    """A state is a mapping, also where nobody checked types."""
    return isinstance(state, Mapping)


def how_to_pass(kind: str, name: str) -> str:
    """How a call of `advance` passes an array or a number."""
    return f'{{"{name}": ...}} in the state' if kind == "an array" else f"{name}=..."


def check_mapping(step: Step, state: object) -> None:
    """TypeError unless a state has arrays by name."""
    if not is_mapping(state):
        names = ", ".join(f'"{name}": ...' for name in step.fields)
        raise TypeError(
            f"a state has an array for each field by its name, got {type(state).__name__}; "
            f"pass {{{names}}}"
        )


def with_named_fields(
    names: Iterable[str], state: Mapping[str, A] | None, named: Mapping[str, Any]
) -> tuple[Mapping[str, A], dict[str, Any]]:
    """
    The state with the arrays passed by the names of fields, and the other arguments passed by name.
    Raises TypeError for an array that the state has, too.
    """
    fields = [name for name in names if name in named]
    if not fields:
        return ({} if state is None else state), dict(named)
    if state is not None and not is_mapping(state):
        raise TypeError(
            f"{fields[0]} is passed by name beside a {type(state).__name__}; pass all arrays by "
            "name, or a state"
        )
    if twice := [name for name in fields if state is not None and name in state]:
        raise TypeError(f"{twice[0]} is in the state and passed by name, too; pass it once")
    whole = {**(state or {}), **{name: named[name] for name in fields}}
    return whole, {name: value for name, value in named.items() if name not in fields}


def check_names(step: Step, state: Mapping[str, object], scalars: Mapping[str, object]) -> None:
    """Raise TypeError unless each field has an array and each other argument its numbers."""
    optional = {f"{name}.prev" for name in step.second}
    arrays = set(step.fields)
    others_than_numbers = {
        **dict.fromkeys(step.series, "a number for each step"),
        **{use.name: "timetile.Points" for use in step.points},
    }
    numbers = {*step.scalars, *others_than_numbers} - {STEP}
    for kind, needed, given, other, others in (
        ("an array", arrays, set(state), "a number", numbers),
        ("a number", numbers, set(scalars), "an array", arrays),
    ):
        if missing := sorted(needed - given):
            what = others_than_numbers.get(missing[0], kind)
            alike = [name for name in missing if others_than_numbers.get(name, kind) == what]
            raise TypeError(
                f"{step.label} needs {what} for {', '.join(alike)}; pass "
                f"{how_to_pass(kind, alike[0])}"
            )
        known = needed | (optional if kind == "an array" else set[str]())
        if unknown := sorted(given - known):
            if misplaced := [name for name in unknown if name in others]:
                raise TypeError(
                    f"{misplaced[0]} is {other} of {step.label}; pass "
                    f"{how_to_pass(other, misplaced[0])}"
                )
            names = ", ".join(sorted(known)) or "none"
            raise TypeError(
                f"{step.label} has no place for {', '.join(unknown)}; its arguments are "
                f"{kind} for {names}"
            )


def check_no_series(step: Step, scalars: Mapping[str, object]) -> None:
    """Raise TypeError for a series in place of a number."""
    for name in step.scalars:
        if isinstance(scalars[name], Series):
            raise TypeError(
                f"{name} is a timetile.Scalar, and got a Series; declare {name} as "
                "timetile.Series, and pass an array with a number for each step"
            )


def shape_and_types(step: Step, state: Mapping[str, Any]) -> tuple[tuple[int, ...], FieldTypes]:
    """
    The shape of the domain and the type of each field. Raises TypeError or ValueError for
    arrays that do not fit together.
    """
    for name, array in state.items():
        check_array(name, array)
    first = step.written[0]
    shape = shape_of(state[first])
    types: dict[str, DType] = {name: cast(DType, type_of(state[name])) for name in step.fields}
    for name, array in state.items():
        axes = step.fields[name.removesuffix(".prev")]
        if len(shape_of(array)) != len(axes):
            raise ValueError(
                f"{name} has shape {shape_of(array)}, and {step.label} indexes it along "
                f"{len(axes)} axes; pass an array of as many axes{way_of_batch(step, name, array)}"
            )
        expected = tuple(shape[axis] for axis in axes)
        if shape_of(array) != expected:
            raise ValueError(
                f"{name} has shape {shape_of(array)}, and {first} has {shape}; pass {name} of "
                f"shape {expected}"
            )
        own = types[name.removesuffix(".prev")]
        if type_of(array) != own:
            raise TypeError(
                f"{name} has elements of {type_of(array)}, and {name.removesuffix('.prev')} of "
                f"{own}; pass both of one type"
            )
    return shape, types


def checked_shape(shape: object) -> tuple[int, ...]:
    """The sizes of arrays along their axes. Raises TypeError for others than whole numbers."""
    try:
        return tuple(index(size) for size in cast("Iterable[int]", shape))
    except TypeError:
        raise TypeError(f"a shape has an int for each axis, got {shape!r}; pass (64, 64)") from None


def types_by_field(step: Step, dtype: object) -> FieldTypes:
    """
    The type of each field, given as one type or by field. Raises TypeError for no types, ValueError
    for types of no field.
    """
    if not isinstance(dtype, Mapping):
        return dict.fromkeys(step.fields, known_type(dtype))
    given = cast("Mapping[str, object]", dtype)
    if missing := [name for name in step.fields if name not in given]:
        raise TypeError(f"{step.label} needs a type for {', '.join(missing)}; give it by field")
    return {name: known_type(each) for name, each in given.items()}


def known_type(given: object) -> DType:
    """
    The name of a field's type, given by name or as NumPy takes a type (`np.float32`,
    `array.dtype`). Raises TypeError for no type, ValueError for a type of no field.
    """
    name = given if isinstance(given, str) else name_of_type(given)
    if name not in ARRAY_DTYPES:
        known = ", ".join(ARRAY_DTYPES)
        raise ValueError(f"the type of a field is one of {known}; got {name!r}")
    return cast("DType", name)


def name_of_type(given: object) -> str:
    """The name of one of NumPy's types. Raises TypeError for others."""
    with suppress(TypeError):
        if given is not None:
            return np.dtype(cast("Any", given)).name
    raise TypeError(f"a type is a name or a type of NumPy's, got {given!r}; pass 'float32'")


def check_members(step: Step, types: FieldTypes) -> None:
    """
    Raise TypeError for types of arrays with which a model of a sequence would compute in another
    type than the sequence.
    """

    def meaning(names: Iterable[str]) -> tuple[str, bool]:
        """The type of weak floats, and whether some field is of integers."""
        kinds = [types[name] for name in names]
        return str(computing_type(kinds)), any(map(holds_integers, kinds))

    whole = meaning(step.fields)
    for label, names in step.members:
        if meaning(names) != whole:
            found = [types[name] for name in step.fields if name in names]
            raise TypeError(
                f"the arrays of {label} are of {' and '.join(dict.fromkeys(found))}, and other "
                "arrays of the sequence make its numbers of another type; pass arrays of one type, "
                "or advance the models in turn"
            )


def way_of_batch(step: Step, name: str, array: Any) -> str:
    """How to pass an array that has an axis more than its field."""
    more = len(shape_of(array)) - len(step.fields[name.removesuffix(".prev")])
    return ", or batch=True for a batch along the first axis" if more == 1 else ""
