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
No plane is streamed or kept, and no tiles overlap: any reach is possible. Each thread computes
exactly the cells stored by the thread, so an update may also read its own cell of its target.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntAttr
from xdsl.dialects.func import FuncOp
from xdsl.dialects.stencil import StencilBoundsAttr
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import SymbolTable

from timetile.dialects.syntax import element_type
from timetile.dialects.taps import Tap
from timetile.dialects.temporal import LoopOp, UpdateOp
from timetile.dialects.tile import (
    LANES,
    ApplyOp,
    KernelOp,
    LoadOp,
    QueueType,
    RoleKind,
    StoreOp,
)
from timetile.dialects.tile.schedule import Schedule
from timetile.passes.analysis.cells.pressure import live_words, value_words
from timetile.passes.analysis.edges import loop_boundary
from timetile.passes.analysis.launches.liveness import written_bounds
from timetile.passes.diagnostics import refuse
from timetile.passes.raising.narrow_fields import read_field
from timetile.passes.tiling.kernel_arguments import KernelArguments

LARGE_BODY = 64
"""
Registers of a cell's values and scalars above which one block of a multiprocessor gets all
registers.
"""

PART_TAPS = 64
"""
Most taps of a part of several updates. Each tap has its own address or offset, and a load in
flight.
"""


class StepPart:
    """Consecutive updates of a step, for one kernel."""

    def __init__(self, first: UpdateOp):
        self.updates = [first]

    @property
    def box(self) -> StencilBoundsAttr:
        """The cells written by every update of the part."""
        return self.updates[0].box

    @property
    def written(self) -> set[SSAValue]:
        """The loop's arguments written by the part."""
        return {target for update in self.updates for target in update.targets}

    @property
    def needed(self) -> list[UpdateOp]:
        """The updates, without those overwritten by a later update before a read."""
        wanted, kept = self.written, list[UpdateOp]()
        for update in reversed(self.updates):
            if wanted.isdisjoint(update.targets):
                continue
            wanted = wanted.difference(update.targets).union(update.sources)
            kept.insert(0, update)
        return kept

    def takes(self, update: UpdateOp) -> bool:
        """
        Whether the next update may join: with an equal box, no tap beside the cell of a field
        written by the part, and no write of a field read beside the cell by the part.
        """
        taps = sum(len(each.tap_list) for each in (*self.updates, update))
        if update.box != self.box or taps > PART_TAPS:
            return False
        if read_beside(update) & self.written:
            return False
        read = set[SSAValue]().union(*map(read_beside, self.updates))
        return not read & set(update.targets)


def read_beside(update: UpdateOp) -> set[SSAValue]:
    """The fields tapped by an update beside its own cell."""
    return {update.sources[tap.operand] for tap in update.tap_list if any(tap.offset)}


def largest_parts(loop: LoopOp) -> tuple[int, ...]:
    """
    The cuts of a step into as few parts as possible: the number of the first update of each part
    but the first.
    """
    cuts: list[int] = []
    part: StepPart | None = None
    for number, update in enumerate(loop.updates):
        if part is not None and part.takes(update):
            part.updates.append(update)
            continue
        if part is not None:
            cuts.append(number)
        part = StepPart(update)
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
    scalars = sum(map(value_words, loop.scalars))
    return max(live, default=0) + scalars > LARGE_BODY


def parts_of(loop: LoopOp, cuts: Sequence[int]) -> list[StepPart]:
    """
    The parts of a step cut before the updates of these numbers. Refuses a part impossible as a
    kernel.
    """
    count = len(loop.updates)
    if any(not 0 < cut < count for cut in cuts):
        refuse(
            loop,
            f"a step of {count} updates is cut before updates 1 to {count - 1}, got {list(cuts)}; "
            "give device-tiling other cuts",
        )
    parts: list[StepPart] = []
    for number, update in enumerate(loop.updates):
        if number == 0 or number in cuts:
            parts.append(StepPart(update))
        elif parts[-1].takes(update):
            parts[-1].updates.append(update)
        else:
            refuse(
                loop,
                f"update {number} cannot share a kernel with the update before: the update reads "
                "other cells of a field written before, or writes another box; give device-tiling "
                f"cuts with {number}",
            )
    return parts


