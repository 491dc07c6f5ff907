"""The planes executor: a kernel of the tile level, a stream step at a time over whole planes with NumPy.

There are no threads and no tiles: one chunk holds all planes, and every plane the whole domain. In
each step every stage runs once, in the order of the kernel's body. A queue keeps as many planes as its
home does, so that a lag, a depth or a number of slots that is wrong shows when a plane is read that is
not there. Cells that nothing has set are marked, and may not be stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.stencil import FieldType, IndexAttr, StencilBoundsAttr
from xdsl.ir import Attribute, Operation, SSAValue

from timetile.dialects.syntax import field_bounds
from timetile.dialects.tile import (
    ApplyOp,
    ExchangeOp,
    KernelOp,
    LoadOp,
    StageOp,
    StoreOp,
    queue_lag,
    queue_type,
)
from timetile.dialects.tile_attributes import MailAttr, MemoryAttr, RegistersAttr, SharedAttr
from timetile.passes.analysis.extents import Extent
from timetile.passes.analysis.geometry import Geometry
from timetile.passes.diagnostics import refuse
from timetile.passes.multi_queue_buffering import ring_windows
from timetile.runtime.arithmetic import Array, call, dtype_of
from timetile.runtime.cpu import box_slices, cell_function, coordinates
from timetile.runtime.simt.errors import describe

Mask = NDArray[np.bool_]


class PlaneError(Exception):
    """A kernel reads a plane that is not there or stores what was never set: names the stage."""

    def __init__(self, op: Operation, text: str):
        super().__init__(f"{describe(op)}: {text}")
        self.op = op


@dataclass
class Cells:
    """The cells of a field or of a plane (one cell thick along the stream), and which were set."""

    data: Array
    known: Mask

    @staticmethod
    def of(data: Array, *, known: bool) -> Cells:
        return Cells(data, np.full(data.shape, known))

    def copy(self) -> Cells:
        return Cells(self.data.copy(), self.known.copy())


@dataclass
class Home:
    """
    The planes that a queue keeps: a ring of slots, one a step, each with the queue and the step that
    made its plane. The queues of the circular multi-queue share one, each with its head at `base`.
    """

    queue: SSAValue
    slots: list[tuple[SSAValue, int, Cells] | None]
    base: int = 0

    def slot(self, step: int) -> int:
        """Where the plane made in a step lies."""
        return (step + self.base) % len(self.slots)

    def keep(self, step: int, plane: Cells) -> None:
        self.slots[self.slot(step)] = (self.queue, step, plane)

    def plane(self, reader: StageOp, age: int, step: int, first: int) -> Cells:
        """The plane made `age` steps before this one; PlaneError where it is not there."""
        kept = self.slots[self.slot(step - age)]
        if kept is not None and kept[0] is self.queue and kept[1] == step - age:
            return kept[2]
        if age >= len(self.slots):
            why = f"of which {len(self.slots)} planes are kept"
        elif step - age < first:
            why = f"of which no plane was made before step {first}"
        else:
            why = "which another queue of the ring has overwritten"
        assert isinstance(self.queue.owner, Operation)
        queue = describe(self.queue.owner)
        raise PlaneError(reader, f"reads in step {step} the plane of age {age} of {queue}, {why}")


def section(box: StencilBoundsAttr, axis: int | None, plane: int) -> StencilBoundsAttr:
    """The part of a box that lies in one plane; all of it where nothing is streamed."""
    spans = list(zip(box.lb, box.ub))
    if axis is not None:
        spans[axis] = (plane, plane + 1)
    return StencilBoundsAttr.from_bounds(spans)


def has_plane(box: StencilBoundsAttr, axis: int | None, plane: int) -> bool:
    """Some cells of a box lie in the plane."""
    return axis is None or tuple(box.lb)[axis] <= plane < tuple(box.ub)[axis]


def frame_of(kernel: KernelOp) -> StencilBoundsAttr:
    """A box that holds all fields of a kernel, and all cells that its stages tap."""
    fields = [arg for arg in kernel.body.block.args if isinstance(arg.type, FieldType)]
    boxes = [kernel.bounds, *(field_bounds(field) for field in fields)]
    for stage in kernel.stages:
        if isinstance(stage, ApplyOp):
            box = kernel.bounds if stage.box is None else stage.box
            boxes += [box, *(box + IndexAttr.get(*tap.offset) for tap in stage.tap_list)]
    return reduce(or_, boxes)


def make_homes(kernel: KernelOp) -> dict[SSAValue, Home]:
    """Empty homes for the queues of a placed kernel; queues in memory have none."""
    homes: dict[SSAValue, Home] = {}
    rings: dict[Attribute, list[tuple[SSAValue, int, Cells] | None]] = {}
    for stage in kernel.stages:
        if isinstance(stage, StoreOp):
            continue
        for number, queue in enumerate(stage.results):
            match stage.home:
                case RegistersAttr(depth=depth):
                    homes[queue] = Home(queue, [None] * (depth.data + 1))
                case SharedAttr(addressing=addressing) if addressing.data == "computed":
                    size, kind = stage.home.slots.data, queue_type(queue).element
                    if len(ring := rings.setdefault(kind, [None] * size)) != size:
                        refuse(stage, f"it has {size} slots of a ring of {len(ring)}; give one size")
                    # One result's window after the other.
                    before = ring_windows(stage.results[:number], kernel.stream_axis)
                    homes[queue] = Home(queue, ring, stage.home.base.data - sum(before))
                case SharedAttr(slots=slots):
                    homes[queue] = Home(queue, [None] * slots.data)
                case MailAttr(slots=slots):
                    kept = slots.data - planes_on_their_way(stage)
                    if kept < 1:
                        raise PlaneError(stage, "all its slots hold planes that are on their way")
                    homes[queue] = Home(queue, [None] * kept)
                case MemoryAttr():
                    pass
                case None:
                    refuse(stage, "its queue has no home; run multi-queue-buffering before")
    return homes


def planes_on_their_way(stage: LoadOp | ApplyOp | ExchangeOp) -> int:
    """The planes in the mail of a load's copies that have not arrived."""
    is_copied = isinstance(stage, ExchangeOp) and stage.publishes_copies
    load = stage.queue.owner if is_copied else None
    return load.planes_ahead if isinstance(load, LoadOp) else 0


