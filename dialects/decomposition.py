"""
Decompositions: a domain cut into parts, one for each rank, as plain numbers.

```
faces ((0, 11, 22), (0, 64)): two parts, [0, 11) x [0, 64) and [11, 22) x [0, 64)
```
A part at the end of an axis owns all cells beyond the end, too: fields reach beyond the domain by
their halos. Each cell of a field therefore has a single owner. A rank holds its own cells and a
ghost zone around them, copies of cells of other ranks.

Along a periodic axis places go on beyond the ends: place `high + k` is another name of `low + k`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from math import prod

from timetile.dialects.boxes import CellBox

Ghosts = tuple[tuple[int, int], ...]
"""The cells of a ghost zone below and above a part, an axis at a time."""

FAR = 1 << 62
"""A place beyond all fields."""


@dataclass(frozen=True)
class Transfer:
    """
    Cells copied from rank `source` to the ghost zone of rank `target`. `box` are places of the
    target; the source has the cells `offset` farther, which is 0 except across a periodic end.
    """

    source: int
    target: int
    box: CellBox
    offset: tuple[int, ...]

    @property
    def source_box(self) -> CellBox:
        """The cells as places of the source."""
        return self.box.moved(self.offset)


@dataclass(frozen=True)
class Decomposition:
    """
    A domain cut along each axis. `faces` are the places of the cuts of each axis, both ends of the
    domain included, in increasing order. `periodic` are the axes whose places go on beyond the
    ends. Ranks count the parts in row-major order. Raises ValueError for an axis without a part,
    or with an empty part.
    """

    faces: tuple[tuple[int, ...], ...]
    periodic: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for axis, faces in enumerate(self.faces):
            if len(faces) < 2 or any(low >= high for low, high in pairwise(faces)):
                raise ValueError(
                    f"the faces along axis {axis} must be two or more increasing places, got "
                    f"{list(faces)}"
                )
        for axis in self.periodic:
            if not 0 <= axis < len(self.faces):
                raise ValueError(f"periodic axis {axis} of a domain of rank {len(self.faces)}")

    @staticmethod
    def evenly(
        domain: CellBox, counts: Sequence[int], periodic: Sequence[int] = ()
    ) -> Decomposition:
        """
        A domain cut into `counts[axis]` parts along each axis; extents of parts differ by at most a
        cell. Raises ValueError for more parts than cells.
        """
        faces: list[tuple[int, ...]] = []
        for axis, (low, high, count) in enumerate(
            zip(domain.lower, domain.upper, counts, strict=True)
        ):
            if not 1 <= count <= high - low:
                raise ValueError(
                    f"{count} parts along axis {axis}, and the domain {domain} has {high - low} "
                    "cells there"
                )
            faces.append(tuple(low + (high - low) * k // count for k in range(count + 1)))
        return Decomposition(tuple(faces), tuple(periodic))

    @property
    def counts(self) -> tuple[int, ...]:
        """The number of parts along each axis."""
        return tuple(len(faces) - 1 for faces in self.faces)

    @property
    def count(self) -> int:
        """The number of parts."""
        return prod(self.counts)

    @property
    def domain(self) -> CellBox:
        """The cells of all parts."""
        return CellBox(
            tuple(faces[0] for faces in self.faces), tuple(faces[-1] for faces in self.faces)
        )

    def place(self, rank: int) -> tuple[int, ...]:
        """The number of a rank's part along each axis. Raises ValueError for no rank."""
        if not 0 <= rank < self.count:
            raise ValueError(f"rank {rank} of {self.count} parts")
        place: list[int] = []
        for count in reversed(self.counts):
            rank, number = divmod(rank, count)
            place.append(number)
        return tuple(reversed(place))

    def part(self, rank: int) -> CellBox:
        """The cells of the domain that a rank owns."""
        spans = [faces[k : k + 2] for faces, k in zip(self.faces, self.place(rank))]
        return CellBox(tuple(low for low, _ in spans), tuple(high for _, high in spans))

    def ends(self, rank: int, axis: int) -> tuple[bool, bool]:
        """
        Whether a rank's part lies at an end of the domain along an axis, below and above. A
        periodic axis has no ends.
        """
        number, count = self.place(rank)[axis], self.counts[axis]
        is_open = axis not in self.periodic
        return is_open and number == 0, is_open and number == count - 1

    def held(self, rank: int, field: CellBox, ghosts: Ghosts | None = None) -> CellBox:
        """
        The cells of a field that a rank holds: its own cells and the ghost zone around them. The
        box may be empty.
        """
        part, spans = self.part(rank), list[tuple[int, int]]()
        for axis, (below, above) in enumerate(ghosts or ((0, 0),) * len(self.faces)):
            first, last = self.ends(rank, axis)
            low = -FAR if first else part.lower[axis] - below
            high = FAR if last else part.upper[axis] + above
            if axis not in self.periodic:
                low, high = max(low, field.lower[axis]), min(high, field.upper[axis])
            spans.append((low, high))
        return CellBox(tuple(low for low, _ in spans), tuple(high for _, high in spans))

    def owned(self, rank: int, field: CellBox) -> CellBox:
        """The cells of a field that a rank owns, halos beyond the ends of the domain included."""
        return self.held(rank, field)

    def transfers_to(self, rank: int, field: CellBox, ghosts: Ghosts) -> Iterator[Transfer]:
        """
        The boxes that fill a rank's ghost zone in a field, each from the owner of its cells, in
        the order of source ranks and places.
        """
        zone = self.held(rank, field, ghosts)
        if zone.is_empty:
            return
        for source in range(self.count):
            owned = self.owned(source, field)
            for offset in product(*(self.offsets(zone, axis) for axis in range(len(self.faces)))):
                if source == rank and not any(offset):
                    continue
                box = owned.moved([-distance for distance in offset]) & zone
                if not box.is_empty:
                    yield Transfer(source, rank, box, offset)

    def offsets(self, zone: CellBox, axis: int) -> list[int]:
        """The distances between places of a zone along an axis and places of the domain."""
        if axis not in self.periodic:
            return [0]
        low, high = self.faces[axis][0], self.faces[axis][-1]
        size = high - low
        first, last = (zone.lower[axis] - low) // size, (zone.upper[axis] - 1 - low) // size
        return [-size * turn for turn in range(first, last + 1)]

    def transfers_from(self, rank: int, field: CellBox, ghosts: Ghosts) -> Iterator[Transfer]:
        """The boxes of a rank's own cells in the ghost zones of all ranks, by target rank."""
        for target in range(self.count):
            for transfer in self.transfers_to(target, field, ghosts):
                if transfer.source == rank:
                    yield transfer


def cells_outside(box: CellBox, cut: CellBox) -> Iterator[CellBox]:
    """The cells of a box outside another box, as disjoint boxes."""
    common = box & cut
    if common.is_empty:
        if not box.is_empty:
            yield box
        return
    lower, upper = list(box.lower), list(box.upper)
    for axis in range(len(lower)):
        for low, high in (
            (lower[axis], common.lower[axis]),
            (common.upper[axis], upper[axis]),
        ):
            if low < high:
                yield CellBox(
                    (*lower[:axis], low, *lower[axis + 1 :]),
                    (*upper[:axis], high, *upper[axis + 1 :]),
                )
        lower[axis], upper[axis] = common.lower[axis], common.upper[axis]


def is_covered(box: CellBox, boxes: Sequence[CellBox]) -> bool:
    """Whether each cell of a box lies in one of several boxes."""
    left = [box]
    for other in boxes:
        left = [rest for piece in left for rest in cells_outside(piece, other)]
    return not any(not piece.is_empty for piece in left)
