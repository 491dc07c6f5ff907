"""The boundary of a step: how each field goes on beyond its array, by field, axis and side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from timetile.dialects.cell_types import stored_number, wrapped_number
from timetile.dialects.temporal.boundary import BoundaryAttr, Kind
from timetile.frontend.errors import error
from timetile.frontend.field_types import ARRAY_DTYPES, bits_of, holds_integers, in_range


@dataclass(frozen=True)
class FixedValue:
    """Cells beyond the array have one value: a number, or a scalar argument given by name."""

    of: float | str


KindName = str | FixedValue
AxisBoundary = KindName | tuple[KindName, KindName]
"""A kind for both sides of an axis, or the kinds below and above."""
FieldBoundary = AxisBoundary | tuple[AxisBoundary, ...]
"""A kind for all sides, or a tuple with a boundary for each axis."""
Boundary = FieldBoundary | Mapping[str, FieldBoundary]
"""A boundary for all fields, or a dict with the boundaries of some fields; others are kept."""

FieldSide = Kind | float | str
"""The cells beyond a side of an array: a kind, a number, or the name of a scalar argument."""
FieldEdges = tuple[tuple[FieldSide, FieldSide], ...]
"""The sides of a field below and above, for each axis of the step."""

KINDS = ", ".join(f"{str(kind)!r}" for kind in Kind)


def value(of: float | str) -> FixedValue:
    """
    The boundary of a fixed value beyond the array: a number, or the name of a scalar argument of
    the step. Raises StencilError for other objects.
    """
    if isinstance(of, bool) or not is_value(of):
        raise error(
            f"a value is a number or the name of a scalar argument, got {of!r}; write value(0)"
        )
    return FixedValue(of if isinstance(of, str) else float(of))


def is_value(of: object) -> bool:
    """A number, or a name."""
    return isinstance(of, str | int | float)


def check_boundary(boundary: object) -> None:
    """Raise StencilError for an unknown boundary. The axes are counted later."""
    if isinstance(boundary, Mapping):
        for each in cast("Mapping[object, object]", boundary).values():
            check_boundary(each)
    elif isinstance(boundary, tuple):
        for each in cast("tuple[object, ...]", boundary):
            check_boundary(each)
    elif not isinstance(boundary, FixedValue) and boundary not in tuple(Kind):
        raise error(
            f"unknown boundary {boundary!r}; use {KINDS}, timetile.value(0), a tuple with one for "
            "each axis, in it a pair for the two sides, or a dict by field"
        )


def side_of(kind: KindName) -> FieldSide:
    """A side as written by the user."""
    return kind.of if isinstance(kind, FixedValue) else Kind(kind)


def sides_along(boundary: AxisBoundary) -> tuple[FieldSide, FieldSide]:
    """The sides of an axis. Raises ValueError for impossible sides."""
    if not isinstance(boundary, tuple):
        return side_of(boundary), side_of(boundary)
    if len(boundary) != 2 or any(isinstance(kind, tuple) for kind in boundary):
        raise ValueError(f"the sides of an axis are a pair, got {boundary!r}")
    below, above = map(side_of, boundary)
    if (below is Kind.PERIODIC) != (above is Kind.PERIODIC):
        raise ValueError(f"an axis is periodic on both sides or on none, got {boundary!r}")
    return below, above


def field_edges(boundary: FieldBoundary, rank: int) -> FieldEdges:
    """The sides of a field along each axis. Raises ValueError for a wrong number of axes."""
    if not isinstance(boundary, tuple):
        return (sides_along(boundary),) * rank
    if len(boundary) != rank:
        raise ValueError(
            f"the boundary {boundary!r} has {len(boundary)} entries, and the step has {rank} axes; "
            "give one for each, in it a pair for two sides"
        )
    return tuple(sides_along(axis) for axis in cast("tuple[AxisBoundary, ...]", boundary))


def is_kept(edges: FieldEdges) -> bool:
    """No side goes on beyond the array."""
    return all(side is Kind.KEEP for sides in edges for side in sides)


def edges_of(
    boundary: Boundary, rank: int, fields: Sequence[str], scalars: Sequence[str]
) -> dict[str, FieldEdges]:
    """
    The edges of the fields that go on beyond their arrays. Raises ValueError for unknown names and
    impossible sides.
    """
    if isinstance(boundary, Mapping):
        given = dict(boundary)
        if unknown := sorted(set(given) - set(fields)):
            raise ValueError(
                f"the boundary names {', '.join(unknown)}, and the fields of the step are "
                f"{', '.join(fields)}"
            )
    else:
        given = dict.fromkeys(fields, boundary)
    found = {name: field_edges(each, rank) for name, each in given.items()}
    for edges in found.values():
        for side in (side for sides in edges for side in sides):
            if isinstance(side, str) and not isinstance(side, Kind) and side not in scalars:
                names = ", ".join(scalars) or "none"
                raise ValueError(
                    f"the boundary's value {side!r} is no scalar argument of the step; its scalars "
                    f"are {names}"
                )
    return {name: edges for name, edges in found.items() if not is_kept(edges)}


def names_scalar(side: FieldSide) -> bool:
    """The cells beyond a side have the value of a scalar argument."""
    return isinstance(side, str) and not isinstance(side, Kind)


def boundary_attribute(edges: FieldEdges) -> BoundaryAttr:
    """
    The boundary of a load. Beyond a side with a scalar's value any cell inside may be read: the
    cell function takes the scalar instead.
    """
    sides: list[Kind | float] = []
    for side in (side for pair in edges for side in pair):
        sides.append(Kind.MIRROR if not isinstance(side, Kind | float) else side)
    same = len(set(map(repr, sides))) == 1
    return BoundaryAttr(sides[0]) if same else BoundaryAttr(*sides)


def stored_boundary(boundary: BoundaryAttr, dtype: str) -> BoundaryAttr:
    """
    A boundary whose numbers are numbers of a field's type, by NumPy's name. Raises ValueError for a
    number that no integer of the type is.
    """
    return BoundaryAttr(
        *(side if isinstance(side, Kind) else stored_side(side, dtype) for side in boundary.kinds)
    )


def stored_side(side: float, dtype: str) -> float:
    """A number beyond an array as a number of the field's type."""
    if not holds_integers(dtype):
        return stored_number(side, ARRAY_DTYPES[dtype])
    known = side.is_integer() and (
        side in (0, 1) if dtype == "bool" else in_range(int(side), dtype)
    )
    if not known:
        raise ValueError(f"{side} beyond an array is no number of {dtype}; give one of that type")
    return float(wrapped_number(int(side), 8 if dtype == "bool" else bits_of(dtype)))
