"""
Copies of ghost cells between the arrays of two parts, as plain numbers.

A box of cells in two arrays in row-major order is copied as `planes` x `rows` rows of `width`
bytes, as the driver's pitched copies take them. Axes that both arrays hold whole join the next
one: the rim of a domain cut along the first axis is a single row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from timetile.dialects.boxes import CellBox
from timetile.dialects.decomposition import Ghosts
from timetile.runtime.ranks.exchange import CutField


@dataclass(frozen=True)
class Pitches:
    """A box in an array: the byte of the first cell, bytes between rows, rows between planes."""

    first: int
    pitch: int
    height: int


@dataclass(frozen=True)
class BoxCopy:
    """The copy of a box of cells between two arrays."""

    width: int
    """Bytes of a row."""
    rows: int
    planes: int
    source: Pitches
    target: Pitches

    @property
    def is_contiguous(self) -> bool:
        """The box is one row of bytes in both arrays."""
        return self.rows * self.planes == 1

    @property
    def bytes(self) -> int:
        """The number of copied bytes."""
        return self.width * self.rows * self.planes


def extents_of(box: CellBox) -> list[int]:
    """The cells along each axis."""
    return [high - low for low, high in zip(box.lower, box.upper)]


def box_copy(
    source: CellBox, source_box: CellBox, target: CellBox, target_box: CellBox, cell_bytes: int
) -> BoxCopy:
    """
    Copy a box between two arrays, with the bounds `source` and `target`, to a box of equal extents.
    Arrays have three axes at most.
    """
    axes = list(zip(extents_of(source_box), extents_of(source), extents_of(target)))
    while len(axes) > 1 and len(set(axes[-1])) == 1:
        whole, _, _ = axes.pop()
        counts = axes.pop()
        axes.append((counts[0] * whole, counts[1] * whole, counts[2] * whole))
    (planes, *_), (rows, *heights), (cells, *rests) = [(1, 1, 1)] * (3 - len(axes)) + axes
    ends = [
        Pitches(first_cell(bounds, box) * cell_bytes, rest * cell_bytes, height)
        for bounds, box, rest, height in (
            (source, source_box, rests[0], heights[0]),
            (target, target_box, rests[1], heights[1]),
        )
    ]
    return BoxCopy(cells * cell_bytes, rows, planes, *ends)


def first_cell(bounds: CellBox, box: CellBox) -> int:
    """The number of a box's first cell in an array with some bounds."""
    extents = extents_of(bounds)
    inner = [prod(extents[axis + 1 :]) for axis in range(len(extents))]
    spans = zip(bounds.lower, box.lower, inner)
    return sum((first - low) * size for low, first, size in spans)


@dataclass(frozen=True)
class RimCopy:
    """A copy from cells of part `source` to ghosts of part `target`."""

    source: int
    target: int
    copy: BoxCopy


def rim_copies(
    fields: Sequence[CutField], cell_bytes: int, ghosts: Ghosts | None = None
) -> Iterator[RimCopy]:
    """
    The copies that fill the ghost zones of all parts of a field, or the inner `ghosts` of them, by
    target part.
    """
    for target, field in enumerate(fields):
        part = field.part
        zone = part.zone if ghosts is None else ghosts
        for transfer in part.decomposition.transfers_to(target, field.whole, zone):
            source = fields[transfer.source]
            copy = box_copy(source.held, transfer.source_box, field.held, transfer.box, cell_bytes)
            yield RimCopy(transfer.source, target, copy)
