"""group-updates: updates of equal boxes, and wide ones, stand beside each other.

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
The next update is the first in the program's order that waits for no other, like the update before
if there is one: with its box, and as wide. An update is wide with more taps than a part of several
updates has loads (`PART_TAPS`). An update waits for an earlier one if both touch a cell and one
writes the cell.

Updates of one box share a kernel, and each cell of a field passes through the memory once
(`step_parts.py`); wide updates may have a kernel of their own. Steps without layers, boxes of less
than LAYER of the cells, stay as they are if all updates are wide, or none is, and so do steps of
more than MOST_UPDATES updates: the cost is a comparison for each pair of updates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from timetile.dialects.boxes import CellBox, cells_of
from timetile.dialects.temporal import LoopOp, UpdateOp
from timetile.dialects.temporal.footprints import MOST_UPDATES, Footprint
from timetile.passes.analysis.cells.wide_updates import is_wide
from timetile.passes.analysis.launches.liveness import written_bounds

LAYER = 0.5
"""The share of a step's cells below which the box of an update is a layer."""


def grouped(every: Sequence[Footprint]) -> list[Footprint]:
    """The updates in an order with like updates beside each other."""
    waiting = {
        number: {k for k in range(number) if each.waits_for(every[k])}
        for number, each in enumerate(every)
    }
    ordered: list[Footprint] = []
    while waiting:
        ready = [number for number, others in waiting.items() if not others & waiting.keys()]
        alike = [k for k in ready if ordered and write_alike(every[k], ordered[-1])]
        chosen = (alike or ready)[0]
        del waiting[chosen]
        ordered.append(every[chosen])
    return ordered


def write_alike(one: Footprint, other: Footprint) -> bool:
    """Whether two updates have one box, and both are wide or neither."""
    return one.box == other.box and is_wide(one.update) == is_wide(other.update)


def has_layers(loop: LoopOp) -> bool:
    """Whether some update writes a small share of the cells that the step writes."""
    bounds = CellBox.of(written_bounds(loop))
    cells = cells_of(bounds)
    boxes = [CellBox.of(update.box) for update in loop.updates]
    return any(cells_of(box) < LAYER * cells for box in boxes)


def has_known_cells(loop: LoopOp) -> bool:
    """Whether the body of a loop has only updates of known cells: no boundary, no points."""
    alone = all(isinstance(op, UpdateOp) for op in loop.body.block.ops)
    return alone and not loop.has_points and all(each.beyond is None for each in loop.updates)


@dataclass(frozen=True)
class GroupUpdatesPass(ModulePass):
    """Group the updates of steps with layers; see the module's documentation."""

    name = "group-updates"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for loop in [inner for inner in op.walk() if isinstance(inner, LoopOp)]:
            few = 1 < len(loop.updates) <= MOST_UPDATES
            several = has_layers(loop) or len({is_wide(update) for update in loop.updates}) > 1
            if not few or not several or not has_known_cells(loop):
                continue
            every = [Footprint(update) for update in loop.updates]
            for each in every:
                each.update.detach()
            loop.body.block.add_ops(each.update for each in grouped(every))
