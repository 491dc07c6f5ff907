"""
spare-registers: a loop over stream steps holds fewer numbers in registers.

Before:
```
%at = arith.addi %warp, %lane : i32
scf.for %i = %first to %end step %three iter_args(...) {
  %row = arith.addi %i, %at : i32
  %v = simt.load %ring[%at + 64] : f64
  %x = simt.shuffle %v delta 1 : f64
  simt.copy_async %ring[%at + 0], %u[%row + 40960] bytes 16
  simt.copy_async %ring[%at + 64], %u[%row + 49152] bytes 16
}
```
After, where `%me` is the number of the lane:
```
%at = arith.addi %warp, %lane : i32
%last = simt.uniform %end : i32
%here = simt.pick %at lane %me : i32
scf.for %i = %first to %last step %three iter_args(...) {
  %row = arith.addi %i, %here : i32
  %v = simt.load %ring[%here + 64] : f64
  %x = simt.shuffle %v delta 1 : f64
  %one = arith.addi %row, %c40960 : i32
  simt.copy_async %ring[%here + 0], %u[%one + 0] bytes 16
  %two = arith.addi %row, %c49152 : i32
  simt.copy_async %ring[%here + 64], %u[%two + 0] bytes 16
}
```
A kernel has loops for the rim of the domain and loops for the inside. The assembler gives a number
used by both a single place. If the loops of the rim want all registers, the place is in memory, and
the loop inside loads the number in each turn, though 20 to 60 registers are free there.

1. Numbers of 32 bits from outside a loop get a copy ahead of the loop, which the assembler cannot
   see through: the value of the own lane; for the loop's end, a uniform value. Only loops whose
   warps exchange cells have copies: all lanes of a warp run the loop.
2. Rows of a field far from each other get an index each. The assembler otherwise adds the rows'
   distances to one address of 64 bits ahead of all uses.

The pass costs some instructions ahead of a loop, and two in a turn for each row. Kernels get it
where the assembler spills in the loop over stream steps and spills less with a part of it
(`runtime/kernels/making.py`); it is in no pipeline.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, gpu, scf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i32
from xdsl.dialects.gpu import DimensionAttr, DimensionEnum
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from timetile.dialects import simt
from timetile.dialects.simt import SHARED_SPACE, address_space
from timetile.dialects.simt.buffers import integer
from timetile.dialects.tile import LANES
from timetile.lowering.threads.rewriting import blocks_inside, functions_of
from timetile.passes.analysis.cells.constants import integer_constant
from timetile.passes.not_raised import BEFORE_THREADS, remark_without_loops

LAST = 1
"""The number of a loop's operand with the end."""

NEAR = 1024
"""Elements from which another row begins: a warp's part of a row is shorter."""

MemoryAccess = simt.LoadOp | simt.StoreOp | simt.CopyAsyncOp


def stream_loops(function: gpu.FuncOp) -> list[scf.ForOp]:
    """The innermost loops in which lanes exchange cells."""
    blocks = blocks_inside(function)
    loops = [op for block in blocks for op in block.ops if isinstance(op, scf.ForOp)]
    return [loop for loop in loops if is_innermost(loop) and exchanges(loop)]


def is_innermost(loop: scf.ForOp) -> bool:
    """Whether a loop holds no other loop."""
    inside = (op for block in blocks_inside(loop) for op in block.ops)
    return not any(isinstance(op, scf.ForOp) for op in inside)


def exchanges(loop: scf.ForOp) -> bool:
    """Whether lanes exchange cells in each turn of a loop."""
    return any(isinstance(op, simt.ShuffleOp) for op in loop.body.block.ops)


def own_lane(function: gpu.FuncOp) -> SSAValue:
    """The number of the own lane, at the head of a function."""
    number = gpu.ThreadIdOp(DimensionAttr(DimensionEnum.X))
    thread = arith.IndexCastOp(number.result, i32)
    most = arith.ConstantOp(IntegerAttr(LANES - 1, i32))
    lane = arith.AndIOp(thread.result, most.result)
    block = function.body.block
    first = block.first_op
    assert first is not None
    block.insert_ops_before([number, thread, most, lane], first)
    return lane.result


