"""
Cells of fields of i8 and i16 compute in i32: operations on narrow integers become operations on
i32 with the same last bits.

Before:
```
%a = arith.addi %u, %v : i8
%b = arith.addi %a, %w : i8
%c = arith.cmpi sgt, %b, %k : i8
```
After, where `%u`, `%v` and `%w` are the cells' arguments in i32:
```
%a = arith.addi %u, %v : i32
%b = arith.addi %a, %w : i32
%s = arith.shli %b, %24 : i32
%n = arith.shrsi %s, %24 : i32
%c = arith.cmpi sgt, %n, %k : i32
```
The last bits of sums, products and the like depend on the last bits of the operands only, and the
value wraps around where other bits are seen: in comparisons, quotients, conversions and results.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects import math as xmath
from xdsl.dialects.builtin import IntegerAttr, f32, i1, i32, i64
from xdsl.ir import Block, Operation, SSAValue

from timetile.dialects.cell_types import (
    NARROW_INTEGERS,
    STORED_FLOATS,
    STORED_TYPES,
    wrapped_number,
)
from timetile.dialects.comparisons import is_unsigned
from timetile.dialects.temporal import RoundOp
from timetile.passes.raising.stored_types import computes_in_memory_type

LAST_BITS = (arith.AddiOp, arith.SubiOp, arith.MuliOp)
"""Operations whose last bits depend on the last bits of the operands only."""

BITWISE = (arith.AndIOp, arith.OrIOp, arith.XOrIOp)
"""Operations on each bit: numbers with a sign give a number with a sign."""

SIGNED = (
    arith.DivSIOp, arith.RemSIOp, arith.FloorDivSIOp, arith.CeilDivSIOp, arith.MaxSIOp,
    arith.MinSIOp, arith.ShRSIOp, xmath.AbsIOp,
)  # fmt: skip
"""Operations on numbers with a sign."""

CLOSED = (arith.RemSIOp, arith.MaxSIOp, arith.MinSIOp, arith.ShRSIOp)
"""Operations of SIGNED whose result is in the operands' range."""

UNSIGNED = (
    arith.DivUIOp, arith.RemUIOp, arith.CeilDivUIOp, arith.MaxUIOp, arith.MinUIOp,
    xmath.CtPopOp,
)  # fmt: skip
"""Operations on numbers without a sign."""

WORD = 32


def touches_narrow(op: Operation) -> bool:
    """Whether an operand or a result is an integer of a type of memory only."""
    return any(value.type in NARROW_INTEGERS for value in (*op.operands, *op.results))


def stored_bits(value: SSAValue) -> int:
    """The bits of a narrow integer in memory."""
    return STORED_TYPES[value.type].bits


