"""store-layers: a field that only layers with short rows use becomes a small field for each layer.

Before (a memory variable of a layer of 10 cells at the start of each row):
```
temporal.loop %n (%u = %U, %f = %F) rotate [0, 1] {
  temporal.update %f = @fade(%f[0, 0, 0], %u[0, 0, 1]) in <[0, 0, 2], [512, 512, 12]>
  temporal.update %u = @add(%u[0, 0, 0], %f[0, 0, 0]) in <[0, 0, 2], [512, 512, 12]>
} : !stencil.field<[0,512]x[0,512]x[0,512]xf64>, !stencil.field<[0,512]x[0,512]x[0,512]xf64>
```
After:
```
%S = temporal.scratch : !stencil.field<[0,512]x[0,512]x[2,12]xf64>
temporal.loop %one (%s = %S) rotate [0] sweep {
  temporal.update %s = @copied(%F[0, 0, 0]) in <[0, 0, 2], [512, 512, 12]>
}
temporal.loop %n (%u = %U, %f = %F, %s = %S) rotate [0, 1, 2] {
  temporal.update %s = @fade(%s[0, 0, 0], %u[0, 0, 1]) in <[0, 0, 2], [512, 512, 12]>
  temporal.update %u = @add(%u[0, 0, 0], %s[0, 0, 0]) in <[0, 0, 2], [512, 512, 12]>
}
temporal.loop %one (%f = %F) rotate [0] sweep {
  temporal.update %f = @copied(%S[0, 0, 0]) in <[0, 0, 2], [512, 512, 12]>
}
```
A row of 40 bytes takes the memory as long as a row of 128 bytes: the memory moves lines, and opens
a page for each. Rows of a layer's field follow each other without gaps.

1. The buffers of a cycle of the rotation are used in boxes: for each update the box around cells
   read and written. Boxes with common cells are joined.
2. A joined box with rows of less than SHORT_ROW bytes is a layer. Each buffer of the cycle gets a
   field of the layer, in a cycle of the rotation of its own, used by the updates of the layer.
3. A field that the loop only reads has a field for each layer of updates that read short rows, if
   other updates read few of the layer's cells: coefficients of a layer with a body of its own.
4. A sweep before the loop copies the layers' cells, and a sweep behind the loop copies the written
   cells back, for each buffer: all buffers end with the cells of the program.

The cost is two sweeps over the layers a run. Loops of fewer than LEAST_STEPS stated steps, loops in
loops of the host, loops with points or boundaries, and functions with several time loops stay as
they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr, ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.dialects.stencil import FieldType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from timetile.dialects.boxes import CellBox, cells_of
from timetile.dialects.cell_types import CELL_BYTES, computed_type
from timetile.dialects.syntax import element_type, field_bounds
from timetile.dialects.taps import Tap
from timetile.dialects.temporal import LoopOp, ScratchOp, UpdateOp
from timetile.dialects.temporal.footprints import Footprint
from timetile.passes.analysis.launches.trip_counts import constant_steps
from timetile.passes.raising.narrow_fields import read_field
from timetile.passes.rewriting import carry_scratch, name_function

SHORT_ROW = 256
"""
Bytes of a row below which a layer is stored alone. A row alone takes 30 to 45 ps and 0.22 ps for
each byte, rows one after the other 0.22 ps for each byte (reads on an H200).
"""

VECTOR = 16
"""Bytes of an access: rows with cells beside those written begin and end with whole accesses."""

LEAST_STEPS = 8
"""Steps that two sweeps over the layers are worth."""

LEAST_CELLS = 1 << 18
"""Cells of a layer from which on its rows leave the second-level cache between two steps."""

FEW_SHARED = 0.25
"""
A layer that is only read has no field of its own if other updates read this share of the layer's
cells: they bring the layer's rows anyway.
"""

RANK = 3
"""Axes of the fields: volumes with layers read memory, and plates may keep planes of all fields."""


@dataclass
class UsedBox:
    """Cells of the buffers of a cycle, used by some updates, and the cells written."""

    cells: CellBox
    written: CellBox | None
    updates: list[UpdateOp]

    def joined(self, other: UsedBox) -> UsedBox:
        """The box around both, with the updates of both."""
        both = [box for box in (self.written, other.written) if box is not None]
        written = reduce(CellBox.__or__, both) if both else None
        return UsedBox(self.cells | other.cells, written, [*self.updates, *other.updates])


def used_boxes(loop: LoopOp, cycle: Sequence[int]) -> list[UsedBox]:
    """Disjoint boxes around the cells that a loop uses in the buffers of a cycle."""
    buffers = {loop.body.block.args[role] for role in cycle}
    found: list[UsedBox] = []
    for update in loop.updates:
        used = Footprint(update)
        reads = [box for source, box in used.reads.items() if source in buffers]
        writes = [used.box for target in update.targets if target in buffers]
        if not reads and not writes:
            continue
        own = UsedBox(
            reduce(CellBox.__or__, (*reads, *writes)), used.box if writes else None, [update]
        )
        while meeting := [each for each in found if not (each.cells & own.cells).is_empty]:
            for each in meeting:
                found.remove(each)
                own = each.joined(own)
        found.append(own)
    return found


def cells_of_layer(used: UsedBox, field: SSAValue) -> CellBox:
    """
    The cells of a layer's field: those used, and, where not all of them are written, cells beside
    until rows begin and end with whole accesses. Rows of written cells alone have no gaps: a sector
    of memory written in part takes twice as long, as the memory reads the rest.
    """
    cells = used.cells
    return cells if cells == used.written else whole_accesses(cells, field)


def whole_accesses(cells: CellBox, field: SSAValue) -> CellBox:
    """Some cells of a field, and cells beside until rows begin and end with whole accesses."""
    bounds = CellBox.of(field_bounds(field))
    unit, first = VECTOR // CELL_BYTES[element_type(field)], bounds.lower[-1]
    low = cells.lower[-1] - (cells.lower[-1] - first) % unit
    high = cells.upper[-1] + (first - cells.upper[-1]) % unit
    wider = CellBox((*cells.lower[:-1], low), (*cells.upper[:-1], high))
    return wider & bounds


def is_layer(cells: CellBox, field: SSAValue) -> bool:
    """Whether the cells lie in short rows, a small part of the field's rows."""
    bounds = CellBox.of(field_bounds(field))
    size = CELL_BYTES[element_type(field)]
    row, whole = (box.upper[-1] - box.lower[-1] for box in (cells, bounds))
    short = len(bounds.lower) == RANK and row * size < SHORT_ROW and 4 * row <= whole
    # Copies of narrow numbers pass through wider ones, and may change the bits of a NaN.
    return short and size >= 4 and cells in bounds and cells_of(cells) >= LEAST_CELLS


