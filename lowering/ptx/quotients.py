"""Quotients and remainders by known numbers, without a division where asked for.

The assembler divides by a number in a register or in the text alike: a conversion to FP32, an
approximate reciprocal and two corrections, some 15 instructions that wait for each other. A product
of two words and a shift give the same quotient in 32 bits: Granlund and Montgomery, "Division by
Invariant Integers using Multiplication" (PLDI 1994).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import i32
from xdsl.ir import Operation

from timetile.lowering.emitter import BY_PRODUCT
from timetile.lowering.ptx.values import print_mnemonic
from timetile.lowering.ptx.writer import Writer

WORD = 1 << 32
"""The number of words of 32 bits."""


@dataclass(frozen=True)
class Multiplier:
    """
    A number's quotient is the upper word of its product with `factor`, shifted by `shift`; if the
    factor `exceeds` a word by 2^32, the number is added to the upper word.
    """

    factor: int
    shift: int
    exceeds: bool


def multiplier(divisor: int) -> Multiplier:
    """The multiplier for a divisor above 1: the quotients of all words are exact."""
    shift = 0
    while -WORD * (1 << shift) % divisor > 1 << shift:
        shift += 1
    factor = -(-WORD * (1 << shift) // divisor)
    return Multiplier(factor % WORD, shift, exceeds=factor >= WORD)


def divisor_of(w: Writer, op: arith.DivUIOp | arith.RemUIOp) -> int | None:
    """The divisor of a word, if known and to be replaced by a product; else None, as for 0."""
    text = w.use(op.rhs)
    if BY_PRODUCT not in op.attributes or op.result.type != i32 or text.startswith("%"):
        return None
    return int(text) % WORD or None


def print_quotient(w: Writer, op: arith.DivUIOp) -> None:
    """Print a quotient without a sign."""
    divisor = divisor_of(w, op)
    if divisor is None:
        print_mnemonic(w, op)
    else:
        number = w.use(op.lhs)
        add_quotient(w, w.define(op.result), number, divisor)


def add_quotient(w: Writer, result: str, number: str, divisor: int) -> None:
    """Add the instructions for a quotient by a known number."""
    if divisor & (divisor - 1) == 0:
        w.line(f"shr.u32 {result}, {number}, {divisor.bit_length() - 1}")
        return
    by, upper = multiplier(divisor), w.register(i32)
    w.line(f"mul.hi.u32 {upper}, {number}, {by.factor}")
    if not by.exceeds:
        w.line(f"shr.u32 {result}, {upper}, {by.shift}")
        return
    rest, half, total = (w.register(i32) for _ in range(3))
    w.line(f"sub.s32 {rest}, {number}, {upper}")
    w.line(f"shr.u32 {half}, {rest}, 1")
    w.line(f"add.s32 {total}, {half}, {upper}")
    w.line(f"shr.u32 {result}, {total}, {by.shift - 1}")


def print_remainder(w: Writer, op: arith.RemUIOp) -> None:
    """Print a remainder without a sign. The assembler joins equal quotients."""
    divisor = divisor_of(w, op)
    if divisor is None:
        print_mnemonic(w, op)
        return
    number = w.use(op.lhs)
    if divisor & (divisor - 1) == 0:
        w.line(f"and.b32 {w.define(op.result)}, {number}, {divisor - 1}")
        return
    quotient, product = w.register(i32), w.register(i32)
    add_quotient(w, quotient, number, divisor)
    w.line(f"mul.lo.s32 {product}, {quotient}, {divisor}")
    w.line(f"sub.s32 {w.define(op.result)}, {number}, {product}")


QUOTIENTS: dict[type[Operation], Callable[..., None]] = {
    arith.DivUIOp: print_quotient,
    arith.RemUIOp: print_remainder,
}
