"""Pointers of a function under conversion: buffers as pointers, and sums of a pointer and an index.

In shared memory, the part of an index constant in a loop is added to the pointer ahead of the loop:
an integer instruction beside the arithmetic costs a step as much as an operation of a cell, or
twice as much. Loops that wait for other warps are an exception: other warps fill the wait, and
registers are worth more than instructions.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, gpu, llvm, scf
from xdsl.dialects.builtin import (
    UNKNOWN_LOC,
    DenseArrayBase,
    IndexType,
    IntAttr,
    IntegerAttr,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter
from xdsl.rewriter import InsertPoint, Rewriter

from timetile.dialects import simt
from timetile.dialects.cell_types import CELL_BYTES
from timetile.dialects.simt import (
    SHARED_SPACE,
    address_space,
    buffer_element,
    cell_count,
)
from timetile.dialects.verified import block_of
from timetile.passes.analysis.cells.constants import integer_constant

DYNAMIC_INDEX = -(1 << 31)
"""LLVM's mark for an index given as an operand."""
NO_WRAP_FLAGS = IntegerAttr(0, i32)
FARTHEST_OFFSET = 1 << 31
"""Bytes from which an access has no constant offset: PTX has 32 bits."""


def pointer_type(pointer: SSAValue) -> llvm.LLVMPointerType:
    """The type of a pointer value."""
    assert isinstance(pointer.type, llvm.LLVMPointerType)
    return pointer.type


def defined_outside(value: SSAValue, block: Block) -> Operation | None:
    """The operation making a value in a block other than `block`; otherwise None."""
    owner = value.owner
    return owner if isinstance(owner, Operation) and owner.parent is not block else None


def waits_in_loop(ops: Sequence[Operation]) -> bool:
    """Whether an operation that waits for other warps stands in a loop."""
    return any(is_in_loop(op) for op in ops if type(op) in (gpu.BarrierOp, simt.WaitOp))


def is_in_loop(op: Operation) -> bool:
    """A loop stands around the operation."""
    around = op.parent_op()
    while around is not None and not isinstance(around, scf.ForOp):
        around = around.parent_op()
    return around is not None


def stands_before(first: Operation, second: Operation) -> bool:
    """
    Whether an operation stands before another operation in its block, or before the operation
    around the other.
    """
    beside = block_of(first).find_ancestor_op_in_block(second)
    return beside is not None and first.is_before_in_block(beside)


def multiple_of(index: SSAValue) -> tuple[SSAValue, int]:
    """A value and the constant factor behind a 32-bit index."""
    product = index.owner
    if isinstance(product, arith.MuliOp) and index.type == i32:
        count = integer_constant(product.rhs)
        if count is not None and count > 0:
            return product.lhs, count
    return index, 1


