"""Boundaries: the cells outside the box of an update, as an attribute and as layers of cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from xdsl.dialects.builtin import ArrayAttr, Float64Type, FloatAttr, f64
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import ParametrizedAttribute, SpacedOpaqueSyntaxAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

from timetile.dialects.boxes import CellBox


class Kind(StrEnum):
    """The source of cells outside a side of a box; `BoundaryAttr` describes each."""

    KEEP = "keep"
    PERIODIC = "periodic"
    MIRROR = "mirror"
    REFLECT = "reflect"
    CLAMP = "clamp"


MIRRORS = (Kind.MIRROR, Kind.REFLECT, Kind.CLAMP)
"""Kinds whose images lie at the side itself: in reversed order, or in the outermost cell."""


@irdl_attr_definition
class BoundaryKindAttr(EnumAttribute[Kind], SpacedOpaqueSyntaxAttribute):
    """
    The source of cells outside a side of a box.

    Example: `#temporal<boundary_kind periodic>`
    """

    name = "temporal.boundary_kind"


Side = Kind | float
"""The cells outside a side of a box: a source, or a constant."""


@irdl_attr_definition
class BoundaryAttr(ParametrizedAttribute):
    """
    The cells of an update's target outside the box. A single kind holds for all sides; otherwise
    two kinds an axis, below and above, the first axis first.

    - `keep`: the target's cells stay as they are. An update without the attribute keeps all.
    - `periodic`: the cells at the other end of the box.
    - `mirror`: the cells as far on the other side of the box's face: of cells 0, 1, 2, ... cell -1
      takes cell 0.
    - `reflect`: the cells as far on the other side of the box's last cell: cell -1 takes cell 1.
    - `clamp`: the outermost cell of the box: cells -1, -2 and on take cell 0.
    - `value 0.5`: a constant.

    A corner takes the cell along the last axis outside the box, after the layers of earlier axes.

    Example: `#temporal.boundary<periodic>`, `#temporal.boundary<keep, keep, mirror, value 0.5>`
    """

    name = "temporal.boundary"
    sides: ArrayAttr[BoundaryKindAttr | FloatAttr[Float64Type]]

    def __init__(self, *sides: Side):
        super().__init__(
            ArrayAttr(
                BoundaryKindAttr(side) if isinstance(side, Kind) else FloatAttr(side, f64)
                for side in sides
            )
        )

    @property
    def kinds(self) -> tuple[Side, ...]:
        """The sides as written: a single side, or two an axis."""
        return tuple(
            side.data if isinstance(side, BoundaryKindAttr) else side.value.data
            for side in self.sides
        )

    @property
    def keeps_all(self) -> bool:
        """No cell outside the box changes."""
        return all(kind is Kind.KEEP for kind in self.kinds)

    def of_axis(self, axis: int) -> tuple[Side, Side]:
        """The sides below and above the box along an axis."""
        kinds = self.kinds
        return (kinds[0], kinds[0]) if len(kinds) == 1 else (kinds[2 * axis], kinds[2 * axis + 1])

    def verify(self) -> None:
        if len(self.kinds) != 1 and (not self.kinds or len(self.kinds) % 2):
            raise VerifyException(
                f"a boundary has one kind, or two for each axis, got {len(self.kinds)}"
            )
        for below, above in zip(self.kinds[::2], self.kinds[1::2]):
            if (below is Kind.PERIODIC) != (above is Kind.PERIODIC):
                raise VerifyException(
                    f"an axis is periodic on both sides or on none, got {below} and {above}"
                )

    @classmethod
    def parse_parameters(
        cls, parser: AttrParser
    ) -> list[ArrayAttr[BoundaryKindAttr | FloatAttr[Float64Type]]]:
        def parse_side() -> Side:
            start, word = parser.pos, parser.parse_identifier()
            if word == "value":
                return float(parser.parse_number())
            if word not in tuple(Kind):
                parser.raise_error(f"a boundary is {', '.join(Kind)} or value, got {word}", start)
            return Kind(word)

        sides = parser.parse_comma_separated_list(parser.Delimiter.ANGLE, parse_side)
        return [cls(*sides).sides]

    def print_parameters(self, printer: Printer) -> None:
        shown = (str(k) if isinstance(k, Kind) else f"value {k!r}" for k in self.kinds)
        printer.print_string(f"<{', '.join(shown)}>")


@cache
def keeping() -> BoundaryAttr:
    """The boundary that keeps all cells outside the box, made once."""
    return BoundaryAttr(Kind.KEEP)


def image(place: int, low: int, high: int, sides: tuple[Side, Side]) -> int | float:
    """
    The cell inside [low, high), or the constant, read for a place along an axis by the kinds below
    and above. Far places go back and forth by the kind of their side, as in `numpy.pad`. ValueError
    for a place outside a kept side.
    """
    if low <= place < high:
        return place
    kind, size = sides[0] if place < low else sides[1], high - low
    if not isinstance(kind, Kind):
        return kind
    match kind:
        case Kind.KEEP:
            raise ValueError(f"place {place} lies outside [{low}, {high})")
        case Kind.PERIODIC:
            return low + (place - low) % size
        case Kind.MIRROR:
            there = (place - low) % (2 * size)
            return low + min(there, 2 * size - 1 - there)
        case Kind.REFLECT:
            there = (place - low) % (2 * (size - 1))
            return low + min(there, 2 * (size - 1) - there)
        case Kind.CLAMP:
            return low if place < low else high - 1


@dataclass(frozen=True)
class Layer:
    """Cells outside a box with a common source: the cell at `offset`, or a constant."""

    box: CellBox
    offset: tuple[int, ...] | None
    value: float = 0.0


def layers(boundary: BoundaryAttr, box: CellBox, field: CellBox) -> Iterator[Layer]:
    """
    The layers written by a boundary around a box, in order: a layer reads the box, or earlier
    layers. VerifyException where more cells lie outside the box than inside.
    """
    lower, upper = list(box.lower), list(box.upper)
    for axis in range(len(lower)):
        size = upper[axis] - lower[axis]
        below, above = boundary.of_axis(axis)
        first, last = min(field.lower[axis], lower[axis]), max(field.upper[axis], upper[axis])
        inner = CellBox(tuple(lower), tuple(upper))
        sides: list[tuple[Side, int, int]] = [
            (below, -1, lower[axis] - first),
            (above, 1, last - upper[axis]),
        ]
        for kind, side, count in sides:
            if kind is Kind.KEEP or not count:
                continue
            room = size - 1 if kind is Kind.REFLECT else size
            if isinstance(kind, Kind) and kind is not Kind.CLAMP and count > room:
                where = "below" if side < 0 else "above"
                raise VerifyException(
                    f"{kind} fills at most {room} cells {where} the box along axis {axis}, and the "
                    f"field has {count}"
                )
            yield from side_layers(kind, inner, axis, side, count)
        if below is not Kind.KEEP:
            lower[axis] = first
        if above is not Kind.KEEP:
            upper[axis] = last


def side_layers(kind: Side, inner: CellBox, axis: int, side: int, count: int) -> Iterator[Layer]:
    """The layers of `count` cells on a side (-1 below, 1 above) of a box."""
    low, high = inner.lower[axis], inner.upper[axis]
    whole = (low - count, low) if side < 0 else (high, high + count)
    if not isinstance(kind, Kind):
        yield Layer(along(inner, axis, *whole), None, kind)
        return
    match kind:
        case Kind.KEEP:
            return
        case Kind.PERIODIC:
            yield Layer(along(inner, axis, *whole), moved_along(inner, axis, -side * (high - low)))
        case Kind.MIRROR | Kind.REFLECT | Kind.CLAMP:
            # Each layer copies an inner layer at a distance of its own.
            for k in range(count):
                place = low - 1 - k if side < 0 else high + k
                distance = {Kind.MIRROR: 2 * k + 1, Kind.REFLECT: 2 * k + 2}.get(kind, k + 1)
                offset = moved_along(inner, axis, -side * distance)
                yield Layer(along(inner, axis, place, place + 1), offset)


def along(box: CellBox, axis: int, low: int, high: int) -> CellBox:
    """A box with another span along an axis."""
    return CellBox(replaced(box.lower, axis, low), replaced(box.upper, axis, high))


def moved_along(box: CellBox, axis: int, distance: int) -> tuple[int, ...]:
    """An offset along one axis: `distance` cells there, none along other axes."""
    return replaced((0,) * len(box.lower), axis, distance)


def replaced(values: Sequence[int], axis: int, value: int) -> tuple[int, ...]:
    """The numbers, with the number at an axis replaced."""
    return (*values[:axis], value, *values[axis + 1 :])
