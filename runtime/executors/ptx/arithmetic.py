"""The arithmetic of instructions by the PTX ISA, in one table by name. Registers hold bits; every
instruction names the types of its operands.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from timetile.dialects import simt
from timetile.runtime.arithmetic.cells import MACHINE, RELATIONS, maximum, maxnum, minimum, minnum
from timetile.runtime.arithmetic.fma import fma, fma_up
from timetile.runtime.arithmetic.integers import leading_zeros, saturated

Array = NDArray[Any]
LaneFunction = Callable[..., Array]

KINDS: dict[str, np.dtype[Any]] = {
    "f64": np.dtype(np.float64),
    "f32": np.dtype(np.float32),
    "b16": np.dtype(np.uint16),
    "u16": np.dtype(np.uint16),
    "s16": np.dtype(np.int16),
    "u8": np.dtype(np.uint8),
    "s8": np.dtype(np.int8),
    "s32": np.dtype(np.int32),
    "u32": np.dtype(np.uint32),
    "b32": np.dtype(np.uint32),
    "s64": np.dtype(np.int64),
    "u64": np.dtype(np.uint64),
    "b64": np.dtype(np.uint64),
    "pred": np.dtype(np.bool_),
}
"""NumPy's types of PTX's."""

FLOATS, SIGNED, UNSIGNED = ("f32", "f64"), ("s32", "s64"), ("u32", "u64")
BITS = ("b32", "b64")

NANS = {"f32": 0x7FFFFFFF, "f64": 0x7FF8000000000000}
"""The bits of a NaN made by an operation."""


@dataclass(frozen=True)
class InstructionRule:
    """The type of a result, the types of the operands, and the function."""

    result: str
    operands: tuple[str, ...]
    function: LaneFunction


def same(
    words: str, kinds: tuple[str, ...], count: int, function: LaneFunction
) -> dict[str, InstructionRule]:
    """An instruction with operands of the result's type."""
    return {f"{words}.{kind}": InstructionRule(kind, (kind,) * count, function) for kind in kinds}


def made(kind: str, function: LaneFunction) -> LaneFunction:
    """An operation on floats with the hardware's NaN as result, for any NaN operands."""
    nan = np.array(NANS[kind], dtype=f"u{KINDS[kind].itemsize}").view(KINDS[kind])[()]

    def apply(*operands: Array) -> Array:
        result = np.asarray(function(*operands))
        missing = np.isnan(result)
        return np.where(missing, nan, result) if missing.any() else result

    return apply


def floats(
    words: str, count: int, function: LaneFunction, *kinds: str
) -> dict[str, InstructionRule]:
    """An operation on floats."""
    return {
        f"{words}.{kind}": InstructionRule(kind, (kind,) * count, made(kind, function))
        for kind in kinds or FLOATS
    }


def remainder(a: Array, b: Array) -> Array:
    """The remainder of a quotient rounded towards zero."""
    return a - divide(a, b) * b


def divide(a: Array, b: Array) -> Array:
    """A quotient rounded towards zero; by zero an arbitrary number."""
    below = a // b
    return below + ((below * b != a) & ((a < 0) != (b < 0))).astype(a.dtype)


def shift_left(a: Array, by: Array) -> Array:
    """A shift to the left; zero for a shift by the width or more."""
    width = 8 * a.dtype.itemsize
    return np.where(by < width, a << np.minimum(by, width - 1).astype(a.dtype), 0).astype(a.dtype)


def shift_right(a: Array, by: Array) -> Array:
    """Zeros come, or signs where the number has one."""
    width = 8 * a.dtype.itemsize
    if a.dtype.kind == "i":
        return a >> np.minimum(by, width - 1).astype(a.dtype)
    return np.where(by < width, a >> np.minimum(by, width - 1).astype(a.dtype), 0).astype(a.dtype)


def cut_off(to: str, of: str) -> LaneFunction:
    """
    A float as the nearest integer in range. NaN becomes 0 from 32 bits to 32, otherwise the highest
    bit alone.
    """
    kind, zero = KINDS[to].type, to[1:] == of[1:] == "32"

    def apply(a: Array) -> Array:
        high = np.array(1 << int(to[1:]) - 1, dtype=f"u{KINDS[to].itemsize}").view(kind)
        return np.where(np.isnan(a) & (not zero), high, saturated(np.atleast_1d(a), kind))

    return apply


def count_bits(a: Array) -> Array:
    """The number of bits set."""
    return np.bitwise_count(a).astype(np.uint32)


def count_leading(a: Array) -> Array:
    """The number of leading zeros."""
    return leading_zeros(a).astype(np.uint32)


def reverse(a: Array) -> Array:
    """The bits in the other order."""
    result, width = np.zeros_like(a), 8 * a.dtype.itemsize
    for k in range(width):
        result |= (a >> a.dtype.type(k) & a.dtype.type(1)) << a.dtype.type(width - 1 - k)
    return result


