"""
Points of a stage: values added to cells of a new plane, and cells noted, by the threads with the
cells.

A chunk finds its first and its last plane with points once. Steps in between run the loop with
guards, in which each level compares its plane, equal in all lanes; steady loops know nothing of
points. In a plane with points a warp finds the entries of its cells by buckets. Each thread with a
cell, those of overlapping tiles too, adds the values in the order of the list, and the tile that
stores a cell notes the cell.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import i1, i32
from xdsl.ir import Block, SSAValue

from timetile.dialects import simt
from timetile.dialects.boxes import CellBox
from timetile.dialects.temporal import PointKind, PointSet
from timetile.dialects.tile import ApplyOp, KernelOp
from timetile.lowering.emitter import Emitter
from timetile.lowering.tile_to_gpu.ownership import owned
from timetile.lowering.tile_to_gpu.queues import Plane, Position
from timetile.lowering.tile_to_gpu.scopes import (
    StepScope,
    StreamStep,
    VariantScope,
    chunk_mask,
    chunk_start,
    once,
)

FAR_STEP = 1 << 30
"""A step behind all steps of a chunk."""

CellSpan = tuple[SSAValue, SSAValue]
"""The first cell along an axis, counted from the field's first, and the end."""


def emit_points(step: StepScope, stage: ApplyOp, planes: list[Plane]) -> None:
    """Let the cells of a stage's new planes take values, and be noted, list by list."""
    for made in stage.point_sets:
        PointEmitter(step, stage, made, planes[made.target]).emit()


def has_planes_of_points(kernel: KernelOp) -> bool:
    """
    Whether the stream goes along the axis of the lists' rows of buckets: steps without a plane with
    points are known ahead, and run without points.
    """
    lists = [made for stage in stages_with_points(kernel) for made in stage.point_sets]
    return bool(lists) and kernel.stream_axis == 0


def stages_with_points(kernel: KernelOp) -> list[ApplyOp]:
    """The stages that use lists of points."""
    return [s for s in kernel.stages if isinstance(s, ApplyOp) and s.points]


@once
def planes_with_points(variant: VariantScope, places: SSAValue, made: PointSet) -> CellSpan:
    """
    The first plane of the chunk with points of a list, counted from the field's first, and the
    number of planes up to the last.
    """
    code, emit, layout = variant.code, variant.emit, made.layout
    extents = [code.geometry.extents[r] for s in stages_with_points(code.kernel) for r in s.res]
    first = CellBox.of(made.bounds).lower[0]
    low = emit.add_int(code.thread.first, -first - max(extent.low[0] for extent in extents))
    high = emit.add_int(code.thread.last, -first + max(extent.high[0] for extent in extents))
    begin = table_number(emit, places, layout.following, clamped(emit, low, layout.counts[0]))
    end = table_number(emit, places, layout.preceding, clamped(emit, high, layout.counts[0]))
    return begin, emit.binary(arith.MaxSIOp, emit.sub_int(end, begin), emit.int(0))


def point_steps(variant: VariantScope) -> CellSpan:
    """
    The first step of the chunk in which some level has a plane with points, and the end of such
    steps; both the same or in reverse order without points.
    """
    emit, start = variant.emit, chunk_start(variant)
    firsts, ends = list[SSAValue](), list[SSAValue]()
    for stage in stages_with_points(variant.code.kernel):
        for made in stage.point_sets:
            places, low = variant.code.arguments[made.places], CellBox.of(made.bounds).lower[0]
            begin, count = planes_with_points(variant, places, as_known(variant, made))
            first = emit.sub_int(emit.add_int(begin, low + stage.lag), start)
            end = emit.arithmetic(arith.AddiOp, first, count)
            # A list without points in the chunk has no steps: it begins behind all others.
            none = emit.compare("eq", count, 0)
            firsts.append(emit.select(none, emit.int(FAR_STEP), first))
            ends.append(emit.select(none, emit.int(0), end))
    return (
        reduce(lambda a, b: emit.binary(arith.MinSIOp, a, b), firsts),
        reduce(lambda a, b: emit.binary(arith.MaxSIOp, a, b), ends),
    )


def as_known(variant: VariantScope, made: PointSet) -> PointSet:
    """The first use of the list of a set in the kernel: levels share what a chunk knows of it."""
    uses = (use for stage in stages_with_points(variant.code.kernel) for use in stage.point_sets)
    return next(use for use in uses if use.places is made.places)


def clamped(emit: Emitter, cell: SSAValue, most: int) -> SSAValue:
    """A place, at least 0 and at most `most`."""
    above = emit.binary(arith.MaxSIOp, cell, emit.int(0))
    return emit.binary(arith.MinSIOp, above, emit.int(most))


