"""
A small builder of llvm operations: appends to a block, and makes each constant of a function once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from xdsl.dialects import llvm
from xdsl.dialects.builtin import FloatAttr, IndexType, IntegerAttr, IntegerType, i1, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from timetile.dialects.cell_types import CELL_TYPES
from timetile.dialects.comparisons import INTEGER_NUMBERS

OpT = TypeVar("OpT", bound=Operation)


def llvm_type(kind: Attribute) -> Attribute:
    """The type of a scalar in the llvm dialect: an index has 64 bits."""
    return i64 if isinstance(kind, IndexType) else kind


def width(value: SSAValue) -> int:
    """The bits of an integer value."""
    return CELL_TYPES[value.type].bits


LoopBody = Callable[[SSAValue, Sequence[SSAValue]], Sequence[SSAValue]]
"""Appends a turn of a loop, from the counter and the carried values; returns the new values."""


class Builder:
    """
    Builds the body of a function: appends operations to `block`, new blocks to the body, and
    constants to the head of `entry`, the first block.
    """

    def __init__(self, body: Region):
        self.body = body
        self.entry = self.block = body.block
        self.constants: dict[tuple[Attribute, Attribute], SSAValue] = {}
        self.callees: dict[str, llvm.LLVMFunctionType] = {}
        """The library functions called, by name, with types."""

    def add(self, op: OpT) -> OpT:
        """Append an operation."""
        self.block.add_op(op)
        return op

    def constant(self, value: IntegerAttr | FloatAttr, kind: Attribute) -> SSAValue:
        """A constant, made once in the function."""
        if (value, kind) not in self.constants:
            op = llvm.ConstantOp(value, kind)
            first = self.entry.first_op
            if first is None:
                self.entry.add_op(op)
            else:
                self.entry.insert_op_before(op, first)
            self.constants[value, kind] = op.result
        return self.constants[value, kind]

    def int(self, value: int, bits: int = 64) -> SSAValue:
        """An integer constant; a boolean is 0 or 1."""
        kind = IntegerType(bits)
        return self.constant(IntegerAttr(value, kind), kind)

    def like(self, value: int, other: SSAValue) -> SSAValue:
        """An integer constant, in the type of another value."""
        return self.int(value, width(other))

    def binary(
        self, kind: type[llvm.ArithmeticBinOperation | llvm.ArithmeticBinOpOverflow
                         | llvm.ArithmeticBinOpExact | llvm.ArithmeticBinOpDisjoint
                         | llvm.AbstractFloatArithOp],
        a: SSAValue, b: SSAValue,
    ) -> SSAValue:  # fmt: skip
        """An operation of two operands of the same type."""
        return self.add(kind(a, b)).res

    def compare(self, predicate: str, a: SSAValue, b: SSAValue) -> SSAValue:
        """A comparison of integers, by name: `slt`, `ult`, `eq`."""
        return self.add(llvm.ICmpOp(a, b, IntegerAttr(INTEGER_NUMBERS[predicate], i64))).res

    def compare_floats(self, predicate: str, a: SSAValue, b: SSAValue) -> SSAValue:
        """A comparison of floats, by name: `olt`, `uno`."""
        return self.add(llvm.FCmpOp(a, b, predicate)).res

    def select(self, condition: SSAValue, yes: SSAValue, no: SSAValue) -> SSAValue:
        """`yes` if the condition holds, otherwise `no`."""
        return self.add(llvm.SelectOp(condition, yes, no)).res

    def either(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """The disjunction of two conditions."""
        return self.binary(llvm.OrOp, a, b)

    def bits(self, value: SSAValue, kind: Attribute) -> SSAValue:
        """The bits of a value, read as another type of equal width."""
        return self.add(llvm.BitcastOp(value, kind)).result

    def intrinsic(self, name: str, arguments: Sequence[SSAValue], kind: Attribute) -> SSAValue:
        """The result of an intrinsic of LLVM."""
        return self.add(llvm.CallIntrinsicOp(name, arguments, [kind])).results[0]

    def library(self, name: str, arguments: Sequence[SSAValue], kind: Attribute) -> SSAValue:
        """The result of a library function, declared here and bound when the code is loaded."""
        self.callees[name] = llvm.LLVMFunctionType([a.type for a in arguments], kind)
        return self.add(llvm.CallOp(name, *arguments, return_type=kind)).results[0]

    def moved(self, pointer: SSAValue, elements: SSAValue, kind: Attribute) -> SSAValue:
        """A pointer moved by some elements of a type."""
        return self.add(llvm.GEPOp.from_mixed_indices(pointer, [elements], kind)).result

    def loaded(self, pointer: SSAValue, kind: Attribute) -> SSAValue:
        """The value at a pointer: at any address, as NumPy arrays may lie anywhere."""
        return self.add(llvm.LoadOp(pointer, kind, 1)).dereferenced_value

    def store(self, value: SSAValue, pointer: SSAValue) -> None:
        """Store a value, wherever a NumPy array may lie: at any address."""
        self.add(llvm.StoreOp(value, pointer, 1))

    # 64-bit integers.

    def plus(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """a + b."""
        return self.binary(llvm.AddOp, a, b)

    def minus(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """a - b."""
        return self.binary(llvm.SubOp, a, b)

    def times(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """a * b."""
        return self.binary(llvm.MulOp, a, b)

    def smaller(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """The smaller of two integers."""
        return self.intrinsic("llvm.smin.i64", [a, b], i64)

    def larger(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """The larger of two integers."""
        return self.intrinsic("llvm.smax.i64", [a, b], i64)

    # Control flow.

    def new_block(self, kinds: Sequence[Attribute] = ()) -> Block:
        """A new block at the end of the function."""
        block = Block(arg_types=kinds)
        self.body.add_block(block)
        return block

    def loop(
        self, low: SSAValue, high: SSAValue, step: SSAValue, body: LoopBody,
        carried: Sequence[SSAValue] = (),
    ) -> Sequence[SSAValue]:  # fmt: skip
        """A loop from `low` to below `high`; returns the carried values after the last turn."""
        head, turn = self.new_block([i64, *(value.type for value in carried)]), self.new_block()
        self.add(llvm.BrOp(head, low, *carried))
        counter, *values = head.args
        self.block = turn
        onward = body(counter, values)
        self.add(llvm.BrOp(head, self.plus(counter, step), *onward))
        after = self.new_block()
        self.block = head
        self.add(llvm.CondBrOp(self.compare("slt", counter, high), turn, [], after, []))
        self.block = after
        return values

    def when(self, condition: SSAValue, body: Callable[[], object]) -> None:
        """Run `body` only if a condition holds."""
        then, after = self.new_block(), self.new_block()
        self.add(llvm.CondBrOp(condition, then, [], after, []))
        self.block = then
        body()
        self.add(llvm.BrOp(after))
        self.block = after


def is_true(value: IntegerAttr) -> bool:
    """A constant of type i1 is true: written as 1 or -1."""
    return value.type == i1 and bool(value.value.data)
