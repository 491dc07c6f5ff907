"""Every operation of a cell, in every type: machine code computes NumPy's results, bit for bit."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects import arith, llvm
from xdsl.dialects.builtin import (
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    f32,
    f64,
    i1,
    i32,
    i64,
)
from xdsl.dialects.func import ReturnOp
from xdsl.dialects.math import ExpOp
from xdsl.ir import Attribute, Block, SSAValue

from support.cell_operations import Case, arguments, cases
from timetile.lowering.cpu.builder import Builder, llvm_type
from timetile.lowering.cpu.cells import LOWERINGS, lower_operation
from timetile.lowering.cpu.elementwise import argument_kinds, elementwise_functions
from timetile.passes.analysis.cells.cell_operations import CELL_OPERATIONS, FUNCTIONS
from timetile.passes.analysis.cells.quotients import Quotient, Remainder
from timetile.passes.cells.expand_cells import PATTERNS
from timetile.passes.patterns import rewrite_once
from timetile.runtime.arithmetic.cells import dtype_of, evaluate
from timetile.runtime.machine.libm import address_of
from timetile.runtime.machine.llvm import Code, object_code

# One worker compiles the code of all cases.
pytestmark = pytest.mark.xdist_group("native_cells")

CASES = [case for case in cases() if CELL_OPERATIONS[case.operation].meaning]
"""The operations seen by executors: passes turn all other operations into these."""

Array = NDArray[Any]


def test_every_operation_of_the_table_has_a_lowering():
    seen = {case.operation for case in CASES} | {arith.ConstantOp}
    assert set(LOWERINGS) == seen


def one_by_one(case: Case, number: int) -> list[llvm.FuncOp]:
    """A function that computes a case for each element of arrays, with expanded quotients."""

    def compute(build: Builder, values: Sequence[SSAValue]) -> SSAValue:
        block = Block(arg_types=case.operands)
        op = case.create(block)
        block.add_ops([op, last := ReturnOp(*op.results)])
        if isinstance(op, Quotient | Remainder):
            rewrite_once([op], PATTERNS)
        lowered: dict[SSAValue, SSAValue] = dict(zip(block.args, values))
        for made in block.ops:
            if made is not last:
                operands = [lowered[value] for value in made.operands]
                lowered[made.results[0]] = lower_operation(build, made, operands)
        return lowered[last.operands[0]]

    kinds = [llvm_type(kind) for kind in case.operands]
    return elementwise_functions(f"case{number}", kinds, llvm_type(case.result), compute)


@cache
def code() -> Code:
    """All cases in one module."""
    functions: dict[str, llvm.FuncOp] = {}
    for number, case in enumerate(CASES):
        functions |= {f.sym_name.data: f for f in one_by_one(case, number)}
    return Code(object_code(ModuleOp(list(functions.values()))))


def computed(case: Case, given: Sequence[Array]) -> Array:
    """Machine code's results for some arrays."""
    kinds = argument_kinds(len(given))
    result = np.empty(given[0].shape, dtype_of(case.result))
    function = code().function(f"case{CASES.index(case)}", kinds)
    function(*(array.ctypes.data for array in (*given, result)), result.size)
    return result


def numbers(kind: Attribute, rng: np.random.Generator, count: int) -> Array:
    """Numbers of any bits, and ordinary numbers."""
    dtype = dtype_of(kind)
    if kind == i1:
        return rng.random(count) < 0.5
    bits = rng.integers(0, 256, count * dtype.itemsize, dtype=np.uint8).view(dtype)
    ordinary = (rng.normal(size=count) * 10).astype(dtype)
    return np.where(rng.random(count) < 0.5, bits, ordinary)


def assert_same(case: Case, given: Sequence[Array]) -> None:
    expected = np.asarray(evaluate(case.create(Block(arg_types=case.operands)), given))
    found = computed(case, given)
    assert found.dtype == expected.dtype
    integers = {1: np.uint8, 4: np.uint32, 8: np.uint64}[found.dtype.itemsize]
    both_nan = (found != found) & (expected != expected)
    differ = np.flatnonzero((found.view(integers) != expected.view(integers)) & ~both_nan)
    if differ.size:
        at = int(differ[0])
        values = ", ".join(repr(array[at]) for array in given)
        raise AssertionError(f"{case} of {values}: {expected[at]!r}, found {found[at]!r}")


