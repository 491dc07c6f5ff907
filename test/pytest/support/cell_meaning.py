"""Cell operations on Python's numbers: integers of any size and floats."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any

from xdsl.dialects import arith
from xdsl.dialects import math as xmath
from xdsl.dialects.builtin import IntegerType, i1, i32
from xdsl.ir import Attribute, Operation

from support.cell_operations import Case
from timetile.dialects.temporal import RoundOp


def width(kind: Attribute) -> int:
    return 1 if kind == i1 else 32 if kind == i32 else 64


def signed(number: int, kind: Attribute) -> int:
    """The signed number with the last bits of a number of any size."""
    size = width(kind)
    low = number & (2**size - 1)
    return low - 2**size if low >= 2 ** (size - 1) and size > 1 else low


def unsigned(number: int, kind: Attribute) -> int:
    return number & (2 ** width(kind) - 1)


OfOne = Callable[[int], int]
OfTwo = Callable[[int, int], int]


def integer(meaning: OfOne) -> Callable[[Case, int], int]:
    """A function of a signed operand, with wrapped results."""

    def apply(case: Case, a: int) -> int:
        return signed(meaning(a), case.result)

    return apply


def integers(meaning: OfTwo) -> Callable[[Case, int, int], int]:
    """A function of two signed operands, with wrapped results."""

    def apply(case: Case, a: int, b: int) -> int:
        return signed(meaning(a, b), case.result)

    return apply


def of_unsigned(meaning: OfTwo) -> Callable[[Case, int, int], int]:
    """A function of two unsigned operands, with wrapped results."""

    def apply(case: Case, a: int, b: int) -> int:
        first, second = case.operands
        return signed(meaning(unsigned(a, first), unsigned(b, second)), case.result)

    return apply


def widened(case: Case, a: int) -> int:
    """A number without a sign, in a wider type."""
    return signed(unsigned(a, case.operands[0]), case.result)


def bits_set(case: Case, a: int) -> int:
    return unsigned(a, case.result).bit_count()


def leading_zeros(case: Case, a: int) -> int:
    return width(case.result) - unsigned(a, case.result).bit_length()


def trailing_zeros(case: Case, a: int) -> int:
    return width(case.result) if a == 0 else (a & -a).bit_length() - 1


def towards_zero(a: int, b: int) -> int:
    return 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def shifted(meaning: OfTwo, *, keeps_sign: bool = False) -> Callable[..., int]:
    """A shift; by the width or more, nothing but the sign is left."""

    def apply(case: Case, a: int, amount: int) -> int:
        size, count = width(case.result), unsigned(amount, case.result)
        number = a if keeps_sign else unsigned(a, case.result)
        return signed(meaning(number, min(count, size)), case.result)

    return apply


def cut(least: Callable[[int], int], largest: Callable[[int], int]) -> Callable[..., int]:
    """A float cut off to the nearest representable integer."""

    def apply(case: Case, a: float) -> int:
        if math.isnan(a):
            return 0
        low, high = least(width(case.result)), largest(width(case.result))
        whole = low if a <= low else high if a >= high else int(a)
        return signed(whole, case.result)

    return apply


def compared(case: Case, a: int, b: int) -> int:
    number = case.predicate
    assert number is not None
    if number >= 6:
        a, b = unsigned(a, case.operands[0]), unsigned(b, case.operands[0])
    tests = (a == b, a != b, a < b, a <= b, a > b, a >= b, a < b, a <= b, a > b, a >= b)
    return int(tests[number])


def power(case: Case, base: int, exponent: int) -> int:
    if exponent >= 0:
        modulus: int = 2 ** width(case.result)
        return signed(pow(base, exponent, modulus), case.result)
    return base ** (exponent % 2) if base in (1, -1) else 0


def copysign(case: Case, a: float, b: float) -> float:
    """A NaN has no sign, and is positive."""
    return math.copysign(a, 1.0 if math.isnan(b) else b)


def rounded_to(case: Case, a: float) -> float:
    """The nearest number of so many binary digits, of two equally near the even one."""
    digits, least, largest = {
        "f16": (11, -24, 65504.0),
        "bf16": (8, -133, (2 - 2.0**-7) * 2.0**127),
    }[str(case.stored)]
    if math.isnan(a) or math.isinf(a) or a == 0:
        return a
    unit = 2.0 ** max(math.frexp(a)[1] - digits, least)
    found = math.copysign(round(a / unit) * unit, a)
    return math.copysign(math.inf, a) if abs(found) > largest else found


def bitcast(case: Case, a: float) -> float:
    """The bits of a number; all NaNs have the same."""
    letters = {"f64": "d", "f32": "f", "i64": "q", "i32": "i"}
    given, made = (letters[str(kind)] for kind in (case.operands[0], case.result))
    if isinstance(a, float) and math.isnan(a) and isinstance(case.result, IntegerType):
        return 0x7FF8 << 48 if given == "d" else 0x7FC0 << 16
    result: float
    (result,) = struct.unpack(made, struct.pack(given, a))
    return result


MEANINGS: dict[type[Operation], Callable[..., Any]] = {
    RoundOp: rounded_to,
    arith.AddiOp: integers(lambda a, b: a + b),
    arith.SubiOp: integers(lambda a, b: a - b),
    arith.MuliOp: integers(lambda a, b: a * b),
    arith.DivSIOp: integers(towards_zero),
    arith.RemSIOp: integers(lambda a, b: 0 if b == 0 else a - towards_zero(a, b) * b),
    arith.FloorDivSIOp: integers(lambda a, b: 0 if b == 0 else a // b),
    arith.CeilDivSIOp: integers(lambda a, b: 0 if b == 0 else -(-a // b)),
    arith.DivUIOp: of_unsigned(lambda a, b: 0 if b == 0 else a // b),
    arith.RemUIOp: of_unsigned(lambda a, b: 0 if b == 0 else a % b),
    arith.CeilDivUIOp: of_unsigned(lambda a, b: 0 if b == 0 else -(-a // b)),
    arith.MaxSIOp: integers(max),
    arith.MinSIOp: integers(min),
    arith.MaxUIOp: of_unsigned(max),
    arith.MinUIOp: of_unsigned(min),
    arith.AndIOp: of_unsigned(lambda a, b: a & b),
    arith.OrIOp: of_unsigned(lambda a, b: a | b),
    arith.XOrIOp: of_unsigned(lambda a, b: a ^ b),
    arith.ShLIOp: shifted(lambda a, n: a << n),
    arith.ShRUIOp: shifted(lambda a, n: a >> n),
    arith.ShRSIOp: shifted(lambda a, n: a >> n, keeps_sign=True),
    arith.CmpiOp: compared,
    xmath.AbsIOp: integer(abs),
    xmath.CtPopOp: bits_set,
    xmath.CountLeadingZerosOp: leading_zeros,
    xmath.CountTrailingZerosOp: trailing_zeros,
    xmath.IPowIOp: power,
    arith.FPToSIOp: cut(lambda size: -(2 ** (size - 1)), lambda size: 2 ** (size - 1) - 1),
    arith.FPToUIOp: cut(lambda _: 0, lambda size: 2**size - 1),
    arith.IndexCastOp: integer(lambda a: a),
    arith.ExtSIOp: integer(lambda a: a),
    arith.ExtUIOp: widened,
    arith.TruncIOp: integer(lambda a: a),
    arith.BitcastOp: bitcast,
    xmath.CopySignOp: copysign,
}
"""The operations with integer results, and the operations that depend on the sign of a NaN."""
