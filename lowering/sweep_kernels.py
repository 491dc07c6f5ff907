"""Kernels of sweeps: a thread for each line along the axis, with its own results in registers.

Lines beside each other along the last other axis are threads beside each other: a warp reads
whole lines of memory, unless the sweep goes along the last axis itself. A thread goes place after
place, some places a turn:
```
gpu.func @sweep.up(%c: memref<63xf64, 1>, %u: memref<63xf64, 1>) kernel {
  ...
  %first = simt.load %c[%line] : f64
  %r = scf.for %k = %zero to %count step %four iter_args(%before = %first) -> (f64) {
    %u0 = simt.load %u[%i] : f64
    %u1 = simt.load %u[%i + 7] : f64
    ...
    simt.store %c0 to %c[%i + 7] : f64
```
1. A target's cells of the places before are carried from place to place, as many as the farthest
   tap reads; at the first place they are loaded.
2. All other cells of a turn are loaded at its beginning: no place of a turn writes a cell that a
   later place loads, as a cell ahead is read before it is written.
3. Very many lines of narrow cells are several lines a thread, beside each other in memory: their
   cells are loaded and stored together.
4. Few lines are few threads, too few to wait for memory side by side: the cells of a turn some
   places ahead are asked for.
5. The last threads of the launch may have no line: their loads and stores are masked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

from xdsl.dialects import arith, gpu, scf
from xdsl.dialects.builtin import (
    FloatAttr,
    IndexType,
    IntegerType,
    StringAttr,
    i32,
    i64,
)
from xdsl.dialects.func import FuncOp
from xdsl.dialects.gpu import BlockIdOp, DimensionAttr, DimensionEnum, ThreadIdOp
from xdsl.ir import Attribute, Block, Region, SSAValue

from timetile.dialects.cell_types import CELL_TYPES
from timetile.dialects.series import number_type
from timetile.dialects.simt import PrefetchOp
from timetile.dialects.simt.buffers import GLOBAL_SPACE, buffer_type
from timetile.dialects.syntax import cell_type, element_type, field_bounds
from timetile.dialects.taps import Tap
from timetile.dialects.tile import LaunchAttr
from timetile.dialects.verified import float_type
from timetile.lowering.emitter import Emitter
from timetile.lowering.launch_facts import set_launch_facts
from timetile.lowering.sweep_frames import SweepFrame, is_together
from timetile.lowering.tile_to_gpu.cells import CellFunction
from timetile.lowering.tile_to_gpu.stored_cells import load_cells, override_cells, store_cells
from timetile.passes.analysis.geometry.field_shapes import FieldShape

MOST_CELLS = 2**30
"""Cells of a field with indices of 32 bits."""


def strides_of(field: SSAValue) -> tuple[int, ...]:
    """The cells between neighbours along each axis of a field."""
    return FieldShape.of(field).strides


class SweepThread:
    """Emits the code of a thread of a sweep; `function` is the cell function."""

    def __init__(self, frame: SweepFrame, function: FuncOp):
        self.frame, self.op, self.cell = frame, frame.op, CellFunction(function)
        sizes = {field: FieldShape.of(field).cells for field in frame.fields}
        self.width = i32 if max(sizes.values()) <= MOST_CELLS else i64
        kinds: list[Attribute] = [
            buffer_type(element_type(field), size, GLOBAL_SPACE) for field, size in sizes.items()
        ]
        kinds += [number_type(scalar) for scalar in frame.scalars]
        self.entry = Block(arg_types=kinds)
        self.buffers = dict(zip(frame.fields, self.entry.args))
        self.scalars = dict(zip(frame.scalars, self.entry.args[len(frame.fields) :]))
        self.emit = Emitter(self.entry)
        self.mask: SSAValue | None = None
        self.places: dict[int, SSAValue] = {}
        """The number of the line along each other axis."""
        self.starts: dict[tuple[int, ...], SSAValue] = {}
        """The distance of the line from the first line, by the strides of a field."""

    def make(self) -> gpu.ModuleOp:
        """The gpu.module of the kernel, with the facts of its launch."""
        self.find_line()
        self.go(self.first_kept())
        self.emit.add(gpu.ReturnOp([]))
        return self.module()

    def first_kept(self) -> list[SSAValue]:
        """The kept cells before the first place, loaded."""
        carried = [
            self.load(self.emit, field, self.start(field), -age)
            for field, ages in self.frame.carried.items()
            for age in range(1, ages + 1)
        ]
        return [cells[line] for line in range(self.frame.beside) for cells in carried]

    def go(self, carried: list[SSAValue]) -> None:
        """Emit all places of the line, after the kept cells of the places before."""
        count, turn = len(self.op.places), self.frame.places_of_turn
        whole = count // turn * turn
        asking = max(0, whole - self.frame.ahead) // turn * turn if self.frame.ahead else 0
        carried = self.loop(0, asking, turn, carried, asks=True)
        carried = self.loop(asking, whole, turn, carried)
        self.loop(whole, count, 1, carried)

    # The line of a thread.

    def find_line(self) -> None:
        """Find the line's number, its coordinates, and its distance in each field."""
        frame, emit = self.frame, self.emit
        along = DimensionAttr(DimensionEnum.X)
        thread = emit.add(arith.IndexCastOp(emit.add(ThreadIdOp(along)).result, i32)).result
        block = emit.add(arith.IndexCastOp(emit.add(BlockIdOp(along)).result, i32)).result
        line = emit.add_int(emit.mul_int(block, frame.threads), thread)
        if frame.seats % frame.threads:
            self.mask = emit.compare("ult", line, frame.seats)
        self.place_line(line)

    def place_line(self, line: SSAValue) -> None:
        """
        Find the coordinates of a line, and its distance in each field; of several lines beside
        each other, those of the first.
        """
        rest, sizes, axes = line, self.frame.sizes, self.op.line_axes
        for axis in reversed(axes):
            place = rest
            if axis != axes[0]:
                size = sizes[axis] // (self.frame.beside if axis == axes[-1] else 1)
                place, rest = self.emit.split(rest, size)
            beside = self.frame.beside if axis == axes[-1] else 1
            self.places[axis] = self.emit.mul_int(place, beside)
        for field in self.frame.fields:
            self.start(field)

    def start(self, field: SSAValue) -> SSAValue:
        """The distance of the line from the first line, in a field's cells."""
        strides = strides_of(field)
        if strides not in self.starts:
            emit, total = self.emit, self.emit.int(0, self.width)
            for axis, place in self.places.items():
                far = emit.mul_int(emit.extend(place, self.width), strides[axis])
                total = emit.add_int(total, far)
            self.starts[strides] = total
        return self.starts[strides]

    # Places of the line.

    def step(self, field: SSAValue) -> int:
        """The distance of a place from the place before, in a field's cells."""
        stride = strides_of(field)[self.op.axis.data]
        return stride if self.op.is_ascending else -stride

    def offset(self, field: SSAValue, place: int, offset: Sequence[int]) -> int:
        """
        Where the cell at an offset lies in a field, for a place counted from the first, on the
        first line.
        """
        bounds, corner = field_bounds(field), list(self.op.box.lb)
        corner[self.op.axis.data] = self.op.places[0]
        strides = strides_of(field)
        spans = zip(corner, offset, bounds.lb, strides)
        return sum((c + o - low) * s for c, o, low, s in spans) + place * self.step(field)

    def load(
        self,
        emit: Emitter,
        field: SSAValue,
        index: SSAValue,
        place: int,
        offset: Sequence[int] | None = None,
    ) -> list[SSAValue]:
        """The cells of a field at a place, one a line, as numbers that cells compute with."""
        offset = offset or (0,) * self.op.rank
        at, beside = self.offset(field, place, offset), self.frame.beside
        width = beside if is_together(self.op, field, offset, beside) else 1
        cells: list[SSAValue] = []
        for begin in range(at, at + beside, width):
            cells += self.cells_at(emit, field, index, begin, width)
        return cells

    def cells_at(
        self, emit: Emitter, field: SSAValue, index: SSAValue, at: int, width: int = 1
    ) -> list[SSAValue]:
        """Cells of a field side by side, as numbers; an ordinary number where the mask is off."""
        element, buffer = element_type(field), self.buffers[field]
        if self.mask is None:
            return load_cells(emit, buffer, index, at, [element] * width)
        none = [ordinary_number(emit, cell_type(field))] * width
        return override_cells(emit, none, element, buffer, index, at, self.mask)

    def ask(
        self,
        emit: Emitter,
        field: SSAValue,
        index: SSAValue,
        place: int,
        offset: Sequence[int],
    ) -> None:
        """Ask for the cell of a field at a place."""
        at, buffer = self.offset(field, place, offset), self.buffers[field]
        emit.add(PrefetchOp(buffer, index, at, element_type(field), self.mask))

    def loop(
        self, low: int, high: int, turn: int, carried: list[SSAValue], *, asks: bool = False
    ) -> list[SSAValue]:
        """
        The places from `low` to `high`, some a turn; returns the kept cells after the last. A loop
        that `asks` asks for the cells of places ahead.
        """
        if low == high:
            return carried
        emit = self.emit
        body = Block(arg_types=[i32, *(value.type for value in carried)])
        inner = emit.into(body)
        kept = self.turn(inner, body.args[0], turn, list(body.args[1:]), asks=asks)
        inner.add(scf.YieldOp(*kept))
        bounds = (emit.int(low), emit.int(high), emit.int(turn))
        return list(emit.add(scf.ForOp(*bounds, carried, Region(body))).results)

    def turn(
        self,
        emit: Emitter,
        number: SSAValue,
        count: int,
        carried: list[SSAValue],
        *,
        asks: bool = False,
    ) -> list[SSAValue]:
        """Some places of the line; returns the kept cells."""
        index = self.indices(emit, number)
        loaded: list[dict[Tap, list[SSAValue]]] = [{} for _ in range(count)]
        for place, cells in enumerate(loaded):
            for tap in self.op.tap_list:
                if not self.op.is_result(tap):
                    field = self.op.sources[tap.operand]
                    cells[tap] = self.load(emit, field, index[field], place, tap.offset)
                    if asks:
                        self.ask(emit, field, index[field], place + self.frame.ahead, tap.offset)
        return self.compute_and_store(emit, number, index, loaded, carried)

    def indices(self, emit: Emitter, number: SSAValue) -> dict[SSAValue, SSAValue]:
        """The distance of a place of the line from the first line, in cells of each field."""
        found: dict[tuple[int, ...], SSAValue] = {}
        for field in self.frame.fields:
            strides = strides_of(field)
            if strides not in found:
                far = emit.mul_int(emit.extend(number, self.width), abs(self.step(field)))
                join = emit.add_int if self.op.is_ascending else emit.sub_int
                found[strides] = join(self.start(field), far)
        return {field: found[strides_of(field)] for field in self.frame.fields}

    def compute_and_store(
        self,
        emit: Emitter,
        number: SSAValue,
        index: Mapping[SSAValue, SSAValue],
        loaded: Sequence[Mapping[Tap, Sequence[SSAValue]]],
        carried: Sequence[SSAValue],
    ) -> list[SSAValue]:
        """Compute places from `number` on, at an index of each field; returns the kept cells."""

        def store(place: int, target: SSAValue, results: list[SSAValue]) -> None:
            at = self.offset(target, place, (0,) * self.op.rank)
            element, buffer = element_type(target), self.buffers[target]
            store_cells(emit, results, element, buffer, index[target], at, self.mask)

        return self.compute(emit, number, loaded, carried, store)

    def compute(
        self,
        emit: Emitter,
        number: SSAValue,
        loaded: Sequence[Mapping[Tap, Sequence[SSAValue]]],
        carried: Sequence[SSAValue],
        store: Callable[[int, SSAValue, list[SSAValue]], None],
    ) -> list[SSAValue]:
        """
        Compute places from `number` on, and `store` the results of each, one a line; returns the
        kept cells.
        """
        lines = self.kept(carried)
        for place, cells in enumerate(loaded):
            made: list[Sequence[SSAValue]] = []
            for line, kept in enumerate(lines):
                arguments = [
                    kept[self.op.sources[tap.operand]][self.op.age(tap) - 1]
                    if self.op.is_result(tap)
                    else cells[tap][line]
                    for tap in self.op.tap_list
                ]
                arguments += [self.scalars[scalar] for scalar in self.op.scalars]
                axes = self.op.index_axes
                arguments += [self.coordinate(emit, axis, number, place, line) for axis in axes]
                made.append(self.cell.inline(emit, arguments))
                for target, result in zip(self.op.targets, made[-1]):
                    if target in kept:
                        kept[target] = [result, *kept[target][:-1]]
            for target, *results in zip(self.op.targets, *made):
                store(place, target, results)
        return [cell for kept in lines for cells in kept.values() for cell in cells]

    def kept(self, carried: Sequence[SSAValue]) -> list[dict[SSAValue, list[SSAValue]]]:
        """The kept cells of each line and target, of the place before first."""
        cells, ages = iter(carried), self.frame.carried
        return [
            {field: [next(cells) for _ in range(n)] for field, n in ages.items()}
            for _ in range(self.frame.beside)
        ]

    def coordinate(
        self, emit: Emitter, axis: int, number: SSAValue, place: int, line: int
    ) -> SSAValue:
        """The coordinate of a place of a line along an axis."""
        if axis != self.op.axis.data:
            beside = line if axis == self.op.line_axes[-1] else 0
            at = emit.add_int(self.places[axis], tuple(self.op.box.lb)[axis] + beside)
        elif self.op.is_ascending:
            at = emit.add_int(number, self.op.places[0] + place)
        else:
            at = emit.sub_int(emit.int(self.op.places[0] - place), number)
        return emit.extend(at, IndexType())

    def module(self) -> gpu.ModuleOp:
        """The gpu.module around the code."""
        frame = self.frame
        function = gpu.FuncOp(
            frame.name,
            (self.entry.arg_types, []),
            Region(self.entry),
            kernel=True,
            known_block_size=[frame.threads, 1, 1],
        )
        module = gpu.ModuleOp.create(
            properties={"sym_name": StringAttr(frame.name)}, regions=[Region(Block([function]))]
        )
        facts = LaunchAttr(
            steps=1,
            roles=[],
            grid=frame.grid,
            block=frame.threads,
            shared_bytes=frame.shared_bytes,
            occupancy=frame.occupancy,
        )
        set_launch_facts(module, facts)
        return module


def ordinary_number(emit: Emitter, kind: Attribute) -> SSAValue:
    """A number with which a thread without a line computes: 1, by which division is quick."""
    if CELL_TYPES[kind].is_float:
        return emit.constant(FloatAttr(1.0, float_type(kind)), kind)
    return emit.int(1, cast(IntegerType, kind))
