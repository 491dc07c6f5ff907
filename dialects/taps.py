"""Taps: how an operation names the cells to read, `%u[-1, 0]`.

A tap is an operand's position and an offset per axis. Operations keep their taps as one flat dense
array, `rank + 1` integers a tap, because attributes of attributes cost far more than integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from xdsl.ir import SSAValue
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from timetile.dialects.syntax import (
    Integers,
    decode_integers,
    encode_integers,
)


class Tapping(Protocol):
    """An operation with taps."""

    @property
    def tap_list(self) -> tuple[Tap, ...]:
        """The taps, in the order of the cell function's arguments."""
        ...


@dataclass(frozen=True)
class Tap:
    """A read: the operand, and the offset from the computed cell (cells, per axis)."""

    operand: int
    offset: tuple[int, ...]


def encode_taps(taps: Sequence[Tap]) -> Integers:
    """The flat form, as stored by operations."""
    return encode_integers([x for tap in taps for x in (tap.operand, *tap.offset)])


def decode_taps(array: Integers, rank: int) -> tuple[Tap, ...]:
    """The taps of an operation on a domain of `rank` axes."""
    return taps_in(decode_integers(array), rank)


@lru_cache(maxsize=1 << 12)
def taps_in(values: tuple[int, ...], rank: int) -> tuple[Tap, ...]:
    """The taps in the flat form."""
    width = rank + 1
    return tuple(
        Tap(values[i], tuple(values[i + 1 : i + width])) for i in range(0, len(values), width)
    )


def verify_taps(array: Integers, rank: int, operands: int) -> None:
    """
    Raise VerifyException unless every tap is whole and names an operand, and every operand has a
    tap: the text shows operands by their taps.
    """
    length = len(decode_integers(array))
    if length % (rank + 1):
        raise VerifyException(
            f"taps hold {length} integers, not a multiple of rank + 1 = {rank + 1}"
        )
    read = {tap.operand for tap in decode_taps(array, rank)}
    for operand in sorted(read):
        if not 0 <= operand < operands:
            raise VerifyException(f"tap reads operand {operand} of {operands}")
    if len(read) < operands:
        raise VerifyException(f"operand {min(set(range(operands)) - read)} has no tap")


def print_taps(printer: Printer, taps: Sequence[Tap], operands: Sequence[SSAValue]) -> None:
    """Print `(%a[-1, 0], %b[0, 0])`."""

    def print_tap(tap: Tap) -> None:
        printer.print_operand(operands[tap.operand])
        printer.print_string(f"[{', '.join(map(str, tap.offset))}]")

    with printer.in_parens():
        printer.print_list(taps, print_tap)
