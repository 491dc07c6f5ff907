"""Where the cells of a block of a sweep in parts lie in shared memory: 16 bytes a unit, turned.

A block reads and writes its cells as memory has them, in vectors of 16 bytes that begin at a
multiple of 16 bytes. A thread goes through a part of 16 places, and reads its cells in vectors,
too:
```
vector   0 1 2 3 | 4 5 6 7 | 8 9 10 11 | ...   a row for each part, of FP32
slot     0 1 2 3 | 4 5 6 7 | 9 8 11 10 | ...   turned by half of the row's number, modulo 4
```
1. Slots of a row are turned (an exclusive or), so that eight threads that read vectors of their
   parts meet each bank once.
2. The first cell of a line seldom lies at a multiple of 16 bytes: cells begin `shift` cells behind
   the first vector's begin, the last cells lie in one vector more, and ends of the line move as
   single cells.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.ir import Attribute, SSAValue

from timetile.dialects.cell_types import CELL_BYTES
from timetile.dialects.syntax import cell_type, element_type, field_bounds
from timetile.dialects.taps import Tap
from timetile.dialects.temporal import SweepOp
from timetile.dialects.temporal.sweep import PART_PLACES
from timetile.passes.cells.cut_sweeps import MOST_BYTES
from timetile.passes.targets.hardware import VECTOR_BYTES

PARTS_OF_SECTION = 256
"""Parts of a section, one a thread."""

PLACES_OF_SECTION = PARTS_OF_SECTION * PART_PLACES
"""Places of a section: 16 groups of 16 parts, with a message of their change."""

NARROW_BYTES = 4
"""
Bytes of a place in shared memory up to which a block has two sections: a block waits as long for
messages, and moves twice the bytes.
"""

BANK_ROW = 8
"""Vectors that all banks of shared memory serve at once."""


@dataclass(frozen=True)
class PartPiece:
    """Cells read together: `width` cells from `cell` on, in a vector of a part's row."""

    place: int
    vector: int
    cell: int
    width: int


@dataclass(frozen=True)
class PartedLayout:
    """
    A block's cells of a type, which begin `shift` cells behind a vector's begin, of some sections.
    """

    kind: Attribute
    shift: int
    sections: int = 1

    @property
    def vector(self) -> int:
        """Cells of a vector."""
        return VECTOR_BYTES // CELL_BYTES[self.kind]

    @property
    def row(self) -> int:
        """Vectors of a part."""
        return PART_PLACES // self.vector

    @property
    def vectors(self) -> int:
        """Whole vectors of a block, if the first cell begins one."""
        return PARTS_OF_SECTION * self.sections * self.row

    @property
    def cells(self) -> int:
        """Cells in shared memory for a block, with a vector for the last cells."""
        return PLACES_OF_SECTION * self.sections + (self.vector if self.shift else 0)

    @property
    def bytes(self) -> int:
        """Bytes in shared memory for a block."""
        return self.cells * CELL_BYTES[self.kind]

    @property
    def rows_turned_alike(self) -> int:
        """Rows whose slots are turned by one number."""
        return BANK_ROW // self.row

    def slot(self, vector: int) -> int:
        """The slot of a vector."""
        row, place = divmod(vector, self.row)
        return row * self.row + (place ^ (row // self.rows_turned_alike) % self.row)

    def pieces(self) -> Iterator[PartPiece]:
        """A part's cells in the order of memory, in the widest accesses."""
        place = 0
        while place < PART_PLACES:
            vector, cell = divmod(self.shift + place, self.vector)
            width = self.vector
            while cell % width or place + width > PART_PLACES:
                width //= 2
            yield PartPiece(place, vector, cell, width)
            place += width


@dataclass(frozen=True)
class Staged:
    """A tap's cells in shared memory, copied in vectors or cell by cell."""

    layout: PartedLayout
    in_vectors: bool


@dataclass(frozen=True)
class PartedBuffers:
    """
    Each tap's cells, the results, and the tap whose cells the results replace; None where the
    results have a buffer to themselves.
    """

    taps: dict[Tap, Staged]
    results: PartedLayout
    replaced: Tap | None

    @staticmethod
    def of(op: SweepOp) -> PartedBuffers:
        """The buffers of a block."""
        kind, sections = cell_type(op.targets[0]), sections_of(op)
        results = PartedLayout(kind, shift_of(op, op.targets[0], (0,)), sections)
        taps: dict[Tap, Staged] = {}
        for tap in dict.fromkeys(op.tap_list):
            if not op.is_result(tap):
                field = op.sources[tap.operand]
                is_plain = element_type(field) == cell_type(field)
                shift = shift_of(op, field, tap.offset) if is_plain else results.shift
                taps[tap] = Staged(PartedLayout(cell_type(field), shift, sections), is_plain)
        alike = [tap for tap, staged in taps.items() if staged.layout == results]
        replaced = next(iter(alike), None)
        room = sum(CELL_BYTES[staged.layout.kind] for staged in taps.values())
        if replaced is None and room + CELL_BYTES[kind] > MOST_BYTES:
            replaced = next((tap for tap in taps if taps[tap].layout.kind == kind), None)
            if replaced is not None:
                taps[replaced] = Staged(results, False)
        return PartedBuffers(taps, results, replaced)

    @property
    def bytes(self) -> int:
        """Bytes of all buffers."""
        layouts = [staged.layout for staged in self.taps.values()]
        layouts += [self.results] if self.replaced is None else []
        return sum(layout.bytes for layout in layouts)


def sections_of(op: SweepOp) -> int:
    """Sections of a block: two for long lines of narrow cells, read from at most one field."""
    read = dict.fromkeys(tap for tap in op.tap_list if not op.is_result(tap))
    room = sum(CELL_BYTES[cell_type(op.sources[tap.operand])] for tap in read)
    widest = max(room, CELL_BYTES[cell_type(op.targets[0])])
    return 2 if len(op.places) > PLACES_OF_SECTION and widest <= NARROW_BYTES else 1


def places_of_block(op: SweepOp) -> int:
    """Places of a block."""
    return PLACES_OF_SECTION * sections_of(op)


def lowest_of(op: SweepOp, field: SSAValue, offset: Sequence[int]) -> int:
    """
    Where the lowest cell of the first block lies in a field, at an offset: possibly below the
    field in a descending sweep.
    """
    (low,), (shift,) = field_bounds(field).lb, offset
    first = op.places[0] + shift - low
    return first if op.is_ascending else first - (places_of_block(op) - 1)


def shift_of(op: SweepOp, field: SSAValue, offset: Sequence[int]) -> int:
    """Cells between a vector's begin and the lowest cell of any block."""
    return lowest_of(op, field, offset) % (VECTOR_BYTES // CELL_BYTES[cell_type(field)])
