"""The launch of a sweep: its fields, lines, threads, and the places of a turn."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.ir import Operation, SSAValue

from timetile.dialects.taps import Tap
from timetile.dialects.temporal import SweepOp
from timetile.lowering.arguments import fields_of, scalars_of

BLOCKS = (256, 128, 64, 32)
"""Threads of a block: the most of which a launch has `FEW_BLOCKS` blocks."""

FEW_BLOCKS = 264
"""Blocks of a launch with work for each multiprocessor of a large GPU, twice."""

MOST_LOADED = 16
"""Cells that a thread loads at once, in a turn of several places."""

TURNS = (8, 4, 2, 1)
"""Places of a turn."""

MANY_LINES = 1 << 17
"""Lines whose threads hide the time of memory from each other."""

PLACES_AHEAD = 32
"""Places ahead of a turn that are asked for, of fewer lines."""


def sweeps_of(root: Operation) -> list[SweepOp]:
    """The sweeps inside an operation, in order."""
    return [op for op in root.walk() if isinstance(op, SweepOp)]


@dataclass(frozen=True)
class SweepFrame:
    """
    The launch of a sweep: fields and scalars, in the order of arguments, lines and threads. The
    cells of places `ahead` of a turn are asked for; none for 0.
    """

    op: SweepOp
    ahead: int

    @staticmethod
    def of(op: SweepOp) -> SweepFrame:
        """
        The launch of a sweep. Rows of a thread each fill the first-level cache: places ahead along
        the last axis would push out cells not read so far (8192 x 8192, H100: 0.7 of the speed).
        """
        of_rows = op.rank > 1 and op.axis.data == op.rank - 1
        is_hidden = SweepFrame(op, 0).lines >= MANY_LINES or len(op.places) <= PLACES_AHEAD
        return SweepFrame(op, 0 if is_hidden or of_rows else PLACES_AHEAD)

    @property
    def fields(self) -> tuple[SSAValue, ...]:
        """The fields, each once: sources, then targets."""
        return fields_of(self.op)

    @property
    def scalars(self) -> tuple[SSAValue, ...]:
        """The scalars, each once."""
        return scalars_of(self.op)

    @property
    def sizes(self) -> list[int]:
        """The cells of the box along each axis."""
        return [high - low for low, high in zip(self.op.box.lb, self.op.box.ub)]

    @property
    def lines(self) -> int:
        """The lines along the axis."""
        return prod(self.sizes[axis] for axis in self.op.line_axes)

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return next((n for n in BLOCKS if self.lines >= n * FEW_BLOCKS), BLOCKS[-1])

    @property
    def grid(self) -> int:
        """Blocks of the launch."""
        return -(-self.lines // self.threads)

    @property
    def carried(self) -> dict[SSAValue, int]:
        """The places before of which a thread keeps a target's cells, by target."""
        found: dict[SSAValue, int] = {}
        for tap in self.op.tap_list:
            field, age = self.op.sources[tap.operand], self.op.age(tap)
            if field in self.op.targets and age > 0:
                found[field] = max(found.get(field, 0), age)
        return found

    def is_carried(self, tap: Tap) -> bool:
        """Whether a tap reads a kept cell."""
        return self.op.sources[tap.operand] in self.op.targets and self.op.age(tap) > 0

    @property
    def places_of_turn(self) -> int:
        """The places of a turn, by the cells loaded for each."""
        loads = sum(not self.is_carried(tap) for tap in self.op.tap_list)
        most = (turn for turn in TURNS if turn * max(loads, 1) <= MOST_LOADED)
        return next((turn for turn in most if turn <= len(self.op.places)), 1)

    @property
    def name(self) -> str:
        """The name of the kernel."""
        return f"sweep.{self.op.cell.string_value()}"
