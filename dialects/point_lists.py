"""
Lists of points: the cells of a field at which values are added or noted, in one array of integers.

An entry is a cell, a weight and a column of a table with a number for each step. Entries lie in
buckets of neighbouring cells: a kernel finds the entries of a tile by two reads for each row of
buckets. Entries of one cell keep the order of the list.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, prod

PLANE_CELLS, MIDDLE_CELLS, ROW_CELLS = 1, 8, 64
"""Cells of a bucket along the first of several axes, the axes between, and the last axis."""


def bucket_cells(rank: int) -> tuple[int, ...]:
    """The cells of a bucket along each axis."""
    if rank == 1:
        return (ROW_CELLS,)
    return (PLANE_CELLS, *([MIDDLE_CELLS] * (rank - 2)), ROW_CELLS)


GAPS = (8.0, 24.0, 72.0, inf)
"""
Gaps between runs of rows of buckets along axis 0: rows with entries belong to one run if fewer rows
than a gap lie between. A kernel takes the least gap that no level's plane reaches across.
"""

NEAR = 8
"""The gap between runs known to a list: a kernel joins runs less than its own gap apart."""


LINE_WORDS, TRACE_WORDS, MOST_LINES = 64, 1 << 20, 32
"""
Words of a plane and a line for traces, the most words for the traces of a list, and the most lines.
"""

PLATE_AXES, SPOT_WORDS, WIDEST_SPOT = 2, 4, 16
"""
The axes of a plate, the words of the spot of its lists, and a spot's most cells along an axis:
those of a source between cells, or of one that a filter spreads.
"""

FEWEST_TRACED = 64
"""Least entries of a list with room for traces."""


@dataclass(frozen=True)
class PointLayout:
    """
    The places of a list's parts, for a field with `shape` cells along each axis and room for
    `entries` entries. A row is a row of buckets along axis 0. Parts follow each other:

    1. `begin`: for each bucket, in row-major order, the number of entries in the buckets before,
       and at last the number of all entries;
    2. for each row, and one behind, and each stack, the buckets of which follow each other along
       axis 0, two parts: `following`, the first row from there on with an entry of the stack;
       `run_ends`, the end of the run with this entry, if runs are `NEAR` rows apart. Both are the
       number of rows if there is no entry;
    3. `cuts`: for each of `GAPS`, each row, and one behind, the row of a cut between chunks that
       equal chunks would have there;
    4. `coordinates`: the entries' cells along axis 0, then axis 1, and so on, counted from the
       field's first cell;
    5. `columns`: the entries' columns;
    6. `spot`: where all entries of a run's lists that make steps with points lie, if within a few
       cells of a plate: the first row, the end of rows, the first cell of a row, the end; else 0;
    7. `line_count`: the number of lines along axis 0 on which all entries lie, 0 if there are more
       than `lines`; `line(axis)`: their places along the other axes;
    8. `traces`: words for kernels. For each level, each row and each line a thread keeps its cells.
    """

    shape: tuple[int, ...]
    entries: int

    @property
    def buckets(self) -> tuple[int, ...]:
        """The cells of a bucket along each axis."""
        return bucket_cells(len(self.shape))

    @property
    def counts(self) -> tuple[int, ...]:
        """The buckets along each axis."""
        return tuple(-(-size // cells) for size, cells in zip(self.shape, self.buckets))

    @property
    def strides(self) -> tuple[int, ...]:
        """The distance of neighbouring buckets in `begin`, along each axis."""
        return tuple(prod(self.counts[axis + 1 :]) for axis in range(len(self.shape)))

    @property
    def stacks(self) -> int:
        """The buckets of a row."""
        return prod(self.counts[1:])

    @property
    def following(self) -> int:
        """The place of the next rows with entries of a stack: row by row."""
        return prod(self.counts) + 1

    @property
    def run_ends(self) -> int:
        """Where the ends of runs lie, stack by stack and row by row."""
        return self.following + self.stacks * (self.counts[0] + 1)

    def cuts(self, gap: int) -> int:
        """The place of the cuts between chunks, for a gap of `GAPS`."""
        numbers = self.counts[0] + 1
        return self.run_ends + (self.stacks + gap) * numbers

    def coordinates(self, axis: int) -> int:
        """The place of the coordinates along an axis."""
        return self.cuts(len(GAPS)) + axis * self.entries

    @property
    def columns(self) -> int:
        """The place of part 5."""
        return self.coordinates(len(self.shape))

    @property
    def has_spot(self) -> bool:
        """Lists of plates alone have a spot."""
        return len(self.shape) == PLATE_AXES

    @property
    def spot(self) -> int:
        """The place of part 6."""
        return self.columns + self.entries

    @property
    def lines(self) -> int:
        """The most lines along axis 0 that kernels keep traces of."""
        if len(self.shape) == 1 or self.entries < FEWEST_TRACED:
            return 0
        return min(MOST_LINES, TRACE_WORDS // (self.counts[0] * LINE_WORDS))

    @property
    def line_count(self) -> int:
        """The place of the number of lines."""
        return self.spot + (SPOT_WORDS if self.has_spot else 0)

    def line(self, axis: int) -> int:
        """The place of the lines' places along an axis behind the first."""
        return self.line_count + 1 + (axis - 1) * self.lines

    @property
    def traces(self) -> int:
        """The place of the traces, a multiple of four words."""
        return -(-self.line(len(self.shape)) // 4) * 4

    @property
    def size(self) -> int:
        """The integers of the list."""
        if not self.lines:
            return self.line_count
        return self.traces + self.lines * self.counts[0] * LINE_WORDS


def gap_above(reach: int) -> int:
    """The position of the smallest gap in `GAPS` that spans some planes."""
    return next(number for number, gap in enumerate(GAPS) if gap >= reach)
