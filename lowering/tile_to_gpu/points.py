"""
Points of a stage: values added to cells of a new plane, and cells noted, by the warps with the
cells.

Steady loops know nothing of points: steps with points at some level run the loop with guards
(`point_steps.py`), in which each level compares its plane, equal in all lanes. In a plane with
points a warp finds the entries of its cells by buckets, and reads up to 32 entries at a time, an
entry in each lane. Values are added in the order of the list: all lanes hear of one entry after the
other. Cells are noted at once: each lane asks the lane with the cell. Warps of overlapping tiles,
too, add values; the tile that stores a cell notes the cell.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import UnitAttr, i32
from xdsl.ir import Attribute, Block, SSAValue

from timetile.dialects import simt
from timetile.dialects.boxes import CellBox
from timetile.dialects.syntax import element_type
from timetile.dialects.temporal import PointKind, PointSet
from timetile.dialects.tile import LANES, ApplyOp
from timetile.lowering.emitter import ROLLED, Emitter
from timetile.lowering.tile_to_gpu.ownership import stored_span
from timetile.lowering.tile_to_gpu.point_numbers import clamped, divided_in_warp, table_number
from timetile.lowering.tile_to_gpu.queues import Plane, Position
from timetile.lowering.tile_to_gpu.scopes import (
    CellSpan,
    StepScope,
    StreamStep,
)

BATCHES = 4
"""Batches of 32 entries read before the first is used: entries come from memory."""

MadeCells = Callable[[Emitter], list[SSAValue]]
"""Emits code that makes cells."""


@dataclass(frozen=True)
class WarpEntries:
    """
    Up to 32 entries, one in each lane: the lane with the entry's cell, the number of the cell among
    the thread's, a mask for entries with a cell of the warp, the entry's number in the list and its
    weight.
    """

    lane: SSAValue
    cell: SSAValue
    valid: SSAValue
    number: SSAValue
    weight: SSAValue


@dataclass
class PointEmitter:
    """Emits the use of one list by one plane of a stage."""

    step: StepScope
    stage: ApplyOp
    made: PointSet
    plane: Plane
    plane_of_level: SSAValue | None = None
    """The plane of the level, counted from the field's first; the stage's plane if None."""
    row: SSAValue | None = None
    """The row of the table; the row of the stage's step if None."""

    def prepare(self) -> None:
        """Find the list's parts."""
        code = self.step.code
        self.first = CellBox.of(self.made.bounds).lower
        self.layout = self.made.layout
        self.positions: list[Position] = list(self.plane)
        self.places = code.arguments[self.made.places]
        self.weights = code.arguments[self.made.weights]
        self.table = code.arguments[self.made.table]

    def emit(self) -> None:
        """
        A branch around the loops over the list's entries, unless all planes may have some. Most
        loops have no planes with points.
        """
        self.prepare()
        old = list(self.plane.values())
        emit = self.step.emit
        if self.has_span and isinstance(self.step, StreamStep) and not self.step.loop.has_points:
            return
        if self.has_span:
            misses = self.misses_planes()
            found = self.chosen(emit, misses, lambda _: old, lambda taken: self.loops(taken, old))
        else:
            found = self.loops(emit, old)
        if self.adds:
            self.plane.update(zip(self.positions, found, strict=True))

    def chosen(
        self, emit: Emitter, mask: SSAValue, yes: MadeCells, no: MadeCells
    ) -> list[SSAValue]:
        """The cells that one of two pieces of code makes, chosen by a mask."""
        blocks = Block(), Block()
        kinds: list[Attribute] = []
        for make, block in zip((yes, no), blocks):
            inner = emit.into(block)
            cells = self.yielded(make(inner))
            inner.add(scf.YieldOp(*cells))
            kinds = [value.type for value in cells]
        return list(emit.add(scf.IfOp(mask, kinds, [blocks[0]], [blocks[1]])).results)

    @property
    def adds(self) -> bool:
        """Values are added to cells."""
        return self.made.kind is PointKind.INJECT

    @property
    def has_span(self) -> bool:
        """Planes are tested, one after the other along axis 0."""
        return has_planes(self.step, self.made)

    def yielded(self, cells: Sequence[SSAValue]) -> list[SSAValue]:
        """The cells that change: all, or none where cells are noted."""
        return list(cells) if self.adds else []

    def misses_planes(self) -> SSAValue:
        """
        The plane lies outside the run of planes with points of the loop. Cells of planes that the
        chunk does not store are not noted, and lie outside, too.
        """
        step = self.step
        assert isinstance(step, StreamStep)
        planes = step.variant.point_planes if self.adds else step.variant.noted_planes
        begin, count = planes[self.made.places]
        plane = step.emit.add_int(step.arriving_plane, step.turn - self.stage.lag - self.first[0])
        return step.emit.compare("uge", step.emit.sub_int(plane, begin), count)

    # Cells of the warp.

    def number(self, axis: int) -> int:
        """The number of an axis among the in-plane axes."""
        return self.step.code.kernel.plane_axes.index(axis)

    def is_stream(self, axis: int) -> bool:
        """The axis is the axis of the stream."""
        return isinstance(self.step, StreamStep) and axis == self.step.axis

    def start(self, emit: Emitter, axis: int) -> SSAValue:
        """The first cell of the warp along an in-plane axis, counted from the field's first."""
        code, number = self.step.code, self.number(axis)
        start = emit.add_int(code.thread.axes[number].coordinate, -self.first[axis])
        layout = code.geometry.axes[number].layout
        if layout.lanes > 1:
            start = emit.sub_int(start, emit.mul_int(code.thread.lane, layout.cells))
        return start

    def extent(self, axis: int) -> int:
        """The cells of the warp along an in-plane axis."""
        layout = self.step.code.geometry.axes[self.number(axis)].layout
        return layout.lanes * layout.cells

    def stream_cell(self, emit: Emitter) -> SSAValue:
        """The plane of the level, counted from the field's first."""
        if self.plane_of_level is not None:
            return self.plane_of_level
        step = self.step
        assert isinstance(step, StreamStep)
        return emit.add_int(step.arriving_plane, step.turn - self.stage.lag - self.first[step.axis])

    def span(self, emit: Emitter, axis: int) -> CellSpan:
        """The cells of the warp along an axis, inside the field: the first, and the end."""
        if self.is_stream(axis):
            low = self.stream_cell(emit)
            high = emit.add_int(low, 1)
            inside = self.has_span
        else:
            low = self.start(emit, axis)
            high = emit.add_int(low, self.extent(axis))
            inside = self.is_inside(axis)
        if inside:
            return low, high
        size = self.layout.shape[axis]
        return clamped(emit, low, size), clamped(emit, high, size)

    def buckets(self, emit: Emitter, axis: int) -> CellSpan:
        """The buckets with cells of the warp along an axis: the first, and the end."""
        low, high = self.span(emit, axis)
        if self.layout.buckets[axis] == 1:
            return low, high
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
            places = [emit.add_int(before, place) for place in (begin, end)]
            # Both reads are on their way before the first is waited for.
            found = [table_number(emit, self.places, 0, place) for place in places]
            low, high = (emit.add(simt.UniformOp(number)).result for number in found)
            return self.batches(emit, low, high, cells)
        stride = self.layout.strides[axis]

        def turn(inner: Emitter, place: SSAValue, cells: Sequence[SSAValue]) -> list[SSAValue]:
            start = inner.add_int(before, inner.mul_int(place, stride))
            return self.rows(inner, axis + 1, start, cells)

        if self.is_stream(axis):
            return turn(emit, begin, cells)
        return self.loop(emit, (begin, end, 1), cells, turn)

    def loop(
        self,
        emit: Emitter,
        bounds: tuple[SSAValue, SSAValue, int],
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
        low, high, stride = bounds
        made = emit.add(scf.ForOp(low, high, emit.int(stride), carried, block))
        made.attributes[ROLLED] = UnitAttr()
        return list(made.results) if self.adds else list(cells)

    # Entries.

    def batches(
        self, emit: Emitter, low: SSAValue, high: SSAValue, cells: Sequence[SSAValue]
    ) -> list[SSAValue]:
        """The use of a row's entries. Of many that are noted, several batches are read at once."""
        if self.adds:
            return self.loop(emit, (low, high, LANES), cells, self.batch(high))
        many = BATCHES * LANES
        count = emit.binary(arith.AndIOp, emit.sub_int(high, low), emit.int(-many))
        rest = emit.add_int(low, count)
        self.loop(emit, (low, rest, many), cells, self.batch(high, BATCHES))
        return self.loop(emit, (rest, high, LANES), cells, self.batch(high))

    def batch(
        self, end: SSAValue, count: int = 1
    ) -> Callable[[Emitter, SSAValue, Sequence[SSAValue]], list[SSAValue]]:
        """The use of `count` batches of up to 32 entries before an end: the cells afterwards."""

        def turn(emit: Emitter, base: SSAValue, cells: Sequence[SSAValue]) -> list[SSAValue]:
            starts = [emit.add_int(base, LANES * number) for number in range(count)]
            found = [self.entries(emit, start, end) for start in starts]
            if self.adds:
                return self.added(emit, found[0], emit.sub_int(end, base), cells)
            for entries in found:
                self.note(emit, entries, cells)
            return list(cells)

        return turn

    def entries(self, emit: Emitter, base: SSAValue, end: SSAValue) -> WarpEntries:
        """An entry in each lane, from an entry on."""
        return self.entries_of(emit, emit.add_int(base, self.step.code.thread.lane), end)

    def entries_of(self, emit: Emitter, own: SSAValue, end: SSAValue) -> WarpEntries:
        """In each lane, the lane's `own` entry before an end."""
        code = self.step.code
        number = emit.binary(arith.MinSIOp, own, emit.add_int(end, -1))
        masks = [emit.compare("slt", own, end)]
        box = CellBox.of(self.stage.box or code.kernel.bounds)
        lane, place = emit.int(0), emit.int(0)
        for axis, (low, high) in enumerate(zip(box.lower, box.upper)):
            found = table_number(emit, self.places, self.layout.coordinates(axis), number)
            from_box = emit.add_int(found, self.first[axis] - low)
            masks.append(emit.compare("ult", from_box, high - low))
            if self.is_stream(axis):
                if not self.has_span:
                    masks.append(emit.compare("eq", found, self.stream_cell(emit)))
                    masks += [] if self.adds else [self.is_in_chunk(emit, found)]
                continue
            away = emit.sub_int(found, self.start(emit, axis))
            masks.append(emit.compare("ult", away, self.extent(axis)))
            layout = code.geometry.axes[self.number(axis)].layout
            if layout.lanes > 1:
                away, lane = divided_in_warp(emit, away, layout.cells)
            place = emit.add_int(emit.mul_int(place, layout.cells), away)
            if not self.adds:
                masks.append(self.is_stored(emit, axis, found))
        valid = emit.value_of(emit.all_of(masks))
        kind = element_type(self.made.weights)
        weight = emit.add(simt.LoadOp(self.weights, number, 0, [kind])).cells[0]
        return WarpEntries(lane, place, valid, number, weight)

    def is_stored(self, emit: Emitter, axis: int, cell: SSAValue) -> SSAValue:
        """The tile stores a cell along an in-plane axis, of any thread."""
        code, number = self.step.code, self.number(axis)
        there = emit.add_int(cell, self.first[axis])
        tiling, place = code.geometry.axes[number], code.thread.axes[number]
        if self.is_inside(axis):
            tile = emit.sub_int(place.coordinate, place.in_tile)
            away = emit.add_int(emit.sub_int(there, tile), -tiling.overlap_low)
            return emit.compare("ult", away, tiling.useful)
        first, count = stored_span(self.step.variant, code.thread, number)
        return emit.compare("ult", emit.sub_int(there, first), count)

    def is_in_chunk(self, emit: Emitter, plane: SSAValue) -> SSAValue:
        """The chunk stores a plane of the field."""
        step, thread = self.step, self.step.code.thread
        assert isinstance(step, StreamStep)
        there = emit.add_int(plane, self.first[step.axis])
        height = emit.sub_int(thread.last, thread.first)
        return emit.compare("ult", emit.sub_int(there, thread.first), height)

    def is_inside(self, axis: int) -> bool:
        """All cells of the tile lie inside the bounds along an in-plane axis."""
        guarded = self.step.variant.guarded
        return not (guarded or self.step.code.geometry.always_guarded(self.number(axis)))

    def added(
        self, emit: Emitter, entries: WarpEntries, left: SSAValue, cells: Sequence[SSAValue]
    ) -> list[SSAValue]:
        """The cells with the values of some entries, added one after the other."""
        own, key, product = self.products(emit, entries)

        def turn(inner: Emitter, lane: SSAValue, cells: Sequence[SSAValue]) -> list[SSAValue]:
            named = inner.add(simt.PickOp(key, lane)).result
            number = inner.sub_int(named, own)
            addend = inner.add(simt.PickOp(product, lane)).result
            return [
                inner.select(
                    inner.compare("eq", number, place),
                    inner.binary(arith.AddfOp, cell, addend),
                    cell,
                )
                for place, cell in enumerate(cells)
            ]

        most = emit.binary(arith.MinSIOp, left, emit.int(LANES))
        return self.loop(emit, (emit.int(0), most, 1), cells, turn)

    def products(self, emit: Emitter, entries: WarpEntries) -> tuple[SSAValue, SSAValue, SSAValue]:
        """
        Where the thread's cells begin among the warp's, which cell the entry is for (or a number
        that no cell has), and the value to add.
        """
        column = table_number(emit, self.places, self.layout.columns, entries.number)
        kind = [entries.weight.type]
        value = emit.add(simt.LoadOp(self.table, self.at(emit, column), 0, kind)).cells[0]
        product = emit.binary(arith.MulfOp, entries.weight, value)
        count = len(self.step.code.geometry.thread_positions)
        key = emit.add_int(emit.mul_int(entries.lane, count), entries.cell)
        key = emit.select(entries.valid, key, emit.int(-1))
        return emit.mul_int(self.step.code.thread.lane, count), key, product

    def note(self, emit: Emitter, entries: WarpEntries, cells: Sequence[SSAValue]) -> None:
        """Note the cells of some entries, each by the lane with the entry."""
        found = emit.add(simt.PickOp(cells[0], entries.lane)).result
        for place, cell in enumerate(cells[1:], 1):
            other = emit.add(simt.PickOp(cell, entries.lane)).result
            found = emit.select(emit.compare("eq", entries.cell, place), other, found)
        product = emit.binary(arith.MulfOp, entries.weight, found)
        place = self.at(emit, entries.number)
        emit.add(simt.StoreOp([product], self.table, place, 0, entries.valid))

    def at(self, emit: Emitter, column: SSAValue) -> SSAValue:
        """The place of a column of the table in the row of the step."""
        row = self.row
        if row is None:
            number = self.step.code.arguments[self.stage.points[0]]
            row = emit.add(arith.TruncIOp(number, i32)).result
        return emit.add_int(emit.mul_int(row, self.made.columns), column)


def has_planes(step: StepScope, made: PointSet) -> bool:
    """Planes with points are known ahead, one after the other along axis 0."""
    return isinstance(step, StreamStep) and step.axis == 0 and made.layout.buckets[0] == 1
