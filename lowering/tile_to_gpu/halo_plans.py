"""Plans for the cells of each queue outside the bounds, made before any code.

A cell outside the bounds keeps the value of the buffer. The value comes from the buffer in memory
(a guard), or from the registers of an older level. Readers look a distance beyond the bounds, the
reach. A plane is patched by replacing cells outside: when the plane is made, if a stage reads these
cells in the same step; else at the end of the step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce

from xdsl.ir import SSAValue

from timetile.dialects.tile import (
    ApplyOp,
    KernelOp,
    LoadOp,
    RegistersAttr,
    SharedAttr,
    exchanges_of,
    queue_home,
    queue_lag,
    taps_of,
)
from timetile.lowering.tile_to_gpu.cells import CellFunction
from timetile.lowering.tile_to_gpu.queues import Position
from timetile.passes.analysis.geometry.extents import computed_sides
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.analysis.geometry.outside import guarding_field
from timetile.passes.analysis.geometry.plane_geometry import FieldShape, moved_by

Reach = tuple[tuple[int, int], ...]
"""
The distance of readers below and above their own cell, for each in-plane axis; negative if all
readers look to the other side.
"""

Sides = tuple[tuple[bool, bool], ...]
"""For each in-plane axis, whether a position may be outside the bounds below, and above."""


@dataclass(frozen=True)
class OlderLevel:
    """
    The queue with the cells outside the bounds in registers, in the plane of age `behind`.
    `crossing` is a value inside the cell function, unused outside the bounds: its register may hold
    a cell meanwhile.
    """

    queue: SSAValue
    behind: int
    crossing: SSAValue | None


@dataclass(frozen=True)
class Guard:
    """
    The memory with the cells of a queue outside the bounds: an argument of the kernel, the
    corresponding buffer in the thread's code, and the shape of both. An `older` level may have the
    cells in registers, too. Cells outside are right as soon as a plane is made
    (`patched_at_birth`), or else a step later.
    """

    field: SSAValue
    buffer: SSAValue
    shape: FieldShape
    older: OlderLevel | None
    patched_at_birth: bool


@dataclass(frozen=True)
class HaloPlan:
    """The plan of one queue. Without a guard no cell is replaced."""

    reach: Reach
    guard: Guard | None


def plan_halos(
    geometry: Geometry,
    arguments: Mapping[SSAValue, SSAValue],
    functions: Mapping[str, CellFunction],
) -> dict[SSAValue, HaloPlan]:
    """The plan of every queue of a kernel."""
    kernel = geometry.kernel
    older = older_levels(kernel, functions)
    reaches = Reaches(geometry, older)
    plans: dict[SSAValue, HaloPlan] = {}
    for queue, reach in reaches.known.items():
        guard = None
        if (field := guarding_field(queue)) is not None:
            shape, at_birth = FieldShape.of(field), reaches.asks_for_patched(queue)
            guard = Guard(field, arguments[field], shape, older.get(queue), at_birth)
        plans[queue] = HaloPlan(reach, guard)
    return plans


def older_levels(
    kernel: KernelOp, functions: Mapping[str, CellFunction]
) -> dict[SSAValue, OlderLevel]:
    """The older level of each queue with cells outside in another queue's registers."""
    levels: dict[SSAValue, OlderLevel] = {}
    for stage in kernel.stages:
        if not isinstance(stage, ApplyOp) or not stage.replaces_cells:
            continue
        for result, source in zip(stage.res, stage.outside):
            if keeps_in_registers(stage, source):
                function = functions[stage.cell.string_value()]
                behind = stage.lag - queue_lag(source)
                levels[result] = OlderLevel(
                    source, behind, function.crossing_value(newest_taps(stage))
                )
    return levels


def keeps_in_registers(stage: ApplyOp, source: SSAValue) -> bool:
    """A stage and the source of its cells outside both live in registers."""
    return isinstance(stage.home, RegistersAttr) and isinstance(queue_home(source), RegistersAttr)


def newest_taps(stage: ApplyOp) -> set[int]:
    """The arguments of a stage's cell function with planes of the stage's own step."""
    return {k for k, tap in enumerate(stage.tap_list) if stage.age(tap) == 0}