def part_kernels(loop: LoopOp, schedule: Schedule, name: str) -> list[KernelOp]:
    """The kernels of a step in the parts of its schedule, with a layout, in launch order."""
    parts = parts_of(loop, schedule.cuts)
    names = [name] if len(parts) == 1 else [f"{name}_{k}" for k in range(len(parts))]
    kernels = [PartBuilder(loop, part).build(own) for own, part in zip(names, parts)]
    for kernel in kernels:
        kernel.layout, kernel.occupancy = schedule.layout(), IntAttr(schedule.occupancy)
        kernel.schedule = loop.schedule
    return kernels


class PartBuilder:
    """Builds the kernel of one part of a loop's step."""

    def __init__(self, loop: LoopOp, part: StepPart):
        self.loop, self.part = loop, part
        self.rank = len(part.box.lb)
        self.block = Block()
        self.arguments = KernelArguments(self.block)
        self.versions: dict[SSAValue, SSAValue] = {}
        """The queues of versions made by the part, by the loop's argument."""
        self.loads: dict[tuple[SSAValue, tuple[int, ...]], SSAValue] = {}
        self.captured = {value: read_field(value) for value in loop.captures}
        """The fields in memory behind the captured fields."""

    def field(self, source: SSAValue) -> SSAValue:
        """The kernel's argument for a field read by an update."""
        own = self.loop.body.block.args
        if source in own:
            return self.arguments.of(RoleKind.SOURCE, own.index(source), source)
        index = self.loop.captures.index(source)
        return self.arguments.of(RoleKind.CAPTURE, index, self.captured[source].field)

    def tapped(self, source: SSAValue, offset: tuple[int, ...]) -> SSAValue:
        """The queue with a field's cells at a distance, to be tapped at the own cell."""
        if source in self.versions:
            return self.versions[source]
        if (source, offset) not in self.loads:
            axes = self.captured[source].axes if source in self.captured else None
            self.block.add_op(load := LoadOp(self.field(source), None, 0, offset, axes))
            self.loads[source, offset] = load.result
        return self.loads[source, offset]

    def apply(self, update: UpdateOp) -> None:
        """Add the stage of an update. Later updates read the results as versions of the targets."""
        tapped = [
            self.tapped(update.sources[tap.operand], tuple(tap.offset)) for tap in update.tap_list
        ]
        queues = list(dict.fromkeys(tapped))
        here = (0,) * self.rank
        scalars = [
            self.arguments.of(RoleKind.SCALAR, self.loop.scalars.index(scalar), scalar)
            for scalar in update.scalars
        ]
        apply = ApplyOp(
            update.cell,
            queues,
            [Tap(queues.index(queue), here) for queue in tapped],
            self.rank,
            [QueueType(element_type(target), 0) for target in update.targets],
            scalars=scalars,
            indices=update.index_axes,
        )
        self.block.add_op(apply)
        self.versions |= dict(zip(update.targets, apply.res, strict=True))

    def build(self, name: str) -> KernelOp:
        """The whole kernel, without a layout."""
        for update in self.part.needed:
            self.apply(update)
        own = self.loop.body.block.args
        for role, before in enumerate(self.loop.rotation):
            queue = self.versions.get(own[before])
            if queue is not None:
                self.block.add_op(
                    StoreOp(queue, self.arguments.of(RoleKind.TARGET, role, own[before]))
                )
        kernel = KernelOp(name, self.arguments.roles, 1, None, self.part.box, self.block)
        kernel.beyond = loop_boundary(self.loop)
        return kernel
