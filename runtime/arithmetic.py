"""Arithmetic of cell functions on arrays: the same bits as PTX wherever PTX rounds correctly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import arith
from xdsl.dialects import math as xmath
from xdsl.dialects.builtin import FloatAttr, IndexType, IntegerAttr, f32, f64, i1, i32, i64
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Operation, SSAValue

from timetile.dialects import simt
from timetile.passes.analysis.library import LIBRARY
from timetile.passes.diagnostics import refuse
from timetile.runtime.fma import fma, fma_up
from timetile.runtime.library_calls import call_library

Array = NDArray[Any]

DTYPES: dict[Attribute, type[np.generic]] = {
    f64: np.float64,
    f32: np.float32,
    i64: np.int64,
    i32: np.int32,
    i1: np.bool_,
    IndexType(): np.int64,
}


def dtype_of(kind: Attribute) -> np.dtype[Any]:
    """The NumPy element type of a scalar type."""
    return np.dtype(DTYPES[kind])


def signed_zero(chosen: Array, a: Array, b: Array, zero: Array) -> Array:
    """`chosen`, or `zero` where both operands are zeros: -0 counts as less than +0."""
    return np.where((a == 0) & (b == 0), zero, chosen)


def maximum(a: Array, b: Array) -> Array:
    return signed_zero(np.maximum(a, b), a, b, a + b)


def minimum(a: Array, b: Array) -> Array:
    return signed_zero(np.minimum(a, b), a, b, -((-a) + (-b)))


def maxnum(a: Array, b: Array) -> Array:
    return signed_zero(np.fmax(a, b), a, b, a + b)


def minnum(a: Array, b: Array) -> Array:
    return signed_zero(np.fmin(a, b), a, b, -((-a) + (-b)))


def truncated_divide(a: Array, b: Array) -> Array:
    """Signed division that rounds towards zero."""
    quotient = np.abs(a) // np.abs(b)
    return (np.sign(a) * np.sign(b) * quotient).astype(a.dtype)


def truncated_remainder(a: Array, b: Array) -> Array:
    """What truncated_divide leaves; it has the sign of `a`."""
    return a - truncated_divide(a, b) * b


def round_away(a: Array) -> Array:
    """The nearest whole number; of two that are as near, the one farther from 0."""
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
    Stands for the GPU's approximations: in FP64 the upper half of a number from the upper half of another,
    in FP32 the nearest number, which theirs may miss by one. Subnormal numbers count as 0, of their sign.
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
    """The 8-byte numbers with these halves."""
    low, high = (np.asarray(a).astype(np.uint32).astype(np.uint64) for a in (low, high))
    return (low | high << np.uint64(32)).view(dtype)


def as_unsigned(a: Array) -> Array:
    """The same bits as numbers without a sign."""
    a = np.asarray(a)
    return a.astype({4: np.uint32, 8: np.uint64, 1: np.uint8}[a.dtype.itemsize])


def unsigned(operation: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    """An operation on integers that are taken as unsigned."""

    def apply(a: Array, b: Array) -> Array:
        return operation(as_unsigned(a), as_unsigned(b)).astype(np.asarray(a).dtype)

    return apply


def no_signals(operation: Callable[..., Array]) -> Callable[..., Array]:
    """An operation whose overflow, division by zero and the like pass silently, as on the GPU."""

    def apply(*operands: Array) -> Array:
        with np.errstate(all="ignore"):
            return operation(*operands)

    return apply


OPERATIONS: dict[type[Operation], Callable[..., Array]] = {
    arith.AddfOp: no_signals(np.add),
    arith.SubfOp: no_signals(np.subtract),
    arith.MulfOp: no_signals(np.multiply),
    arith.DivfOp: no_signals(np.divide),
    arith.NegfOp: np.negative,
    arith.MaximumfOp: no_signals(maximum),
    arith.MinimumfOp: no_signals(minimum),
    arith.MaxnumfOp: no_signals(maxnum),
    arith.MinnumfOp: no_signals(minnum),
    xmath.FmaOp: fma,
    xmath.AbsFOp: np.abs,
    xmath.SqrtOp: no_signals(np.sqrt),
    xmath.RsqrtOp: no_signals(reciprocal_root),
    xmath.CopySignOp: np.copysign,
    xmath.FloorOp: np.floor,
    xmath.CeilOp: np.ceil,
    xmath.TruncOp: np.trunc,
    xmath.RoundOp: round_away,
    xmath.RoundEvenOp: np.rint,
    arith.AddiOp: no_signals(np.add),
    arith.SubiOp: no_signals(np.subtract),
    arith.MuliOp: no_signals(np.multiply),
    arith.DivSIOp: truncated_divide,
    arith.RemSIOp: truncated_remainder,
    arith.DivUIOp: unsigned(np.floor_divide),
    arith.RemUIOp: unsigned(np.remainder),
    arith.MaxSIOp: np.maximum,
    arith.MinSIOp: np.minimum,
    arith.MaxUIOp: unsigned(np.maximum),
    arith.MinUIOp: unsigned(np.minimum),
    arith.AndIOp: np.bitwise_and,
    arith.OrIOp: np.bitwise_or,
    arith.XOrIOp: np.bitwise_xor,
    arith.ShLIOp: np.left_shift,
    arith.ShRUIOp: unsigned(np.right_shift),
    arith.SelectOp: np.where,
    simt.ReciprocalOp: guess(approximate_reciprocal),
    simt.ReciprocalRootOp: guess(approximate_root),
    simt.FmaUpOp: fma_up,
}

CONVERSIONS: tuple[type[Operation], ...] = (
    arith.IndexCastOp,
    arith.ExtSIOp,
    arith.TruncIOp,
    arith.SIToFPOp,
    arith.FPToSIOp,
    arith.ExtFOp,
    arith.TruncFOp,
)

INTEGER_PREDICATES: tuple[Callable[[Array, Array], Array], ...] = (
    np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal,
    np.less, np.less_equal, np.greater, np.greater_equal,
)  # fmt: skip
FIRST_UNSIGNED = 6


def compare_integers(number: int, a: Array, b: Array) -> Array:
    """arith.cmpi, by the number of its predicate."""
    if number >= FIRST_UNSIGNED:
        a, b = as_unsigned(a), as_unsigned(b)
    return INTEGER_PREDICATES[number](a, b)


def compare_floats(number: int, a: Array, b: Array) -> Array:
    """arith.cmpf, by the number of its predicate: ordered first, then unordered."""
    ordered: tuple[Callable[[Array, Array], Array], ...] = (
        np.equal, np.greater, np.greater_equal, np.less, np.less_equal, np.not_equal,
    )  # fmt: skip
    nan = np.isnan(a) | np.isnan(b)
    if number in (0, 15):
        return np.full(np.broadcast(a, b).shape, number == 15)
    if number == 7:
        return ~nan
    if number == 14:
        return nan
    if number < 7:
        return ordered[number - 1](a, b) & ~nan
    return ordered[number - 8](a, b) | nan


def constant(op: arith.ConstantOp) -> Array:
    """The value of a constant, of its element type."""
    match op.value:
        case FloatAttr() | IntegerAttr():
            return np.asarray(op.value.value.data).astype(dtype_of(op.result.type))
        case _:
            refuse(op, "constants are integers and floats")


def evaluate(op: Operation, operands: Sequence[Array]) -> Array:
    """One operation on arrays; CompileError where it has no meaning here."""
    operation = OPERATIONS.get(type(op))
    if operation is not None:
        return operation(*operands)
    if type(op) in LIBRARY:
        return call_library(op, operands)
    match op:
        case arith.ConstantOp():
            return constant(op)
        case arith.CmpiOp():
            return compare_integers(op.predicate.value.data, operands[0], operands[1])
        case arith.CmpfOp():
            return compare_floats(op.predicate.value.data, operands[0], operands[1])
        case arith.BitcastOp():
            return np.asarray(operands[0]).view(dtype_of(op.result.type))
        case arith.ExtUIOp() | arith.UIToFPOp():
            return as_unsigned(operands[0]).astype(dtype_of(op.results[0].type))
        case _ if isinstance(op, CONVERSIONS):
            with np.errstate(all="ignore"):
                return np.asarray(operands[0]).astype(dtype_of(op.results[0].type))
        case _:
            refuse(op, "it cannot be executed; use operations of arith and math that PTX has too")


def call(function: FuncOp, arguments: Sequence[Array]) -> list[Array]:
    """A cell function on arrays of one shape."""
    values: dict[SSAValue, Array] = dict(zip(function.body.block.args, arguments))
    for op in function.body.block.ops:
        if isinstance(op, ReturnOp):
            return [values[v] for v in op.operands]
        values[op.results[0]] = evaluate(op, [values[v] for v in op.operands])
    raise AssertionError("a cell function ends with a return")
