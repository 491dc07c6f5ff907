"""Arithmetic of cell functions on arrays: the same bits as PTX wherever PTX rounds correctly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, bf16, i32
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Operation, SSAValue

from timetile.dialects import simt
from timetile.dialects.cell_types import CELL_TYPES, STORED_TYPES
from timetile.dialects.comparisons import (
    FLOAT_PREDICATES,
    INTEGER_PREDICATES,
    is_unsigned,
    relation,
)
from timetile.dialects.temporal import RoundOp
from timetile.passes.analysis.cells.cell_operations import CELL_OPERATIONS
from timetile.passes.diagnostics import refuse
from timetile.runtime.arithmetic.fma import fma, fma_up
from timetile.runtime.arithmetic.integers import (
    as_unsigned,
    count_ones,
    leading_zeros,
    saturated,
    shift_left,
    shift_right_signed,
    shift_right_unsigned,
    trailing_zeros,
    truncated_divide,
    truncated_remainder,
    unsigned,
)
from timetile.runtime.arithmetic.library_calls import call_library

Array = NDArray[Any]

DTYPES: dict[Attribute, type[np.generic]] = {
    kind: np.dtype(row.dtype).type for kind, row in CELL_TYPES.items()
}
"""NumPy's element types, by the types of cells."""


def dtype_of(kind: Attribute) -> np.dtype[Any]:
    """
    The NumPy element type of a type of cells or fields. Raises ModuleNotFoundError for bf16 without
    the package of NumPy's bfloat16.
    """
    if kind == bf16:
        try:
            return np.dtype(import_module("ml_dtypes").bfloat16)
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                "fields of bf16 need NumPy's bfloat16; pip install 'timetile[types]'"
            ) from error
    if (stored := STORED_TYPES.get(kind)) is not None:
        return np.dtype(stored.dtype)
    return np.dtype(DTYPES[kind])


def rounded_as_stored(op: Operation, a: Array) -> Array:
    """The nearest numbers of a type of fewer bits, even where two are equally near."""
    assert isinstance(op, RoundOp), "only temporal.round has the meaning"
    with np.errstate(all="ignore"):
        return np.asarray(a).astype(dtype_of(op.stored)).astype(np.float32)


def signed_zero(chosen: Array, a: Array, b: Array, zero: Array) -> Array:
    """`chosen`, or `zero` where both operands are zeros: -0 counts as less than +0."""
    return np.where((a == 0) & (b == 0), zero, chosen)


def maximum(a: Array, b: Array) -> Array:
    """The larger number; NaN if an operand is NaN, and 0 above -0."""
    return signed_zero(np.maximum(a, b), a, b, a + b)


def minimum(a: Array, b: Array) -> Array:
    """The smaller number; NaN if an operand is NaN, and -0 below 0."""
    return signed_zero(np.minimum(a, b), a, b, -((-a) + (-b)))


def number_of(chosen: Array, a: Array, b: Array) -> Array:
    """
    `chosen`, or the other operand for NaN. (NumPy's fmax leaves a signaling NaN on ARM processors.)
    """
    return np.where(np.isnan(a), b, np.where(np.isnan(b), a, chosen))


def maxnum(a: Array, b: Array) -> Array:
    """The larger number; the other operand for NaN, and 0 above -0."""
    return number_of(maximum(a, b), a, b)


def minnum(a: Array, b: Array) -> Array:
    """The smaller number; the other operand for NaN, and -0 below 0."""
    return number_of(minimum(a, b), a, b)


def round_away(a: Array) -> Array:
    """The nearest whole number; of two equally near, the number farther from 0."""
    below = np.nextafter(a.dtype.type(0.5), a.dtype.type(0))
    return np.trunc(a + np.copysign(below, a))


def reciprocal_root(a: Array) -> Array:
    """1 / sqrt(a), both rounded."""
    return np.divide(a.dtype.type(1), np.sqrt(a))


def approximate_reciprocal(a: Array) -> Array:
    """1 / a."""
    return np.reciprocal(a)


