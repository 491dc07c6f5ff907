"""The types of values in cells: one table of facts for all dialects, passes, executors and hosts.

To add a type, add a row. A test walks the rows, and names the tables that lack the type: the
registers of PTX (`lowering/ptx/text.py`) are the only facts outside.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from math import copysign, inf, isfinite

from xdsl.dialects.builtin import IndexType, IntegerType, bf16, f16, f32, f64, i1, i8, i16, i32, i64
from xdsl.ir import Attribute


@dataclass(frozen=True)
class CellType:
    """
    A type of values in cells. `bytes` is the size of a value in memory, `bits` the width of the
    number. `dtype` is the name of NumPy's element type, `llvm` the name of the type in LLVM's
    intrinsics, `c` the name of the type in C. Fields have cells of the type if `in_fields`.
    """

    bytes: int
    bits: int
    dtype: str
    llvm: str
    c: str
    is_float: bool = False
    in_fields: bool = True


CELL_TYPES: dict[Attribute, CellType] = {
    f64: CellType(8, 64, "float64", "f64", "double", is_float=True),
    f32: CellType(4, 32, "float32", "f32", "float", is_float=True),
    i64: CellType(8, 64, "int64", "i64", "int64_t"),
    i32: CellType(4, 32, "int32", "i32", "int32_t"),
    IndexType(): CellType(8, 64, "int64", "i64", "int64_t", in_fields=False),
    i1: CellType(1, 1, "bool", "i1", "uint8_t", in_fields=False),
}
"""All types of values in cells, floats first."""


@dataclass(frozen=True)
class StoredType:
    """
    A type of numbers in memory only: cells compute with numbers of the type `computed`, which has
    all numbers of the stored type. `bytes`, `bits`, `dtype` and `c` as for `CellType`, but of
    floats C has the bits only.
    """

    bytes: int
    bits: int
    dtype: str
    c: str
    computed: Attribute
    is_float: bool = True


STORED_TYPES: dict[Attribute, StoredType] = {
    f16: StoredType(2, 16, "float16", "uint16_t", f32),
    bf16: StoredType(2, 16, "bfloat16", "uint16_t", f32),
    i16: StoredType(2, 16, "int16", "int16_t", i32, is_float=False),
    i8: StoredType(1, 8, "int8", "int8_t", i32, is_float=False),
}
"""Types of fields that no cell computes with."""

CELL_BYTES = {kind: row.bytes for kind, row in CELL_TYPES.items() if row.in_fields} | {
    kind: row.bytes for kind, row in STORED_TYPES.items()
}
"""Bytes of a cell, by type: the types of fields and of memory accesses."""


def computed_type(kind: Attribute) -> Attribute:
    """The type of the numbers with which cells of a field's type compute."""
    stored = STORED_TYPES.get(kind)
    return kind if stored is None else stored.computed


FLOAT_DTYPES = {CELL_TYPES[kind].dtype: kind for kind in (f64, f32)}
"""The types of floats, by NumPy's name: `float64`."""

NARROW_INTEGERS = frozenset(kind for kind, row in STORED_TYPES.items() if not row.is_float)
"""Types of integers in memory only: i16 and i8, with a sign in i32."""

STORED_FLOATS = frozenset(STORED_TYPES) - NARROW_INTEGERS
"""Types of floats in memory only: f16 and bf16."""

FIELD_DTYPES: dict[str, Attribute] = {
    **FLOAT_DTYPES,
    **{row.dtype: kind for kind, row in STORED_TYPES.items() if row.is_float},
}
"""The types of fields of floats, by NumPy's name: `float16`."""

FIELD_TYPE_NAMES = "f64, f32, f16, bf16, i64, i32, i16 or i8"
"""The types of fields, in sentences."""


def wrapped_number(value: int, bits: int) -> int:
    """The signed number with the last bits of an integer."""
    return (value + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


def stored_number(value: float, kind: Attribute) -> float:
    """The number of a field's type nearest to a number, of two equally near the even one."""
    if isinstance(kind, IntegerType) and isfinite(value):
        bits = CELL_BYTES[kind] * 8
        return float(min(max(round(value), -(1 << bits - 1)), (1 << bits - 1) - 1))
    if kind == bf16:
        (bits,) = struct.unpack(">I", struct.pack(">f", value))
        if not isfinite(value):
            return value
        return struct.unpack(
            ">f", struct.pack(">I", bits + 0x7FFF + (bits >> 16 & 1) & 0xFFFF0000)
        )[0]
    if kind == f16 and isfinite(value):
        try:
            return struct.unpack(">e", struct.pack(">e", value))[0]
        except OverflowError:
            return copysign(inf, value)
    return value


def value_bytes(kind: Attribute) -> int:
    """The bytes of a value of a cell's type; 1 for a boolean."""
    return CELL_TYPES[kind].bytes
