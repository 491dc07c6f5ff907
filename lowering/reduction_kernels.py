"""Kernels of reductions: a warp for each block of a row, the code of a thread by the emitter.

The lanes of a block, in the order fixed by `temporal.reduce`, are the lanes of a warp: a lane reads
32 cells, 32 apart, so that a warp reads whole lines, and the lanes meet in halves by shuffles:
```
gpu.func @reduce.total.f64(%source: memref<5000xf64, 1>, %target: memref<5xf64, 1>) kernel {
  ...
  %v = simt.override %none from %source[%i + 32] mask %m
  %b = arith.addf %a, %v : f64
  ...
  %o = simt.shuffle %b delta 16 : f64
```
A reduction is a kernel for each round; the numbers of a round are the cells of the next. The first
round may compute its cells (`passes/analysis/reduced_cells.py`): a lane reads the taps of a cell in
place of the cell.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import prod

from xdsl.dialects.builtin import FloatAttr, IntegerType, ModuleOp, StringAttr, i32, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, SSAValue

from timetile.dialects.boxes import sizes_of
from timetile.dialects.cell_types import CELL_TYPES
from timetile.dialects.simt import OverrideOp, StoreOp
from timetile.dialects.simt.buffers import GLOBAL_SPACE, buffer_type
from timetile.dialects.syntax import field_bounds
from timetile.dialects.taps import Tap
from timetile.dialects.temporal.reduce import BLOCK_CELLS, IDENTITY, LANES, ReduceOp, Reduction
from timetile.dialects.verified import float_type
from timetile.lowering.emitter import Emitter
from timetile.lowering.joined_numbers import joined, lanes_met
from timetile.lowering.tile_to_gpu.cells import CellFunction
from timetile.lowering.whole_kernels import block_of_launch, module_of_kernel, thread_of_block
from timetile.passes.analysis.reduced_cells import ReducedCells
from timetile.passes.raising.narrow_fields import read_field

WARPS = 4
"""Warps in a block of threads."""

READS_AT_ONCE = 32
"""Reads that a lane has under way at once."""

MOST_CELLS = 2**31 - BLOCK_CELLS
"""Cells of a field with indices of 32 bits."""


@dataclass(frozen=True)
class Round:
    """
    A round of a reduction over rows with `cells` cells each. The source has `size` cells; rows
    begin at cell `first`, and follow at fixed distances along up to two axes (`rows`).
    """

    kind: Reduction
    element: Attribute
    cells: int
    rows: tuple[int, int]
    distances: tuple[int, int]
    first: int
    size: int

    @property
    def blocks_of_row(self) -> int:
        """Blocks of cells in a row."""
        return -(-self.cells // BLOCK_CELLS)

    @property
    def blocks(self) -> int:
        """Blocks of cells: the numbers made."""
        return prod(self.rows) * self.blocks_of_row

    @property
    def grid(self) -> int:
        """Blocks of threads in a launch."""
        return -(-self.blocks // WARPS)

    @property
    def width(self) -> IntegerType:
        """The type of indices."""
        return i32 if self.size <= MOST_CELLS else i64

    @property
    def name(self) -> str:
        """The name of the kernel."""
        return f"reduce.{self.kind}.{CELL_TYPES[self.element].llvm}"


def rounds_of(op: ReduceOp) -> Iterator[Round]:
    """The rounds of a reduction; of one cell there is a round, too, that copies the cell."""
    kind, element, bounds = op.reduction, op.result.type, field_bounds(op.field)
    sizes = sizes_of(bounds)
    steps = [prod(sizes[axis + 1 :]) for axis in range(len(sizes))]
    first = sum((a - b) * step for a, b, step in zip(op.box.lb, bounds.lb, steps))
    rows, far = [1, 1, *op.sizes[:-1]][-2:], [0, 0, *steps[:-1]][-2:]
    last = Round(
        kind, element, op.sizes[-1], (rows[0], rows[1]), (far[0], far[1]), first, prod(sizes)
    )
    yield last
    while last.blocks > 1:
        last = Round(kind, element, last.blocks, (1, 1), (0, 0), 0, last.blocks)
        yield last


@dataclass(frozen=True)
class ReadTap:
    """
    A tap of a computed cell: the number of its field, and where it lies as in `Round`. Its cells
    are `step` apart along a row: 1, or 0 in a field without the last axis.
    """

    field: int
    distances: tuple[int, int]
    first: int
    step: int = 1


@dataclass(frozen=True)
class ComputedRound(Round):
    """
    A round whose cells are computed by a function of taps of fields with `sizes` cells. Rounds of
    functions with equal text are equal; the function is a copy, outside the program's module.
    """

    text: str
    function: FuncOp = field(compare=False)
    taps: tuple[ReadTap, ...]
    sizes: tuple[int, ...]

    @property
    def name(self) -> str:
        """The name of the kernel."""
        return f"computed.{self.kind}.{CELL_TYPES[self.element].llvm}"

    @property
    def width(self) -> IntegerType:
        """The type of indices."""
        return i32 if max(self.sizes) <= MOST_CELLS else i64


def read_tap(op: ReduceOp, tap: Tap, source: SSAValue) -> ReadTap:
    """Where a reduction reads a tap in the memory behind a field, which may have fewer axes."""
    held = read_field(source)
    lows, bounds = tuple(op.box.lb), field_bounds(held.field)
    sizes = sizes_of(bounds)
    steps, first = [0] * len(lows), 0
    for number, axis in enumerate(range(len(lows)) if held.axes is None else held.axes):
        steps[axis] = prod(sizes[number + 1 :])
        first += (lows[axis] + tap.offset[axis] - tuple(bounds.lb)[number]) * steps[axis]
    outer, inner, step = [0, 0, *steps][-3:]
    return ReadTap(tap.operand, (outer, inner), first, step)


def computed_round(op: ReduceOp, cells: ReducedCells) -> ComputedRound:
    """The first round of a reduction of computed cells."""
    first = next(rounds_of(op))
    function = cells.function.clone(clone_name_hints=False)
    function.sym_name = StringAttr("cell")
    bounds = [field_bounds(read_field(source).field) for source in cells.sources]
    return ComputedRound(
        first.kind,
        first.element,
        first.cells,
        first.rows,
        first.distances,
        first.first,
        first.size,
        str(function),
        function,
        tuple(read_tap(op, tap, cells.sources[tap.operand]) for tap in cells.update.tap_list),
        tuple(prod(sizes_of(each)) for each in bounds),
    )


class RoundCode:
    """Emits the code of a thread for a round."""

    def __init__(self, made: Round):
        self.round = made
        read = made.sizes if isinstance(made, ComputedRound) else (made.size,)
        kinds = [buffer_type(made.element, cells, GLOBAL_SPACE) for cells in (*read, made.blocks)]
        self.entry = Block(arg_types=kinds)
        *self.sources, self.target = self.entry.args
        self.emit = Emitter(self.entry)
        self.cell = CellFunction(made.function) if isinstance(made, ComputedRound) else None

    def make(self) -> ModuleOp:
        """The module of the kernel, with the facts of its launch."""
        made, emit = self.round, self.emit
        lane, warp = emit.split(thread_of_block(emit), LANES)
        block = emit.add_int(emit.mul_int(block_of_launch(emit), WARPS), warp)
        is_block = emit.compare("ult", block, made.blocks)
        result = lanes_met(emit, made.kind, self.lane_number(lane, block, is_block))
        is_first = emit.all_of([is_block, emit.compare("eq", lane, 0)])
        emit.add(StoreOp([result], self.target, block, 0, is_first))
        return module_of_kernel(made.name, self.entry, made.grid, WARPS * LANES)

    def lane_number(self, lane: SSAValue, block: SSAValue, is_block: SSAValue) -> SSAValue:
        """The number of a lane: of every 32nd cell of its block."""
        made, emit = self.round, self.emit
        part, row = emit.split(block, made.blocks_of_row)
        inner, outer = emit.split(row, made.rows[1])
        begin = emit.add_int(emit.mul_int(part, BLOCK_CELLS), lane)
        none = FloatAttr(IDENTITY[made.kind], float_type(made.element))
        number = identity = emit.constant(none, made.element)
        taps = [ReadTap(0, made.distances, made.first)]
        if isinstance(made, ComputedRound):
            taps = list(made.taps)
        apart = dict.fromkeys((*tap.distances, tap.step) for tap in taps)
        places = {far: self.place(begin, outer, inner, far) for far in apart}
        turns = range(0, min(made.cells, BLOCK_CELLS), LANES)
        at_once = max(1, READS_AT_ONCE // len(taps))
        for some in range(0, len(turns), at_once):
            cells: list[tuple[SSAValue, list[SSAValue]]] = []
            for turn in turns[some : some + at_once]:
                inside = emit.compare("slt", begin, made.cells - turn)
                mask = emit.value_of(emit.all_of([is_block, inside]))
                read = [
                    OverrideOp(
                        [identity],
                        self.sources[tap.field],
                        places[*tap.distances, tap.step],
                        tap.first + turn * tap.step,
                        mask,
                    )
                    for tap in taps
                ]
                cells.append((mask, [emit.add(op).results[0] for op in read]))
            for mask, values in cells:
                number = joined(emit, made.kind, number, self.computed(mask, values, identity))
        return number

    def place(
        self, begin: SSAValue, outer: SSAValue, inner: SSAValue, apart: tuple[int, int, int]
    ) -> SSAValue:
        """Where a lane's first cell lies in a field, given the first cell in the box."""
        emit, width = self.emit, self.round.width
        *distances, step = apart
        index = emit.extend(begin, width) if step else emit.int(0, width)
        for place, distance in zip((outer, inner), distances):
            if distance:
                far = emit.mul_int(emit.extend(place, width), distance)
                index = emit.add_int(index, far)
        return index

    def computed(self, mask: SSAValue, values: Sequence[SSAValue], identity: SSAValue) -> SSAValue:
        """A cell from what was read: itself, or computed where there is a cell."""
        if self.cell is None:
            return values[0]
        return self.emit.select(mask, self.cell.inline(self.emit, values)[0], identity)


def reduction_kernel(made: Round) -> ModuleOp:
    """A module with the kernel of a round, at the level of threads."""
    return RoundCode(made).make()
