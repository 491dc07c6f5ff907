"""The table of the types in cells: each row against NumPy, C, LLVM, and the tables of executors."""

from __future__ import annotations

import ctypes
import re

import numpy as np
import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, i1
from xdsl.ir import Attribute

from timetile.dialects.cell_types import (
    CELL_BYTES,
    CELL_TYPES,
    FLOAT_DTYPES,
    STORED_TYPES,
    computed_type,
)
from timetile.lowering.cpu.builder import llvm_type
from timetile.lowering.ptx.text import DECLARED, REGISTERS
from timetile.passes.analysis.cells.cell_operations import CELL_OPERATIONS, FLOATS
from timetile.runtime.arithmetic.cells import DTYPES
from timetile.runtime.machine import llvm

kinds = pytest.mark.parametrize("kind", CELL_TYPES, ids=str)


@kinds
def test_a_row_agrees_with_numpy(kind: Attribute):
    row, dtype = CELL_TYPES[kind], np.dtype(DTYPES[kind])
    assert dtype.name == row.dtype
    assert dtype.itemsize == row.bytes
    assert np.issubdtype(dtype, np.floating) == row.is_float


@kinds
def test_a_row_agrees_with_c(kind: Attribute):
    row = CELL_TYPES[kind]
    named = getattr(ctypes, f"c_{row.c.removesuffix('_t')}")
    assert ctypes.sizeof(named) == ctypes.sizeof(llvm.C_TYPES[kind]) == row.bytes
    assert (named in (ctypes.c_float, ctypes.c_double)) == row.is_float


@kinds
def test_a_row_agrees_with_llvm(kind: Attribute):
    row = CELL_TYPES[kind]
    assert row.llvm == str(llvm_type(kind)) == f"{'f' if row.is_float else 'i'}{row.bits}"


@kinds
def test_a_row_has_a_register_of_its_width(kind: Attribute):
    prefix, name = REGISTERS[kind]
    assert prefix in DECLARED
    if kind == i1:
        assert name == "pred"
    else:
        assert name == f"{'f' if CELL_TYPES[kind].is_float else 's'}{CELL_TYPES[kind].bits}"


@kinds
def test_a_row_is_as_wide_as_its_bits(kind: Attribute):
    row = CELL_TYPES[kind]
    assert row.bytes == max(row.bits // 8, 1)
    if not isinstance(kind, IndexType):
        assert int(re.sub(r"\D", "", str(kind))) == row.bits


@kinds
def test_a_cell_has_constants_of_every_type(kind: Attribute):
    assert kind in CELL_OPERATIONS[arith.ConstantOp].result


def test_no_other_table_has_a_type_without_a_row():
    assert set(DTYPES) == set(REGISTERS) - set(STORED_TYPES) == set(CELL_TYPES)
    assert tuple(FLOAT_DTYPES.values()) == FLOATS


def test_cells_compute_with_whole_registers_only():
    """Shuffles and messages move words of four bytes; narrower cells are in memory only."""
    computed = {CELL_BYTES[computed_type(kind)] for kind in CELL_BYTES}
    assert {size % 4 for size in computed} == {0}
    assert {size for kind, size in CELL_BYTES.items() if kind in STORED_TYPES} == {1, 2}
