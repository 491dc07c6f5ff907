"""Kernels of sweeps in parts: one long line, read and written once by all multiprocessors.

A block has 256 parts of 16 places (`passes/analysis/cells/recurrences.py`):
```
simt.copy_async %cells[%to], %u[%i] bytes 8      copies of the cells wait in shared memory
%t = arith.addf ...                              the change of a part
simt.store %t to %parts[%thread]                 changes of parts, then of groups of 16 parts
simt.post %block to %words[%b] number 1          the change of the block, for blocks behind
%others = simt.take %words[%a] number 1 : f64    changes of blocks and groups of blocks before
```
1. Cells are loaded once, and kept in shared memory while the block waits.
2. A block takes the changes of the blocks before in the group of 16 blocks, of the groups before
   in the larger group, and on: a warp takes fewer than 16 words of each level, and no block waits
   for a chain of blocks.
3. The last block of a group posts the group's change.
4. Blocks wait for blocks of smaller numbers only, which start first.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, gpu, scf
from xdsl.dialects.builtin import i32, i64
from xdsl.dialects.func import FuncOp
from xdsl.dialects.gpu import BlockIdOp, DimensionAttr, DimensionEnum, ThreadIdOp
from xdsl.ir import Attribute, Block, SSAValue

from timetile.dialects import nvvm, simt
from timetile.dialects.cell_types import CELL_BYTES
from timetile.dialects.simt.buffers import GLOBAL_SPACE, SHARED_SPACE, buffer_type
from timetile.dialects.syntax import cell_type, element_type
from timetile.dialects.taps import Tap
from timetile.dialects.temporal.sweep import PART_PLACES
from timetile.dialects.tile import LANES
from timetile.lowering.emitter import Emitter
from timetile.lowering.sweep_frames import PARTS_OF_BLOCK, PITCH, WHOLE_SLICE, SweepFrame
from timetile.lowering.sweep_kernels import SweepThread
from timetile.lowering.tile_to_gpu.cells import CellFunction
from timetile.lowering.tile_to_gpu.scopes import synchronise_warp
from timetile.passes.analysis.cells.recurrences import Recurrence

Change = list[SSAValue]


class PartedThread(SweepThread):
    """Emits the code of a thread of a sweep in parts: a part of 16 places."""

    def __init__(self, frame: SweepFrame, function: FuncOp, recurrence: Recurrence):
        super().__init__(frame, function)
        self.part = CellFunction(recurrence.part)
        self.joining = CellFunction(recurrence.join)
        self.after = CellFunction(recurrence.after)
        self.kinds = list(recurrence.join.function_type.outputs)
        words = buffer_type(i64, frame.words, GLOBAL_SPACE)
        self.words = self.entry.insert_arg(words, len(self.entry.args))
        emit, along = self.emit, DimensionAttr(DimensionEnum.X)
        self.thread = emit.add(arith.IndexCastOp(emit.add(ThreadIdOp(along)).result, i32)).result
        self.block = emit.add(arith.IndexCastOp(emit.add(BlockIdOp(along)).result, i32)).result
        self.place_in_group, self.group = emit.split(self.thread, PART_PLACES)
        self.bytes = 0
        self.cells: dict[Tap, SSAValue] = {}
        """The cells of a block in shared memory."""

    def make(self) -> gpu.ModuleOp:
        emit = self.emit
        first = emit.mul_int(self.block, PARTS_OF_BLOCK * PART_PLACES)
        number = emit.add_int(first, emit.mul_int(self.thread, PART_PLACES))
        column = emit.add_int(first, self.thread)
        for tap in self.frame.loads:
            self.cells[tap] = self.gather(tap, column)
        emit.add(nvvm.CpAsyncCommitGroupOp())
        emit.add(nvvm.CpAsyncWaitGroupOp(0))
        self.synchronise()
        carried = self.value_before(self.total(number))
        kind = cell_type(self.op.targets[0])
        alike = (c for tap, c in self.cells.items() if self.kind_of(tap) == kind)
        buffer = next(alike, None) or self.shared(kind, PARTS_OF_BLOCK * PITCH)
        own = emit.mul_int(self.thread, PITCH)
        for place in range(PART_PLACES):
            given = self.arguments(number, place)
            (carried,) = self.cell.inline(emit, [carried if a is None else a for a in given])
            emit.add(simt.StoreOp([carried], buffer, own, place, None))
        self.synchronise()
        self.scatter(buffer, column)
        emit.add(gpu.ReturnOp([]))
        return self.module()

    # Shared memory.

    def shared(self, kind: Attribute, cells: int) -> SSAValue:
        """A new part of shared memory."""
        at, self.bytes = self.bytes, self.bytes + cells * CELL_BYTES[kind]
        return self.emit.add(simt.SharedOp(at, buffer_type(kind, cells, SHARED_SPACE))).result

    def synchronise(self) -> None:
        """The threads of the block wait for each other."""
        self.emit.add(gpu.BarrierOp())

    # Cells.

    def kind_of(self, tap: Tap) -> Attribute:
        """The type of a tap's cells."""
        return cell_type(self.op.sources[tap.operand])

    def spread_index(self) -> SSAValue:
        """Where a thread's cell of the first row of a block lies in shared memory."""
        return self.emit.add_int(self.thread, self.group)

    def rows(self, number: SSAValue) -> list[tuple[int, int, SSAValue | None]]:
        """
        The rows of a block's cells, as many as threads: the first place, the place in shared
        memory, and the mask of threads with a cell.
        """
        threads, count = PARTS_OF_BLOCK, len(self.op.places)
        found: list[tuple[int, int, SSAValue | None]] = []
        for row in range(PART_PLACES):
            mask = None
            if count % (threads * PART_PLACES):
                mask = self.emit.compare("slt", self.emit.add_int(number, row * threads), count)
            found.append((row * threads, row * (threads // PART_PLACES) * PITCH, mask))
        return found

    def gather(self, tap: Tap, number: SSAValue) -> SSAValue:
        """Copy the cells of a tap to shared memory, a row after the other."""
        emit, field = self.emit, self.op.sources[tap.operand]
        index, rows = self.indices(emit, number)[field], self.rows(number)
        buffer, to = self.shared(self.kind_of(tap), PARTS_OF_BLOCK * PITCH), self.spread_index()
        if element_type(field) == self.kind_of(tap):
            size = CELL_BYTES[self.kind_of(tap)]
            for place, at, mask in rows:
                start = self.offset(field, place, tap.offset)
                given = self.buffers[field], index, start, size, mask
                emit.add(simt.CopyAsyncOp(buffer, to, at, *given))
            return buffer
        loaded: list[SSAValue] = []
        for place, _, self.mask in rows:
            loaded += self.load(emit, field, index, place, tap.offset)
        for cell, (_, at, _) in zip(loaded, rows):
            emit.add(simt.StoreOp([cell], buffer, to, at, None))
        return buffer

    def scatter(self, buffer: SSAValue, number: SSAValue) -> None:
        """Store the results of a block, a row after the other."""
        emit, (target,) = self.emit, self.op.targets
        index, spread = self.indices(emit, number)[target], self.spread_index()
        for place, at, mask in self.rows(number):
            (cell,) = emit.add(simt.LoadOp(buffer, spread, at, [cell_type(target)], None)).cells
            where = self.offset(target, place, (0,))
            emit.add(simt.StoreOp([cell], self.buffers[target], index, where, mask))

    def arguments(self, number: SSAValue, place: int) -> list[SSAValue | None]:
        """The arguments of the cell function at a place of the part; None for the value before."""
        emit, op, own = self.emit, self.op, self.emit.mul_int(self.thread, PITCH)
        found: list[SSAValue | None] = []
        for tap in op.tap_list:
            if op.is_result(tap):
                found.append(None)
                continue
            load = simt.LoadOp(self.cells[tap], own, place, [self.kind_of(tap)], None)
            found.append(emit.add(load).cells[0])
        found += [self.scalars[scalar] for scalar in op.scalars]
        found += [self.coordinate(emit, axis, number, place, 0) for axis in op.index_axes]
        return found

    # Changes.

    def join(self, emit: Emitter, first: Change, then: Change) -> Change:
        """The change of two, one behind the other."""
        return self.joining.inline(emit, [*first, *then])

    def total(self, number: SSAValue) -> Change:
        """The change of a thread's part, from its first place on."""
        found: Change = []
        for place in range(PART_PLACES):
            given = [a for a in self.arguments(number, place) if a is not None]
            change = self.part.inline(self.emit, given)
            found = self.join(self.emit, found, change) if place else change
        return found

    def select(self, emit: Emitter, mask: SSAValue, yes: Change, no: Change) -> Change:
        """One of two changes."""
        return [emit.select(mask, a, b) for a, b in zip(yes, no)]

    def put(
        self, emit: Emitter, buffers: Change, at: SSAValue, change: Change, mask: SSAValue | None
    ) -> None:
        """Write a change to shared memory."""
        for buffer, number in zip(buffers, change):
            emit.add(simt.StoreOp([number], buffer, at, 0, mask))

    def get(self, emit: Emitter, buffers: Change, at: SSAValue, place: int) -> Change:
        """A change in shared memory."""
        return [
            emit.add(simt.LoadOp(buffer, at, place, [kind], None)).cells[0]
            for buffer, kind in zip(buffers, self.kinds)
        ]

    def sum_before(self, emit: Emitter, buffers: Change, at: SSAValue, count: SSAValue) -> Change:
        """The change of the first `count` changes from `at` on, of fewer than 16 and at least 1."""
        found = self.get(emit, buffers, at, 0)
        for place in range(1, PART_PLACES - 1):
            more = self.join(emit, found, self.get(emit, buffers, at, place))
            found = self.select(emit, emit.compare("sgt", count, place), more, found)
        return found

    def behind(
        self, emit: Emitter, larger: Change, has_larger: SSAValue, own: Change, count: SSAValue
    ) -> Change:
        """
        The change of all before: of the larger groups, if any, then of the `count` before in the
        own group, if any.
        """
        both = self.select(emit, has_larger, self.join(emit, larger, own), own)
        return self.select(emit, emit.compare("eq", count, 0), larger, both)

    def value_before(self, own: Change) -> SSAValue:
        """The value before a thread's part, by the change of the part."""
        emit, (target,) = self.emit, self.op.targets
        parts = [self.shared(kind, PARTS_OF_BLOCK) for kind in self.kinds]
        groups = [self.shared(kind, PART_PLACES) for kind in self.kinds]
        self.put(emit, parts, self.thread, own, None)
        self.synchronise()
        start = emit.sub_int(self.thread, self.place_in_group)
        in_group = self.sum_before(emit, parts, start, self.place_in_group)
        is_last = emit.compare("eq", self.place_in_group, PART_PLACES - 1)
        self.put(emit, groups, self.group, self.join(emit, in_group, own), is_last)
        self.synchronise()
        in_block = self.sum_before(emit, groups, emit.int(0), self.group)
        found, has_block = self.of_blocks_before(groups)
        found = self.behind(emit, found, has_block, in_block, self.group)
        has_group = emit.any_of([has_block, emit.compare("sgt", self.group, 0)])
        found = self.behind(emit, found, has_group, in_group, self.place_in_group)
        has_any = emit.any_of([has_group, emit.compare("sgt", self.place_in_group, 0)])
        self.mask = None
        (first,) = self.load(emit, target, self.start(target), -1)
        (made,) = self.after.inline(emit, [*found, first])
        return emit.select(has_any, made, first)

    # Blocks.

    def of_blocks_before(self, groups: Change) -> tuple[Change, SSAValue]:
        """
        The change of all blocks before, and whether there are any. A warp takes the changes of
        blocks in the group, the next warp those of groups in the larger group, and on.
        """
        emit, levels = self.emit, self.frame.levels
        has_any = emit.compare("sgt", self.block, 0)
        if not levels:
            return self.get(emit, groups, emit.int(0), 0), has_any
        before = [self.shared(kind, WHOLE_SLICE * len(levels)) for kind in self.kinds]
        places: list[SSAValue] = []
        numbers: list[SSAValue] = [self.block]
        for _ in levels:
            place, larger = emit.split(numbers[-1], PART_PLACES)
            places.append(place)
            numbers.append(larger)
        lane, warp = emit.split(self.thread, LANES)
        is_first = emit.compare("eq", lane, 0)
        for level in range(len(levels)):
            body = Block()
            inner = emit.into(body)
            own = self.get(inner, groups, inner.int(0), 0)
            if level == 0:
                own = self.post_block(inner, groups, own)
            found = self.taken(inner, lane, level, numbers, places, own)
            self.put(inner, before, inner.int(level), found, is_first)
            if level == 0:
                self.post_groups(inner, lane, 1, self.join(inner, found, own), numbers, places)
            inner.add(scf.YieldOp())
            emit.add(scf.IfOp(emit.compare("eq", warp, level), [], [body]))
        self.synchronise()
        changes = [self.get(emit, before, emit.int(level), 0) for level in range(len(levels))]
        found = changes[-1]
        for level in range(len(levels) - 2, -1, -1):
            has_larger = emit.compare("sgt", numbers[level + 1], 0)
            found = self.behind(emit, found, has_larger, changes[level], places[level])
        return found, has_any

    def post_block(self, emit: Emitter, groups: Change, first: Change) -> Change:
        """Post the change of the block, whose first group has the change `first`."""
        own = first
        for place in range(1, PART_PLACES):
            own = self.join(emit, own, self.get(emit, groups, emit.int(0), place))
        self.post(emit, self.frame.levels[0], self.block, own)
        return own

    def post_groups(
        self,
        emit: Emitter,
        lane: SSAValue,
        level: int,
        own: Change,
        numbers: Sequence[SSAValue],
        places: Sequence[SSAValue],
    ) -> None:
        """
        Post the change of the group of a level if the block is the last of the group, and the
        changes of larger groups behind which the block stands.
        """
        if level == len(self.frame.levels):
            return
        body = Block()
        inner = emit.into(body)
        self.post(inner, self.frame.levels[level], numbers[level], own)
        if level + 1 < len(self.frame.levels):
            found = self.taken(inner, lane, level, numbers, places, own)
            own = self.join(inner, found, own)
            self.post_groups(inner, lane, level + 1, own, numbers, places)
        inner.add(scf.YieldOp())
        is_last = emit.compare("eq", places[level - 1], PART_PLACES - 1)
        emit.add(scf.IfOp(is_last, [], [body]))

    def post(self, emit: Emitter, base: int, number: SSAValue, change: Change) -> None:
        """Post the change of a block or a group."""
        body = Block()
        inner = emit.into(body)
        index, places = self.word(inner, number), self.word_places(base)
        inner.add(simt.PostOp(change, self.words, index, places, inner.int(1)))
        inner.add(scf.YieldOp())
        emit.add(scf.IfOp(emit.compare("eq", self.thread, 0), [], [body]))

    def word(self, emit: Emitter, number: SSAValue) -> SSAValue:
        """The first word of a message, without the base of its level."""
        return emit.mul_int(number, self.frame.message_words)

    def word_places(self, base: int) -> list[int]:
        """The words of the numbers of a change."""
        each = CELL_BYTES[self.kinds[0]] // 4
        return [base + k * each for k in range(len(self.kinds))]

    def taken(
        self,
        emit: Emitter,
        lane: SSAValue,
        level: int,
        numbers: Sequence[SSAValue],
        places: Sequence[SSAValue],
        none: Change,
    ) -> Change:
        """
        The change of those before in the group, each taken by a lane; `none`, which is not used, of
        the first in a group.
        """
        others, place = [self.shared(kind, LANES) for kind in self.kinds], places[level]
        body, otherwise = Block(), Block()
        inner = emit.into(body)
        last = inner.add_int(place, -1)
        mine = inner.select(inner.compare("slt", lane, last), lane, last)
        at = inner.add_int(inner.sub_int(numbers[level], place), mine)
        index, words = self.word(inner, at), self.word_places(self.frame.levels[level])
        found = inner.add(simt.TakeOp(self.words, index, words, inner.int(1), self.kinds)).cells
        self.put(inner, others, lane, list(found), None)
        synchronise_warp(inner)
        change = self.sum_before(inner, others, inner.int(0), place)
        inner.add(scf.YieldOp(*change))
        emit.into(otherwise).add(scf.YieldOp(*none))
        several = emit.compare("sgt", place, 0)
        made = emit.add(scf.IfOp(several, self.kinds, [body], [otherwise]))
        return list(made.results)
