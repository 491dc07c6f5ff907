"""Checks of the options of `timetile.compile`, before any work."""

from __future__ import annotations

from collections.abc import Sequence
from types import UnionType
from typing import cast

from xdsl.passes import ModulePass

from timetile.lowering.pipelines import TimetilePass
from timetile.runtime.loading.plugins import parsed_passes
from timetile.runtime.machine.whole_numbers import whole_number


def check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """Raise ValueError for an option not among its choices."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} is {' or '.join(choices)}, got {value!r}")


def check_type(name: str, value: object, kind: type | UnionType, expected: str) -> None:
    """Raise ValueError for an option of another type."""
    if not isinstance(value, kind):
        raise ValueError(f"{name} is {expected}, got {value!r}")


def check_number(name: str, value: object, least: int, most: int | None = None) -> None:
    """Raise ValueError unless an option is a whole number in its range."""
    number = whole_number(value)
    if number is None or number < least or number > (most or number):
        reach = f"from {least} on" if most is None else f"from {least} to {most}"
        raise ValueError(f"{name} is a number {reach}, got {value!r}")


def passes_of(passes: object) -> tuple[ModulePass, ...]:
    """Passes given as passes, or as a pipeline's text. Raises ValueError for other objects."""
    if isinstance(passes, str):
        try:
            return passes_of(parsed_passes(passes))
        except ValueError as error:
            raise ValueError(f"passes {passes!r} cannot be used: {error}") from error
    if not isinstance(passes, tuple | list):
        raise ValueError(f"passes is a tuple of passes or a pipeline's text, got {passes!r}")
    given = tuple(cast(Sequence[object], passes))
    if not given:
        raise ValueError("passes are one or more; leave out passes for the default passes")
    for each in given:
        if not isinstance(each, ModulePass):
            raise ValueError(f"passes is a tuple of passes, and contains {each!r}")
        if isinstance(each, TimetilePass):
            raise ValueError(
                "the pass timetile is all passes; leave out passes, or name the different passes"
            )
    return cast(tuple[ModulePass, ...], given)
