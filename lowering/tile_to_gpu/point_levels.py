"""
Points of several levels in a step: one copy of the code for all levels.

A step of a run of planes with points meets few of the planes, each at another level. Code of points
beside each level would run once or twice a chunk, and each time come from far: fetching
instructions took most of the time (measured: a wave in 2D, FP32, 13 levels, 512 receivers, 13
thousand cycles a step, and 1.7 thousand without points). So the code stands in a loop over the
levels with points:

1. Ahead of the first level, values for cells of the thread are gathered from the lists into a few
   sets of addends: the plane, a bit for each cell that takes a value, and the values. A cell takes
   at most one value of a set. A plane begins another set, and so does a second value of a cell:
   values are added in the order of the list.
2. Each level adds the addends of its plane, without a branch.
3. After the last level, cells are noted for one level after the other: selects find the cells.

In a plate each lane reads where the entries of one level begin and end, and the loops hear of it: a
read takes as long as half a level. A step with more values for a warp than addends, and tiles whose
warps wait for each other, take the code beside each level for values to add.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import i32
from xdsl.ir import Block, SSAValue

from timetile.dialects import simt
from timetile.dialects.boxes import CellBox
from timetile.dialects.syntax import element_type
from timetile.dialects.temporal import PointKind, PointSet
from timetile.dialects.tile import LANES, ApplyOp
from timetile.lowering.emitter import Emitter
from timetile.lowering.tile_to_gpu.point_addends import (
    Addends,
    AddendsOfLists,
    KeptValues,
    sets_of_addends,
)
from timetile.lowering.tile_to_gpu.point_numbers import clamped, table_number
from timetile.lowering.tile_to_gpu.point_traces import keep_traces
from timetile.lowering.tile_to_gpu.points import MadeCells, PointEmitter, has_planes
from timetile.lowering.tile_to_gpu.queues import Plane
from timetile.lowering.tile_to_gpu.scopes import CellSpan, StepScope, StreamStep, unset_cell
from timetile.passes.analysis.point_stages import stages_with_points

NO_PLANE = -1
"""In place of a plane: no level with points has it."""

MOST_CELLS = 32
"""Most cells of a thread: a bit of an integer each."""


@dataclass(frozen=True)
class LevelsOfPoints:
    """
    The stages that use a set of points, with lags `low`, `low + apart`, and so on: a stage has the
    number of its level.
    """

    made: PointSet
    stages: tuple[ApplyOp, ...]

    @property
    def low(self) -> int:
        """The least lag."""
        return self.stages[0].lag

    @property
    def count(self) -> int:
        """The number of levels."""
        return len(self.stages)

    @property
    def apart(self) -> int:
        """The distance of lags."""
        return self.stages[1].lag - self.low


def emit_points(step: StepScope, stage: ApplyOp, planes: list[Plane]) -> None:
    """Let the cells of a stage's new planes take values, and be noted, list by list."""
    for made in stage.point_sets:
        plane, levels = planes[made.target], levels_in_loop(step, made)
        if made.kind is PointKind.SAMPLE:
            keep_traces(step, stage, made, plane)
        if levels is None or not isinstance(step, StreamStep):
            PointEmitter(step, stage, made, plane).emit()
        elif made.kind is PointKind.INJECT:
            addends = step.loop.gathered.get(made)
            if addends is None:
                PointEmitter(step, stage, made, plane).emit()
            else:
                add_addends(step, stage, addends, plane)
        else:
            cells = step.noted_cells.setdefault(made, {})
            cells[stage] = list(plane.values())
            if len(cells) == len(levels.stages):
                note_levels(step, levels, [cells[each] for each in levels.stages])


def levels_in_loop(step: StepScope, made: PointSet) -> LevelsOfPoints | None:
    """The levels of a set of points, or None where each level has code of its own."""
    if not isinstance(step, StreamStep) or not step.loop.has_points or not has_planes(step, made):
        return None
    kernel = step.code.kernel
    users = [stage for stage in stages_with_points(kernel) if made in stage.point_sets]
    users.sort(key=lambda stage: stage.lag)
    distances = {b.lag - a.lag for a, b in pairwise(users)}
    boxes = {CellBox.of(stage.box or kernel.bounds) for stage in users}
    once_each = all(stage.point_sets.count(made) == 1 for stage in users)
    few = len(step.code.geometry.thread_positions) <= MOST_CELLS
    if len(distances) != 1 or min(distances) < 1 or len(boxes) > 1 or not (once_each and few):
        return None
    return LevelsOfPoints(made, tuple(users))


