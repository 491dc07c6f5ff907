"""The segments of a group of lines: copied to shared memory, and stored from it, by all lanes.

A lane copies units of 16 bytes, or single cells where lines do not begin at a multiple of 16 bytes:
```
%line, %place = a lane's part of a segment of all lines
%start = simt.load %starts[%line]
simt.copy_async %ring[%line * 36 + %slot + %place], %u[%start + %first + %place] bytes 16 mask %m
```
Results go back in the same way. Lines do not lie at equal distances in general: the distances are
kept in shared memory, for each shape of a field.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import UnitAttr, i32
from xdsl.dialects.func import FuncOp
from xdsl.dialects.gpu import BlockIdOp, DimensionAttr, DimensionEnum, ThreadIdOp
from xdsl.ir import Attribute, Block, Region, SSAValue

from timetile.dialects import nvvm, simt
from timetile.dialects.cell_types import CELL_BYTES
from timetile.dialects.simt.buffers import SHARED_SPACE, buffer_type
from timetile.dialects.syntax import element_type
from timetile.dialects.tile import LANES
from timetile.lowering.emitter import ROLLED, Emitter
from timetile.lowering.sweep_frames import SweepFrame
from timetile.lowering.sweep_kernels import SweepThread, strides_of
from timetile.lowering.sweep_staging import LineStaging, Stream, bytes_of
from timetile.lowering.tile_to_gpu.scopes import synchronise_warp
from timetile.passes.analysis.geometry.field_shapes import FieldShape

SHARES_OF_TURN = 8
"""Parts of a lane of a segment copied or stored without a loop."""

MOST_TOGETHER = 4
"""Cells of one access."""


@dataclass(frozen=True)
class LineRing:
    """Cells of a field in shared memory: lines at a distance of `pitch` cells, of some slots."""

    buffer: SSAValue
    field: SSAValue
    pitch: int
    slots: int


@dataclass(frozen=True)
class Share:
    """A lane's part of a copy: the line `line + row` of the group, and the place in a segment."""

    line: SSAValue
    row: int
    place: SSAValue


