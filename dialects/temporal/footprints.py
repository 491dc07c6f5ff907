"""The cells that updates read and write."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from xdsl.ir import SSAValue

from timetile.dialects.boxes import CellBox
from timetile.dialects.syntax import field_bounds
from timetile.dialects.temporal.update import UpdateOp

MOST_UPDATES = 256
"""Most updates of a step whose pairs are compared."""

Cells = dict[SSAValue, CellBox]
"""Cells of buffers: a box for each."""


def meets(one: Cells, other: Cells) -> bool:
    """Whether two sets of cells have a cell in common."""
    return any(
        source in other and not (box & other[source]).is_empty for source, box in one.items()
    )


@dataclass(frozen=True)
class Footprint:
    """The cells that an update reads and writes, in a part of its box if one is given."""

    update: UpdateOp
    part: CellBox | None = None

    @cached_property
    def box(self) -> CellBox:
        """The cells written."""
        return CellBox.of(self.update.box) if self.part is None else self.part

    @cached_property
    def writes(self) -> Cells:
        """The cells written, by target."""
        return dict.fromkeys(self.update.targets, self.box)

    @cached_property
    def reads(self) -> Cells:
        """A box around the cells read, by source: the whole field if taps go beyond."""
        found: Cells = {}
        for tap in self.update.tap_list:
            source, cells = self.update.sources[tap.operand], self.box.moved(tap.offset)
            if self.update.beyond is not None:
                cells = CellBox.of(field_bounds(source))
            found[source] = found[source] | cells if source in found else cells
        return found

    def waits_for(self, earlier: Footprint) -> bool:
        """Whether the update cannot come before an earlier one."""
        return (
            meets(earlier.writes, self.reads)
            or meets(earlier.reads, self.writes)
            or meets(earlier.writes, self.writes)
        )


def is_written_again(footprint: Footprint, later: Iterable[Footprint]) -> bool:
    """Whether later updates write all cells of an update again before a read of any."""
    missing = set(footprint.writes)
    for other in later:
        if meets(dict.fromkeys(missing, footprint.box), other.reads):
            return False
        missing -= {target for target in other.writes if footprint.box in other.box}
        if not missing:
            return True
    return False