@dataclass(frozen=True)
class ReadLayer:
    """Cells of a field that the loop only reads, read by some updates in short rows."""

    field: SSAValue
    cells: CellBox
    updates: tuple[UpdateOp, ...]


def read_layers(loop: LoopOp) -> list[ReadLayer]:
    """The layers of fields that a loop only reads, in the order of first use."""
    uses: dict[SSAValue, list[tuple[CellBox, UpdateOp]]] = {}
    for update in loop.updates:
        for field, cells in Footprint(update).reads.items():
            if field not in loop.body.block.args and read_field(field).axes is None:
                uses.setdefault(field, []).append((cells, update))
    found: list[ReadLayer] = []
    for field, own in uses.items():
        for cells in dict.fromkeys(whole_accesses(cells, field) for cells, _ in own):
            alike = tuple(u for read, u in own if whole_accesses(read, field) == cells)
            others = sum(cells_of(read & cells) for read, u in own if u not in alike)
            if is_layer(cells, field) and others < FEW_SHARED * cells_of(cells):
                found.append(ReadLayer(field, cells, alike))
    return found


def copy_function(module: ModuleOp, function: FuncOp, kind: Attribute) -> str:
    """The name of the cell function with the argument as its result."""
    block = Block(arg_types=[kind])
    block.add_op(ReturnOp(*block.args))
    made = FuncOp("copied", ([kind], [kind]), Region(block), visibility="private")
    if name_function(module, made):
        Rewriter.insert_op(made, InsertPoint.before(function))
    return made.sym_name.data


