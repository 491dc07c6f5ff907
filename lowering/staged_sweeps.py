"""Kernels of sweeps along the last axis: a warp's lines pass through shared memory.

A thread has a line, and goes place after place, with its own results in registers, as in
`sweep_kernels.py`. All lanes together copy segments of all lines (`sweep_staging.py`):
```
scf.for %n = -behind to slots - behind { copies of segment %n; commit }
scf.for %n = 0 to segments iter_args(%before) {
  nvvm.cp.async.wait.group 2
  nvvm.bar.warp.sync
  scf.for %j = 0 to 32 step 8 {
    %u0, %u1, %u2, %u3 = simt.load %ring[%own]
    ...
    simt.store %c0, %c1, %c2, %c3 to %results[%own]
  }
  nvvm.bar.warp.sync
  %v:4 = simt.load %results[%line]   simt.store %v:4 to %c[%i]
  copies of segment %n + slots - behind; commit
}
```
1. Some segments are on their way while one is computed.
2. The results of a target that the sweep reads take the place of the cells read; other targets have
   a segment of their own. Of the first and the last segment single cells are stored.
3. Fields whose lines do not begin at a multiple of 16 bytes are copied and stored cell by cell.
4. A group of fewer lines than lanes has longer segments; the last group goes through the last line
   once more where lines are missing, and stores nothing of it.
"""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp, i32
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Region, SSAValue

from timetile.dialects import nvvm, simt
from timetile.dialects.syntax import cell_type, element_type
from timetile.dialects.taps import Tap
from timetile.lowering.emitter import Emitter
from timetile.lowering.parted_sweeps import PartedThread
from timetile.lowering.ring_sweeps import RingThread
from timetile.lowering.sweep_frames import SweepFrame
from timetile.lowering.sweep_kernels import SweepThread, ordinary_number
from timetile.lowering.sweep_segments import LineRing, SegmentThread, cells_of_access, rolled
from timetile.lowering.sweep_staging import Stream
from timetile.lowering.tile_to_gpu.scopes import synchronise_warp
from timetile.lowering.tile_to_gpu.stored_cells import (
    lengthened,
    load_cells,
    shortened,
    store_cells,
)
from timetile.passes.analysis.cells.recurrences import recurrence_of_sweep