def of_level(emit: Emitter, number: SSAValue, values: Sequence[SSAValue]) -> SSAValue:
    """The value of the level of a number."""
    found = values[0]
    for level, value in enumerate(values[1:], 1):
        if value is not found:
            found = emit.select(emit.compare("eq", number, level), value, found)
    return found


class LevelEmitter(PointEmitter):
    """Emits the use of one list by all levels of a step, one after the other."""

    def __init__(self, step: StreamStep, levels: LevelsOfPoints):
        super().__init__(step, levels.stages[0], levels.made, {})
        self.stream, self.levels = step, levels
        self.prepare()
        self.spans: CellSpan | None = None
        """In each lane, the first entry of the level of the lane's number, and the end."""

    def read_spans(self, emit: Emitter) -> None:
        """Let each lane read where the entries of a level lie, in a plate."""
        if len(self.layout.shape) != 2 or len(self.levels.stages) > LANES:
            return
        back = emit.mul_int(self.step.code.thread.lane, self.levels.apart)
        row = clamped(emit, emit.sub_int(self.newest(emit), back), self.layout.shape[0] - 1)
        before = emit.mul_int(row, self.layout.strides[0])
        low, high = (
            table_number(emit, self.places, 0, emit.add_int(before, bucket))
            for bucket in self.buckets(emit, 1)
        )
        self.spans = low, high

    def used(
        self, emit: Emitter, number: SSAValue, cells: Sequence[SSAValue], own: MadeCells
    ) -> list[SSAValue]:
        """The cells after the use of the entries of a level; `own` makes the thread's cells."""

        def use(inner: Emitter) -> list[SSAValue]:
            self.at_level(inner, number)
            if self.spans is None:
                return self.loops(inner, own(inner))
            return self.batches(inner, low, high, own(inner))

        if self.spans is None:
            return use(emit)
        low, high = (
            emit.add(simt.UniformOp(emit.add(simt.PickOp(each, number)).result)).result
            for each in self.spans
        )
        found = self.chosen(emit, emit.compare("sge", low, high), lambda _: list(cells), use)
        return found if self.adds else list(cells)

    def newest(self, emit: Emitter) -> SSAValue:
        """The plane of level 0, counted from the field's first."""
        step, back = self.stream, self.levels.low + self.first[0]
        return emit.add_int(step.arriving_plane, step.turn - back)

    def numbers(self, emit: Emitter, planes: CellSpan) -> CellSpan:
        """The levels with one of the planes: the first, and the end."""
        begin, count = planes
        apart, newest = self.levels.apart, self.newest(emit)
        since = emit.sub_int(newest, begin)
        ends = emit.sub_int(since, count), since

        def level_after(distance: SSAValue) -> SSAValue:
            steps = emit.binary(arith.MaxSIOp, emit.add_int(distance, apart), emit.int(0))
            number = emit.split(steps, apart)[1]
            return emit.binary(arith.MinSIOp, number, emit.int(len(self.levels.stages)))

        low, high = (level_after(distance) for distance in ends)
        return low, high

    def at_level(self, emit: Emitter, number: SSAValue) -> None:
        """Let the code that follows belong to the level of a number."""
        back = emit.mul_int(number, self.levels.apart)
        self.plane_of_level = emit.sub_int(self.newest(emit), back)
        arguments = self.step.code.arguments
        steps = [arguments[stage.points[0]] for stage in self.levels.stages]
        self.row = emit.add(arith.TruncIOp(of_level(emit, number, steps), i32)).result


# Cells are noted.