def table_number(emit: Emitter, places: SSAValue, part: int, at: SSAValue) -> SSAValue:
    """An integer of a part of a list."""
    return emit.add(simt.LoadOp(places, at, part, [i32])).cells[0]


@dataclass
class PointEmitter:
    """Emits the use of one list by one plane of a stage."""

    step: StepScope
    stage: ApplyOp
    made: PointSet
    plane: Plane

    def emit(self) -> None:
        """
        A branch around the loops over the list's entries, unless all planes may have some. Steps of
        a steady loop have no planes with points.
        """
        code = self.step.code
        self.first = CellBox.of(self.made.bounds).lower
        self.layout = self.made.layout
        self.positions: list[Position] = list(self.plane)
        self.places = code.arguments[self.made.places]
        self.weights = code.arguments[self.made.weights]
        self.table = code.arguments[self.made.table]
        old = list(self.plane.values())
        emit = self.step.emit
        if self.has_span and self.step.is_steady:
            return
        if self.has_span:
            misses = self.misses_span()
            kept, taken = Block([scf.YieldOp(*self.yielded(old))]), emit.into(Block())
            new = self.loops(taken, old)
            taken.add(scf.YieldOp(*self.yielded(new)))
            kinds = [value.type for value in self.yielded(old)]
            found = list(emit.add(scf.IfOp(misses, kinds, [kept], [taken.block])).results)
        else:
            found = self.loops(emit, old)
        if self.adds:
            self.plane.update(zip(self.positions, found, strict=True))

    @property
    def adds(self) -> bool:
        """Values are added to cells."""
        return self.made.kind is PointKind.INJECT

    @property
    def has_span(self) -> bool:
        """Planes are tested, one after the other along axis 0."""
        return (
            isinstance(self.step, StreamStep)
            and self.step.axis == 0
            and self.layout.buckets[0] == 1
        )

    def yielded(self, cells: Sequence[SSAValue]) -> list[SSAValue]:
        """The cells that change: all, or none where cells are noted."""
        return list(cells) if self.adds else []

    def misses_span(self) -> SSAValue:
        """The plane lies outside the planes with points of the chunk."""
        step = self.step
        assert isinstance(step, StreamStep)
        known = as_known(step.variant, self.made)
        begin, count = planes_with_points(step.variant, self.places, known)
        plane = step.emit.add_int(step.arriving_plane, step.turn - self.stage.lag - self.first[0])
        return step.emit.compare("uge", step.emit.sub_int(plane, begin), count)

    # Cells of the warp.

    def span(self, emit: Emitter, axis: int) -> CellSpan:
        """The cells of the warp along an axis, inside the field."""
        step, code = self.step, self.step.code
        size = self.layout.shape[axis]
        if isinstance(step, StreamStep) and axis == step.axis:
            low = emit.add_int(step.arriving_plane, step.turn - self.stage.lag - self.first[axis])
            high = emit.add_int(low, 1)
        else:
            number = code.kernel.plane_axes.index(axis)
            place, tiling = code.thread.axes[number], code.geometry.axes[number]
            start = emit.add_int(place.coordinate, -self.first[axis])
            lanes = tiling.layout.lanes
            if lanes > 1:
                start = emit.sub_int(start, emit.mul_int(code.thread.lane, tiling.layout.cells))
            low, high = start, emit.add_int(start, lanes * tiling.layout.cells)
        return clamped(emit, low, size), clamped(emit, high, size)

    def buckets(self, emit: Emitter, axis: int) -> CellSpan:
        """The buckets with cells of the warp along an axis: the first, and the end."""
        low, high = self.span(emit, axis)
        shift = emit.int(self.layout.buckets[axis].bit_length() - 1)
        begin = emit.binary(arith.ShRSIOp, low, shift)
        last = emit.binary(arith.ShRSIOp, emit.add_int(high, -1), shift)
        return begin, emit.add_int(last, 1)

    # Loops.

    def loops(self, emit: Emitter, cells: Sequence[SSAValue]) -> list[SSAValue]:
        """Loops over rows of buckets, and over the entries of each row."""
        return self.rows(emit, 0, emit.int(0), cells)

    def rows(
        self, emit: Emitter, axis: int, before: SSAValue, cells: Sequence[SSAValue]
    ) -> list[SSAValue]:
        """The loops from an axis on. `before`: the first bucket of the buckets around."""
        begin, end = self.buckets(emit, axis)
        if axis == len(self.layout.shape) - 1:
            low, high = (emit.add_int(before, each) for each in (begin, end))
            ends = [table_number(emit, self.places, 0, each) for each in (low, high)]
            return self.loop(emit, ends[0], ends[1], cells, self.entry)
        stride = self.layout.strides[axis]

        def turn(inner: Emitter, place: SSAValue, cells: Sequence[SSAValue]) -> list[SSAValue]:
            start = inner.add_int(before, inner.mul_int(place, stride))
            return self.rows(inner, axis + 1, start, cells)

        if isinstance(self.step, StreamStep) and axis == self.step.axis:
            return turn(emit, begin, cells)
        return self.loop(emit, begin, end, cells, turn)

    def loop(
        self,
        emit: Emitter,
        low: SSAValue,
        high: SSAValue,
        cells: Sequence[SSAValue],
        turn: Callable[[Emitter, SSAValue, Sequence[SSAValue]], list[SSAValue]],
    ) -> list[SSAValue]:
        """A loop that carries the cells that change."""
        carried = self.yielded(cells)
        block = Block(arg_types=[i32, *(value.type for value in carried)])
        inner = emit.into(block)
        inside = list(block.args[1:]) if self.adds else list(cells)
        new = turn(inner, block.args[0], inside)
        inner.add(scf.YieldOp(*self.yielded(new)))
        made = emit.add(scf.ForOp(low, high, emit.int(1), carried, block))
        return list(made.results) if self.adds else list(cells)

    # Entries.

    def entry(self, emit: Emitter, number: SSAValue, cells: Sequence[SSAValue]) -> list[SSAValue]:
        """The use of one entry: the cells afterwards."""
        hits = self.hits(emit, number)
        weight = emit.add(simt.LoadOp(self.weights, number, 0, [cells[0].type])).cells[0]
        if self.adds:
            column = table_number(emit, self.places, self.layout.columns, number)
            value = emit.add(simt.LoadOp(self.table, self.at(emit, column), 0, [weight.type]))
            product = emit.binary(arith.MulfOp, weight, value.cells[0])
            return [
                emit.select(hit, emit.binary(arith.AddfOp, cell, product), cell)
                for hit, cell in zip(hits, cells, strict=True)
            ]
        masks = [
            emit.all_of([hit, self.stores(at)])
            for hit, at in zip(hits, self.positions, strict=True)
        ]
        known = [mask for mask in masks if mask is not None]
        cell = cells[0]
        for hit, other in zip(hits[1:], cells[1:], strict=True):
            cell = emit.select(hit, other, cell)
        product = emit.binary(arith.MulfOp, weight, cell)
        place = self.at(emit, number)
        emit.add(simt.StoreOp([product], self.table, place, 0, emit.any_of(known)))
        return list(cells)

    def at(self, emit: Emitter, column: SSAValue) -> SSAValue:
        """The place of a column of the table in the row of the step."""
        row = self.step.code.arguments[self.stage.points[0]]
        short = emit.add(arith.TruncIOp(row, i32)).result
        return emit.add_int(emit.mul_int(short, self.made.columns), column)

    def stores(self, at: Position) -> SSAValue | None:
        """The tile stores the cell at a position."""
        step = self.step
        masks = [owned(step.variant, at, step.code.thread, 1)]
        if isinstance(step, StreamStep):
            masks.append(chunk_mask(step, self.stage.lag))
        return step.emit.all_of(masks)

    def hits(self, emit: Emitter, number: SSAValue) -> list[SSAValue]:
        """For each position of the plane, whether the entry is of its cell."""
        step, code = self.step, self.step.code
        box = CellBox.of(self.stage.box or code.kernel.bounds)
        inside, beside = list[SSAValue](), list[SSAValue]()
        for axis, (low, high) in enumerate(zip(box.lower, box.upper)):
            cell = table_number(emit, self.places, self.layout.coordinates(axis), number)
            from_box = emit.add_int(cell, self.first[axis] - low)
            inside.append(emit.compare("ult", from_box, high - low))
            if isinstance(step, StreamStep) and axis == step.axis:
                plane = emit.add_int(step.arriving_plane, step.turn - self.stage.lag)
                there = emit.add_int(cell, self.first[axis])
                inside.append(emit.compare("eq", there, plane))
            else:
                place = code.thread.axes[code.kernel.plane_axes.index(axis)].coordinate
                beside.append(emit.sub_int(emit.add_int(cell, self.first[axis]), place))
        within = reduce(lambda a, b: emit.binary(arith.AndIOp, a, b), inside)
        found: dict[tuple[int, int], SSAValue] = {}
        hits: list[SSAValue] = []
        for at in self.positions:
            parts = [within]
            for key in enumerate(at):
                if key not in found:
                    found[key] = emit.compare("eq", beside[key[0]], key[1])
                parts.append(found[key])
            mask = emit.all_of(parts)
            assert mask is not None and mask.type == i1
            hits.append(mask)
        return hits
