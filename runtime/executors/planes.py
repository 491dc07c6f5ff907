"""
The planes executor: runs a kernel of the tile level, a stream step at a time over whole planes with
NumPy.

There are no threads and no tiles: one chunk holds all planes, and a plane covers the whole domain.
In each step every stage runs once, in the order of the kernel's body. A queue keeps as many planes
as its home: a wrong lag, depth or number of slots shows at a read of a missing plane. Unset cells
are marked, and must not be stored. Where the steady loop omits the test of a plane against a field,
the plane must lie in the field.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from typing import Any

import numpy as np
from xdsl.dialects.stencil import StencilBoundsAttr
from xdsl.ir import SSAValue

from timetile.dialects.boxes import bounds_between, sizes_of
from timetile.dialects.syntax import field_bounds
from timetile.dialects.taps import Tap
from timetile.dialects.tile import (
    ApplyOp,
    ExchangeOp,
    KernelOp,
    LoadOp,
    Published,
    StageOp,
    StoreOp,
    queue_lag,
    queue_type,
)
from timetile.passes.analysis.cells.cell_functions import named_function
from timetile.passes.analysis.geometry.field_access import is_plane_tested, steady_steps
from timetile.passes.analysis.geometry.limits import checked_geometry
from timetile.passes.analysis.geometry.outside import computed_boxes, guarding_field
from timetile.passes.analysis.geometry.plane_geometry import FieldShape
from timetile.runtime.arithmetic.boxes import box_slices, coordinates
from timetile.runtime.arithmetic.cells import Array, call, dtype_of
from timetile.runtime.executors.homes import MarkedCells, PlaneError, make_homes
from timetile.runtime.executors.plane_images import PlaneImages
from timetile.runtime.executors.plane_numbers import number_of_plane
from timetile.runtime.executors.plane_points import use_in_plane
from timetile.runtime.executors.stage_reads import StageReads, frame_of, reads_own_cells, seen_from


def published_age(stage: ExchangeOp) -> int:
    """
    The age of the plane published by an exchange in a step: 0 for copies, published on arrival.
    """
    return 0 if stage.publishes_copies else stage.hold


class PlanesLaunch:
    """One launch of a placed kernel on its arguments: Cells for fields, or numbers."""

    def __init__(self, kernel: KernelOp, arguments: Sequence[Any]):
        self.kernel = kernel
        self.images = None if kernel.beyond is None else PlaneImages(kernel, kernel.beyond)
        self.stages, self.stream, self.bounds = kernel.stages, kernel.stream_axis, kernel.bounds
        self.rank = kernel.rank
        self.values: dict[SSAValue, Any] = dict(zip(kernel.body.block.args, arguments))
        applies = [stage for stage in self.stages if isinstance(stage, ApplyOp)]
        self.functions = {stage: named_function(stage) for stage in applies}
        self.reads = {stage: StageReads.of(stage) for stage in applies}
        self.geometry = geometry = checked_geometry(kernel)
        self.homes, self.extents = make_homes(kernel), geometry.extents
        stored = geometry.cut_planes
        self.steps = range(stored.start - geometry.fill, stored.stop + geometry.drain)
        self.steady = range(0) if self.stream is None else steady_steps(geometry)
        self.boxes = computed_boxes(kernel)
        self.frame = self.section(frame_of(kernel, self.boxes), 0)
        self.shape = sizes_of(self.frame)
        self.needed = {stage: self.needed_planes(stage) for stage in self.stages}
        self.stored = {s: s.cells.bounds() for s in self.stages if isinstance(s, StoreOp)}
        self.read_planes: dict[StageOp, list[tuple[FieldShape, int]]] = {}
        self.placed: dict[tuple[StencilBoundsAttr, tuple[int, ...]], tuple[slice, ...]] = {}
        self.placed_in_fields: dict[tuple[SSAValue, StencilBoundsAttr], tuple[slice, ...]] = {}

    def on(self, arguments: Sequence[Any]) -> PlanesLaunch:
        """A launch of the kernel on other values of its arguments, with empty homes."""
        made = copy(self)
        made.values = dict(zip(self.kernel.body.block.args, arguments))
        made.homes = make_homes(self.kernel)
        return made

    def run(self) -> None:
        """Run all steps; PlaneError where the kernel is wrong."""
        self.check_fields()
        # Arithmetic on unset cells may overflow, or divide by zero.
        with np.errstate(all="ignore"):
            for step in self.steps:
                for stage in self.stages:
                    self.run_stage(stage, step)

    def check_fields(self) -> None:
        """
        Raise an error if a stored buffer is loaded as data, or stored twice, by whatever name. (A
        cell read from memory at its own place is read before by the storing thread.)
        """
        loads = [s for s in self.stages if isinstance(s, LoadOp) and not reads_own_cells(s)]
        taken = {id(self.values[load.data]) for load in loads if load.data is not None}
        for stage in self.stages:
            if isinstance(stage, StoreOp):
                if id(self.values[stage.field]) in taken:
                    raise PlaneError(stage, "its buffer is loaded or stored by another stage, too")
                taken.add(id(self.values[stage.field]))

    # Planes of boxes.

    def holds(self, box: StencilBoundsAttr, plane: int) -> bool:
        """Some cells of a box lie in a plane."""
        if self.stream is None:
            return True
        low, high = (side.array.data[self.stream].data for side in (box.lb, box.ub))
        return low <= plane < high

    def section(self, box: StencilBoundsAttr, plane: int) -> StencilBoundsAttr:
        """A box one plane thick; the whole box without a streaming axis."""
        if self.stream is None:
            return box
        spans = list(zip(box.lb, box.ub))
        spans[self.stream] = (plane, plane + 1)
        return bounds_between(*zip(*spans))

    def places(self, box: StencilBoundsAttr, offset: Sequence[int] = ()) -> tuple[slice, ...]:
        """
        Where the cells of a box lie in the array of a plane, moved by an offset's in-plane part.
        """
        # Boxes are hashed slowly: once a call.
        key = box, tuple(offset)
        slices = self.placed.get(key)
        if slices is None:
            moved = list(offset) or [0] * len(box.lb)
            if self.stream is not None:
                moved[self.stream] = 0
            slices = self.placed[key] = box_slices(self.frame, self.section(box, 0), moved)
        return slices

    def in_field(self, field: SSAValue, box: StencilBoundsAttr, plane: int) -> tuple[slice, ...]:
        """The place, in the array of a field, of the cells of a box in a plane."""
        bounds = field_bounds(field)
        key = field, box
        places = self.placed_in_fields.get(key)
        if places is None:
            zero = (0,) * len(bounds.lb)
            places = self.placed_in_fields[key] = box_slices(bounds, box, zero)
        if self.stream is None:
            return places
        at = plane - bounds.lb.array.data[self.stream].data
        return (*places[: self.stream], slice(at, at + 1), *places[self.stream + 1 :])

    def unset(self, queue: SSAValue) -> MarkedCells:
        """A plane without a set cell."""
        return MarkedCells.of(
            np.zeros(self.shape, dtype_of(queue_type(queue).element)), known=False
        )

    def needed_planes(self, stage: StageOp) -> range | None:
        """The planes of a stage's results on which stored cells depend; None without a stream."""
        if self.stream is None:
            return None
        stored = self.geometry.cut_planes
        extents = [self.extents[queue] for queue in stage.results if queue in self.extents]
        low = max((extent.low[self.stream] for extent in extents), default=0)
        high = max((extent.high[self.stream] for extent in extents), default=0)
        return range(stored.start - low, stored.stop + high)

    # Stages.

    def run_stage(self, stage: StageOp, step: int) -> None:
        """Run a stage in a step. Planes without a stored cell depending on them stay unset."""
        self.check_planes(stage, step)
        match stage:
            case StoreOp():
                self.store(stage, step)
                return
            case LoadOp() | ApplyOp():
                plane = step - stage.lag
            case ExchangeOp():
                plane = step - queue_lag(stage.queue) - published_age(stage)
        needed = self.needed[stage]
        if needed is not None and plane not in needed:
            made = [self.unset(queue) for queue in stage.results]
        elif isinstance(stage, LoadOp):
            made = [self.load(stage, plane)]
        elif isinstance(stage, ApplyOp):
            made = self.apply(stage, plane, step)
        else:
            made = [self.read(stage, stage.queue, published_age(stage), step)]
        for queue, cells in zip(stage.results, made):
            if queue in self.homes:
                self.homes[queue].keep(step, cells)

    def read(self, reader: StageOp, queue: SSAValue, age: int, step: int) -> MarkedCells:
        """
        The plane of a queue with an age: kept by the queue's home or, from memory, read again.
        """
        owner = queue.owner
        if age < 0:
            raise PlaneError(reader, f"the plane of age {age} that it reads has not arrived yet")
        if isinstance(owner, LoadOp) and queue not in self.homes:
            return self.load(owner, step - owner.lag - age)
        if isinstance(owner, ExchangeOp):
            behind = owner.hold + owner.delay.data + age
            if owner.what.data is not Published.PLANE:
                # Cells of the reader's own warp come from the source.
                self.read(reader, owner.queue, behind, step)
            age = behind - published_age(owner)
        return self.homes[queue].plane(reader, age, step, self.steps.start)

    def check_planes(self, stage: StageOp, step: int) -> None:
        """
        Check the planes of fields that the threads of a stage may read in a step, needed or not.
        """
        if step not in self.steady:
            return
        if stage not in self.read_planes:
            self.read_planes[stage] = list(dict.fromkeys(self.planes_read(stage)))
        for shape, lag in self.read_planes[stage]:
            self.check_plane(stage, shape, lag, step)

    def planes_read(self, stage: StageOp) -> Iterator[tuple[FieldShape, int]]:
        """The fields whose planes the threads of a stage may read, and how many steps back."""
        if isinstance(stage, LoadOp) and stage.axes is None:
            for field in stage.operands:
                yield FieldShape.of(field), stage.lag
                yield FieldShape.of(field), stage.lag - stage.planes_ahead
        if not isinstance(stage, ApplyOp):
            return
        for _, queue, age in self.reads[stage].taps:
            source = queue.owner.queue if isinstance(queue.owner, ExchangeOp) else queue
            lag, load = queue_lag(queue) + age, queue.owner
            if (field := guarding_field(source)) is not None:
                yield FieldShape.of(field), lag
            if isinstance(load, LoadOp) and load.axes is not None:
                yield FieldShape.loaded(load, self.rank), lag

    def check_plane(
        self, stage: StageOp, shape: FieldShape, lag: int, step: int, *, stores: bool = False
    ) -> None:
        """
        Raise PlaneError if the steady loop accesses, without a test, a plane missing in a field,
        `lag` steps back.
        """
        if self.stream is None or self.stream in shape.missing:
            return
        if step not in self.steady or is_plane_tested(
            self.geometry, shape, lag, steady=True, stores=stores
        ):
            return
        low, high = shape.lower[self.stream], shape.upper[self.stream]
        plane: int | float = step - lag
        if not stores and self.images is not None and self.stream in self.kernel.continued_axes:
            # Where planes go on, the image is accessed, or nothing beyond a side with a value.
            (plane,) = self.images.images(self.stream, [plane])
        if isinstance(plane, int) and not low <= plane < high:
            raise PlaneError(
                stage,
                f"it accesses plane {plane} of a field that has [{low}, {high}), untested",
            )

    def load(self, stage: LoadOp, plane: int) -> MarkedCells:
        """A plane of a load's fields: data inside the bounds, halo outside if loaded."""
        if self.images is not None:
            cells, section = self.unset(stage.result), self.section(self.frame, plane)
            return self.images.load(stage, section, self.values, cells)
        if stage.data is not None and stage.axes is not None:
            return self.load_along(stage, stage.data, stage.axes, plane)
        if stage.data is not None and stage.offset is not None:
            return self.load_at(stage, stage.data, stage.offset, plane)
        cells = self.unset(stage.result)
        inside = np.full(cells.data.shape, stage.halo is None)
        if self.holds(self.bounds, plane):
            inside[self.places(self.bounds)] = True
        for field, where in ((stage.data, inside), (stage.halo, ~inside)):
            if field is not None and self.holds(box := field_bounds(field), plane):
                source: MarkedCells = self.values[field]
                at, to = self.in_field(field, box, plane), self.places(box)
                np.copyto(cells.data[to], source.data[at], where=where[to])
                np.copyto(cells.known[to], source.known[at], where=where[to])
        return cells

    def load_at(
        self, stage: LoadOp, field: SSAValue, offset: tuple[int, ...], plane: int
    ) -> MarkedCells:
        """A plane with the cells of a field at a distance."""
        cells, source = self.unset(stage.result), self.values[field]
        far = plane if self.stream is None else plane + offset[self.stream]
        box = field_bounds(field)
        if self.holds(box, far):
            at, to = self.in_field(field, box, far), self.places(seen_from(box, offset))
            cells.data[to], cells.known[to] = source.data[at], source.known[at]
        return cells

    def load_along(
        self, stage: LoadOp, field: SSAValue, axes: tuple[int, ...], plane: int
    ) -> MarkedCells:
        """A plane with the cells of a field of fewer axes, for all coordinates along the others."""
        cells, source, bounds = self.unset(stage.result), self.values[field], field_bounds(field)
        assert source.data.ndim == len(axes), "the buffer has the axes of the field"
        spans, taken = (
            list(zip(self.frame.lb, self.frame.ub)),
            list[slice | None]([None] * self.rank),
        )
        for axis, low, high in zip(axes, bounds.lb, bounds.ub, strict=True):
            moved = 0 if stage.offset is None else stage.offset[axis]
            if axis == self.stream:
                far = plane + moved - low
                if not 0 <= far < high - low:
                    return cells
                taken[axis] = slice(far, far + 1)
                continue
            # The field may have cells beyond the frame.
            first, last = spans[axis]
            first, last = max(first, low - moved), min(last, high - moved)
            taken[axis], spans[axis] = slice(first + moved - low, last + moved - low), (first, last)
        to = self.places(bounds_between(*zip(*spans)))
        cells.data[to], cells.known[to] = source.data[tuple(taken)], source.known[tuple(taken)]
        return cells

    def apply(self, stage: ApplyOp, plane: int, step: int) -> list[MarkedCells]:
        """
        A plane of each result: computed in the stage's box; outside the plane of `else`, or unset.
        """
        made = [self.unset(queue) for queue in stage.res]
        reads = self.reads[stage]
        for number, (queue, age) in enumerate(reads.outside):
            made[number] = self.read(stage, queue, age, step).copy()
        box = self.boxes[stage]
        if not self.holds(box, plane):
            return made
        to, images = self.places(box), self.images
        # Most stages need no section, which takes as long as their arithmetic.
        section = self.section(box, plane) if images is not None or reads.axes else box
        known, arguments = np.full(made[0].known[to].shape, True), list[Array]()
        for tap, queue, age in reads.taps:
            if images is None:
                cells, at = self.read(stage, queue, age, step), self.places(box, tap.offset)
                data, are_set = cells.data[at], cells.known[at]
            else:
                data, are_set = self.imaged(images, stage, tap, section, step)
            arguments.append(data)
            known &= are_set
        for scalar in reads.scalars:
            value = np.asarray(self.values[scalar], dtype_of(scalar.type))
            arguments.append(np.broadcast_to(value, known.shape))
        placed = coordinates if images is None else images.coordinates
        arguments += [placed(section, axis) for axis in reads.axes]
        for cells, result in zip(made, call(self.functions[stage], arguments)):
            cells.data[to], cells.known[to] = result, known
            if images is not None:
                images.set_values(cells, section, to)
        for use in stage.point_sets:
            lows = enumerate(self.frame.lb)
            first = tuple(plane if axis == self.stream else low for axis, low in lows)
            use_in_plane(stage, use, made[use.target], self.section(box, plane), first, self.values)
        return made

    def imaged(
        self,
        images: PlaneImages,
        stage: ApplyOp,
        tap: Tap,
        section: StencilBoundsAttr,
        step: int,
    ) -> tuple[Array, Array]:
        """The cells that a tap reads from a box one plane thick, or images, and which are set."""
        queue, stream = stage.queue_of(tap), self.stream

        def plane_at(distance: int) -> MarkedCells:
            offset = list(tap.offset)
            if stream is not None:
                offset[stream] = distance
            return self.read(stage, queue, stage.age(Tap(tap.operand, tuple(offset))), step)

        return images.tapped(section, self.frame, tap.offset, plane_at)

    def store(self, stage: StoreOp, step: int) -> None:
        """Write the cells inside the bounds of the newest plane to the field."""
        plane, box = step - stage.lag, self.stored[stage]
        if not self.holds(self.bounds, plane):
            return
        self.check_plane(stage, FieldShape.of(stage.field), stage.lag, step, stores=True)
        if not self.holds(box, plane):
            return
        cells, taken = self.read(stage, stage.queue, 0, step), self.places(box)
        unset = np.argwhere(~cells.known[taken])
        if unset.size:
            first = zip(self.section(box, plane).lb, unset[0])
            at = [low + int(distance) for low, distance in first]
            raise PlaneError(stage, f"stores a value that was never set to cell {at}")
        to, found = self.in_field(stage.field, box, plane), cells.data[taken]
        if stage.number is not None:
            to, found = number_of_plane(self.kernel, stage, plane, found)
        target = self.values[stage.field]
        target.data[to], target.known[to] = found, True