def note_levels(
    step: StreamStep, levels: LevelsOfPoints, cells: Sequence[Sequence[SSAValue]]
) -> None:
    """Note sampled cells at all levels; `cells` holds the thread's own, level by level."""
    made, emit = LevelEmitter(step, levels), step.emit

    def turn(inner: Emitter, number: SSAValue, first: Sequence[SSAValue]) -> list[SSAValue]:
        def own(taken: Emitter) -> list[SSAValue]:
            return [of_level(taken, number, values) for values in zip(*cells, strict=True)]

        return made.used(inner, number, first, own)

    low, high = made.numbers(emit, step.variant.noted_planes[levels.made.places])
    # Steps for planes of other lists wait for no entry of the list.
    block = Block()
    inside = emit.into(block)
    made.read_spans(inside)
    made.loop(inside, (low, high, 1), cells[0], turn)
    inside.add(scf.YieldOp())
    emit.add(scf.IfOp(emit.compare("slt", low, high), [], [block]))


# Values are added.


class AddendEmitter(LevelEmitter):
    """Gathers the values of a step from a list, for all levels."""

    @property
    def sets(self) -> int:
        """The sets of addends."""
        return sets_of_addends(self.levels.apart)

    def gathered(self) -> Addends:
        """The addends after all levels with points."""
        emit, count = self.step.emit, len(self.step.code.geometry.thread_positions)
        unset = unset_cell(self.step.variant, element_type(self.made.weights))
        none, no_bits = [emit.int(NO_PLANE)] * self.sets, [emit.int(0)] * self.sets
        start = [emit.int(0), *none, *no_bits, *[unset] * (count * self.sets)]
        kept = self.step.variant.kept_values.get(self.made)
        if kept is None:
            return Addends.of(self.of_list(emit, start), self.sets)

        def of_kept(inner: Emitter) -> list[SSAValue]:
            return self.of_kept(inner, kept, start)

        found = self.chosen(emit, kept.are_few, of_kept, lambda inner: self.of_list(inner, start))
        return Addends.of(found, self.sets)

    def of_list(self, emit: Emitter, start: Sequence[SSAValue]) -> list[SSAValue]:
        """The addends after the entries of all levels, read from the list."""

        def turn(inner: Emitter, number: SSAValue, flat: Sequence[SSAValue]) -> list[SSAValue]:
            return self.used(inner, number, flat, lambda _: list(flat))

        self.read_spans(emit)
        low, high = self.numbers(emit, self.step.variant.point_planes[self.made.places])
        return self.loop(emit, (low, high, 1), start, turn)

    def of_kept(self, emit: Emitter, kept: KeptValues, start: Sequence[SSAValue]) -> list[SSAValue]:
        """The addends after the values kept in lanes whose plane some level has in the step."""
        levels, newest = self.levels.count, self.newest(emit)
        own = emit.mul_int(self.step.code.thread.lane, len(Addends.of(start, self.sets).values[0]))

        def turn(inner: Emitter, entry: SSAValue, flat: Sequence[SSAValue]) -> list[SSAValue]:
            plane = inner.add(simt.PickOp(kept.planes, entry)).result
            plane = inner.add(simt.UniformOp(plane)).result
            rest, level = inner.split(inner.sub_int(newest, plane), self.levels.apart)
            masks = [inner.compare("eq", rest, 0), inner.compare("ult", level, levels)]
            place = inner.add_int(inner.mul_int(entry, levels), level)

            def use(taken: Emitter) -> list[SSAValue]:
                key, value = kept.at(taken, place)
                return self.with_value(taken, taken.sub_int(key, own), value, plane, flat)

            is_due = inner.value_of(inner.all_of(masks))
            return self.chosen(inner, is_due, use, lambda _: list(flat))

        return self.loop(emit, (emit.int(0), kept.count, 1), start, turn)

    def taken(
        self, own: SSAValue, key: SSAValue, product: SSAValue
    ) -> Callable[[Emitter, SSAValue, Sequence[SSAValue]], list[SSAValue]]:
        """The addends after the value of a lane's entry."""

        def turn(emit: Emitter, lane: SSAValue, flat: Sequence[SSAValue]) -> list[SSAValue]:
            place = emit.sub_int(emit.add(simt.PickOp(key, lane)).result, own)
            value = emit.add(simt.PickOp(product, lane)).result
            return self.with_value(emit, place, value, self.stream_cell(emit), flat)

        return turn

    def with_value(
        self,
        emit: Emitter,
        place: SSAValue,
        value: SSAValue,
        plane: SSAValue,
        flat: Sequence[SSAValue],
    ) -> list[SSAValue]:
        """The addends after a value for a cell of a plane: the cell's number, or any other."""
        addends = Addends.of(flat, self.sets)
        shifted = emit.binary(arith.ShLIOp, emit.int(1), place)
        is_own = emit.compare("ult", place, len(addends.values[0]))
        bit = emit.select(is_own, shifted, emit.int(0))
        is_here = emit.compare("eq", addends.planes[0], plane)
        taken = emit.select(is_here, addends.bits[0], emit.int(-1))
        both = emit.binary(arith.AndIOp, bit, taken)
        fits = emit.add(simt.AllOp(emit.compare("eq", both, 0))).result
        planes = (
            emit.select(fits, addends.planes[0], plane),
            *older(emit, fits, addends.planes),
        )
        kept = emit.select(fits, addends.bits[0], emit.int(0))
        bits = emit.binary(arith.OrIOp, kept, bit), *older(emit, fits, addends.bits)
        first = tuple(
            emit.select(emit.compare("eq", place, number), value, old)
            for number, old in enumerate(addends.values[0])
        )
        moved = zip(*(older(emit, fits, cells) for cells in zip(*addends.values)))
        used = emit.add_int(addends.used, emit.select(fits, emit.int(0), emit.int(1)))
        return Addends(used, planes, bits, (first, *map(tuple, moved))).flat()

    def batch(
        self, end: SSAValue, count: int = 1
    ) -> Callable[[Emitter, SSAValue, Sequence[SSAValue]], list[SSAValue]]:
        """The addends after up to 32 entries before an end."""

        def turn(emit: Emitter, base: SSAValue, flat: Sequence[SSAValue]) -> list[SSAValue]:
            entries = self.entries(emit, base, end)
            own, key, product = self.products(emit, entries)
            most = emit.binary(arith.MinSIOp, emit.sub_int(end, base), emit.int(LANES))
            return self.loop(emit, (emit.int(0), most, 1), flat, self.taken(own, key, product))

        return turn