class PlanesLaunch:
    """One launch of a placed kernel on the values of its arguments: Cells for fields, or numbers."""

    def __init__(self, kernel: KernelOp, arguments: Sequence[Any]):
        if kernel.layout is None:
            refuse(kernel, "it has no layout; run device-tiling before it is executed")
        self.kernel, self.stages, self.stream = kernel, kernel.stages, kernel.stream_axis
        self.bounds, self.frame = kernel.bounds, frame_of(kernel)
        self.values: dict[SSAValue, Any] = dict(zip(kernel.body.block.args, arguments))
        self.homes, self.geometry = make_homes(kernel), Geometry(kernel)
        self.origin = (0,) * kernel.rank
        low, high = (0, 1) if self.stream is None else self.span(self.bounds)
        self.steps = range(low - self.geometry.fill, high + self.geometry.drain)

    def run(self) -> None:
        """Run all steps; PlaneError where the kernel is wrong."""
        self.check_fields()
        with np.errstate(all="ignore"):  # Nothing is known of the operands that are unset.
            for step in self.steps:
                for stage in self.stages:
                    self.run_stage(stage, step)

    def check_fields(self) -> None:
        """No field is stored that is loaded as data, or stored twice, under whatever names."""
        taken = {id(self.values[s.data]) for s in self.stages if isinstance(s, LoadOp) and s.data}
        for stage in self.stages:
            if isinstance(stage, StoreOp):
                if id(self.values[stage.field]) in taken:
                    raise PlaneError(stage, "another stage of the launch loads or stores its field")
                taken.add(id(self.values[stage.field]))

    def span(self, box: StencilBoundsAttr) -> tuple[int, int]:
        """The planes of a box, from the first to the one after the last."""
        assert self.stream is not None
        return tuple(box.lb)[self.stream], tuple(box.ub)[self.stream]

    def holds(self, box: StencilBoundsAttr, plane: int) -> bool:
        """Some cells of a box lie in the plane."""
        return self.stream is None or plane in range(*self.span(box))

    def section(self, box: StencilBoundsAttr, plane: int) -> StencilBoundsAttr:
        """The part of a box that lies in one plane; all of it where nothing is streamed."""
        spans = list(zip(box.lb, box.ub))
        if self.stream is not None:
            spans[self.stream] = (plane, plane + 1)
        return StencilBoundsAttr.from_bounds(spans)

    def places(self, box: StencilBoundsAttr, offset: Sequence[int] = ()) -> tuple[slice, ...]:
        """Where the cells of a box, moved by an offset inside the plane, lie in any plane."""
        moved = [0 if axis == self.stream else d for axis, d in enumerate(offset or self.origin)]
        return box_slices(self.section(self.frame, 0), self.section(box, 0), moved)

    def unset(self, queue: SSAValue) -> Cells:
        """A plane of which nothing is set."""
        frame = self.section(self.frame, 0)
        shape = tuple(high - low for low, high in zip(frame.lb, frame.ub))
        return Cells.of(np.zeros(shape, dtype_of(queue_type(queue).element)), known=False)

    def is_needed(self, stage: StageOp, plane: int) -> bool:
        """Some stored cell depends on a plane of the stage's results."""
        if self.stream is None:
            return True
        extents = [self.geometry.extents.get(queue) for queue in stage.results]
        low = max((extent.low[self.stream] for extent in extents if extent), default=0)
        high = max((extent.high[self.stream] for extent in extents if extent), default=0)
        first, last = self.span(self.bounds)
        return first - low <= plane < last + high

    # Stages.

    def run_stage(self, stage: StageOp, step: int) -> None:
        """Make, keep or store the stage's plane of a step; what nothing depends on stays unset."""
        match stage:
            case StoreOp():
                self.store(stage, step)
                return
            case LoadOp():
                plane = step - stage.lag
                made = lambda: [self.load(stage, plane)]
            case ApplyOp():
                plane = step - stage.lag
            case ExchangeOp():
                age = 0 if stage.publishes_copies else stage.hold
                plane = step - queue_lag(stage.queue) - age
