"""Indices of fields: distances from the cell, and regions of an array."""

from __future__ import annotations

from typing import Any, TypeGuard

import numpy as np

from timetile.frontend.errors import error
from timetile.frontend.values import Value


def shown(offset: object) -> str:
    """An offset as text."""
    return ":" if isinstance(offset, slice) else f"{offset!r}"


def check_offset(name: str, offset: object) -> None:
    """Raise StencilError for an offset that is no number known at tracing."""
    if isinstance(offset, slice):
        raise error(
            f"{name} is indexed by a slice, and a step reads single cells; write how far from the "
            f"cell: {name}[-1, 0] is the cell before along axis 0"
        )
    if isinstance(offset, Value):
        raise error(
            f"{name} is indexed by a value of the cell, and offsets are constants; write a number, "
            "and choose between several with timetile.where"
        )
    whole = is_whole_number(offset)
    if offset is not None and not whole:
        raise error(
            f"{name} is indexed by {offset!r}, and offsets are whole numbers; write an int for "
            "each axis"
        )


def is_slice(part: object) -> TypeGuard[slice[Any, Any, Any]]:
    """Part of an index is a slice."""
    return isinstance(part, slice)


def is_plain(part: object) -> bool:
    """A slice of whole numbers, Python's or NumPy's, without a step."""
    if not is_slice(part) or part.step not in (None, 1):
        return False
    return all(k is None or is_whole_number(k) for k in (part.start, part.stop))


def is_whole_number(number: object) -> bool:
    """Whether an object is a whole number, Python's or NumPy's; a truth value is none."""
    return isinstance(number, int | np.integer) and not isinstance(number, bool)