def older(emit: Emitter, fits: SSAValue, values: Sequence[SSAValue]) -> tuple[SSAValue, ...]:
    """The values of the older sets: kept if an entry `fits` the newest set, or moved by one."""
    pairs = pairwise(values)
    return tuple(emit.select(fits, kept, newer) for newer, kept in pairs)


def gathered_addends(step: StreamStep) -> dict[PointSet, Addends]:
    """The values of a step's lists for all levels."""
    found: dict[PointSet, Addends] = {}
    for stage in stages_with_points(step.code.kernel):
        for made in stage.point_sets:
            levels = levels_in_loop(step, made)
            if made.kind is PointKind.INJECT and levels is not None and made not in found:
                found[made] = AddendEmitter(step, levels).gathered()
    return found


def has_more_values(emit: Emitter, gathered: AddendsOfLists) -> SSAValue:
    """A list has more values for the warp than addends."""
    used = [(addends.used, len(addends.planes)) for addends in gathered.values()]
    return emit.any_of([emit.compare("sgt", number, sets) for number, sets in used])


def add_addends(step: StreamStep, stage: ApplyOp, addends: Addends, plane: Plane) -> None:
    """Add the addends of a stage's plane to the cells, from the oldest set on."""
    made = next(each for each, found in step.loop.gathered.items() if found is addends)
    emit, first = step.emit, CellBox.of(made.bounds).lower[0]
    there = emit.add_int(step.arriving_plane, step.turn - stage.lag - first)
    for age in reversed(range(len(addends.planes))):
        is_here = emit.compare("eq", addends.planes[age], there)
        bits = emit.select(is_here, addends.bits[age], emit.int(0))
        for number, (at, cell) in enumerate(plane.items()):
            bit = emit.binary(arith.AndIOp, bits, emit.int(1 << number))
            added = emit.binary(arith.AddfOp, cell, addends.values[age][number])
            plane[at] = emit.select(emit.compare("ne", bit, 0), added, cell)
