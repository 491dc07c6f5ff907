"""Kernels of sweeps in parts: one long line, read and written once by all multiprocessors.

A section is 256 parts of 16 places (`passes/analysis/cells/recurrences.py`), one a thread. A block
has one section, or two of narrow cells:
```
%e = simt.launches_ended %words                  messages have the next number
simt.copy_async %cells[%to], %u[%i] bytes 16     copies of the cells wait in shared memory
%t = arith.addf ...                              the change of a part
simt.store %t to %parts[%thread]                 changes of parts, then of groups of 16 parts
simt.post %section to %words[%b] number %n       the change of a section, for blocks behind
%others = simt.take %words[%a] number %n : f64   changes of sections and their groups before
simt.end_launch %words number %n                 by the last block
```
1. Cells are loaded once, and kept in shared memory while the block waits.
2. The first warp joins the changes of parts: a lane those of a group, which it replaces by the
   changes of all parts before in the group, then all lanes those of the section's 16 groups; of
   two sections, each half of the warp those of one.
3. A block takes the changes of the sections before in the group of 16 sections, of the groups
   before in the larger group, and on: a warp takes fewer than 16 words of each level, and no block
   waits for a chain of blocks. The change before a second section follows from that before the
   first.
4. The block with the last section of a group posts the group's change.
5. Blocks wait for blocks of smaller numbers only, which start first. The last block has the
   changes of all blocks, which therefore know the number of the launch: it ends the launch.
"""

from __future__ import annotations

from xdsl.dialects import gpu, scf
from xdsl.dialects.builtin import i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, SSAValue

from timetile.dialects import simt
from timetile.dialects.cell_types import CELL_BYTES
from timetile.dialects.simt.buffers import GLOBAL_SPACE, buffer_type
from timetile.dialects.taps import Tap
from timetile.dialects.temporal.sweep import PART_PLACES
from timetile.dialects.tile import LANES
from timetile.lowering.emitter import Emitter
from timetile.lowering.parted_cells import CellsThread, PartCells
from timetile.lowering.parted_layout import PARTS_OF_SECTION, PLACES_OF_SECTION
from timetile.lowering.sweep_frames import CHANGE_PITCH, MOST_LEVELS, SweepFrame
from timetile.lowering.tile_to_gpu.cells import CellFunction
from timetile.lowering.tile_to_gpu.scopes import synchronise_warp
from timetile.passes.analysis.cells.recurrences import Recurrence

Change = list[SSAValue]


