"""Boxes of cells as plain numbers: `[low, high)` along every axis, in the program's coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod

from xdsl.dialects.stencil import IndexAttr, StencilBoundsAttr


@lru_cache(maxsize=1 << 14)
def bounds_between(lower: tuple[int, ...], upper: tuple[int, ...]) -> StencilBoundsAttr:
    """
    The cells from `lower` to before `upper` as an attribute. VerifyException without a cell. An
    attribute has no identity, and verifying the attribute takes long.
    """
    return StencilBoundsAttr(IndexAttr.from_indices(*lower), IndexAttr.from_indices(*upper))


def places_of(index: IndexAttr) -> tuple[int, ...]:
    """The places of an attribute, one an axis."""
    return tuple([place.data for place in index.array.data])


def sizes_of(bounds: StencilBoundsAttr) -> tuple[int, ...]:
    """The cells of an attribute along each axis."""
    return tuple([high - low for low, high in zip(bounds.lb, bounds.ub, strict=True)])


@dataclass(frozen=True)
class CellBox:
    """The cells from `lower` to before `upper`; an empty box has no cells."""

    lower: tuple[int, ...]
    upper: tuple[int, ...]

    @staticmethod
    def of(bounds: StencilBoundsAttr) -> CellBox:
        """The cells of an attribute."""
        return CellBox(places_of(bounds.lb), places_of(bounds.ub))

    @property
    def extents(self) -> tuple[int, ...]:
        """The cells along each axis."""
        return tuple(high - low for low, high in zip(self.lower, self.upper, strict=True))

    @property
    def is_empty(self) -> bool:
        """The box holds no cell."""
        return any(low >= high for low, high in zip(self.lower, self.upper))

    def __contains__(self, other: CellBox) -> bool:
        """Every cell of the other box lies in this box."""
        spans = zip(self.lower, self.upper, other.lower, other.upper, strict=True)
        return other.is_empty or all(low <= a and b <= high for low, high, a, b in spans)

    def __and__(self, other: CellBox) -> CellBox:
        """The cells of both boxes."""
        return CellBox(
            tuple(map(max, self.lower, other.lower)), tuple(map(min, self.upper, other.upper))
        )

    def __or__(self, other: CellBox) -> CellBox:
        """The smallest box around both."""
        return CellBox(
            tuple(map(min, self.lower, other.lower)), tuple(map(max, self.upper, other.upper))
        )

    def moved(self, offset: Sequence[int]) -> CellBox:
        """The cells of the box, moved by an offset (cells, per axis)."""
        return CellBox(
            tuple(low + d for low, d in zip(self.lower, offset, strict=True)),
            tuple(high + d for high, d in zip(self.upper, offset, strict=True)),
        )

    def along(self, axes: Sequence[int]) -> CellBox:
        """The part of the coordinates along some axes."""
        return CellBox(
            tuple(self.lower[axis] for axis in axes), tuple(self.upper[axis] for axis in axes)
        )

    def bounds(self) -> StencilBoundsAttr:
        """The box as an attribute; the box holds at least one cell."""
        return bounds_between(self.lower, self.upper)

    def __str__(self) -> str:
        """`[0, 8) x [-1, 9)`."""
        return " x ".join(f"[{low}, {high})" for low, high in zip(self.lower, self.upper))


def cells_of(box: CellBox) -> int:
    """The number of cells of a box."""
    return prod(max(0, high - low) for low, high in zip(box.lower, box.upper, strict=True))
