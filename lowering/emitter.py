"""A builder of per-thread operations.

Operations are made with `create`, without the conversions of constructors: a kernel has thousands
of operations. Integer constants and masks are made once, in the kernel's prologue.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    UNKNOWN_LOC,
    IndexType,
    IntegerAttr,
    IntegerType,
    UnitAttr,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue

from timetile.dialects.comparisons import INTEGER_NUMBERS
from timetile.dialects.syntax import integer_type

OpT = TypeVar("OpT", bound=Operation)

ROLLED = "simt.rolled"
"""The attribute of a loop that the assembler leaves rolled: an unrolled body wants registers."""

BY_PRODUCT = "simt.by_product"
"""The attribute of a quotient or remainder by a known number found by a product and a shift."""

OVER_TILES = "simt.over_tiles"
"""The attribute of a loop over tiles: its turns leave nothing to each other."""

MAY_OVERFLOW = {"overflowFlags": arith.IntegerOverflowAttr("none")}
"""The properties of integer sums and products."""

PREDICATES = {name: IntegerAttr(number, i64) for name, number in INTEGER_NUMBERS.items()}
"""The predicates of comparisons as properties."""


class Emitter:
    """Appends operations to a block; constants go to the block of the kernel's prologue."""

    def __init__(self, prologue: Block):
        self.prologue = prologue
        self.block = prologue
        self.constants: dict[Attribute, SSAValue] = {}
        self.integers: dict[tuple[int, int], SSAValue] = {}
        """Integer constants, by number and width; 0 is the width of an index."""
        self.by_products = False
        """Whether quotients and remainders are found by products."""

    def into(self, block: Block) -> Emitter:
        """An emitter for another block, with shared constants."""
        emitter = Emitter(self.prologue)
        emitter.constants, emitter.integers = self.constants, self.integers
        emitter.block, emitter.by_products = block, self.by_products
        return emitter

    def add(self, op: OpT) -> OpT:
        """Append an operation."""
        self.block.add_op(op)
        return op

    def constant(self, value: Attribute, result_type: Attribute) -> SSAValue:
        """A constant, made once for the whole kernel, ahead of everything."""
        if value not in self.constants:
            op = arith.ConstantOp.create(properties={"value": value}, result_types=[result_type])
            first = self.prologue.first_op
            if first is None:
                self.prologue.add_op(op)
            else:
                self.prologue.insert_op_before(op, first)
            self.constants[value] = op.result
        return self.constants[value]

    def int(self, value: int, width: IntegerType | IndexType = i32) -> SSAValue:
        """An integer constant."""
        key = value, width.width.data if isinstance(width, IntegerType) else 0
        if key not in self.integers:
            self.integers[key] = self.constant(IntegerAttr(value, width), width)
        return self.integers[key]

    def binary(self, kind: type[Operation], a: SSAValue, b: SSAValue) -> SSAValue:
        """An operation on two operands; the result has the type of the first."""
        op = kind.create(operands=[a, b], result_types=[a.type], location=UNKNOWN_LOC)
        self.block.add_op(op)
        return op.results[0]

    def add_int(self, a: SSAValue, b: int | SSAValue) -> SSAValue:
        """a + b, nothing for a constant 0."""
        if isinstance(b, int):
            if b == 0:
                return a
            b = self.int(b, integer_type(a))
        return self.arithmetic(arith.AddiOp, a, b)

    def mul_int(self, a: SSAValue, b: int) -> SSAValue:
        """a * b, nothing for a constant 1."""
        return a if b == 1 else self.arithmetic(arith.MuliOp, a, self.int(b, integer_type(a)))

    def sub_int(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """a - b."""
        return self.arithmetic(arith.SubiOp, a, b)

    def remainder(self, number: SSAValue, count: int) -> SSAValue:
        """
        The remainder by `count` of a 32-bit number from 0 to 2^30: a mask for a power of two, and a
        product of 64 bits and a shift otherwise. (The assembler's own sequence converts to floats.)
        """
        if not count & (count - 1):
            return self.binary(arith.AndIOp, number, self.int(count - 1))
        # The factor is less than `count` / 2^bits above 1 / `count`: 2^bits is at least 2^30 times
        # `count`, and the quotient is never one too many.
        bits = 30 + count.bit_length()
        product = self.mul_int(self.extend(number, i64), -(-(1 << bits) // count))
        whole = self.binary(arith.ShRUIOp, product, self.int(bits, i64))
        quotient = self.add(arith.TruncIOp(whole, i32)).result
        return self.sub_int(number, self.mul_int(quotient, count))

    def split(self, number: SSAValue, count: int) -> tuple[SSAValue, SSAValue]:
        """The remainder of the number by `count`, and the quotient."""
        if count == 1:
            return self.int(0), number
        operands = [number, self.int(count)]
        attributes = {BY_PRODUCT: UnitAttr()} if self.by_products else {}
        rest, whole = (
            self.add(kind.create(operands=operands, result_types=[i32], attributes=attributes))
            for kind in (arith.RemUIOp, arith.DivUIOp)
        )
        return rest.results[0], whole.results[0]

    def arithmetic(self, kind: type[Operation], a: SSAValue, b: SSAValue) -> SSAValue:
        """An integer operation with overflow flags."""
        op = kind.create(
            operands=[a, b],
            result_types=[a.type],
            properties=MAY_OVERFLOW,
            location=UNKNOWN_LOC,
        )
        self.block.add_op(op)
        return op.results[0]

    def compare(self, predicate: str, a: SSAValue, b: int | SSAValue) -> SSAValue:
        """A comparison of integers."""
        if isinstance(b, int):
            b = self.int(b, integer_type(a))
        op = arith.CmpiOp.create(
            operands=[a, b], result_types=[i1], properties={"predicate": PREDICATES[predicate]}
        )
        self.block.add_op(op)
        return op.result

    def select(self, mask: SSAValue, yes: SSAValue, no: SSAValue) -> SSAValue:
        """`yes` if the mask holds, otherwise `no`."""
        made = arith.SelectOp.create(operands=[mask, yes, no], result_types=[yes.type])
        self.block.add_op(made)
        return made.result

    def all_of(self, masks: Sequence[SSAValue | None]) -> SSAValue | None:
        """The conjunction of masks; None stands for true."""
        result: SSAValue | None = None
        for mask in masks:
            if mask is not None:
                result = mask if result is None else self.binary(arith.AndIOp, result, mask)
        return result

    def value_of(self, mask: SSAValue | None) -> SSAValue:
        """A mask as a value: a constant for None, which stands for true."""
        return self.constant(IntegerAttr(1, i1), i1) if mask is None else mask

    def any_of(self, masks: Sequence[SSAValue]) -> SSAValue:
        """The disjunction of one or more masks."""
        result = masks[0]
        for mask in masks[1:]:
            result = self.binary(arith.OrIOp, result, mask)
        return result

    def extend(self, value: SSAValue, width: IntegerType | IndexType) -> SSAValue:
        """A 32-bit integer, sign-extended where the width asks for more."""
        if value.type == width:
            return value
        if isinstance(width, IndexType):
            return self.add(arith.IndexCastOp(value, width)).result
        return self.add(arith.ExtSIOp(value, width)).result