class NarrowIntegers:
    """
    Appends operations to a cell function. `mapping` has the i32 of each narrow integer: the last
    bits are the number's, and `signed` has those whose other bits are the number's sign.
    """

    def __init__(self, block: Block, mapping: dict[SSAValue, SSAValue]):
        self.block, self.mapping = block, mapping
        self.signed: set[SSAValue] = set()

    def append(self, op: Operation) -> SSAValue:
        """The result of an appended operation."""
        self.block.add_op(op)
        return op.results[0]

    def int(self, number: int) -> SSAValue:
        """A constant."""
        return self.append(arith.ConstantOp(IntegerAttr(number, i32)))

    def wrapped(self, word: SSAValue, bits: int) -> SSAValue:
        """The number with a sign in the last bits of an i32."""
        moved = self.append(arith.ShLIOp(word, self.int(WORD - bits)))
        number = self.append(arith.ShRSIOp(moved, self.int(WORD - bits)))
        self.signed.add(number)
        return number

    def number(self, value: SSAValue) -> SSAValue:
        """A narrow integer as a signed i32; any other value as it is in the cell."""
        word = self.mapping[value]
        if value.type not in NARROW_INTEGERS or word in self.signed or word in self.block.args:
            return word
        self.mapping[value] = self.wrapped(word, stored_bits(value))
        return self.mapping[value]

    def natural(self, value: SSAValue) -> SSAValue:
        """The i32 of a narrow integer without a sign; of another value, the value in the cell."""
        if value.type not in NARROW_INTEGERS:
            return self.mapping[value]
        mask = self.int((1 << stored_bits(value)) - 1)
        return self.append(arith.AndIOp(self.mapping[value], mask))

    def again(self, op: Operation, operands: Sequence[SSAValue]) -> SSAValue:
        """The operation, appended on other operands, with i32 in place of narrow integers."""
        kinds = [i32 if each.type in NARROW_INTEGERS else each.type for each in op.results]
        made = type(op).create(
            operands=operands, result_types=kinds, properties=op.properties,
            attributes=op.attributes,
        )  # fmt: skip
        made.location = op.location
        return self.append(made)

    def add(self, op: Operation) -> None:
        """
        Append an operation with narrow operands or a narrow result. Raises CannotRaiseError for an
        operation without an equal in i32.
        """
        match op:
            case arith.ConstantOp(value=IntegerAttr(value=value)):
                bits = stored_bits(op.result)
                result = self.int(wrapped_number(value.data, bits))
                self.signed.add(result)
            case arith.SelectOp():
                chosen = [self.mapping[op.cond]]
                result = self.again(op, [*chosen, *map(self.number, op.operands[1:])])
                self.signed.add(result)
            case arith.CmpiOp():
                as_number = self.natural if is_unsigned(op.predicate.value.data) else self.number
                result = self.again(op, [as_number(value) for value in op.operands])
            case _ if isinstance(op, (*LAST_BITS, arith.ShLIOp)):
                words = [self.mapping[value] for value in op.operands]
                if isinstance(op, arith.ShLIOp):
                    words[1] = self.number(op.rhs)
                result = self.again(op, words)
            case _ if isinstance(op, BITWISE):
                result = self.again(op, [self.mapping[value] for value in op.operands])
                if all(self.is_signed(value) for value in op.operands):
                    self.signed.add(result)
            case _ if isinstance(op, SIGNED):
                result = self.again(op, [self.number(value) for value in op.operands])
                if isinstance(op, CLOSED):
                    self.signed.add(result)
            case arith.ShRUIOp():
                result = self.again(op, [self.natural(op.lhs), self.number(op.rhs)])
            case _ if isinstance(op, UNSIGNED):
                result = self.again(op, [self.natural(value) for value in op.operands])
            case _:
                result = self.converted(op)
        self.mapping[op.results[0]] = result

    def is_signed(self, value: SSAValue) -> bool:
        """Whether the i32 of a narrow integer is the number with its sign."""
        word = self.mapping[value]
        return word in self.signed or word in self.block.args

    def converted(self, op: Operation) -> SSAValue:
        """The result of a conversion."""
        match op:
            case arith.ExtSIOp() if op.input.type in NARROW_INTEGERS:
                return self.as_type(op, self.number(op.input))
            case arith.ExtUIOp() if op.input.type in (*NARROW_INTEGERS, i1):
                if op.input.type == i1:
                    result = self.again(op, [self.mapping[op.input]])
                    self.signed.add(result)
                    return result
                return self.as_type(op, self.natural(op.input))
            case arith.TruncIOp():
                word = self.mapping[op.input]
                if op.result.type == i1:
                    last = self.append(arith.AndIOp(word, self.int(1)))
                    return self.append(arith.CmpiOp(last, self.int(0), "ne"))
                if op.input.type == i64:
                    word = self.append(arith.TruncIOp(word, i32))
                return self.wrapped(word, stored_bits(op.result))
            case arith.SIToFPOp():
                return self.as_float(op, self.number(op.input))
            case arith.UIToFPOp():
                return self.as_float(op, self.natural(op.input))
            case arith.FPToSIOp() | arith.FPToUIOp() if op.input.type not in STORED_FLOATS:
                return self.from_float(op)
            case _:
                raise computes_in_memory_type(op)

    def as_type(self, op: arith.ExtSIOp | arith.ExtUIOp, word: SSAValue) -> SSAValue:
        """The number of an i32 in the type of an extension."""
        if op.result.type == i64:
            return self.append(arith.ExtSIOp(word, i64))
        self.signed.add(word)
        return word

    def as_float(self, op: arith.SIToFPOp | arith.UIToFPOp, word: SSAValue) -> SSAValue:
        """The float of a narrow integer, rounded to a float of memory."""
        if op.result.type in STORED_FLOATS:
            wide = self.append(arith.SIToFPOp(word, f32))
            return self.append(RoundOp(wide, op.result.type))
        return self.append(arith.SIToFPOp(word, op.result.type))

    def from_float(self, op: arith.FPToSIOp | arith.FPToUIOp) -> SSAValue:
        """The nearest number in range, towards 0; 0 for NaN."""
        bits = stored_bits(op.result)
        word = self.append(arith.FPToSIOp(self.mapping[op.input], i32))
        least, most = -(1 << bits - 1), (1 << bits - 1) - 1
        if isinstance(op, arith.FPToUIOp):
            least, most = 0, (1 << bits) - 1
        lower = self.append(arith.MinSIOp(word, self.int(most)))
        return self.append(arith.MaxSIOp(lower, self.int(least)))
