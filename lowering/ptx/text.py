"""Types, literals and operands of PTX."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import cast

from xdsl.dialects import llvm
from xdsl.dialects.builtin import IndexType, IntegerType, bf16, f16, f32, f64, i1, i8, i16, i32, i64
from xdsl.ir import Attribute

from timetile.dialects.cell_types import CELL_BYTES, NARROW_INTEGERS

# (register prefix, PTX type) of each type.
REGISTERS: dict[Attribute, tuple[str, str]] = {
    f64: ("%fd", "f64"),
    f32: ("%f", "f32"),
    i32: ("%r", "s32"),
    i64: ("%rd", "s64"),
    IndexType(): ("%rd", "s64"),
    i1: ("%p", "pred"),
    f16: ("%h", "b16"),
    bf16: ("%h", "b16"),
    # Memory extends narrow integers at a load, and takes the last bits at a store.
    i16: ("%r", "s32"),
    i8: ("%r", "s32"),
}
DECLARED = {"%fd": "f64", "%f": "f32", "%r": "b32", "%rd": "b64", "%p": "pred", "%h": "b16"}


def element_bytes(element: Attribute) -> int:
    """The size of a cell or an array of cells, in bytes."""
    if isinstance(element, llvm.LLVMArrayType):
        return element.size.data * CELL_BYTES[element.type]
    return CELL_BYTES[element]


def float_literal(value: float, kind: Attribute) -> str:
    """`0d` and 16 hexadecimal digits, or `0f` and 8."""
    if kind == f64:
        return "0d" + struct.pack(">d", value).hex().upper()
    return "0f" + struct.pack(">f", value).hex().upper()


def zero_literal(kind: Attribute) -> str:
    """0 of a type of floats, integers or addresses."""
    return float_literal(0.0, kind) if kind in (f32, f64) else "0"


def together(registers: Sequence[str]) -> tuple[str, str]:
    """Registers of one access: `.v2` and `{%a, %b}`, or nothing and the only register."""
    if len(registers) == 1:
        return "", registers[0]
    return f".v{len(registers)}", "{" + ", ".join(registers) + "}"


def bits(letter: str, kind: Attribute) -> str:
    """`u32`, `b64`, `pred` and the like."""
    if kind == i1:
        return "pred"
    width = cast(IntegerType, kind).bitwidth if isinstance(kind, IntegerType) else 64
    return f"{letter}{width}"


def access_kind(kind: Attribute) -> str:
    """The type of a memory access."""
    return f"s{8 * CELL_BYTES[kind]}" if kind in NARROW_INTEGERS else move_kind(kind)


def move_kind(kind: Attribute) -> str:
    """The type of a move."""
    name = REGISTERS[kind][1]
    return name.replace("s", "b") if name.startswith("s") else name
