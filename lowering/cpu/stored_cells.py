"""Cells of narrow fields on a CPU: one or two bytes in memory, four in registers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects import llvm
from xdsl.dialects.builtin import IntegerType, bf16, f16, f32, i32
from xdsl.ir import Attribute, SSAValue

from timetile.dialects.cell_types import NARROW_INTEGERS, STORED_FLOATS, STORED_TYPES
from timetile.dialects.temporal import RoundOp
from timetile.lowering.cpu.builder import Builder

i16 = IntegerType(16)


def memory_type(kind: Attribute) -> Attribute:
    """The type by which cells of a field are loaded and stored."""
    return i16 if kind in STORED_FLOATS else kind


def loaded_cell(build: Builder, pointer: SSAValue, kind: Attribute) -> SSAValue:
    """The cell of a field at a pointer, as the number that cells compute with."""
    value = build.loaded(pointer, memory_type(kind))
    return widened_cell(build, value, kind) if kind in STORED_TYPES else value


def store_cell(build: Builder, value: SSAValue, pointer: SSAValue, kind: Attribute) -> None:
    """Store a cell of a field."""
    build.store(as_stored(build, value, kind) if kind in STORED_TYPES else value, pointer)


def round_cell(build: Builder, op: RoundOp, operands: Sequence[SSAValue]) -> SSAValue:
    """The nearest number of a type of memory, as f32."""
    return widened_cell(build, as_stored(build, operands[0], op.stored), op.stored)


def widened_cell(build: Builder, value: SSAValue, kind: Attribute) -> SSAValue:
    """The f32 or the i32 of the bits of a number in memory."""
    if kind in NARROW_INTEGERS:
        return build.add(llvm.SExtOp(value, i32)).res
    if kind != bf16:
        return build.add(llvm.FPExtOp(build.bits(value, f16), f32)).result
    wide = build.add(llvm.ZExtOp(value, i32)).res
    return build.bits(build.binary(llvm.ShlOp, wide, build.int(16, 32)), f32)


def as_stored(build: Builder, value: SSAValue, kind: Attribute) -> SSAValue:
    """
    A value as stored: the nearest float of the stored type (the even one between two equally near),
    or the last bits of an integer.
    """
    if kind in NARROW_INTEGERS:
        return build.add(llvm.TruncOp(value, cast(IntegerType, kind))).res
    if kind != bf16:
        return build.bits(build.add(llvm.FPTruncOp(value, f16)).result, i16)
    word, half = build.bits(value, i32), build.int(16, 32)
    last = build.binary(llvm.AndOp, build.binary(llvm.LShrOp, word, half), build.int(1, 32))
    more = build.binary(llvm.AddOp, last, build.int(0x7FFF, 32))
    nearest = build.binary(llvm.LShrOp, build.binary(llvm.AddOp, word, more), half)
    # Rounding would carry from the fraction of a NaN into the exponent and the sign.
    sign = build.binary(llvm.AndOp, build.binary(llvm.LShrOp, word, half), build.int(0x8000, 32))
    nan = build.binary(llvm.OrOp, sign, build.int(0x7FC0, 32))
    found = build.select(build.compare_floats("uno", value, value), nan, nearest)
    return build.add(llvm.TruncOp(found, i16)).res