class PartedThread(CellsThread):
    """Emits the code of a thread of a sweep in parts: a part of 16 places."""

    def __init__(self, frame: SweepFrame, function: FuncOp, recurrence: Recurrence):
        super().__init__(frame, function)
        self.part = CellFunction(recurrence.part)
        self.joining = CellFunction(recurrence.join)
        self.after = CellFunction(recurrence.after)
        self.kinds = list(recurrence.join.function_type.outputs)
        words = buffer_type(i64, frame.words, GLOBAL_SPACE)
        self.words = self.entry.insert_arg(words, len(self.entry.args))
        emit, groups = self.emit, PARTS_OF_SECTION // PART_PLACES * self.sections
        self.place_in_group, self.group = self.split(self.thread, PART_PLACES)
        self.lane, self.warp = self.split(self.thread, LANES)
        self.parts = [self.shared(kind, groups * CHANGE_PITCH) for kind in self.kinds]
        """The changes of parts, then of all parts before in the group."""
        self.groups = [self.shared(kind, groups) for kind in self.kinds]
        self.before_groups = [self.shared(kind, groups) for kind in self.kinds]
        levels = MOST_LEVELS * self.sections
        self.before_blocks = [self.shared(kind, levels) for kind in self.kinds]
        """
        The change of the sections before in the group, of the groups before, and on, by level; then
        the change before the second section in the group.
        """
        self.numbers: list[SSAValue] = [emit.mul_int(self.block, self.sections)]
        self.places_of_levels: list[SSAValue] = []
        for _ in frame.levels:
            place, larger = self.split(self.numbers[-1], PART_PLACES)
            self.places_of_levels.append(place)
            self.numbers.append(larger)
        self.launch = emit.int(0)

    def make(self) -> gpu.ModuleOp:
        emit, levels = self.emit, self.frame.levels
        if levels:
            self.launch = emit.add(simt.LaunchesEndedOp(self.words)).count
        (first,) = self.load(emit, self.op.targets[0], self.start(self.op.targets[0]), -1)
        for tap in self.frame.loads:
            self.gather(tap)
        self.wait_for_copies()
        self.launch = emit.add_int(self.launch, 1)
        for section in range(self.sections):
            total = self.total(self.own(section), self.first_place(section))
            self.put(emit, self.parts, self.place_of_part(section), total, None)
        self.synchronise()
        self.join_all()
        self.synchronise()
        if levels:
            self.end_launch()
        for section in range(self.sections):
            self.go_through(section, first)
        self.synchronise()
        self.scatter()
        emit.add(gpu.ReturnOp([]))
        return self.module()

    def go_through(self, section: int, first: SSAValue) -> None:
        """Go through the thread's part of a section, place after place."""
        carried, results = self.value_before(first, section), PartCells()
        cells, number = self.own(section), self.first_place(section)
        for place in range(PART_PLACES):
            given = self.arguments(cells, number, place)
            (carried,) = self.cell.inline(self.emit, [carried if a is None else a for a in given])
            results.append(carried)
        self.keep_results(results, section)

    def first_place(self, section: int) -> SSAValue:
        """The first place of the thread's part of a section."""
        emit = self.emit
        place = emit.add_int(
            emit.mul_int(self.block, self.places_of_block), section * PLACES_OF_SECTION
        )
        return emit.add_int(place, emit.mul_int(self.thread, PART_PLACES))

    def own(self, section: int) -> dict[Tap, PartCells]:
        """The cells of the thread's part of a section."""
        return {tap: self.own_cells(tap, section) for tap in self.frame.loads}

    def end_launch(self) -> None:
        """Let the last block, which has the changes of all blocks, end the launch."""
        body = Block()
        inner = self.emit.into(body)
        inner.add(simt.EndLaunchOp(self.words, self.launch))
        inner.add(scf.YieldOp())
        mask = self.emit.all_of([self.is_last, self.emit.compare("eq", self.thread, 0)])
        self.emit.add(scf.IfOp(self.emit.value_of(mask), [], [body]))

    # Changes.

    def join(self, emit: Emitter, first: Change, then: Change) -> Change:
        """The change of two, one behind the other."""
        return self.joining.inline(emit, [*first, *then])

    def total(self, cells: dict[Tap, PartCells], number: SSAValue) -> Change:
        """The change of a thread's part, from its first place on."""
        found: Change = []
        for place in range(PART_PLACES):
            given = [a for a in self.arguments(cells, number, place) if a is not None]
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

    def place_of_part(self, section: int) -> SSAValue:
        """Where the change of the thread's part of a section lies."""
        at = self.emit.add_int(self.thread, self.group)
        return self.emit.add_int(at, section * PART_PLACES * CHANGE_PITCH)

    def behind(
        self, emit: Emitter, larger: Change, has_larger: SSAValue, own: Change, count: SSAValue
    ) -> Change:
        """
        The change of all before: of the larger groups, if any, then of the `count` before in the
        own group, if any.
        """
        both = self.select(emit, has_larger, self.join(emit, larger, own), own)
        return self.select(emit, emit.compare("eq", count, 0), larger, both)

    def value_before(self, first: SSAValue, section: int) -> SSAValue:
        """The value before a thread's part of a section; `first` is the value before the line."""
        emit, zero = self.emit, self.emit.int(0)
        number = emit.add_int(self.numbers[0], section)
        found, has_any = self.of_sections_before(section), emit.compare("sgt", number, 0)
        in_block = self.get(emit, self.before_groups, self.group, section * PART_PLACES)
        found = self.behind(emit, found, has_any, in_block, self.group) if found else in_block
        has_any = emit.any_of([has_any, emit.compare("sgt", self.group, zero)])
        in_group = self.get(emit, self.parts, self.place_of_part(section), 0)
        found = self.behind(emit, found, has_any, in_group, self.place_in_group)
        has_any = emit.any_of([has_any, emit.compare("sgt", self.place_in_group, zero)])
        (made,) = self.after.inline(emit, [*found, first])
        return emit.select(has_any, made, first)

    def of_sections_before(self, section: int) -> Change:
        """The change of all sections before, from the largest groups on; none of a single one."""
        emit, found = self.emit, Change()
        for level in reversed(range(len(self.frame.levels))):
            at, count = level, self.places_of_levels[level]
            if section and not level:
                at, count = MOST_LEVELS, emit.add_int(count, section)
            own = self.get(emit, self.before_blocks, emit.int(at), 0)
            if found:
                has_larger = emit.compare("sgt", self.numbers[level + 1], 0)
                own = self.behind(emit, found, has_larger, own, count)
            found = own
        return found

    def join_all(self) -> None:
        """
        Let the first warp join and post the changes of the block, and take the changes of blocks in
        the group; let the next warp take those of groups in the larger group, and so on.
        """
        emit, levels = self.emit, self.frame.levels
        body = Block()
        inner = emit.into(body)
        own = self.join_sections(inner)
        if levels:
            self.post_sections(inner, own)
            found = self.taken(inner, 0, own)
            self.put_level(inner, 0, found)
            for section in range(1, self.sections):
                before = self.picked(inner, own, (section - 1) * PART_PLACES)
                has_some = inner.compare("sgt", self.places_of_levels[0], 0)
                found = self.select(inner, has_some, self.join(inner, found, before), before)
                self.put_level(inner, MOST_LEVELS, found)
                own = self.picked(inner, own, section * PART_PLACES)
            self.post_groups(inner, 1, self.join(inner, found, own))
        inner.add(scf.YieldOp())
        emit.add(scf.IfOp(emit.compare("eq", self.warp, 0), [], [body]))
        for level in range(1, len(levels)):
            body = Block()
            inner = emit.into(body)
            none: Change = [inner.add(simt.UnsetOp(kind)).result for kind in self.kinds]
            self.put_level(inner, level, self.taken(inner, level, none))
            inner.add(scf.YieldOp())
            emit.add(scf.IfOp(emit.compare("eq", self.warp, level), [], [body]))

    def put_level(self, emit: Emitter, level: int, change: Change) -> None:
        """Write the change of those before of a level, by the first lane."""
        is_first = emit.compare("eq", self.lane, 0)
        self.put(emit, self.before_blocks, emit.int(level), change, is_first)

    def join_sections(self, emit: Emitter) -> Change:
        """
        The change of a section, or of the lane's own section if there are two. Writes the changes
        of the parts before and of the groups before.
        """
        body = Block()
        inner, at = emit.into(body), emit.mul_int(self.lane, CHANGE_PITCH)
        total = self.get(inner, self.parts, at, 0)
        for place in range(1, PART_PLACES):
            here = inner.add_int(at, place)
            change = self.get(inner, self.parts, here, 0)
            self.put(inner, self.parts, here, total, None)
            total = self.join(inner, total, change)
        self.put(inner, self.groups, self.lane, total, None)
        inner.add(scf.YieldOp())
        groups = PART_PLACES * self.sections
        emit.add(scf.IfOp(emit.compare("slt", self.lane, groups), [], [body]))
        synchronise_warp(emit)
        at, is_first = emit.int(0), emit.compare("eq", self.lane, 0)
        if self.sections > 1:
            place, section = self.split(self.lane, PART_PLACES)
            at, is_first = emit.mul_int(section, PART_PLACES), emit.compare("eq", place, 0)
        found = self.get(emit, self.groups, at, 0)
        for place in range(1, PART_PLACES):
            self.put(emit, self.before_groups, emit.add_int(at, place), found, is_first)
            found = self.join(emit, found, self.get(emit, self.groups, at, place))
        return found

    # Blocks.

    def post_groups(self, emit: Emitter, level: int, own: Change) -> None:
        """
        Let the last block of a group post the group's change, and the change of each larger group
        that ends with this block.
        """
        if level == len(self.frame.levels):
            return
        body = Block()
        inner = emit.into(body)
        self.post(inner, self.frame.levels[level], self.numbers[level], own)
        if level + 1 < len(self.frame.levels):
            own = self.join(inner, self.taken(inner, level, own), own)
            self.post_groups(inner, level + 1, own)
        inner.add(scf.YieldOp())
        last = PART_PLACES - (self.sections if level == 1 else 1)
        is_last = emit.compare("eq", self.places_of_levels[level - 1], last)
        emit.add(scf.IfOp(is_last, [], [body]))

    def post_sections(self, emit: Emitter, change: Change) -> None:
        """Post the changes of the block's sections, each by a lane."""
        number, base = self.numbers[0], self.frame.levels[0]
        if self.sections == 1:
            self.post(emit, base, number, change)
            return
        place, section = self.split(self.lane, PART_PLACES)
        is_first = emit.compare("eq", place, 0)
        self.post(emit, base, emit.add_int(number, section), change, is_first)

    def post(
        self,
        emit: Emitter,
        base: int,
        number: SSAValue,
        change: Change,
        mask: SSAValue | None = None,
    ) -> None:
        """Post the change of a section or a group, by the first thread or by a mask."""
        body = Block()
        inner = emit.into(body)
        index, places = self.word(inner, number), self.word_places(base)
        inner.add(simt.PostOp(change, self.words, index, places, self.launch))
        inner.add(scf.YieldOp())
        mask = emit.compare("eq", self.thread, 0) if mask is None else mask
        emit.add(scf.IfOp(mask, [], [body]))

    def word(self, emit: Emitter, number: SSAValue) -> SSAValue:
        """The first word of a message, without the base of its level."""
        return emit.mul_int(number, self.frame.message_words)

    def word_places(self, base: int) -> list[int]:
        """The words of the numbers of a change."""
        each = CELL_BYTES[self.kinds[0]] // 4
        return [base + k * each for k in range(len(self.kinds))]

    def taken(self, emit: Emitter, level: int, none: Change) -> Change:
        """
        The change of those before in the group, each taken by a lane; `none`, which is not used, of
        the first in a group.
        """
        place, number = self.places_of_levels[level], self.numbers[level]
        body, otherwise = Block(), Block()
        inner = emit.into(body)
        last = inner.add_int(place, -1)
        mine = inner.select(inner.compare("slt", self.lane, last), self.lane, last)
        at = inner.add_int(inner.sub_int(number, place), mine)
        index, words = self.word(inner, at), self.word_places(self.frame.levels[level])
        cells = inner.add(simt.TakeOp(self.words, index, words, self.launch, self.kinds)).cells
        found = self.picked(inner, list(cells), 0)
        for other in range(1, PART_PLACES - 1):
            more = self.join(inner, found, self.picked(inner, list(cells), other))
            found = self.select(inner, inner.compare("sgt", place, other), more, found)
        inner.add(scf.YieldOp(*found))
        emit.into(otherwise).add(scf.YieldOp(*none))
        several = emit.compare("sgt", place, 0)
        return list(emit.add(scf.IfOp(several, self.kinds, [body], [otherwise])).results)

    def picked(self, emit: Emitter, change: Change, lane: int) -> Change:
        """The change of a lane."""
        return [emit.add(simt.PickOp(number, emit.int(lane))).result for number in change]
