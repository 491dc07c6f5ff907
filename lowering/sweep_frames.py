"""The launch of a sweep: its fields, lines, threads, and the places of a turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from timetile.dialects.boxes import sizes_of
from timetile.dialects.cell_types import CELL_BYTES
from timetile.dialects.syntax import cell_type, field_bounds
from timetile.dialects.taps import Tap
from timetile.dialects.temporal import SweepOp
from timetile.dialects.temporal.sweep import PART_PLACES
from timetile.dialects.tile import LANES
from timetile.dialects.verified import ancestor_of
from timetile.lowering.arguments import fields_of, scalars_of
from timetile.lowering.parted_layout import (
    PARTS_OF_SECTION,
    PartedBuffers,
    places_of_block,
    sections_of,
)
from timetile.lowering.sweep_staging import (
    MOST_SHARED,
    LineStaging,
    bytes_of,
    vector_of,
)
from timetile.passes.analysis.cells.cell_functions import cell_function
from timetile.passes.analysis.cells.recurrences import recurrence_of_sweep
from timetile.passes.analysis.geometry.field_shapes import FieldShape
from timetile.passes.targets.hardware import LEAST_COPY

BLOCKS = (256, 128, 64, 32)
"""Threads of a block: as many as leave a launch `FEW_BLOCKS` blocks."""

FEW_BLOCKS = 264
"""Blocks of a launch with work for each multiprocessor of a large GPU, twice."""

MOST_LOADED = 16
"""Cells that a thread loads at once, in a turn of several places."""

TURNS = (8, 4, 2, 1)
"""Places of a turn."""

MANY_LINES = 1 << 17
"""Lines whose threads hide the time of memory from each other."""

BESIDE = (4, 2)
"""Lines of a thread, tried in order."""

ACCESS_BYTES = 8
"""Bytes loaded together by a thread of several lines."""

PLACES_AHEAD = 32
"""Places ahead of a turn that are asked for, of fewer lines without a ring."""

RING_CELL_BYTES = 4
"""
Bytes of the widest cell for a ring by default: asked for, cells of FP64 move 0.83 to 0.86 of a
device copy on 8192 lines, and cells of FP32 0.46 to 0.63 (H100).
"""

RINGS = (4, 8, 16, 32)
"""Turns in a ring for fewer lines: the fewest that keep enough bytes on their way, or the most."""

RING_BYTES = 40 * 1024
"""Bytes on their way to a multiprocessor that hide the time of memory."""


OCCUPANCY = {4: 8, 8: 5}
"""
Blocks of a multiprocessor of a sweep in parts, by bytes of a thread's places: most wait for others.
"""

BLOCKS_OF_TWO_SECTIONS = 6
"""
Blocks of a multiprocessor with two sections of one field. One H200, 2^26 places in FP32: a sum
takes 167 us, 171 with five blocks, and a recurrence 168 and 172. Cells of FP64 leave registers for
five: with six, a sum spills, and takes 321 us in place of 316.
"""

CHANGE_PITCH = PART_PLACES + 1
"""Changes between groups of parts in shared memory: all banks serve the groups of a block."""

MOST_LEVELS = 8
"""Levels of words; each level has room for the change of all places before."""

FIRST_WORD = 2
"""Words before those of messages: the first has the number of the launch ended last."""


def sweeps_of(root: Operation) -> list[SweepOp]:
    """The sweeps inside an operation, in order."""
    return [op for op in root.walk() if isinstance(op, SweepOp)]


def is_together(op: SweepOp, field: SSAValue, offset: Sequence[int], beside: int) -> bool:
    """Whether the cells at an offset, of lines beside each other, are read as one vector."""
    low, last = tuple(field_bounds(field).lb)[-1], tuple(op.box.lb)[-1]
    return (last + offset[-1] - low) % beside == 0


def may_be_beside(op: SweepOp, beside: int, most: int = ACCESS_BYTES) -> bool:
    """
    Whether a thread may have several lines beside each other: vectors of all fields begin where
    vectors of memory begin, and have `most` bytes.
    """
    fields = fields_of(op)
    if op.axis.data == op.rank - 1 or any(bytes_of(field) * beside > most for field in fields):
        return False
    size = tuple(op.box.ub)[-1] - tuple(op.box.lb)[-1]
    lengths = [size, *(FieldShape.of(field).sizes[-1] for field in fields)]
    if any(length % beside for length in lengths):
        return False
    return all(is_together(op, target, (0,) * op.rank, beside) for target in op.targets)


@dataclass(frozen=True)
class SweepFrame:
    """
    The launch of a sweep: fields and scalars, in the order of arguments, lines and threads. Cells
    are asked for `ahead` places before a turn needs them; 0: never. With `staging` a warp's lines
    pass through shared memory. A thread has the lines of `beside` cells along the last axis. Cells
    of a turn are copied to a ring of `ring` turns in shared memory; 0: no ring.
    """

    op: SweepOp
    ahead: int
    staging: LineStaging | None = None
    beside: int = 1
    ring: int = 0

    @staticmethod
    def of(op: SweepOp) -> SweepFrame:
        """
        The launch of a sweep: along the last axis through shared memory, if there is room. Rows of
        a thread each fill the first-level cache: places ahead along the last axis would push out
        cells not read so far (8192 x 8192, H100: 0.7 of the speed).
        """
        if op.parts is not None:
            return SweepFrame(op, 0)
        is_last = op.axis.data == op.rank - 1
        if is_last and (staging := LineStaging.of(op)) is not None:
            return SweepFrame(op, 0, staging)
        if is_last and op.rank > 1:
            return SweepFrame(op, 0)
        beside = next((n for n in BESIDE if may_be_beside(op, n)), 1)
        if beside > 1 and SweepFrame(op, 0, None, beside).seats >= MANY_LINES:
            return SweepFrame(op, 0, None, beside)
        if SweepFrame(op, 0).lines >= MANY_LINES or len(op.places) <= PLACES_AHEAD:
            return SweepFrame(op, 0)
        made = [SweepFrame(op, 0, ring=ring) for ring in RINGS]
        made = [frame for frame in made if frame.has_ring and frame.is_narrow]
        if not made:
            return SweepFrame(op, PLACES_AHEAD)
        return next((frame for frame in made if frame.under_way >= RING_BYTES), made[-1])

    @property
    def is_parted(self) -> bool:
        """Whether the line goes on in parts, by all threads."""
        return self.op.parts is not None

    @property
    def occupancy(self) -> int:
        """Blocks of a multiprocessor that registers are left for."""
        if not self.is_parted:
            return 1
        if self.sections > 1 and len(self.loads) == 1:
            return BLOCKS_OF_TWO_SECTIONS
        return OCCUPANCY[CELL_BYTES[cell_type(self.op.targets[0])] * self.sections]

    @property
    def sections(self) -> int:
        """Sections of 256 parts in a block of a sweep in parts."""
        return sections_of(self.op)

    @property
    def message_words(self) -> int:
        """Words for a block's change: two numbers at most."""
        return self.changes * bytes_of(self.op.targets[0]) // 4

    @cached_property
    def changes(self) -> int:
        """Numbers of the change made by a cell of a sweep in parts."""
        function = cell_function(ancestor_of(self.op, ModuleOp), self.op)
        return len(recurrence_of_sweep(self.op, function).join.function_type.outputs)

    @property
    def levels(self) -> list[int]:
        """Where a level's changes begin, in words: sections, groups of 16 sections, and so on."""
        found, base, count = list[int](), FIRST_WORD, self.grid * self.sections
        while count > 1:
            found.append(base)
            base, count = base + count * self.message_words, -(-count // PART_PLACES)
        return found

    @property
    def words(self) -> int:
        """Words of 64 bits for messages between blocks, 0 at first; none without parts."""
        if not self.is_parted:
            return 0
        room, count = FIRST_WORD, self.grid * self.sections
        while count > 1:
            room, count = room + count * self.message_words, -(-count // PART_PLACES)
        return room

    @property
    def has_ring(self) -> bool:
        """Whether a ring has room, copies that the hardware has, and fewer turns than a line."""
        sizes = [bytes_of(self.op.sources[tap.operand]) for tap in self.loads]
        turns = len(self.op.places) // self.places_of_turn
        return (
            bool(sizes)
            and min(sizes) >= LEAST_COPY
            and (self.shared_bytes <= MOST_SHARED and self.ring <= turns)
        )

    @property
    def is_narrow(self) -> bool:
        """Whether all loaded cells are narrow enough for a ring by default."""
        sizes = [bytes_of(self.op.sources[tap.operand]) for tap in self.loads]
        return max(sizes) <= RING_CELL_BYTES

    @property
    def under_way(self) -> int:
        """Bytes of a ring on their way to a multiprocessor of a large GPU."""
        beside = -(-self.grid // (FEW_BLOCKS // 2))
        return self.shared_bytes // self.ring * (self.ring - 1) * beside

    @property
    def loads(self) -> list[Tap]:
        """The taps that read memory, each once."""
        return [tap for tap in dict.fromkeys(self.op.tap_list) if not self.op.is_result(tap)]

    @property
    def fields(self) -> tuple[SSAValue, ...]:
        """The fields, each once: sources, then targets."""
        return fields_of(self.op)

    @property
    def scalars(self) -> tuple[SSAValue, ...]:
        """The scalars, each once."""
        return scalars_of(self.op)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The cells of the box along each axis."""
        return sizes_of(self.op.box)

    @property
    def lines(self) -> int:
        """The lines along the axis."""
        return prod(self.sizes[axis] for axis in self.op.line_axes)

    @property
    def seats(self) -> int:
        """The threads with lines."""
        return self.lines // self.beside

    @property
    def threads(self) -> int:
        """Threads of a block."""
        if self.is_parted:
            return PARTS_OF_SECTION
        if self.staging is not None:
            return LANES
        return next((n for n in BLOCKS if self.seats >= n * FEW_BLOCKS), BLOCKS[-1])

    @property
    def grid(self) -> int:
        """Blocks of the launch."""
        if self.is_parted:
            return -(-len(self.op.places) // places_of_block(self.op))
        if self.staging is not None:
            return -(-self.lines // self.staging.lines)
        return -(-self.seats // self.threads)

    @property
    def slots(self) -> int:
        """Segments of each line in shared memory; 0 for a launch without."""
        return 0 if self.staging is None else self.staging.slots

    @property
    def shared_bytes(self) -> int:
        """Bytes of shared memory of a block."""
        if self.is_parted:
            parts = PARTS_OF_SECTION // PART_PLACES * CHANGE_PITCH + 2 * PART_PLACES
            each = bytes_of(self.op.targets[0]) * (parts + MOST_LEVELS) * self.sections
            return PartedBuffers.of(self.op).bytes + self.changes * each
        if self.staging is not None:
            return self.staging.shared_bytes
        cells = self.ring * self.places_of_turn * self.threads
        return cells * sum(bytes_of(self.op.sources[tap.operand]) for tap in self.loads)

    @property
    def carried(self) -> dict[SSAValue, int]:
        """How many places before the present one a thread keeps the cells of, by target."""
        found: dict[SSAValue, int] = {}
        for tap in self.op.tap_list:
            field, age = self.op.sources[tap.operand], self.op.age(tap)
            if self.op.is_result(tap):
                found[field] = max(found.get(field, 0), age)
        return found

    @property
    def places_of_turn(self) -> int:
        """The places of a turn, by the cells loaded for each."""
        loads = sum(not self.op.is_result(tap) for tap in self.op.tap_list)
        most = (turn for turn in TURNS if turn * max(loads, 1) * self.beside <= MOST_LOADED)
        if self.staging is not None:
            vectors = [vector_of(field) for field in self.fields]
            return max(next(most, 1), *vectors)
        return next((turn for turn in most if turn <= len(self.op.places)), 1)

    @property
    def name(self) -> str:
        """The name of the kernel."""
        return f"sweep.{self.op.cell.string_value()}"
