"""
What cells have in common: operations on the same operands, which one computation serves.

The same rules say what `share-cells` replaces in the code of a thread, and what the cost model counts before there is
any: the cells of a thread are numbered as values, by what they are computed from.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import product
from typing import TypeVar, get_args

from xdsl.dialects import arith
from xdsl.dialects import math as xmath
from xdsl.dialects.builtin import AnyFloat, Float32Type, Float64Type, IndexType, IntegerType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Operation, SSAValue, Use

from timetile.passes.analysis.cells.cell_operations import CELL_OPERATIONS
from timetile.passes.analysis.cells.instructions import instructions

T = TypeVar("T")

FLOATS = get_args(AnyFloat)

index = IndexType()

Work = tuple[int, int]
"""Instructions on the floating-point pipe, and beside it."""


def is_shared(op: Operation) -> bool:
    """The operation computes from numbers, and nothing else."""
    if op.regions or not op.name.startswith(("arith.", "math.")):
        return False
    return any(isinstance(value.type, FLOATS) for value in op.operands)


def key_of(op: Operation, operands: Sequence[Hashable]) -> Hashable:
    """What two operations have in common that compute the same bits from the same operands."""
    known = CELL_OPERATIONS.get(type(op))
    factors = 0 if known is None else known.commutes
    # Which of two factors or addends comes first is the same to both.
    return (
        op.name,
        *(said(result.type) for result in op.results),
        frozenset(operands[:factors]),
        *operands[factors:],
        *map(said, op.properties.values()),
    )


def said(attribute: Attribute) -> Hashable:
    """What an attribute says, in Python's own words where that is simple: kernels have many, and these are hashed fast."""
    match attribute:
        case Float32Type() | Float64Type():
            return type(attribute)
        case arith.FastMathFlagsAttr():
            return attribute.data
        case IntegerType():
            return attribute.width.data
        case _:
            return attribute


def reversed_difference(op: Operation, operands: Sequence[Hashable]) -> Hashable | None:
    """
    The key of the difference of the same numbers the other way round, where the sign does not matter: nothing but a
    square or a magnitude is made of it.
    """
    if not isinstance(op, arith.SubfOp) or not is_magnitude(op.result):
        return None
    return key_of(op, operands[::-1])


def find(found: Mapping[Hashable, T], op: Operation, operands: Sequence[Hashable]) -> T | None:
    """What is known by an operation's key, or by that of the difference the other way round."""
    if (known := found.get(key_of(op, operands))) is not None:
        return known
    other = reversed_difference(op, operands)
    return None if other is None else found.get(other)


def is_magnitude(value: SSAValue) -> bool:
    """All that is made of a number is the same of its opposite."""
    return all(map(is_magnitude_use, value.uses))


def is_magnitude_use(use: Use) -> bool:
    """A square or a magnitude is made of the number."""
    match use.operation:
        case xmath.AbsFOp():
            return True
        case arith.MulfOp(lhs=a, rhs=b) | xmath.FmaOp(a=a, b=b):
            return use.index < 2 and a is b
        case _:
            return False


def distinct_work(
    function: FuncOp, taps: Sequence[tuple[Hashable, tuple[int, ...]]], patch: Sequence[int]
) -> Work:
    """
    Instructions for all cells of a patch of so many along each axis, if what they have in common is computed once.
    `taps` are the queue and the offset that each argument of the function reads; other arguments are the same for all.
    """
    block = function.body.block
    numbers: dict[Hashable, int] = {}
    pipe, beside = 0, 0
    operations = [op for op in block.ops if not isinstance(op, ReturnOp)]
    for cell in product(*map(range, patch)):
        values: dict[SSAValue, Hashable] = {}
        for k, argument in enumerate(block.args):
            if k < len(taps):
                queue, offset = taps[k]
                values[argument] = (queue, *(at + moved for at, moved in zip(cell, offset)))
            else:
                # A scalar, or a coordinate.
                values[argument] = (argument, cell) if argument.type == index else argument
        for op in operations:
            operands = [values[operand] for operand in op.operands]
            alike = is_shared(op) or not operands
            found = find(numbers, op, operands) if alike else None
            if found is None:
                key = key_of(op, operands) if alike else (op, cell)
                found = numbers[key] = len(numbers)
                work = instructions(op)
                pipe, beside = pipe + work[0], beside + work[1]
            for result in op.results:
                values[result] = (found, result.index)
    return pipe, beside
