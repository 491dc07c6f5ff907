"""
Cells of 16-bit fields compute in f32: operations on f16 and bf16 become operations on the same
numbers in f32.

Before:
```
%a = arith.extf %u : f16 to f32
%b = arith.mulf %a, %k : f32
%c = arith.truncf %b : f32 to f16
```
After, where `%u` is the cell's argument in f32:
```
%b = arith.mulf %u, %k : f32
%c = temporal.round %b as f16 : f32
```
f32 has all numbers of both types. Sums, products, quotients and roots of f16 and bf16 in f32,
rounded once more, are the correctly rounded results: f32 has more than twice as many bits, and two
more (S. A. Figueroa, "When is double rounding innocuous?", 1995).
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects import arith
from xdsl.dialects import math as xmath
from xdsl.dialects.builtin import FloatAttr, f32
from xdsl.ir import Attribute, Block, Operation, SSAValue

from timetile.dialects.cell_types import STORED_FLOATS, STORED_TYPES, stored_number
from timetile.dialects.temporal import RoundOp
from timetile.passes.raising.errors import CannotRaiseError

ROUNDED = (arith.AddfOp, arith.SubfOp, arith.MulfOp, arith.DivfOp, xmath.SqrtOp)
"""Operations with the correctly rounded result if their result in f32 is rounded."""

EXACT = (
    arith.NegfOp, arith.MaximumfOp, arith.MinimumfOp, arith.MaxnumfOp, arith.MinnumfOp,
    arith.SelectOp, xmath.AbsFOp, xmath.CopySignOp,
)  # fmt: skip
"""Operations whose result is an operand, but for the sign."""

READERS = (arith.CmpfOp, arith.FPToSIOp, arith.FPToUIOp)
"""Operations on floats with another result, which depends on the number only."""


def touches_stored(op: Operation) -> bool:
    """Whether an operand or a result is a float of a type of memory only."""
    return any(value.type in STORED_FLOATS for value in (*op.operands, *op.results))


def add_in_f32(op: Operation, block: Block, mapping: dict[SSAValue, SSAValue]) -> None:
    """
    Append an operation on numbers of memory types, as operations in f32. Raises CannotRaiseError
    for an operation without an equal in f32.
    """
    match op:
        case arith.ConstantOp(value=FloatAttr(value=value)):
            number = stored_number(value.data, op.result.type)
            block.add_op(made := arith.ConstantOp(FloatAttr(number, f32)))
            mapping[op.result] = made.result
        case arith.ExtFOp():
            mapping[op.result] = with_extension(op, block, mapping)
        case arith.TruncFOp() if op.input.type == f32:
            block.add_op(rounded := RoundOp(mapping[op.input], op.result.type))
            mapping[op.result] = rounded.result
        case _ if isinstance(op, ROUNDED):
            computed = in_f32(op, block, mapping)
            block.add_op(rounded := RoundOp(computed.results[0], op.results[0].type))
            mapping[op.results[0]] = rounded.result
        case _ if isinstance(op, (*EXACT, *READERS)):
            mapping[op.results[0]] = in_f32(op, block, mapping).results[0]
        case _:
            raise computes_in_memory_type(op)


def computes_in_memory_type(op: Operation) -> CannotRaiseError:
    """The error of an operation on the first type of memory among operands and results."""
    kinds = (value.type for value in (*op.operands, *op.results))
    kind = next(kind for kind in kinds if kind in STORED_TYPES)
    way_out = (
        "extend cells to f32 by arith.extf, and round results by arith.truncf from f32"
        if kind in STORED_FLOATS
        else "extend cells to i32 by arith.extsi or arith.extui, and shorten results by "
        "arith.trunci"
    )
    return CannotRaiseError(op, f"it computes with {kind}, a type of memory; {way_out}")


def with_extension(
    op: arith.ExtFOp, block: Block, mapping: Mapping[SSAValue, SSAValue]
) -> SSAValue:
    """The number in f32, or in f64."""
    number = mapping[op.input]
    if op.result.type == f32:
        return number
    block.add_op(wide := arith.ExtFOp(number, op.result.type))
    return wide.result


def in_f32(op: Operation, block: Block, mapping: Mapping[SSAValue, SSAValue]) -> Operation:
    """The operation, appended on numbers in f32."""
    kinds: list[Attribute] = [
        f32 if result.type in STORED_FLOATS else result.type for result in op.results
    ]
    operands = [mapping[value] for value in op.operands]
    made = type(op).create(
        operands=operands, result_types=kinds, properties=op.properties, attributes=op.attributes
    )
    made.location = op.location
    block.add_op(made)
    return made
