"""Lines along the last axis in shared memory: a warp's lines, segments and ring.

The cells of a line along the last axis lie side by side: a thread for each line would read with
the distance of a row. A warp has a group of lines instead, and all lanes copy segments of all
lines to shared memory, 16 bytes a lane, whole sectors of memory together:
```
line 0   | segment 0 | segment 1 | ...   slot = number of the segment modulo slots
line 1   | segment 0 | segment 1 | ...   between two lines of the ring: 16 bytes
```
The distance of two lines is an odd number of 16 bytes: eight lanes that read 16 bytes each, of
their own lines, meet each bank once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

from xdsl.ir import SSAValue

from timetile.dialects.boxes import sizes_of
from timetile.dialects.cell_types import CELL_BYTES
from timetile.dialects.syntax import element_type
from timetile.dialects.taps import Tap
from timetile.dialects.temporal import SweepOp
from timetile.passes.analysis.geometry.field_shapes import FieldShape
from timetile.passes.targets.hardware import LEAST_COPY, VECTOR_BYTES

GROUPS = (32, 16, 8, 4, 2, 1)
"""Lines of a group: as many as leave a launch `FEW_GROUPS` groups."""

MULTIPROCESSORS = 132
"""Multiprocessors of a large GPU."""

FEW_GROUPS = MULTIPROCESSORS
"""Groups with work for each multiprocessor."""

MOST_SHARED = 100 * 1024
"""Bytes of shared memory of a group: a block of any target has more."""

MULTIPROCESSOR_SHARED = 228 * 1024
"""Shared memory of a large GPU's multiprocessor, in bytes."""

BLOCK_OVERHEAD = 1024
"""Bytes of shared memory that the system takes for a block."""

MOST_GROUPS = 32
"""Blocks of a multiprocessor."""

BYTES_UNDER_WAY = 160 * 1024
"""Bytes on their way to a multiprocessor with which memory is no faster for more."""

MOST_MORE = 4
"""Slots more than the fewest."""


@dataclass(frozen=True)
class SegmentSize:
    """How long segments are."""

    bytes: int
    """Bytes of the segments of a group's lines in one slot, of the widest field."""
    least_beside: int
    """Groups of a multiprocessor that more slots leave room for."""


LONG, SHORT = SegmentSize(8192, 6), SegmentSize(4096, 4)
"""
A piece of memory has 256 bytes of a line in long segments, and 128 in short ones. One H200, rows of
512^3 cells: Thomas' solver moves 0.89 of a copy in FP32 and 0.91 in FP64, and 0.84 in short
segments.
"""

LONG_BESIDE = 5
"""Groups of a multiprocessor with room for long segments in the fewest slots."""

LEAST_LONG = 4
"""Long segments of a line: fewer fill and drain the ring for most of the line."""


@dataclass(frozen=True)
class Stream:
    """
    The cells of a field at an offset across the line, read by taps at offsets from `low` to `high`
    along the axis, in the order of memory.
    """

    field: SSAValue
    across: tuple[int, ...]
    low: int
    high: int

    @staticmethod
    def key(op: SweepOp, tap: Tap) -> tuple[SSAValue, tuple[int, ...]]:
        """The field, and the offset with 0 along the axis: equal for the taps of a stream."""
        across = list(tap.offset)
        across[op.axis.data] = 0
        return op.sources[tap.operand], tuple(across)


def streams_of(op: SweepOp) -> tuple[Stream, ...]:
    """The streams of a sweep, in the order of taps."""
    reaches: dict[tuple[SSAValue, tuple[int, ...]], list[int]] = {}
    for tap in op.tap_list:
        if not op.is_result(tap):
            reaches.setdefault(Stream.key(op, tap), []).append(tap.offset[op.axis.data])
    return tuple(Stream(*key, min(found), max(found)) for key, found in reaches.items())


def bytes_of(field: SSAValue) -> int:
    """Bytes of a cell of a field."""
    return CELL_BYTES[element_type(field)]


def lines_of(op: SweepOp) -> int:
    """The lines of a sweep along its axis."""
    sizes = sizes_of(op.box)
    return prod(sizes[axis] for axis in op.line_axes)


