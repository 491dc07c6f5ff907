"""The types of values in cells: one table of facts for all dialects, passes, executors and hosts.

To add a type, add a row. A test walks the rows, and names the tables that lack the type: the
registers of PTX (`lowering/ptx/text.py`) are the only facts outside.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import IndexType, f32, f64, i1, i32, i64
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

CELL_BYTES = {kind: row.bytes for kind, row in CELL_TYPES.items() if row.in_fields}
"""Bytes of a cell, by type: the types of fields and of memory accesses."""

FLOAT_DTYPES = {CELL_TYPES[kind].dtype: kind for kind in (f64, f32)}
"""The types of floats, by NumPy's name: `float64`."""


def value_bytes(kind: Attribute) -> int:
    """The bytes of a value of a cell's type; 1 for a boolean."""
    return CELL_TYPES[kind].bytes