class StagedThread(SegmentThread):
    """Emits the code of a thread of a sweep whose lines pass through shared memory."""

    # Segments.

    def go(self, carried: list[SSAValue]) -> None:
        """Emit all places of the group's lines, a segment after the other."""
        emit, staging = self.emit, self.staging
        if staging.streams:
            ahead = Block(arg_types=[i32])
            self.copy(emit.into(ahead), ahead.args[0])
            ahead.add_op(scf.YieldOp())
            low = emit.int(-staging.behind)
            high = emit.int(staging.slots - staging.behind)
            emit.add(rolled(scf.ForOp(low, high, emit.int(1), [], Region(ahead))))
        body = Block(arg_types=[i32, *(value.type for value in carried)])
        inner = emit.into(body)
        kept = self.segment(inner, body.args[0], list(body.args[1:]))
        inner.add(scf.YieldOp(*kept))
        bounds = (emit.int(0), emit.int(staging.segments), emit.int(1))
        emit.add(rolled(scf.ForOp(*bounds, carried, Region(body))))

    def segment(self, emit: Emitter, number: SSAValue, carried: list[SSAValue]) -> list[SSAValue]:
        """The places of a segment; returns the kept cells."""
        staging = self.staging
        if staging.streams:
            emit.add(nvvm.CpAsyncWaitGroupOp(staging.pending))
        synchronise_warp(emit)
        first, end = self.ends(emit, number)
        kept = self.walk(emit, number, first, end, carried)
        synchronise_warp(emit)
        self.store_segment(emit, number, first, end)
        if staging.keeps_results:
            synchronise_warp(emit)
        if staging.streams:
            self.copy(emit, emit.add_int(number, staging.slots - staging.behind))
        return kept

    def ends(self, emit: Emitter, number: SSAValue) -> tuple[SSAValue, SSAValue]:
        """The first place of the sweep in a segment, and the place behind the last."""
        staging = self.staging
        first, end = emit.int(0), emit.int(staging.places)
        if staging.skipped:
            is_first = emit.compare("eq", number, 0)
            first = emit.select(is_first, emit.int(staging.skipped), first)
        if staging.last != staging.places:
            is_last = emit.compare("eq", number, staging.segments - 1)
            end = emit.select(is_last, emit.int(staging.last), end)
        return first, end

    def walk(
        self,
        emit: Emitter,
        number: SSAValue,
        first: SSAValue,
        end: SSAValue,
        carried: list[SSAValue],
    ) -> list[SSAValue]:
        """The places of a thread's line in a segment: turns, and single places at the ends."""
        staging, turn = self.staging, self.frame.places_of_turn
        low, high = first, end
        if staging.skipped % turn or staging.last % turn:
            up = emit.add_int(first, turn - 1)
            low = emit.sub_int(up, emit.split(up, turn)[0])
            high = emit.sub_int(end, emit.split(end, turn)[0])
            before = emit.select(emit.compare("slt", low, end), low, end)
            carried = self.turns(emit, number, first, before, 1, carried)
            carried = self.turns(emit, number, low, high, turn, carried)
            behind = emit.select(emit.compare("slt", high, before), before, high)
            return self.turns(emit, number, behind, end, 1, carried)
        return self.turns(emit, number, low, high, turn, carried)

    def turns(
        self,
        emit: Emitter,
        number: SSAValue,
        low: SSAValue,
        high: SSAValue,
        turn: int,
        carried: list[SSAValue],
    ) -> list[SSAValue]:
        """Turns of some places from `low` to `high`; returns the kept cells."""
        body = Block(arg_types=[i32, *(value.type for value in carried)])
        inner = emit.into(body)
        kept = self.staged_turn(inner, number, body.args[0], turn, list(body.args[1:]))
        inner.add(scf.YieldOp(*kept))
        loop = rolled(scf.ForOp(low, high, emit.int(turn), carried, Region(body)))
        return list(emit.add(loop).results)

    # Turns.

    def staged_turn(
        self,
        emit: Emitter,
        number: SSAValue,
        place: SSAValue,
        count: int,
        carried: list[SSAValue],
    ) -> list[SSAValue]:
        """Some places of a segment, with cells from shared memory; returns the kept cells."""
        staging, is_up = self.staging, self.op.is_ascending
        slot = self.slot(emit, number)
        column = place if is_up else emit.sub_int(emit.int(staging.places - count), place)
        at = emit.add_int(emit.mul_int(slot, staging.places), column)
        cells = {
            stream: self.read(emit, self.rings[stream], stream, at, count)
            for stream in staging.streams
        }
        loaded: list[dict[Tap, list[SSAValue]]] = [{} for _ in range(count)]
        streams = {(stream.field, stream.across): stream for stream in staging.streams}
        for tap in self.op.tap_list:
            if not self.op.is_result(tap):
                stream = streams[Stream.key(self.op, tap)]
                offset = tap.offset[self.op.axis.data]
                for k, found in enumerate(loaded):
                    found[tap] = [cells[stream][(k if is_up else count - 1 - k) + offset]]
        results: dict[SSAValue, list[SSAValue]] = {target: [] for target in self.op.targets}

        def store(place: int, target: SSAValue, made: list[SSAValue]) -> None:
            results[target] += made

        ahead = emit.add_int(emit.mul_int(number, staging.places), place)
        ahead = emit.add_int(ahead, -staging.skipped)
        kept = self.compute(emit, ahead, loaded, carried, store)
        for target, made in results.items():
            ring = self.ring_of(target)
            self.write(emit, ring, at if ring.slots > 1 else column, made if is_up else made[::-1])
        return kept

    def read(
        self, emit: Emitter, ring: LineRing, stream: Stream, at: SSAValue, count: int
    ) -> dict[int, SSAValue]:
        """
        The cells of a thread's line for `count` places beginning at a place of the ring, by the
        distance from the first place.
        """
        element = element_type(stream.field)
        width = cells_of_access(element) if count > 1 else 1
        cells: dict[int, SSAValue] = {}
        for begin in range(stream.low // width * width, count + stream.high, width):
            where = at
            if begin < 0 or begin >= count:
                where = self.around(emit, emit.add_int(at, begin), ring)
                index, offset = self.own(emit, ring, where), 0
            else:
                index, offset = self.own(emit, ring, where), begin
            if self.mask is None:
                found = load_cells(emit, ring.buffer, index, offset, [element] * width)
            else:
                none = ordinary_number(emit, cell_type(stream.field))
                found = self.override(emit, ring, index, offset, [none] * width)
            cells |= {begin + k: cell for k, cell in enumerate(found)}
        return cells

    def override(
        self, emit: Emitter, ring: LineRing, index: SSAValue, offset: int, none: list[SSAValue]
    ) -> list[SSAValue]:
        """Cells of a ring, or ordinary numbers for a lane without a line."""
        element = element_type(ring.field)
        assert self.mask is not None
        own = shortened(emit, none, element)
        made = simt.OverrideOp(own, ring.buffer, index, offset, self.mask)
        return lengthened(emit, emit.add(made).res)

    def around(self, emit: Emitter, at: SSAValue, ring: LineRing) -> SSAValue:
        """A place of a ring, behind the last one or before the first."""
        length = ring.slots * self.staging.places
        is_before = emit.compare("slt", at, 0)
        at = emit.select(is_before, emit.add_int(at, length), at)
        is_behind = emit.compare("sge", at, length)
        return emit.select(is_behind, emit.add_int(at, -length), at)

    def own(self, emit: Emitter, ring: LineRing, at: SSAValue) -> SSAValue:
        """The index of a place of a thread's line."""
        return emit.add_int(emit.mul_int(self.lane, ring.pitch), at)

    def write(self, emit: Emitter, ring: LineRing, at: SSAValue, cells: list[SSAValue]) -> None:
        """Keep results of a thread's line."""
        element, index = element_type(ring.field), self.own(emit, ring, at)
        width = min(cells_of_access(element), len(cells))
        for begin in range(0, len(cells), width):
            part = cells[begin : begin + width]
            store_cells(emit, part, element, ring.buffer, index, begin, self.mask)


def sweep_kernel(frame: SweepFrame, function: FuncOp) -> ModuleOp:
    """A module with the kernel of a sweep by its cell function, at the level of threads."""
    if frame.is_parted:
        recurrence = recurrence_of_sweep(frame.op, function)
        return ModuleOp([PartedThread(frame, function, recurrence).make()])
    if frame.staging is not None:
        return ModuleOp([StagedThread(frame, function, frame.staging).make()])
    if frame.ring:
        return ModuleOp([RingThread(frame, function).make()])
    return ModuleOp([SweepThread(frame, function).make()])
