"""Where kernels write numbers: the greatest, or the least, of a warp's cells of a plane."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

CELLS_APART = 16
"""Cells of a row between the first cells of two warps, at least: one number's cells."""

MOST_BEFORE = 1024
"""Most cells along an axis that tiles hold before the first stored cell."""


@dataclass(frozen=True)
class NumberRoom:
    """
    The numbers of planes of tiles, in the order of the axes: one for each cell along an axis from
    `begin` up to `end`, and along the last axis of a plane (`along`) one for some cells. A warp has
    the place of its first cell.
    """

    begin: tuple[int, ...]
    end: tuple[int, ...]
    along: int

    @property
    def shape(self) -> tuple[int, ...]:
        """The numbers along each axis."""
        sizes = [high - low for low, high in zip(self.begin, self.end)]
        sizes[self.along] = -(-sizes[self.along] // CELLS_APART)
        return tuple(sizes)

    @property
    def size(self) -> int:
        """All numbers."""
        return prod(self.shape)

    @property
    def strides(self) -> tuple[int, ...]:
        """Numbers between neighbours along each axis."""
        return tuple(prod(self.shape[axis + 1 :]) for axis in range(len(self.shape)))


def most_numbers(shape: Sequence[int]) -> int:
    """The most numbers of a field's cells, wherever tiles begin, whichever axis is the stream's."""
    end = tuple(shape)
    before = tuple(-min(size, MOST_BEFORE) for size in shape)
    return max(NumberRoom(before, end, axis).size for axis in range(len(end)))
