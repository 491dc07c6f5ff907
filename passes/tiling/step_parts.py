"""Steps in parts: kernels of some of a step's updates, with every tap read from memory.

A step too large for a tile, because of its reach or its number of fields and updates, runs in
parts. Each part is a kernel of a few consecutive updates; parts are launched in the program's
order. A part alone advances no step, so parts read and write the buffers of the unfused program.

`temporal.update %b = @cell(%a[0, -8], %a[0, 0]) in <[0, 0], [64, 64]>` becomes
```
tile.kernel @far_step(%src, %dst) roles [...] steps 1 bounds <[0, 0], [64, 64]> {
  %a0 = tile.load %src at [0, -8] : !tile.queue<f64, lag 0>
  %a1 = tile.load %src at [0, 0] : !tile.queue<f64, lag 0>
  %b0 = tile.apply @cell(%a0[0, 0], %a1[0, 0]) : !tile.queue<f64, lag 0>
  tile.store %b0 to %dst
}
```
No plane is streamed or kept, and no tiles overlap: any reach is possible. No thread reads cells
written by another thread of the launch:

1. An update may read its own cell of its target.
2. A later update of the part that reads a result beside the own cell computes the result again at
   that distance: the stage's loads are moved by the distance. All cells read lie in the box of the
   update that writes the result, so that no older version is needed.
3. Boxes of a part may differ: the kernel's bounds are the box around all, and stores of a smaller
   box name the box.

`part_kernels.py` builds the kernels.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

from xdsl.dialects.func import FuncOp
from xdsl.dialects.stencil import StencilBoundsAttr
from xdsl.ir import Operation, SSAValue
from xdsl.traits import SymbolTable

from timetile.dialects.boxes import CellBox, cells_of
from timetile.dialects.cell_types import CELL_BYTES
from timetile.dialects.series import number_type
from timetile.dialects.temporal import LoopOp, UpdateOp
from timetile.dialects.tile import LANES
from timetile.dialects.tile.schedule import Schedule
from timetile.passes.analysis.cells.pressure import live_words
from timetile.passes.analysis.cells.wide_updates import PART_TAPS, is_wide
from timetile.passes.analysis.geometry.plane_geometry import moved_by
from timetile.passes.analysis.launches.liveness import written_bounds
from timetile.passes.diagnostics import refuse

LARGE_BODY = 64
"""
Registers of a cell's values and scalars above which one block of a multiprocessor gets all
registers.
"""

WIDE_TAPS = 320
"""
Most cells loaded for a cell of a part with wide stencils: two fields of 73 points and their layers,
or fluxes of order 8 computed again at each of their places.
"""


LEAST_BOX = 0.5
"""The least share of a part's cells written by each update of the part."""


LEAST_LAYER = 0.125
"""The least share of a region's cells in a layer of the region's kernel."""


@dataclass(frozen=True)
class MovedUpdate:
    """An update of a part, by number, at a distance from the own cell (cells, per axis)."""

    number: int
    offset: tuple[int, ...]


@dataclass(frozen=True)
class LoadedCell:
    """A field in memory, as a value of the loop, at a distance from the own cell."""

    source: SSAValue
    offset: tuple[int, ...]