def widest(a: Reach, b: Reach) -> Reach:
    """The smallest reach around both."""
    return tuple((max(p, r), max(q, s)) for (p, q), (r, s) in zip(a, b))


def reach_of_tap(stage: ApplyOp, moved: Position, known: Mapping[SSAValue, Reach]) -> Reach:
    """
    The reach of a tap. A stage without `else` also computes cells outside the bounds, within the
    reach of its own readers, given as `known`.
    """
    around: Reach = ((0, 0),) * len(moved)
    if not stage.outside:
        around = reduce(widest, (known[result] for result in stage.res))
        # Cells outside a side with a value are numbers, whatever they tap.
        sides = [computed_sides(stage)[axis] for axis in stage.kernel.plane_axes]
        around = tuple(
            (low if below else min(low, 0), high if above else min(high, 0))
            for (low, high), (below, above) in zip(around, sides, strict=True)
        )
    return tuple((low - d, high + d) for (low, high), d in zip(around, moved, strict=True))


class Reaches:
    """
    How far from a cell inside the bounds the readers of each queue of a kernel look, below and
    above.
    """

    def __init__(self, geometry: Geometry, older: Mapping[SSAValue, OlderLevel]):
        self.geometry, self.kernel, self.older = geometry, geometry.kernel, older
        self.own_cell: Reach = ((0, 0),) * len(geometry.axes)
        """The reach of a reader of its own cell alone."""
        queues = [result for stage in self.kernel.stages for result in stage.results]
        found: dict[SSAValue, Reach] = {}
        # Readers and heirs of a queue come after the queue.
        for queue in reversed(queues):
            found[queue] = self.reach_of(queue, found)
        self.known: dict[SSAValue, Reach] = {queue: found[queue] for queue in queues}

    def reach_of(self, queue: SSAValue, known: Mapping[SSAValue, Reach]) -> Reach:
        """How far a queue is read: directly, through its exchanges, and by heirs."""
        exchanges = [e for e in exchanges_of(queue) if not e.publishes_copies]
        reaches = [known[exchange.result] for exchange in exchanges]
        reaches += [known[heir] for heir in self.heirs_of(queue)]
        for stage, tap in taps_of(queue):
            reaches.append(reach_of_tap(stage, self.kernel.in_plane(tap.offset), known))
        return reduce(widest, reaches) if reaches else self.own_cell

    def heirs_of(self, queue: SSAValue) -> list[SSAValue]:
        """The heirs of a queue: queues with cells outside the bounds from the queue's registers."""
        return [heir for heir, level in self.older.items() if level.queue is queue]

    def asks_for_patched(self, queue: SSAValue) -> bool:
        """
        Cells outside the bounds must be right when a plane is made: neighbours or heirs read these
        cells in the same step.
        """
        stage = queue.owner
        if not isinstance(stage, LoadOp | ApplyOp):
            return False
        if any(self.older[heir].behind == 0 for heir in self.heirs_of(queue)):
            return True
        if queue not in self.older:
            # In planes of several axes, each neighbour read at once would need a replacement of its
            # own: patching the plane is cheaper.
            many = self.neighbours_now(queue) > len(self.geometry.thread_positions)
            return many and len(self.geometry.axes) > 1 and not isinstance(stage.home, SharedAttr)
        return bool(exchanges_of(queue)) or any(
            reader.age(tap) == 0 and self.looks_beyond(reader, self.kernel.in_plane(tap.offset))
            for reader, tap in taps_of(queue)
        )

    def looks_beyond(self, reader: ApplyOp, moved: Position) -> bool:
        """A tap looks at another cell than the reader's own."""
        return any(map(any, reach_of_tap(reader, moved, self.known)))

    def neighbours_now(self, queue: SSAValue) -> int:
        """
        The number of neighbours in the plane read by a thread in the step of the plane's making.
        """
        own = self.geometry.thread_positions
        seen: set[Position] = set()
        values = [queue, *(exchange.result for exchange in exchanges_of(queue))]
        for value in values:
            for reader, tap in taps_of(value):
                moved = self.kernel.in_plane(tap.offset)
                if reader.age(tap) == 0 and any(moved):
                    seen |= {moved_by(at, moved) for at in own}
        return len(seen.difference(own))
