"""group-updates: updates of equal boxes stand beside each other, and overwritten updates are left
out.

Before (a step with an absorbing layer of eight cells, kept in a memory variable for each field):
```
temporal.loop %n (%u = %U, %v = %V, %m = %M, %w = %W, %k = %K, %l = %L) rotate [...] {
  temporal.update %v = @cell(%u[-1], %u[1]) in <[1], [63]>
  temporal.update %m = @fade(%m[0]) in <[1], [9]>
  temporal.update %v = @add(%v[0], %m[0]) in <[1], [9]>
  temporal.update %k = @cell(%w[-1], %w[1]) in <[1], [63]>
  temporal.update %l = @fade(%l[0]) in <[1], [9]>
  temporal.update %k = @add(%k[0], %l[0]) in <[1], [9]>
}
```
After:
```
  temporal.update %v = @cell(%u[-1], %u[1]) in <[1], [63]>
  temporal.update %k = @cell(%w[-1], %w[1]) in <[1], [63]>
  temporal.update %m = @fade(%m[0]) in <[1], [9]>
  temporal.update %v = @add(%v[0], %m[0]) in <[1], [9]>
  temporal.update %l = @fade(%l[0]) in <[1], [9]>
  temporal.update %k = @add(%k[0], %l[0]) in <[1], [9]>
```
1. An update whose cells are written again before any read is left out: a copy of old cells, made
   for the cells that a region leaves alone, where the next region takes all of them.
2. The next update is the first in the program's order that waits for no other, with the box of the
   update before if there is one. An update waits for an earlier one if both touch a cell and one
   writes the cell.

Updates of one box share a kernel, and each cell of a field passes through the memory once
(`step_parts.py`). Steps without layers, boxes of less than LAYER of the cells, stay as they are,
and steps of more than MOST_UPDATES updates: the cost is a comparison for each pair of updates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from timetile.dialects.boxes import CellBox
from timetile.dialects.temporal import LoopOp, UpdateOp
from timetile.passes.analysis.launches.liveness import written_bounds

LAYER = 0.5
"""The share of a step's cells below which the box of an update is a layer."""

MOST_UPDATES = 256
"""Most updates of a step that is looked at."""

Cells = dict[SSAValue, CellBox]
"""Cells of buffers: a box for each."""


def meets(one: Cells, other: Cells) -> bool:
    """Whether two sets of cells have a cell in common."""
    return any(
        source in other and not (box & other[source]).is_empty for source, box in one.items()
    )


@dataclass(frozen=True)
class Footprint:
    """The cells that an update reads and writes."""

    update: UpdateOp

    @cached_property
    def box(self) -> CellBox:
        """The cells written."""
        return CellBox.of(self.update.box)

    @cached_property
    def writes(self) -> Cells:
        """The cells written, by target."""
        return dict.fromkeys(self.update.targets, self.box)

    @cached_property
    def reads(self) -> Cells:
        """A box around the cells read, by source."""
        found: Cells = {}
        for tap in self.update.tap_list:
            source, cells = self.update.sources[tap.operand], self.box.moved(tap.offset)
            found[source] = found[source] | cells if source in found else cells
        return found

    def waits_for(self, earlier: Footprint) -> bool:
        """Whether the update cannot come before an earlier one."""
        return (
            meets(earlier.writes, self.reads)
            or meets(earlier.reads, self.writes)
            or meets(earlier.writes, self.writes)
        )


def is_written_again(footprint: Footprint, later: Sequence[Footprint]) -> bool:
    """Whether later updates write all cells of an update again before a read of any."""
    missing = set(footprint.writes)
    for other in later:
        if meets(dict.fromkeys(missing, footprint.box), other.reads):
            return False
        missing -= {target for target in other.writes if footprint.box in other.box}
        if not missing:
            return True
    return False


def grouped(footprints: Sequence[Footprint]) -> list[Footprint]:
    """The updates in an order with equal boxes beside each other."""
    waiting = {
        number: {k for k in range(number) if each.waits_for(footprints[k])}
        for number, each in enumerate(footprints)
    }
    ordered: list[Footprint] = []
    while waiting:
        ready = [number for number, others in waiting.items() if not others & waiting.keys()]
        alike = [k for k in ready if ordered and footprints[k].box == ordered[-1].box]
        chosen = (alike or ready)[0]
        del waiting[chosen]
        ordered.append(footprints[chosen])
    return ordered


def has_layers(loop: LoopOp) -> bool:
    """Whether some update of a loop has a box of few of the step's cells."""
    bounds = CellBox.of(written_bounds(loop))
    cells = prod(high - low for low, high in zip(bounds.lower, bounds.upper))
    boxes = [CellBox.of(update.box) for update in loop.updates]
    return any(
        prod(high - low for low, high in zip(box.lower, box.upper)) < LAYER * cells for box in boxes
    )


def is_plain(loop: LoopOp) -> bool:
    """Whether the body of a loop has only updates whose cells are known, and few."""
    few = 1 < len(loop.updates) <= MOST_UPDATES
    alone = all(isinstance(op, UpdateOp) for op in loop.body.block.ops)
    inside = all(update.beyond is None for update in loop.updates)
    return few and alone and inside and not loop.has_points


@dataclass(frozen=True)
class GroupUpdatesPass(ModulePass):
    """Group the updates of steps with layers; see the module's documentation."""

    name = "group-updates"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for loop in [inner for inner in op.walk() if isinstance(inner, LoopOp)]:
            if not is_plain(loop) or not has_layers(loop):
                continue
            every = [Footprint(update) for update in loop.updates]
            lost = [k for k, each in enumerate(every) if is_written_again(each, every[k + 1 :])]
            kept = [each for k, each in enumerate(every) if k not in lost]
            for each in every:
                each.update.detach()
            loop.body.block.add_ops(each.update for each in grouped(kept))
            for k in lost:
                every[k].update.erase()