class StepPart:
    """Consecutive updates of a step, for one kernel."""

    def __init__(self, updates: Sequence[UpdateOp]):
        self.updates = tuple(updates)
        self.before: list[dict[SSAValue, int]] = []
        """For each update, the number of the last update before that writes a loop's argument."""
        self.first: dict[SSAValue, int] = {}
        """The loop's arguments written by the part, with the number of the first writing update."""
        last: dict[SSAValue, int] = {}
        for number, update in enumerate(self.updates):
            self.before.append(last)
            last = {**last, **dict.fromkeys(update.targets, number)}
            for target in update.targets:
                self.first.setdefault(target, number)
        self.written = last
        """The loop's arguments written by the part, with the number of the last writing update."""

    @cached_property
    def box(self) -> StencilBoundsAttr:
        """The smallest box around all cells written by the part."""
        return reduce(CellBox.__or__, (CellBox.of(each.box) for each in self.updates)).bounds()

    def reads(self, moved: MovedUpdate) -> Iterator[MovedUpdate | LoadedCell]:
        """What each tap of an update reads: an update of the part, or memory."""
        update, before = self.updates[moved.number], self.before[moved.number]
        for tap in update.tap_list:
            source, offset = update.sources[tap.operand], moved_by(moved.offset, tap.offset)
            if source in before:
                yield MovedUpdate(before[source], offset)
            else:
                yield LoadedCell(source, offset)

    def cells(self, number: int) -> CellBox:
        """
        The cells that have a result after an update: the box of the part's first update that writes
        the target. Beside the update's own box, a cell has the result of the update before.
        """
        update = self.updates[number]
        return CellBox.of(self.updates[self.first[update.targets[0]]].box)

    def is_masked(self, number: int) -> bool:
        """Whether an update writes some of the cells that an earlier update of the part writes."""
        return CellBox.of(self.updates[number].box) != self.cells(number)

    def kept(self, moved: MovedUpdate) -> list[MovedUpdate]:
        """The results that stay beside the box of a masked update, one for each target."""
        if not self.is_masked(moved.number):
            return []
        before = self.before[moved.number]
        targets = self.updates[moved.number].targets
        return [MovedUpdate(before[t], moved.offset) for t in targets if t in before]

    @cached_property
    def stages(self) -> dict[MovedUpdate, CellBox]:
        """
        The computed updates, in the order of the program, with a box around the cells read by the
        stores and later updates. Without updates overwritten before a read.
        """
        found: dict[MovedUpdate, CellBox] = {}
        here = (0,) * len(self.box.lb)
        last = set(self.written.values())
        for number in reversed(range(len(self.updates))):
            if number in last:
                own = MovedUpdate(number, here)
                box = self.cells(number)
                found[own] = found[own] | box if own in found else box
            for moved in [each for each in found if each.number == number]:
                cells = found[moved]
                for kept in self.kept(moved):
                    found[kept] = found[kept] | cells if kept in found else cells
                if self.is_masked(number):
                    cells = cells & CellBox.of(self.updates[number].box)
                for read, tap in zip(self.reads(moved), self.updates[number].tap_list):
                    if isinstance(read, MovedUpdate):
                        box = cells.moved(tap.offset)
                        found[read] = found[read] | box if read in found else box
        return dict(sorted(found.items(), key=lambda item: item[0].number))

    @cached_property
    def loads(self) -> frozenset[LoadedCell]:
        """The cells of fields loaded for a cell."""
        reads = (read for moved in self.stages for read in self.reads(moved))
        return frozenset(read for read in reads if isinstance(read, LoadedCell))

    @property
    def computes_again(self) -> bool:
        """Some result is computed again beside the own cell."""
        return any(any(moved.offset) for moved in self.stages)

    @property
    def has_one_box(self) -> bool:
        """All updates have one box."""
        return len({update.box for update in self.updates}) == 1

    @property
    def is_kernel(self) -> bool:
        """
        Threads read no cell that another thread writes, and find every cell in its newest version.
        A field is written once, or once more in a part of its box.
        """
        for number, update in enumerate(self.updates):
            box = self.cells(number)
            if any(CellBox.of(self.updates[self.first[t]].box) != box for t in update.targets):
                return False
            if CellBox.of(update.box) not in box:
                return False
        for moved, cells in self.stages.items():
            update, is_moved = self.updates[moved.number], any(moved.offset)
            if cells not in self.cells(moved.number):
                return False
            if is_moved and (update.index_axes or self.is_masked(moved.number)):
                return False
        return not any(load.source in self.written and any(load.offset) for load in self.loads)


def is_small_part(part: StepPart) -> bool:
    """A part in one box that computes nothing twice, with few loads."""
    small = part.has_one_box and not part.computes_again and len(part.loads) <= PART_TAPS
    return small and part.is_kernel


def is_fused_part(part: StepPart) -> bool:
    """
    A part with few loads, in boxes of nearly the same cells: threads compute all cells of the box
    around the boxes.
    """
    return has_like_boxes(part) and len(part.loads) <= PART_TAPS and part.is_kernel


def is_wide_part(part: StepPart) -> bool:
    """A part in boxes of nearly the same cells, with as many loads as wide stencils have."""
    return has_like_boxes(part) and len(part.loads) <= WIDE_TAPS and part.is_kernel


def is_region_part(part: StepPart) -> bool:
    """
    A part of one region with few loads: all boxes lie in the largest, and a layer is no small share
    of its region.
    """
    boxes = [CellBox.of(update.box) for update in part.updates]
    largest = max(boxes, key=cells_of)
    least = LEAST_LAYER * cells_of(largest)
    nested = all(box in largest and cells_of(box) >= least for box in boxes)
    return nested and len(part.loads) <= PART_TAPS and part.is_kernel