class LayerStorage:
    """Rewrites one loop."""

    def __init__(self, loop: LoopOp, function: FuncOp, module: ModuleOp):
        self.loop, self.function, self.module = loop, function, module
        self.rotation = list(loop.rotation)
        self.scratch: list[ScratchOp] = []
        """Fields of layers carried by the loop."""
        self.read: list[ScratchOp] = []
        """Fields of layers that the loop only reads."""
        self.copied_in: list[tuple[SSAValue, SSAValue, CellBox]] = []
        """Copies before the loop: target, source and cells."""
        self.copied_out: list[tuple[SSAValue, SSAValue, CellBox]] = []

    def run(self) -> None:
        """Store the layers of all cycles, and of fields that the loop only reads."""
        for cycle in cycles_of(self.loop.rotation):
            for used in used_boxes(self.loop, cycle):
                cells = cells_of_layer(used, self.loop.buffers[cycle[0]])
                if used.written is not None and is_layer(cells, self.loop.buffers[cycle[0]]):
                    self.store(cycle, used, cells)
        for layer in read_layers(self.loop):
            self.store_read(layer)
        if self.copied_in:
            self.replace_loop()

    def store(self, cycle: Sequence[int], used: UsedBox, cells: CellBox) -> None:
        """Give the buffers of a cycle fields of a layer."""
        assert used.written is not None
        block, first = self.loop.body.block, len(self.rotation)
        mapping: dict[SSAValue, SSAValue] = {}
        numbers = {role: first + k for k, role in enumerate(cycle)}
        for role in cycle:
            buffer, own = self.loop.buffers[role], block.args[role]
            made = ScratchOp(FieldType(cells.bounds(), element_type(buffer)))
            if own.name_hint is not None:
                made.field.name_hint = f"{own.name_hint}_layer"
            self.scratch.append(made)
            self.rotation.append(numbers[self.loop.rotation[role]])
            mapping[own] = block.insert_arg(made.field.type, len(block.args))
            mapping[own].name_hint = made.field.name_hint
            self.copied_in.append((made.field, buffer, cells))
            self.copied_out.append((buffer, made.field, used.written))
        for update in used.updates:
            for k, operand in enumerate(update.operands):
                if operand in mapping:
                    update.operands[k] = mapping[operand]

    def store_read(self, layer: ReadLayer) -> None:
        """Give a layer of a field that the loop only reads a field of its own."""
        made = ScratchOp(FieldType(layer.cells.bounds(), element_type(layer.field)))
        if layer.field.name_hint is not None:
            made.field.name_hint = f"{layer.field.name_hint}_layer"
        self.read.append(made)
        self.copied_in.append((made.field, layer.field, layer.cells))
        for update in layer.updates:
            for k, operand in enumerate(update.operands):
                if operand is layer.field:
                    update.operands[k] = made.field

    def replace_loop(self) -> None:
        """Replace the loop by one with fields of layers, between two sweeps of copies."""
        if self.scratch:
            self.loop = carry_scratch(self.loop, self.scratch, self.rotation)
        one = arith.ConstantOp(IntegerAttr(1, IndexType()))
        before = self.copies(one, self.copied_in)
        Rewriter.insert_op([*self.read, one, before], InsertPoint.before(self.loop))
        if self.copied_out:
            after = self.copies(one, self.copied_out)
            Rewriter.insert_op(after, InsertPoint.after(self.loop))

    def copies(
        self, one: arith.ConstantOp, copies: Sequence[tuple[SSAValue, SSAValue, CellBox]]
    ) -> LoopOp:
        """A sweep that copies cells."""
        targets = list(dict.fromkeys(target for target, _, _ in copies))
        sweep = LoopOp(one.result, targets, range(len(targets)), sweep=True)
        for target, source, cells in copies:
            name = copy_function(self.module, self.function, computed_type(element_type(source)))
            argument = sweep.body.block.args[targets.index(target)]
            here = (0,) * len(cells.lower)
            update = UpdateOp([argument], name, [source], [Tap(0, here)], cells.bounds())
            update.location = self.loop.location
            sweep.body.block.add_op(update)
        sweep.location = self.loop.location
        return sweep


def cycles_of(rotation: Sequence[int]) -> list[list[int]]:
    """The cycles of a rotation, each with its roles in increasing order."""
    left, cycles = set(range(len(rotation))), list[list[int]]()
    while left:
        cycle, role = list[int](), min(left)
        while role in left:
            left.remove(role)
            cycle.append(role)
            role = rotation[role]
        cycles.append(sorted(cycle))
    return cycles


def may_store_layers(loop: LoopOp) -> bool:
    """
    Whether a loop is long enough, runs once in a call, has no points and boundaries, and is not a
    part of a domain.
    """
    if not isinstance(loop.parent_op(), FuncOp):
        return False
    steps = constant_steps(loop)
    plain = all(each.outside is None and each.beyond is None for each in loop.updates)
    long = steps is None or steps >= LEAST_STEPS
    return long and plain and loop.part is None and not loop.has_points


def time_loops(function: Operation) -> list[LoopOp]:
    """The time loops of a function, without sweeps."""
    loops = (op for op in function.walk() if isinstance(op, LoopOp))
    return [loop for loop in loops if loop.sweep is None]


@dataclass(frozen=True)
class StoreLayersPass(ModulePass):
    """Store layers with short rows in fields of their own; see the module's documentation."""

    name = "store-layers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in [inner for inner in op.walk() if isinstance(inner, FuncOp)]:
            loops = time_loops(function)
            if len(loops) == 1 and may_store_layers(loops[0]):
                LayerStorage(loops[0], function, op).run()