class FunctionValues:
    """The values shared by the patterns of one function: pointers of a block, and constants."""

    def __init__(self, function: gpu.FuncOp, ops: Sequence[Operation]):
        """The values of a function with the given operations, those in regions included."""
        self.function = function
        self.entry = function.body.block
        self.waits = waits_in_loop(ops)
        self.pointers: dict[tuple[Block, SSAValue, SSAValue], SSAValue] = {}
        """Sums of a pointer and an index, by block, pointer and index."""
        self.elements: dict[SSAValue, Attribute] = {}
        """The cells' type behind each pointer."""
        self.words: dict[SSAValue, int] = {}
        """Cells of buffers: for arrivals, one or two."""
        self.integers: dict[int, SSAValue] = {}

    def convert_buffers(self, ops: Sequence[Operation]) -> None:
        """Turn buffers into pointers, and remember the types of elements."""
        for block in self.function.body.blocks:
            for argument in block.args:
                self.convert_buffer(argument)
        shared = [op for op in ops if type(op) is simt.SharedOp]
        for op in shared:
            self.convert_buffer(op.result)

    def convert_indices(self) -> None:
        """Give arguments of type index 64 bits, with casts for their users."""
        for argument in self.entry.args:
            if isinstance(argument.type, IndexType):
                new = Rewriter.replace_value_with_new_type(argument, i64)
                uses = list(new.uses)
                cast = arith.IndexCastOp(new, IndexType())
                for use in uses:
                    use.operation.operands[use.index] = cast.result
                Rewriter.insert_op(cast, InsertPoint.at_start(self.entry))

    def convert_buffer(self, value: SSAValue) -> None:
        """Turn a buffer into a pointer."""
        element = buffer_element(value)
        if element is not None:
            pointer = llvm.LLVMPointerType(IntAttr(address_space(value)))
            count = cell_count(value.type)
            new = Rewriter.replace_value_with_new_type(value, pointer)
            self.elements[new] = element
            self.words[new] = count

    def int(self, value: int, rewriter: PatternRewriter) -> SSAValue:
        """A 32-bit constant at the head of the function."""
        if value not in self.integers:
            constant = arith.ConstantOp(IntegerAttr(value, i32))
            rewriter.insert(constant, InsertPoint.at_start(self.entry))
            self.integers[value] = constant.result
        return self.integers[value]

    def pointer(
        self, op: Operation, buffer: SSAValue, index: SSAValue | None, rewriter: PatternRewriter
    ) -> SSAValue:
        """
        `buffer + index`, computed once in the block of `op`. In shared memory, the part constant in
        a loop is computed ahead of the loop, unless warps wait for each other in the loop.
        """
        if index is None:
            return buffer
        block, here = block_of(op), InsertPoint.before(op)
        if address_space(buffer) != SHARED_SPACE or self.waits:
            return self.pointer_in(block, buffer, index, here, rewriter)
        if (known := defined_outside(index, block)) is not None:
            return self.pointer_behind(known, buffer, index, rewriter)
        total = index.owner
        if isinstance(total, arith.AddiOp):
            for fixed, other in ((total.lhs, total.rhs), (total.rhs, total.lhs)):
                if (known := defined_outside(fixed, block)) is not None:
                    buffer = self.pointer_behind(known, buffer, fixed, rewriter)
                    index = other
                    break
        return self.pointer_in(block, buffer, index, here, rewriter)

    def pointer_behind(
        self, known: Operation, buffer: SSAValue, index: SSAValue, rewriter: PatternRewriter
    ) -> SSAValue:
        """
        `buffer + index`, computed at the first place with both: the operation makes the index in a
        block around the access.
        """
        later, own = known, buffer.owner
        if isinstance(own, Operation) and stands_before(known, own):
            later = own
        return self.pointer_in(block_of(later), buffer, index, InsertPoint.after(later), rewriter)

    def pointer_in(
        self,
        block: Block,
        buffer: SSAValue,
        index: SSAValue,
        place: InsertPoint,
        rewriter: PatternRewriter,
    ) -> SSAValue:
        """
        `buffer + index`, made once in a block. A multiple of a constant counts arrays of so many
        cells.
        """
        key = (block, buffer, index)
        if key not in self.pointers:
            element = self.elements[buffer]
            cells, count = multiple_of(index)
            kind = element if count == 1 else llvm.LLVMArrayType(count, element)
            gep = rewriter.insert(pointer_sum(buffer, cells, kind), place)
            self.pointers[key] = gep.result
            self.elements[gep.result] = element
        return self.pointers[key]


def pointer_sum(base: SSAValue, index: SSAValue | int, element: Attribute) -> llvm.GEPOp:
    """`base + index`, in elements, without the conversions of the constructor."""
    is_constant = isinstance(index, int)
    return llvm.GEPOp.create(
        operands=[base] if is_constant else [base, index],
        result_types=[pointer_type(base)],
        properties={
            "rawConstantIndices": constant_index(index if is_constant else DYNAMIC_INDEX),
            "elem_type": element,
            "noWrapFlags": NO_WRAP_FLAGS,
        },
        location=UNKNOWN_LOC,
    )


def constant_index(index: int) -> Attribute:
    """The property with the only constant index of a pointer's sum."""
    return DenseArrayBase.from_list(i32, [index])


def nearer(
    base: SSAValue, offset: int, element: Attribute, rewriter: PatternRewriter
) -> tuple[SSAValue, int]:
    """An equal place by an allowed offset of an access, in elements."""
    if abs(offset) * CELL_BYTES[element] < FARTHEST_OFFSET:
        return base, offset
    index = arith.ConstantOp(IntegerAttr(offset, i64))
    gep = pointer_sum(base, index.result, element)
    rewriter.insert([index, gep])
    return gep.result, 0


def moved(base: SSAValue, offset: int, element: Attribute, rewriter: PatternRewriter) -> SSAValue:
    """`base + offset`, in elements."""
    base, offset = nearer(base, offset, element, rewriter)
    if offset == 0:
        return base
    return rewriter.insert(pointer_sum(base, offset, element)).result
