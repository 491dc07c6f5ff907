"""The kernels of a step in parts: stages that read every tap from memory. See `step_parts.py`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import IntAttr
from xdsl.ir import Block, SSAValue

from timetile.dialects.boxes import CellBox, cells_of
from timetile.dialects.syntax import cell_type
from timetile.dialects.taps import Tap
from timetile.dialects.temporal import LoopOp
from timetile.dialects.tile import (
    ApplyOp,
    KernelOp,
    LoadOp,
    RoleKind,
    StoreOp,
)
from timetile.dialects.tile.queues import made_queue_type
from timetile.dialects.tile.schedule import Schedule
from timetile.passes.analysis.edges import loop_boundary
from timetile.passes.analysis.launches.liveness import is_own_scratch, written_bounds
from timetile.passes.raising.narrow_fields import ReadField, read_field
from timetile.passes.tiling.fitted_layouts import fitted_layout
from timetile.passes.tiling.kernel_arguments import KernelArguments
from timetile.passes.tiling.step_parts import (
    LEAST_BOX,
    LoadedCell,
    MovedUpdate,
    StepPart,
    parts_of,
)


def part_kernels(loop: LoopOp, schedule: Schedule, name: str) -> list[KernelOp]:
    """The kernels of a step in the parts of its schedule, with a layout, in launch order."""
    parts = parts_of(loop, schedule.cuts)
    names = [name] if len(parts) == 1 else [f"{name}_{k}" for k in range(len(parts))]
    captured = {value: read_field(value) for value in loop.captures}
    kernels = [PartBuilder(loop, part, captured).build(own) for own, part in zip(names, parts)]
    lay_out(kernels, schedule, cells_of(CellBox.of(written_bounds(loop))))
    for kernel in kernels:
        kernel.schedule = loop.schedule
    return kernels


def lay_out(kernels: Sequence[KernelOp], schedule: Schedule, cells: int) -> None:
    """
    Give the kernels of a step, which has `cells` cells, a schedule's layout; a kernel of a layer
    gets one that fits the layer.
    """
    layout = schedule.layout()
    for part, kernel in enumerate(kernels):
        box = CellBox.of(kernel.bounds)
        is_layer = cells_of(box) < LEAST_BOX * cells
        kernel.layout = fitted_layout(layout, box) if is_layer else layout
        kernel.occupancy = IntAttr(schedule.occupancy_of(part))


class PartBuilder:
    """Builds the kernel of one part of a loop's step."""

    def __init__(self, loop: LoopOp, part: StepPart, captured: Mapping[SSAValue, ReadField]):
        """`captured`: the fields in memory behind the captured fields."""
        self.loop, self.part, self.captured = loop, part, captured
        self.rank = len(part.box.lb)
        self.block = Block()
        self.arguments = KernelArguments(self.block, loop)
        self.made: dict[MovedUpdate, ApplyOp] = {}
        self.loads: dict[LoadedCell, SSAValue] = {}
        self.captures = loop.captures

    def field(self, source: SSAValue) -> SSAValue:
        """The kernel's argument for a field read by an update."""
        own = self.loop.body.block.args
        if source in own:
            return self.arguments.of(RoleKind.SOURCE, own.index(source), source)
        index = self.captures.index(source)
        return self.arguments.of(RoleKind.CAPTURE, index, self.captured[source].field)

    def loaded(self, cell: LoadedCell) -> SSAValue:
        """The queue with a field's cells at a distance, to be tapped at the own cell."""
        if cell not in self.loads:
            axes = None
            if cell.source in self.captured:
                axes = self.captured[cell.source].axes
            load = LoadOp(self.field(cell.source), None, 0, cell.offset, axes)
            self.block.add_op(load)
            self.loads[cell] = load.result
        return self.loads[cell]

    def result(self, moved: MovedUpdate, target: SSAValue) -> SSAValue:
        """The queue of an update's result for one of the update's targets."""
        targets = tuple(self.part.updates[moved.number].targets)
        return self.made[moved].res[targets.index(target)]

    def apply(self, moved: MovedUpdate) -> None:
        """Add the stage of an update at a distance."""
        update = self.part.updates[moved.number]
        tapped = [
            self.loaded(read)
            if isinstance(read, LoadedCell)
            else self.result(read, update.sources[tap.operand])
            for read, tap in zip(self.part.reads(moved), update.tap_list, strict=True)
        ]
        queues = list(dict.fromkeys(tapped))
        here = (0,) * self.rank
        scalars = [self.arguments.number(scalar, 0) for scalar in update.scalars]
        kept = self.part.kept(moved)
        apply = ApplyOp(
            update.cell,
            queues,
            [Tap(queues.index(queue), here) for queue in tapped],
            self.rank,
            [made_queue_type(cell_type(target), 0) for target in update.targets],
            [self.result(each, target) for each, target in zip(kept, update.targets)],
            scalars,
            update.index_axes,
            update.box if kept else None,
        )
        self.block.add_op(apply)
        self.made[moved] = apply

    def written(self, target: SSAValue) -> SSAValue:
        """The queue with the last result for a written argument of the loop."""
        return self.result(MovedUpdate(self.part.written[target], (0,) * self.rank), target)

    def store(self, target: SSAValue, role: int) -> None:
        """Add the store of a written argument of the loop."""
        queue = self.written(target)
        box = self.part.cells(self.part.written[target])
        own = None if box == CellBox.of(self.part.box) else box.bounds()
        self.block.add_op(StoreOp(queue, self.arguments.of(RoleKind.TARGET, role, target), own))

    def is_passing(self, role: int) -> bool:
        """Whether a buffer is the loop's scratch, read by later updates of the part alone."""
        buffer = self.loop.body.block.args[role]
        outside = set(self.loop.updates) - set(self.part.updates)
        return (
            is_own_scratch(self.loop, role)
            and self.written(buffer).first_use is not None
            and all(load.source is not buffer for load in self.part.loads)
            and all(buffer not in update.sources for update in outside)
        )

    def build(self, name: str) -> KernelOp:
        """The whole kernel, without a layout."""
        for moved in self.part.stages:
            self.apply(moved)
        own = self.loop.body.block.args
        for role, before in enumerate(self.loop.rotation):
            if own[before] in self.part.written and not self.is_passing(role):
                self.store(own[before], role)
        kernel = KernelOp(name, self.arguments.roles, 1, None, self.part.box, self.block)
        kernel.beyond = loop_boundary(self.loop)
        return kernel
