"""Lists of integers: attributes and text."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from xdsl.dialects.builtin import ArrayAttr, IntAttr
from xdsl.parser import AttrParser


def int_array(values: Sequence[int]) -> ArrayAttr[IntAttr]:
    """Integers as an attribute."""
    return int_array_of(tuple(values))


@lru_cache(maxsize=1 << 12)
def int_array_of(values: tuple[int, ...]) -> ArrayAttr[IntAttr]:
    """Integers as an attribute, which has no identity."""
    return ArrayAttr(IntAttr(v) for v in values)


def parse_int_list(parser: AttrParser) -> ArrayAttr[IntAttr]:
    """Parse `[1, 0]`."""
    return int_array(
        parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
    )


def ints(array: ArrayAttr[IntAttr]) -> tuple[int, ...]:
    """The integers of an attribute."""
    return tuple([x.data for x in array.data])
