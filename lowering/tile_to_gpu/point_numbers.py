"""Numbers in the code of points, for lists and for the cells of a warp."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from timetile.dialects import simt
from timetile.lowering.emitter import Emitter

DIVIDING_BITS = 20
"""Bits of the shift in place of a division of small numbers."""


def table_number(emit: Emitter, places: SSAValue, part: int, at: SSAValue) -> SSAValue:
    """An integer of a part of a list."""
    return emit.add(simt.LoadOp(places, at, part, [i32])).cells[0]


def clamped(emit: Emitter, cell: SSAValue, most: int) -> SSAValue:
    """A place, at least 0 and at most `most`."""
    above = emit.binary(arith.MaxSIOp, cell, emit.int(0))
    return emit.binary(arith.MinSIOp, above, emit.int(most))


def divided_in_warp(emit: Emitter, number: SSAValue, count: int) -> tuple[SSAValue, SSAValue]:
    """
    Divide a cell's number in the warp (below 4096) by the cells of a thread (at most 128):
    remainder and quotient, by a product and a shift. Larger numbers give any result.
    """
    if count == 1:
        return emit.int(0), number
    factor = -(-(1 << DIVIDING_BITS) // count)
    product = emit.mul_int(number, factor)
    quotient = emit.binary(arith.ShRUIOp, product, emit.int(DIVIDING_BITS))
    return emit.sub_int(number, emit.mul_int(quotient, count)), quotient