@pytest.mark.parametrize("case", CASES, ids=str)
def test_native_cells_are_right_for_special_and_for_random_numbers(case: Case):
    assert_same(case, arguments(case))
    rng = np.random.default_rng(3)
    assert_same(case, [numbers(kind, rng, 500) for kind in case.operands])


@pytest.mark.parametrize("kind", [f64, f32], ids=str)
@pytest.mark.parametrize("name", sorted({known.library for known in FUNCTIONS.values()}))
def test_a_function_has_equal_bits_on_vectors_and_on_one_number(name: str, kind: Attribute):
    """Rows of any length end with the bits of vectors."""
    case = next(
        c for c in CASES if CELL_OPERATIONS[c.operation].library == name and c.result == kind
    )
    given = [np.linspace(0.1, 3.0, 67).astype(dtype_of(kind)) for _ in case.operands]
    found = computed(case, given)
    for place in range(67):
        alone = computed(case, [array[place : place + 1] for array in given])
        assert alone.tobytes() == found[place : place + 1].tobytes()


@pytest.mark.parametrize("kind", [f64, f32], ids=str)
def test_without_functions_on_vectors_the_c_library_is_called(
    kind: Attribute, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("timetile.runtime.machine.llvm.functions_on_vectors", dict)
    case = next(c for c in CASES if c.operation is ExpOp and c.result == kind)
    real, symbol = (ctypes.c_double, "exp") if kind == f64 else (ctypes.c_float, "expf")
    function = ctypes.CFUNCTYPE(real, real)(address_of(symbol))
    given, found = np.linspace(0.1, 3.0, 64).astype(dtype_of(kind)), np.empty(64, dtype_of(kind))
    loaded = Code(object_code(ModuleOp(one_by_one(case, 0))))
    loaded.function("case0", argument_kinds(1))(given.ctypes.data, found.ctypes.data, found.size)
    assert found.tolist() == [function(number) for number in given.tolist()]


Number = IntegerAttr[IntegerType | IndexType] | FloatAttr

CONSTANTS: tuple[Number, ...] = (
    *(FloatAttr(value, kind) for kind in (f64, f32) for value in (0.1, -0.0, 3e38, math.nan)),
    *(IntegerAttr(value, kind) for kind in (i64, i32) for value in (0, -1, (1 << 31) - 1)),
    *(IntegerAttr(value, IndexType()) for value in (0, -1, (1 << 31) - 1)),
    *(IntegerAttr(value, i1) for value in (0, 1)),
)


@pytest.mark.parametrize("number", CONSTANTS, ids=str)
def test_a_constant_of_native_code_has_the_bits_of_its_attribute(number: Number):
    kind = number.get_type()
    op = arith.ConstantOp(number)

    def compute(build: Builder, values: Sequence[SSAValue]) -> SSAValue:
        return lower_operation(build, op, [])

    made = elementwise_functions("constant", [], llvm_type(kind), compute)
    result = np.empty(1, dtype_of(kind))
    loaded = Code(object_code(ModuleOp(made)))
    loaded.function("constant", argument_kinds(0))(result.ctypes.data, 1)
    assert result.tobytes() == np.asarray(evaluate(op, [])).tobytes()


@pytest.mark.parametrize("kind", [f64, f32], ids=str)
def test_products_and_sums_are_not_contracted(kind: Attribute):
    """LLVM fuses nothing by itself: product and sum are both rounded."""

    def compute(build: Builder, values: Sequence[SSAValue]) -> SSAValue:
        a, b, c = values
        return build.binary(llvm.FAddOp, build.binary(llvm.FMulOp, a, b), c)

    made = elementwise_functions("sum", [kind] * 3, kind, compute)
    rng = np.random.default_rng(4)
    a, b = (rng.uniform(1, 2, 1000).astype(dtype_of(kind)) for _ in range(2))
    c, result = -(a * b), np.empty_like(a)
    loaded = Code(object_code(ModuleOp(made)))
    loaded.function("sum", argument_kinds(3))(*(x.ctypes.data for x in (a, b, c, result)), 1000)
    assert not result.any()