def approximate_root(a: Array) -> Array:
    """1 / sqrt(a)."""
    return np.reciprocal(np.sqrt(a))


def guess(exact: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """
    A stand-in for the GPU's approximations. In FP64 the upper half of the result is computed from
    the upper half of the operand. In FP32 the stand-in is the nearest number; the GPU's may be off
    by one. Subnormal numbers count as 0, with their sign.
    """

    def normal(a: Array) -> Array:
        return np.where(np.abs(a) < np.finfo(a.dtype).tiny, a * a.dtype.type(0), a)

    def upper(a: Array) -> Array:
        if a.dtype != np.float64:
            return a
        return (a.view(np.uint64) & np.uint64(0xFFFFFFFF00000000)).view(np.float64)

    def apply(a: Array) -> Array:
        return upper(normal(exact(upper(normal(np.asarray(a))))))

    return no_signals(apply)


def split(a: Array) -> tuple[Array, Array]:
    """The lower and the upper half of 8-byte numbers."""
    bits = np.asarray(a).view(np.uint64)
    return bits.astype(np.uint32).view(np.int32), (bits >> 32).astype(np.uint32).view(np.int32)


def join(low: Array, high: Array, dtype: Any) -> Array:
    """8-byte numbers from two halves."""
    low, high = (np.asarray(a).astype(np.uint32).astype(np.uint64) for a in (low, high))
    return (low | high << np.uint64(32)).view(dtype)


def no_signals(operation: Callable[..., Array]) -> Callable[..., Array]:
    """An operation silent on overflow, division by zero and the like, as on the GPU."""

    def apply(*operands: Array) -> Array:
        with np.errstate(all="ignore"):
            return operation(*operands)

    return apply


MEANINGS: dict[str, Callable[..., Array]] = {
    "add": no_signals(np.add),
    "subtract": no_signals(np.subtract),
    "multiply": no_signals(np.multiply),
    "divide": no_signals(np.divide),
    "negative": np.negative,
    "abs": np.abs,
    "maximum": no_signals(maximum),
    "minimum": no_signals(minimum),
    "maxnum": no_signals(maxnum),
    "minnum": no_signals(minnum),
    "fma": fma,
    "sqrt": no_signals(np.sqrt),
    "reciprocal_root": no_signals(reciprocal_root),
    "copysign": np.copysign,
    "floor": no_signals(np.floor),
    "ceil": no_signals(np.ceil),
    "trunc": no_signals(np.trunc),
    "rint": no_signals(np.rint),
    "round_away": no_signals(round_away),
    "divide_signed": no_signals(truncated_divide),
    "remainder_signed": no_signals(truncated_remainder),
    "divide_unsigned": no_signals(unsigned(np.floor_divide)),
    "remainder_unsigned": no_signals(unsigned(np.remainder)),
    "max_signed": np.maximum,
    "min_signed": np.minimum,
    "max_unsigned": unsigned(np.maximum),
    "min_unsigned": unsigned(np.minimum),
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "shift_left": shift_left,
    "shift_right_unsigned": shift_right_unsigned,
    "shift_right_signed": shift_right_signed,
    "count_ones": count_ones,
    "leading_zeros": leading_zeros,
    "trailing_zeros": trailing_zeros,
    "select": np.where,
}
"""The meanings of cell operations on arrays, by name in the table of cell operations."""

MACHINE: dict[type[Operation], Callable[..., Array]] = {
    simt.ReciprocalOp: guess(approximate_reciprocal),
    simt.ReciprocalRootOp: guess(approximate_root),
    simt.FmaUpOp: fma_up,
}
"""The meanings of operations outside cells."""

RELATIONS: dict[str, Callable[[Array, Array], Array]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
"""The meanings of relations on arrays without NaN."""


def compare_integers(number: int, a: Array, b: Array) -> Array:
    """arith.cmpi, by the number of its predicate."""
    if is_unsigned(number):
        a, b = as_unsigned(a), as_unsigned(b)
    return RELATIONS[relation(INTEGER_PREDICATES[number])](a, b)


def compare_floats(number: int, a: Array, b: Array) -> Array:
    """arith.cmpf, by the number of its predicate: ordered first, then unordered."""
    predicate, nan = FLOAT_PREDICATES[number], np.isnan(a) | np.isnan(b)
    match predicate:
        case "true" | "false":
            return np.full(np.broadcast(a, b).shape, predicate == "true")
        case "ord":
            return ~nan
        case "uno":
            return nan
        case _:
            holds = RELATIONS[relation(predicate)](a, b)
            return holds & ~nan if predicate.startswith("o") else holds | nan


def constant(op: arith.ConstantOp) -> Array:
    """The value of a constant, of the constant's element type."""
    match op.value:
        case FloatAttr() | IntegerAttr():
            return np.asarray(op.value.value.data).astype(dtype_of(op.result.type))
        case _:
            refuse(op, "constants are integers and floats")


def compared_integers(op: arith.CmpiOp, a: Array, b: Array) -> Array:
    """arith.cmpi."""
    return compare_integers(op.predicate.value.data, a, b)


def compared_floats(op: arith.CmpfOp, a: Array, b: Array) -> Array:
    """arith.cmpf."""
    return compare_floats(op.predicate.value.data, a, b)


def same_bits(op: Operation, a: Array) -> Array:
    """The bits as another type."""
    return np.asarray(a).view(dtype_of(op.results[0].type))


def converted(op: Operation, a: Array) -> Array:
    """The numbers in another type."""
    with np.errstate(all="ignore"):
        return np.asarray(a).astype(dtype_of(op.results[0].type))


def converted_unsigned(op: Operation, a: Array) -> Array:
    """Integers without a sign in another type."""
    return as_unsigned(a).astype(dtype_of(op.results[0].type))


def to_signed(op: Operation, a: Array) -> Array:
    """Floats cut off to signed integers."""
    return saturated(np.asarray(a), np.int32 if op.results[0].type == i32 else np.int64)


def to_unsigned(op: Operation, a: Array) -> Array:
    """Floats cut off to unsigned integers, in the signed type of equal width."""
    cut = saturated(np.asarray(a), np.uint32 if op.results[0].type == i32 else np.uint64)
    return cut.view(dtype_of(op.results[0].type))


def library_function(op: Operation, *arrays: Array) -> Array:
    """A function of C's mathematical library."""
    return call_library(op, arrays)


OF_OPERATIONS: dict[str, Callable[..., Array]] = {
    "constant": constant,
    "compare_integers": compared_integers,
    "compare_floats": compared_floats,
    "bitcast": same_bits,
    "convert": converted,
    "convert_unsigned": converted_unsigned,
    "to_signed": to_signed,
    "to_unsigned": to_unsigned,
    "library": library_function,
    "round_as_stored": rounded_as_stored,
}
"""
The meanings of cell operations with a type or predicate, by name: functions of the operation and of
arrays.
"""


def meaning_of(op: Operation) -> Callable[..., Array]:
    """
    The function from an operation's operands, as arrays, to the result. Raises CompileError for an
    operation without a meaning.
    """
    known = CELL_OPERATIONS.get(type(op))
    name = "" if known is None else known.meaning
    if (meaning := MEANINGS.get(name) or MACHINE.get(type(op))) is not None:
        return meaning
    if (meaning := OF_OPERATIONS.get(name)) is not None:
        return partial(meaning, op)
    refuse(op, "the operation cannot be executed; use operations of arith and math known to PTX")


def evaluate(op: Operation, operands: Sequence[Array]) -> Array:
    """
    The result of one operation on arrays. Raises CompileError for an operation without a meaning.
    """
    return meaning_of(op)(*operands)


def call(function: FuncOp, arguments: Sequence[Array]) -> list[Array]:
    """A cell function on arrays of one shape."""
    values: dict[SSAValue, Array] = dict(zip(function.body.block.args, arguments))
    for op in function.body.block.ops:
        if isinstance(op, ReturnOp):
            return [values[v] for v in op.operands]
        values[op.results[0]] = evaluate(op, [values[v] for v in op.operands])
    raise AssertionError("a cell function ends with a return")
