"""Where a nest of loops reads and writes: an index is the number of a loop plus a constant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType
from xdsl.ir import SSAValue

from timetile.passes.stencil.nests.known_numbers import known_integer

NumberCast = arith.IndexCastOp | arith.ExtSIOp | arith.TruncIOp
"""Casts between integers and indices."""


@dataclass(frozen=True)
class NestPlace:
    """
    One index of an access: the number of the nest's loop `loop` (0 is the outermost) plus `shift`;
    without a loop, the constant `shift`.
    """

    loop: int | None
    shift: int


def keeps_number(cast: NumberCast) -> bool:
    """Whether a cast keeps the numbers of loops: fewer than 32 bits hold small numbers alone."""
    kinds = (cast.input.type, cast.result.type)
    return not any(isinstance(kind, IntegerType) and kind.bitwidth < 32 for kind in kinds)


def place_of(index: SSAValue, numbers: Sequence[SSAValue]) -> NestPlace | None:
    """
    The place of an index in a nest with these numbers of loops; None unless the index is a number
    plus a constant. Casts between indices and integers of 32 bits and more keep the place.
    """
    if index in numbers:
        return NestPlace(numbers.index(index), 0)
    if (constant := known_integer(index)) is not None:
        return NestPlace(None, constant)
    owner = index.owner
    if isinstance(owner, arith.IndexCastOp | arith.ExtSIOp):
        return place_of(owner.input, numbers) if keeps_number(owner) else None
    if isinstance(owner, arith.AddiOp | arith.SubiOp):
        left, right = place_of(owner.lhs, numbers), place_of(owner.rhs, numbers)
        if left is None or right is None:
            return None
        if isinstance(owner, arith.SubiOp):
            return NestPlace(left.loop, left.shift - right.shift) if right.loop is None else None
        if left.loop is not None and right.loop is not None:
            return None
        loop = right.loop if left.loop is None else left.loop
        return NestPlace(loop, left.shift + right.shift)
    return None


def places_of(
    indices: Sequence[SSAValue], numbers: Sequence[SSAValue]
) -> tuple[NestPlace, ...] | None:
    """The places of all indices of an access; None if an index has none."""
    found = [place_of(index, numbers) for index in indices]
    known = tuple(place for place in found if place is not None)
    return known if len(known) == len(found) else None
