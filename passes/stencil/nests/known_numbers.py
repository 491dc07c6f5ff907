"""Integers that a program computes from constants and from the extents of memrefs."""

from __future__ import annotations

from collections.abc import Callable
from operator import add, mul, sub

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.hints import isa

from timetile.passes.analysis.cells.constants import integer_constant

ARITHMETIC: dict[type[Operation], Callable[[int, int], int]] = {
    arith.AddiOp: add,
    arith.SubiOp: sub,
    arith.MuliOp: mul,
}
"""The operations on known integers, far from overflow."""


def known_integer(value: SSAValue) -> int | None:
    """The integer of a constant, an extent (`memref.dim`), or arithmetic on both; else None."""
    op = value.owner
    if isinstance(op, memref.DimOp):
        return known_extent(op)
    if isinstance(op, arith.IndexCastOp):
        return known_integer(op.input)
    if isinstance(op, Operation) and type(op) in ARITHMETIC:
        left, right = map(known_integer, op.operands)
        return None if left is None or right is None else ARITHMETIC[type(op)](left, right)
    return integer_constant(value)


def known_extent(op: memref.DimOp) -> int | None:
    """The extent that an operation asks for, if the memref's type has it."""
    axis, kind = known_integer(op.index), op.source.type
    if axis is None or not isa(kind, MemRefType[Attribute]):
        return None
    shape = kind.get_shape()
    known = 0 <= axis < len(shape) and shape[axis] != DYNAMIC_INDEX
    return shape[axis] if known else None