def lines_of_group(op: SweepOp, lines: int, size: SegmentSize) -> int:
    """
    The lines of a group: the most with work for each multiprocessor, and segments no longer than a
    line.
    """
    room = size.bytes // max(bytes_of(field) for field in (*op.sources, *op.targets))
    whole = [n for n in GROUPS if room // n <= len(op.places)] or GROUPS[:1]
    return next((n for n in whole if lines >= n * FEW_GROUPS), whole[-1])


def vector_of(field: SSAValue) -> int:
    """Cells of the widest copy."""
    return VECTOR_BYTES // bytes_of(field)


@dataclass(frozen=True)
class LineStaging:
    """The lines of a group, and the slots of its rings."""

    op: SweepOp
    lines: int
    slots: int
    size: SegmentSize = SHORT

    @staticmethod
    def of(op: SweepOp, group: int | None = None) -> LineStaging | None:
        """
        Choose segments, lines and slots for a group, or segments and slots if `group` gives the
        lines: the fewest slots that keep enough bytes in flight, or else those that keep the most.
        None for a sweep whose lines do not lie in memory cell by cell, or have no room.
        """
        lines = lines_of(op)
        least = next(filter(lambda made: made.suits, LineStaging.fewest_slots(op, group)))
        group = least.lines
        if not least.may_be_copied:
            return None
        groups = -(-lines // group)
        found = None
        for slots in range(least.slots, least.slots + min(MOST_MORE, least.segments - 1) + 1):
            made = replace(least, slots=slots)
            is_crowded = made.beside(groups) < min(least.size.least_beside, least.beside(groups))
            if made.shared_bytes > MOST_SHARED or is_crowded:
                break
            if found is None or made.under_way(groups) > found.under_way(groups):
                found = made
            if made.under_way(groups) >= BYTES_UNDER_WAY:
                break
        return found

    @staticmethod
    def fewest_slots(op: SweepOp, group: int | None) -> Iterator[LineStaging]:
        """The stagings with the fewest slots, with long segments and with short ones."""
        for size in (LONG, SHORT):
            lines = group or lines_of_group(op, lines_of(op), size)
            one = LineStaging(op, lines, 1, size)
            yield replace(one, slots=one.behind + one.before + 2)

    @property
    def suits(self) -> bool:
        """Whether segments are short, or there is room for many groups with long segments."""
        if self.size is SHORT:
            return True
        many = MULTIPROCESSOR_SHARED // (self.shared_bytes + BLOCK_OVERHEAD) >= LONG_BESIDE
        return many and self.segments >= LEAST_LONG

    @property
    def may_be_copied(self) -> bool:
        """Whether cells of a line lie side by side, and copies have a size of the hardware."""
        along, fields = self.op.axis.data, (*self.op.sources, *self.op.targets)
        if any(FieldShape.of(field).strides[along] != 1 for field in fields):
            return False
        copies = [bytes_of(s.field) * self.unit_of(s.field) for s in self.streams]
        return all(size >= LEAST_COPY for size in copies)

    # Segments of a line.

    @cached_property
    def streams(self) -> tuple[Stream, ...]:
        """The streams in the ring."""
        return streams_of(self.op)

    @cached_property
    def places(self) -> int:
        """Places of a segment."""
        widest = max(bytes_of(field) for field in (*self.op.sources, *self.op.targets))
        return self.size.bytes // self.lines // widest

    @cached_property
    def origin(self) -> int:
        """
        The coordinate at which the first segment begins: below the first place, or behind it in a
        descending sweep, where most copies of all fields are of whole vectors.
        """
        op, along = self.op, self.op.axis.data
        is_up = op.is_ascending
        first = tuple(op.box.lb)[along] if is_up else tuple(op.box.ub)[along]
        fields = [*(stream.field for stream in self.streams), *op.targets]
        lows = [(FieldShape.of(field).lower[along], vector_of(field)) for field in fields]
        widest = max(vector for _, vector in lows)
        tried = [first - k if is_up else first + k for k in range(widest)]
        return max(tried, key=lambda at: sum((at - low) % vector == 0 for low, vector in lows))

    @property
    def skipped(self) -> int:
        """Places of the first segment that come before the first of the sweep."""
        along = self.op.axis.data
        first, end = tuple(self.op.box.lb)[along], tuple(self.op.box.ub)[along]
        return first - self.origin if self.op.is_ascending else self.origin - end

    @property
    def segments(self) -> int:
        """Segments of a line."""
        return -(-(self.skipped + len(self.op.places)) // self.places)

    @property
    def last(self) -> int:
        """Places of the last segment, with those skipped in it."""
        return self.skipped + len(self.op.places) - (self.segments - 1) * self.places

    @cached_property
    def behind(self) -> int:
        """Segments behind a segment in whose cells the taps of its places lie."""
        far = [-s.low if self.op.is_ascending else s.high for s in self.streams]
        return max((-(-most // self.places) for most in far if most > 0), default=0)

    @cached_property
    def before(self) -> int:
        """Segments ahead of a segment in whose cells the taps of its places lie."""
        far = [s.high if self.op.is_ascending else -s.low for s in self.streams]
        return max((-(-most // self.places) for most in far if most > 0), default=0)

    # Shared memory.

    def is_aligned(self, field: SSAValue) -> bool:
        """Whether every line's segments begin and end with whole vectors of memory."""
        shape, vector, along = FieldShape.of(field), vector_of(field), self.op.axis.data
        lengths = shape.sizes[along], self.origin - shape.lower[along]
        return not any(length % vector for length in lengths)

    def unit_of(self, field: SSAValue) -> int:
        """Cells of a copy."""
        return vector_of(field) if self.is_aligned(field) else 1

    def pitch(self, field: SSAValue, slots: int) -> int:
        """The distance of two lines of a ring, in cells."""
        vectors = slots * self.places // vector_of(field)
        return (vectors | 1) * vector_of(field)

    @cached_property
    def rings(self) -> dict[Stream | SSAValue, tuple[int, int]]:
        """
        Where the rings of streams and the results of targets without a stream begin, in bytes, and
        their slots.
        """
        found: dict[Stream | SSAValue, tuple[int, int]] = {}
        end = 0
        for key, field, slots in self.stored():
            found[key] = end, slots
            size = self.lines * self.pitch(field, slots) * bytes_of(field)
            end = -(-(end + size) // VECTOR_BYTES) * VECTOR_BYTES
        return found

    def stored(self) -> Iterator[tuple[Stream | SSAValue, SSAValue, int]]:
        """What has a place in shared memory: the field and the slots."""
        for stream in self.streams:
            yield stream, stream.field, self.slots
        for target in self.op.targets:
            if self.own_stream(target) is None:
                yield target, target, 1

    def own_stream(self, target: SSAValue) -> Stream | None:
        """The stream of a target, in whose ring results take the place of cells read."""
        return next((stream for stream in self.streams if stream.field is target), None)

    @property
    def keeps_results(self) -> bool:
        """Whether results take the place of cells read."""
        return any(self.own_stream(target) is not None for target in self.op.targets)

    @cached_property
    def starts(self) -> int:
        """Where the distances of lines begin in shared memory, in bytes."""
        key, field, slots = list(self.stored())[-1]
        size = self.lines * self.pitch(field, slots) * bytes_of(field)
        return -(-(self.rings[key][0] + size) // VECTOR_BYTES) * VECTOR_BYTES

    @property
    def strides(self) -> list[tuple[int, ...]]:
        """The strides of fields, each once."""
        fields = (*self.op.sources, *self.op.targets)
        return list(dict.fromkeys(FieldShape.of(field).strides for field in fields))

    @property
    def shared_bytes(self) -> int:
        """Bytes of shared memory of a group."""
        room = max(8 * self.lines, VECTOR_BYTES)
        return self.starts + len(self.strides) * room

    @property
    def pending(self) -> int:
        """Segments on their way while one is computed."""
        return self.slots - 1 - self.behind - self.before

    def under_way(self, groups: int) -> int:
        """Bytes on their way to a multiprocessor, of a launch of some groups."""
        cells = sum(bytes_of(stream.field) for stream in self.streams)
        return self.beside(groups) * self.pending * self.lines * self.places * cells

    def beside(self, groups: int) -> int:
        """How many groups run on a multiprocessor at once, if a launch has `groups` groups."""
        room = MULTIPROCESSOR_SHARED // (self.shared_bytes + BLOCK_OVERHEAD)
        return min(room, MOST_GROUPS, -(-groups // MULTIPROCESSORS))
