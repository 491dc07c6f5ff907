"""Whole numbers as arguments and options give them."""

from __future__ import annotations

from operator import index
from typing import Any


def whole_number(value: Any) -> int | None:
    """
    A whole number, Python's or NumPy's; None for all else: a truth value, or an array of several
    numbers.
    """
    if isinstance(value, bool):
        return None
    try:
        return index(value)
    except TypeError:
        return None