def bits_of(function: LaneFunction, kind: str) -> InstructionRule:
    """An operation on bits."""
    return InstructionRule(kind, (kind, kind), function)


def ordered(function: LaneFunction) -> LaneFunction:
    """A comparison, false if an operand is NaN."""

    def apply(a: Array, b: Array) -> Array:
        return function(a, b) & numbers(a, b)

    return apply


def unordered(function: LaneFunction) -> LaneFunction:
    """A comparison, true if an operand is NaN."""

    def apply(a: Array, b: Array) -> Array:
        return function(a, b) | ~numbers(a, b)

    return apply


def joint(function: LaneFunction, join: LaneFunction) -> LaneFunction:
    """A comparison, and a predicate."""

    def apply(a: Array, b: Array, p: Array) -> Array:
        return join(function(a, b), p)

    return apply


def numbers(a: Array, b: Array) -> Array:
    """Neither is NaN."""
    return ~(np.isnan(a) | np.isnan(b))


def not_numbers(a: Array, b: Array) -> Array:
    """One is NaN."""
    return ~numbers(a, b)


def cast(kind: str) -> LaneFunction:
    """A number in another type."""

    def apply(a: Array) -> Array:
        return a.astype(KINDS[kind])

    return apply


def multiply_add(a: Array, b: Array, c: Array) -> Array:
    """A product plus a number."""
    return a * b + c


def multiply_wide(kind: str) -> LaneFunction:
    """A product of twice as many bits."""

    def apply(a: Array, b: Array) -> Array:
        return a.astype(KINDS[kind]) * b.astype(KINDS[kind])

    return apply


def upper_word(a: Array, b: Array) -> Array:
    """The upper word of a product of words without a sign."""
    return (a.astype(np.uint64) * b.astype(np.uint64) >> np.uint64(32)).astype(np.uint32)


def multiply_add_wide(kind: str) -> LaneFunction:
    """A product of twice as many bits, and a number of as many."""
    multiply = multiply_wide(kind)

    def apply(a: Array, b: Array, c: Array) -> Array:
        return multiply(a, b) + c

    return apply


def signed_as(sign: Array, size: Array) -> Array:
    """PTX names the sign first."""
    return np.copysign(size, sign)


def select(a: Array, b: Array, p: Array) -> Array:
    """A choice by a predicate."""
    return np.where(p, a, b)


def comparisons() -> dict[str, InstructionRule]:
    """setp: a comparison, also joined with a predicate."""
    rules: dict[str, InstructionRule] = {}
    for word, function in RELATIONS.items():
        for kind in (*SIGNED, *UNSIGNED, *(BITS if word in ("eq", "ne") else ())):
            pair = (kind, kind)
            rules[f"setp.{word}.{kind}"] = InstructionRule("pred", pair, function)
            for name, join in (("and", np.logical_and), ("or", np.logical_or)):
                rule = InstructionRule("pred", (*pair, "pred"), joint(function, join))
                rules[f"setp.{word}.{name}.{kind}"] = rule
        for kind in FLOATS:
            rules[f"setp.{word}.{kind}"] = InstructionRule("pred", (kind, kind), ordered(function))
            rules[f"setp.{word}u.{kind}"] = InstructionRule(
                "pred", (kind, kind), unordered(function)
            )
    for kind in FLOATS:
        rules[f"setp.num.{kind}"] = InstructionRule("pred", (kind, kind), numbers)
        rules[f"setp.nan.{kind}"] = InstructionRule("pred", (kind, kind), not_numbers)
    return rules


def conversions() -> dict[str, InstructionRule]:
    """cvt: `cvt.to.of` between integers, with a rounding where a float is at one end."""
    rules: dict[str, InstructionRule] = {}

    def convert(name: str, to: str, of: str, function: LaneFunction | None = None) -> None:
        rules[f"cvt{name}.{to}.{of}"] = InstructionRule(to, (of,), function or cast(to))

    integers = (*SIGNED, *UNSIGNED)
    for to in integers:
        for of in integers:
            convert("", to, of)
    for kind in FLOATS:
        for of in integers:
            convert(".rn", kind, of)
        for to in integers:
            convert(".rzi", to, kind, cut_off(to, kind))
        for name, rounding in ROUNDINGS.items():
            convert(name, kind, kind, made(kind, rounding))
    convert("", "f64", "f32", made("f64", cast("f64")))
    convert(".rn", "f32", "f64", made("f32", cast("f32")))
    convert("", "u32", "u16")
    rules["cvt.f32.f16"] = InstructionRule("f32", ("b16",), half_as_single)
    rules["cvt.rn.f16.f32"] = InstructionRule("b16", ("f32",), single_as_half)
    rules["cvt.rn.bf16.f32"] = InstructionRule("b16", ("f32",), single_as_bfloat)
    return rules


def half_as_single(a: Array) -> Array:
    """The f32 of the bits of a f16."""
    return a.view(np.float16).astype(np.float32)