def has_like_boxes(part: StepPart) -> bool:
    """Each update of a part writes a large share of the part's box."""
    cells = cells_of(CellBox.of(part.box))
    return all(cells_of(CellBox.of(update.box)) >= LEAST_BOX * cells for update in part.updates)


def largest_parts(loop: LoopOp) -> tuple[int, ...]:
    """The cuts of a step into as few parts as possible that compute nothing twice."""
    return cuts_of(loop, is_small_part)


def fused_parts(loop: LoopOp) -> tuple[int, ...]:
    """The cuts of a step into as few parts as possible, with results computed again."""
    return cuts_of(loop, is_fused_part)


def wide_parts(loop: LoopOp) -> tuple[int, ...]:
    """The cuts of a step into as few parts as possible, with the loads of wide stencils."""
    return cuts_of(loop, is_wide_part)


def parts_by_width(loop: LoopOp) -> tuple[int, ...]:
    """The cuts of a step into as few parts as possible of wide updates alone, or of others."""
    return cuts_of(
        loop, lambda part: is_wide_part(part) and len({is_wide(each) for each in part.updates}) == 1
    )


def region_parts(loop: LoopOp, *, again: bool) -> tuple[int, ...]:
    """
    The cuts of a step in regions into as few parts as possible, where `again` with results computed
    again.
    """
    if again:
        return cuts_of(loop, is_region_part)
    return cuts_of(loop, lambda part: is_region_part(part) and not part.computes_again)


def cuts_of(loop: LoopOp, fits: Callable[[StepPart], bool]) -> tuple[int, ...]:
    """
    The cuts of a step into as few parts as possible, each part as long as it fits: the number of
    the first update of each part but the first.
    """
    cuts: list[int] = []
    part: StepPart | None = None
    for number, update in enumerate(loop.updates):
        more = None if part is None else StepPart([*part.updates, update])
        if more is not None and fits(more):
            part = more
            continue
        if part is not None:
            cuts.append(number)
        part = StepPart([update])
    return tuple(cuts)


def memory_schedule(loop: LoopOp) -> Schedule:
    """The schedule of a step in the fewest parts: a cell a thread, in rows of a warp."""
    rank = len(written_bounds(loop).lb)
    ones = (1,) * rank
    return Schedule(
        cells=ones, lanes=(*ones[1:], LANES), warps=ones, pack=8, ahead=0, resident=True,
        occupancy=1 if has_large_bodies(loop) else 2, reads_memory=True, cuts=largest_parts(loop),
    )  # fmt: skip


def has_large_bodies(loop: LoopOp) -> bool:
    """
    Whether some cell takes more registers than a thread has if two blocks share a multiprocessor.
    """
    module = loop.get_toplevel_object()
    assert isinstance(module, Operation)
    functions = [SymbolTable.lookup_symbol(module, update.cell) for update in loop.updates]
    live = [live_words(function) for function in functions if isinstance(function, FuncOp)]
    scalars = sum(CELL_BYTES.get(number_type(scalar), 4) // 4 for scalar in loop.scalars)
    return max(live, default=0) + scalars > LARGE_BODY


def parts_of(loop: LoopOp, cuts: Sequence[int]) -> list[StepPart]:
    """
    The parts of a step cut before the updates of these numbers. Refuses a part impossible as a
    kernel.
    """
    updates, count = loop.updates, len(loop.updates)
    if any(not 0 < cut < count for cut in cuts):
        refuse(
            loop,
            f"a step of {count} updates is cut before updates 1 to {count - 1}, got {list(cuts)}; "
            "give device-tiling other cuts",
        )
    missing = missing_cut(loop, cuts)
    if missing is not None:
        refuse(
            loop,
            f"update {missing} cannot share a kernel with the update before: a thread would "
            "read cells written by other threads, or a field is written in two boxes; give "
            f"device-tiling cuts with {missing}",
        )
    return [StepPart(updates[first:end]) for first, end in itertools.pairwise((0, *cuts, count))]


def missing_cut(loop: LoopOp, cuts: Sequence[int]) -> int | None:
    """The first update that needs a cut before it, beside some cuts; None if no update does."""
    updates = loop.updates
    for first, end in itertools.pairwise((0, *cuts, len(updates))):
        for number in range(first + 1, end):
            if not StepPart(updates[first : number + 1]).is_kernel:
                return number
    return None
