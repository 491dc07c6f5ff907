"""The numbers of the cost model by name: `group.name`, or `group.name.key` of a mapping."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from typing import Any, cast

from timetile.passes.targets.parameters import Parameters


def paths(parameters: Parameters) -> Iterator[str]:
    """The name of every number."""
    for group in fields(parameters):
        record = getattr(parameters, group.name)
        for field in fields(record):
            value: object = getattr(record, field.name)
            names = cast(Mapping[str, float], value) if isinstance(value, Mapping) else None
            keys = [""] if names is None else [f".{name}" for name in names]
            yield from (f"{group.name}.{field.name}{key}" for key in keys)


def value_of(parameters: Parameters, path: str) -> float:
    """The number of a name."""
    group, name, *key = path.split(".")
    value = getattr(getattr(parameters, group), name)
    return next(v for k, v in value.items() if str(k) == key[0]) if key else value


def changed(parameters: Parameters, path: str, value: float) -> Parameters:
    """Parameters with another number for a name; whole numbers stay whole."""
    group, name, *key = path.split(".")
    record = getattr(parameters, group)
    old = getattr(record, name)
    new: Any = round(value) if isinstance(value_of(parameters, path), int) else value
    if key:
        new = {k: new if str(k) == key[0] else v for k, v in old.items()}
    return replace(parameters, **{group: replace(record, **{name: new})})