def single_as_half(a: Array) -> Array:
    """The bits of the nearest f16."""
    return a.astype(np.float16).view(np.uint16)


def single_as_bfloat(a: Array) -> Array:
    """The bits of the nearest bf16, of two equally near the even one; those of the GPU's NaN."""
    bits = np.asarray(a).view(np.uint32).astype(np.uint64)
    nearest = (bits + 0x7FFF + (bits >> 16 & 1) >> 16).astype(np.uint16)
    return np.where(np.isnan(a), np.uint16(0x7FFF), nearest)


ROUNDINGS: dict[str, LaneFunction] = {
    ".rni": np.rint,
    ".rzi": np.trunc,
    ".rmi": np.floor,
    ".rpi": np.ceil,
}
"""Floats rounded to whole numbers: to the nearest, ties to even; towards zero; down; up."""


def integers() -> dict[str, InstructionRule]:
    """Arithmetic of integers, with wrapping."""
    rules: dict[str, InstructionRule] = {}
    both = (*SIGNED, *UNSIGNED)
    for word, function in (("add", np.add), ("sub", np.subtract), ("mul.lo", np.multiply)):
        rules |= same(word, both, 2, function)
    rules |= same("min", both, 2, np.minimum) | same("max", both, 2, np.maximum)
    rules |= same("neg", SIGNED, 1, np.negative) | same("abs", SIGNED, 1, np.abs)
    rules |= same("mad.lo", both, 3, multiply_add)
    rules |= same("div", SIGNED, 2, divide) | same("rem", SIGNED, 2, remainder)
    rules |= same("div", UNSIGNED, 2, np.floor_divide) | same("rem", UNSIGNED, 2, np.remainder)
    rules["mul.hi.u32"] = InstructionRule("u32", ("u32", "u32"), upper_word)
    for of, to in (("s32", "s64"), ("u32", "u64")):
        rules[f"mul.wide.{of}"] = InstructionRule(to, (of, of), multiply_wide(to))
        rules[f"mad.wide.{of}"] = InstructionRule(to, (of, of, to), multiply_add_wide(to))
    for kind in (*BITS, "pred"):
        for word, function in (("and", np.bitwise_and), ("or", np.bitwise_or)):
            rules[f"{word}.{kind}"] = bits_of(function, kind)
        rules[f"xor.{kind}"] = bits_of(np.bitwise_xor, kind)
        rules[f"not.{kind}"] = InstructionRule(kind, (kind,), np.invert)
    for kind in BITS:
        rules[f"shl.{kind}"] = InstructionRule(kind, (kind, "u32"), shift_left)
        rules[f"brev.{kind}"] = InstructionRule(kind, (kind,), reverse)
        rules[f"popc.{kind}"] = InstructionRule("u32", (kind,), count_bits)
        rules[f"clz.{kind}"] = InstructionRule("u32", (kind,), count_leading)
    for kind in both:
        rules[f"shr.{kind}"] = InstructionRule(kind, (kind, "u32"), shift_right)
    return rules


def floating() -> dict[str, InstructionRule]:
    """Arithmetic of floats, rounded to the nearest unless a name says otherwise."""
    rules: dict[str, InstructionRule] = {}
    for word, function in (("add", np.add), ("sub", np.subtract), ("mul", np.multiply)):
        rules |= floats(f"{word}.rn", 2, function)
    rules |= floats("div.rn", 2, np.divide) | floats("sqrt.rn", 1, np.sqrt)
    rules |= floats("rcp.rn", 1, np.reciprocal)
    rules |= floats("fma.rn", 3, fma) | floats("fma.rp", 3, fma_up, "f32")
    rules |= floats("max", 2, maxnum) | floats("min", 2, minnum)
    rules |= floats("max.NaN", 2, maximum, "f32")
    rules |= floats("min.NaN", 2, minimum, "f32")
    # Signs of NaNs are significant.
    rules |= same("neg", FLOATS, 1, np.negative) | same("abs", FLOATS, 1, np.abs)
    rules |= same("copysign", FLOATS, 2, signed_as)
    rules |= floats("rcp.approx.ftz", 1, MACHINE[simt.ReciprocalOp])
    rules |= floats("rsqrt.approx.ftz", 1, MACHINE[simt.ReciprocalRootOp])
    return rules


def moves() -> dict[str, InstructionRule]:
    """Moves and selections of bits."""
    rules: dict[str, InstructionRule] = {}
    for kind in KINDS:
        rules |= same("mov", (kind,), 1, np.asarray)
        if kind != "pred":
            rules[f"selp.{kind}"] = InstructionRule(kind, (kind, kind, "pred"), select)
    # Generic addresses of global memory equal global addresses in the interpreter.
    rules |= same("cvta.to.global", ("u64",), 1, np.asarray)
    return rules


RULES: dict[str, InstructionRule] = (
    integers() | floating() | comparisons() | conversions() | moves()
)
"""Every instruction that computes a register from others."""