class SegmentThread(SweepThread):
    """Emits the copies of a thread of a sweep whose lines pass through shared memory."""

    def __init__(self, frame: SweepFrame, function: FuncOp, staging: LineStaging):
        super().__init__(frame, function)
        self.staging = staging
        self.rings: dict[Stream | SSAValue, LineRing] = {}
        self.lane = self.group = self.emit.int(0)
        self.tables: dict[tuple[int, ...], SSAValue] = {}
        """The distances of the group's lines in shared memory, by the strides of a field."""

    def find_line(self) -> None:
        """Find the line that a lane works on; a lane beyond the last line repeats one."""
        frame, emit, lines = self.frame, self.emit, self.staging.lines
        along = DimensionAttr(DimensionEnum.X)
        self.lane = emit.add(arith.IndexCastOp(emit.add(ThreadIdOp(along)).result, i32)).result
        self.group = emit.add(arith.IndexCastOp(emit.add(BlockIdOp(along)).result, i32)).result
        row, _ = emit.split(self.lane, lines)
        line = emit.add_int(emit.mul_int(self.group, lines), row if lines > 1 else 0)
        if frame.lines % lines:
            is_line = emit.compare("ult", line, frame.lines)
            line = emit.select(is_line, line, emit.int(frame.lines - 1))
        self.place_line(line)
        if lines < LANES:
            self.mask = emit.compare("ult", self.lane, lines)
        self.place_rings()

    def place_rings(self) -> None:
        """Name the parts of shared memory, and write the distances of lines."""
        emit, staging = self.emit, self.staging
        for key, (at, slots) in staging.rings.items():
            field = key.field if isinstance(key, Stream) else key
            pitch = staging.pitch(field, slots)
            kind = buffer_type(element_type(field), staging.lines * pitch, SHARED_SPACE)
            self.rings[key] = LineRing(
                emit.add(simt.SharedOp(at, kind)).result, field, pitch, slots
            )
        at = staging.starts
        for strides, start in self.starts.items():
            kind = buffer_type(self.width, staging.lines, SHARED_SPACE)
            table = self.tables[strides] = emit.add(simt.SharedOp(at, kind)).result
            emit.add(simt.StoreOp([start], table, self.lane, 0, self.mask))
            at += max(8 * staging.lines, 16)
        synchronise_warp(emit)

    def ring_of(self, target: SSAValue) -> LineRing:
        """Where the results of a target are kept."""
        stream = self.staging.own_stream(target)
        return self.rings[target if stream is None else stream]

    # Copies.

    def share_out(self, emit: Emitter, unit: int, access: Callable[[Emitter, Share], None]) -> None:
        """
        Emit the lane's accesses to a segment of all lines, in units of `unit` cells. Many accesses
        become a loop of a few: the assembler would keep the cells of all in registers.
        """
        units, lines = self.staging.places // unit, self.staging.lines
        count = max(lines * units // LANES, 1)
        if count <= SHARES_OF_TURN:
            for number in range(count):
                access(emit, self.share(emit, unit, emit.int(0), number))
            return
        body = Block(arg_types=[i32])
        inner = emit.into(body)
        for number in range(SHARES_OF_TURN):
            access(inner, self.share(inner, unit, body.args[0], number))
        inner.add(scf.YieldOp())
        bounds = (emit.int(0), emit.int(count), emit.int(SHARES_OF_TURN))
        emit.add(rolled(scf.ForOp(*bounds, [], Region(body))))

    def share(self, emit: Emitter, unit: int, turn: SSAValue, number: int) -> Share:
        """The lane's access with the given number, counted from the first of a turn."""
        units = self.staging.places // unit
        if units <= LANES:
            place, line = emit.split(self.lane, units)
            rows = LANES // units
            line = emit.add_int(line, emit.mul_int(turn, rows))
            return Share(line, number * rows, emit.mul_int(place, unit))
        part, line = emit.split(emit.add_int(turn, number), units // LANES)
        place = emit.add_int(emit.mul_int(part, LANES), self.lane)
        return Share(line, 0, emit.mul_int(place, unit))

    def start_of(self, emit: Emitter, field: SSAValue, share: Share) -> SSAValue:
        """The distance of the line of a share, in a field's cells."""
        table = self.tables[strides_of(field)]
        return emit.add(simt.LoadOp(table, share.line, share.row, [self.width])).cells[0]

    def first_coordinate(self, emit: Emitter, number: SSAValue) -> SSAValue:
        """The least coordinate of a segment along the axis."""
        staging, places = self.staging, self.staging.places
        if self.op.is_ascending:
            return emit.add_int(emit.mul_int(number, places), staging.origin)
        far = emit.mul_int(number, places)
        return emit.sub_int(emit.int(staging.origin - places), far)

    def slot(self, emit: Emitter, number: SSAValue) -> SSAValue:
        """
        The slot of a segment: slots follow each other in the order of memory, whichever way the
        sweep goes.
        """
        staging = self.staging
        slot, _ = emit.split(emit.add_int(number, staging.behind), staging.slots)
        if self.op.is_ascending or staging.slots == 1:
            return slot
        return emit.sub_int(emit.int(staging.slots - 1), slot)

    def away(self, field: SSAValue, across: tuple[int, ...]) -> int:
        """
        The distance of the cell at coordinate 0 along the axis from the start of the first line, at
        an offset across the lines.
        """
        shape, along = FieldShape.of(field), self.op.axis.data
        spans = zip(self.op.box.lb, across, shape.lower, shape.strides)
        far = [(c + o - low) * n for c, o, low, n in spans]
        return sum(n for axis, n in enumerate(far) if axis != along) - shape.lower[along]

    def copy(self, emit: Emitter, number: SSAValue) -> None:
        """Start the copies of a segment, as one group."""
        for stream in self.staging.streams:
            self.copy_stream(emit, number, stream)
        if self.staging.streams:
            emit.add(nvvm.CpAsyncCommitGroupOp())

    def copy_stream(self, emit: Emitter, number: SSAValue, stream: Stream) -> None:
        """Start the copies of a segment of a stream. Cells that nobody reads are left out."""
        staging, field, ring = self.staging, stream.field, self.rings[stream]
        first, away = self.first_coordinate(emit, number), self.away(field, stream.across)
        begin = emit.mul_int(self.slot(emit, number), staging.places)
        unit = staging.unit_of(field)
        low, high = self.read_places(stream)

        def access(emit: Emitter, share: Share) -> None:
            at = emit.add_int(first, share.place)
            far = emit.add_int(at, unit - 1 - low)
            inside = emit.compare("ult", far, high - low + unit - 1)
            source = emit.add_int(self.start_of(emit, field, share), emit.extend(at, self.width))
            line = emit.add_int(emit.mul_int(share.line, ring.pitch), begin)
            target, offset = emit.add_int(line, share.place), share.row * ring.pitch
            given = self.buffers[field], source, away, unit * bytes_of(field), inside
            emit.add(simt.CopyAsyncOp(ring.buffer, target, offset, *given))

        self.share_out(emit, unit, access)

    def read_places(self, stream: Stream) -> tuple[int, int]:
        """The coordinates along the axis of the cells of a stream, to the one behind the last."""
        along = self.op.axis.data
        low, high = tuple(self.op.box.lb)[along], tuple(self.op.box.ub)[along]
        return low + stream.low, high + stream.high

    # Results.

    def store_segment(
        self, emit: Emitter, number: SSAValue, first: SSAValue, end: SSAValue
    ) -> None:
        """Store the results of a segment: whole vectors, or cells of the first and the last."""
        staging = self.staging
        is_part: list[SSAValue] = []
        if staging.skipped:
            is_part.append(emit.compare("eq", number, 0))
        if staging.last != staging.places:
            is_part.append(emit.compare("eq", number, staging.segments - 1))
        if not is_part:
            self.store_targets(emit, number, None)
            return
        blocks = [Block(), Block()]
        for block, ends in zip(blocks, ((first, end), None)):
            self.store_targets(emit.into(block), number, ends)
            block.add_op(scf.YieldOp())
        emit.add(scf.IfOp(emit.any_of(is_part), [], [blocks[0]], [blocks[1]]))

    def store_targets(
        self, emit: Emitter, number: SSAValue, ends: tuple[SSAValue, SSAValue] | None
    ) -> None:
        """Store the results of all targets, between `ends` if given."""
        for target in self.op.targets:
            is_wide = ends is None and self.staging.is_aligned(target)
            unit = cells_of_access(element_type(target)) if is_wide else 1
            self.store_target(emit, number, target, unit, ends)

    def store_target(
        self,
        emit: Emitter,
        number: SSAValue,
        target: SSAValue,
        unit: int,
        ends: tuple[SSAValue, SSAValue] | None,
    ) -> None:
        """Store the results of a target in units of some cells; between `ends` for single cells."""
        staging, ring, element = self.staging, self.ring_of(target), element_type(target)
        first = self.first_coordinate(emit, number)
        begin = emit.int(0)
        if ring.slots > 1:
            begin = emit.mul_int(self.slot(emit, number), staging.places)
        away = self.away(target, (0,) * self.op.rank)

        def access(emit: Emitter, share: Share) -> None:
            mask = self.stored_mask(emit, share, ends)
            line = emit.add_int(emit.mul_int(share.line, ring.pitch), begin)
            at, types = emit.add_int(line, share.place), [element] * unit
            load = simt.LoadOp(ring.buffer, at, share.row * ring.pitch, types, mask)
            cells = list(emit.add(load).cells)
            far = emit.extend(emit.add_int(first, share.place), self.width)
            index = emit.add_int(self.start_of(emit, target, share), far)
            emit.add(simt.StoreOp(cells, self.buffers[target], index, away, mask))

        self.share_out(emit, unit, access)

    def stored_mask(
        self, emit: Emitter, share: Share, ends: tuple[SSAValue, SSAValue] | None
    ) -> SSAValue | None:
        """Whether a share is of a line, and of a place between `ends` if given."""
        staging, masks = self.staging, list[SSAValue | None]()
        if self.frame.lines % staging.lines:
            line = emit.add_int(emit.mul_int(self.group, staging.lines), share.line)
            line = emit.add_int(line, share.row)
            masks.append(emit.compare("ult", line, self.frame.lines))
        if ends is not None:
            place = share.place
            if not self.op.is_ascending:
                place = emit.sub_int(emit.int(staging.places - 1), place)
            masks.append(emit.compare("sge", place, ends[0]))
            masks.append(emit.compare("slt", place, ends[1]))
        return emit.all_of(masks)


def cells_of_access(element: Attribute) -> int:
    """Cells of one access: 16 bytes at most."""
    return min(MOST_TOGETHER, 16 // CELL_BYTES[element])


def rolled(loop: scf.ForOp) -> scf.ForOp:
    """A loop left rolled by the assembler."""
    loop.attributes[ROLLED] = UnitAttr()
    return loop