def numbers_from_outside(loop: scf.ForOp) -> dict[SSAValue, list[tuple[Operation, int]]]:
    """The uses, inside a loop, of numbers of 32 bits computed outside; constants are left out."""
    blocks = blocks_inside(loop)
    uses: dict[SSAValue, list[tuple[Operation, int]]] = {}
    for op in (op for block in blocks for op in block.ops):
        for place, operand in enumerate(op.operands):
            owner = operand.owner
            home = owner if isinstance(owner, Block) else owner.parent
            if operand.type == i32 and home not in blocks and integer_constant(operand) is None:
                uses.setdefault(operand, []).append((op, place))
    return uses


def copy_end(loop: scf.ForOp) -> None:
    """Give a loop a uniform copy of its end."""
    block = loop.parent
    assert block is not None
    last = simt.UniformOp(loop.operands[LAST])
    block.insert_op_before(last, loop)
    loop.operands[LAST] = last.result


def copy_numbers(loop: scf.ForOp, lane: SSAValue) -> None:
    """Give a loop copies of the numbers from outside."""
    block = loop.parent
    assert block is not None
    for number, uses in numbers_from_outside(loop).items():
        copy = simt.PickOp(number, lane)
        block.insert_op_before(copy, loop)
        for op, place in uses:
            op.operands[place] = copy.result


@dataclass(frozen=True)
class IndexedRow:
    """The row of an access: the first access of a row has its own index, without a constant."""

    first: int
    index: SSAValue


def indexed_accesses(block: Block) -> Iterator[tuple[MemoryAccess, SSAValue, int, str]]:
    """
    The accesses of memory outside the block with an index and a constant, and the constant's name.
    """
    for op in list(block.ops):
        match op:
            case simt.CopyAsyncOp(source_index=index) if index is not None:
                place = list(op.operands).index(index, 1 + list(op.operands).index(op.source))
                yield op, op.source, place, "source_offset"
            case simt.LoadOp(index=index) | simt.StoreOp(index=index) if index is not None:
                if address_space(op.buffer) != SHARED_SPACE:
                    place = 1 + list(op.operands).index(op.buffer)
                    yield op, op.buffer, place, "offset"
            case _:
                pass


def index_rows(block: Block, *, loads: bool, stores: bool) -> None:
    """Give each far row an index of its own, for loads, stores or both of a block."""
    rows: dict[tuple[SSAValue, SSAValue], IndexedRow] = {}
    for op, buffer, place, name in indexed_accesses(block):
        asked = stores if isinstance(op, simt.StoreOp) else loads
        if not asked or op.operands[place].type != i32:
            continue
        index, offset = op.operands[place], op.properties[name]
        assert isinstance(offset, IntegerAttr)
        at, key = offset.value.data, (buffer, index)
        if key not in rows or abs(at - rows[key].first) >= NEAR:
            far = arith.ConstantOp(IntegerAttr(at, i32))
            moved = arith.AddiOp(index, far.result)
            block.insert_ops_before([far, moved], op)
            rows[key] = IndexedRow(at, moved.result)
        op.operands[place] = rows[key].index
        op.properties[name] = integer(at - rows[key].first)


@dataclass(frozen=True)
class SpareRegistersPass(ModulePass):
    """Copy numbers ahead of loops, and index rows; see the module's documentation."""

    name = "spare-registers"

    copies: bool = True
    """Whether numbers are copied ahead of loops; else the ends of loops alone."""
    loads: bool = True
    """Whether far rows that a loop loads get an index each."""
    stores: bool = True
    """Whether far rows that a loop stores get an index each."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        remark_without_loops(self, op, BEFORE_THREADS)
        for function in functions_of(op):
            loops = stream_loops(function)
            for loop in loops:
                for block in blocks_inside(loop):
                    index_rows(block, loads=self.loads, stores=self.stores)
            lane = own_lane(function) if loops and self.copies else None
            for loop in loops:
                if lane is not None:
                    copy_numbers(loop, lane)
                copy_end(loop)
