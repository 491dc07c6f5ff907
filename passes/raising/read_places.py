"""
The cells that a value of an apply reads: an access, or a choice among accesses by conditions on
coordinates. Over boxes in which all conditions are known, the read is at one offset, or a number.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.dialects import arith, scf, stencil
from xdsl.dialects.builtin import FloatAttr
from xdsl.dialects.stencil import StencilBoundsAttr
from xdsl.ir import OpResult, SSAValue
from xdsl.utils.hints import isa

from timetile.passes.raising.boxes import above, below
from timetile.passes.raising.conditions import Conditions, yielded

MOST_PIECES = 4096
"""Most boxes into which conditions divide a domain."""

PlacedRead = tuple[int, ...] | float
"""An offset along each axis, or a number in place of a read."""


@dataclass(frozen=True)
class ReadPiece:
    """The cells of a box read at one offset, or have one number."""

    box: StencilBoundsAttr
    read: PlacedRead


def branches_of(value: SSAValue) -> tuple[SSAValue, SSAValue, SSAValue] | None:
    """The condition of a choice, and its two values; None for other values."""
    owner = value.owner
    if isinstance(owner, arith.SelectOp):
        return owner.cond, owner.lhs, owner.rhs
    if isinstance(owner, scf.IfOp) and isinstance(value, OpResult):
        return owner.cond, *yielded(owner, value)
    return None


def leaves_of(value: SSAValue) -> Iterator[SSAValue]:
    """The values among which a value chooses; the value itself if no choice."""
    branches = branches_of(value)
    if branches is None:
        yield value
        return
    yield from leaves_of(branches[1])
    yield from leaves_of(branches[2])


def access_behind(value: SSAValue) -> stencil.AccessOp | stencil.DynAccessOp | None:
    """The access of all axes behind a value; None for other values."""
    op = value.owner
    if isinstance(op, stencil.DynAccessOp):
        return op
    if not isinstance(op, stencil.AccessOp):
        return None
    axes = range(len(op.offset))
    return op if op.offset_mapping is None or list(op.offset_mapping) == [*axes] else None


def number_of(value: SSAValue) -> float | None:
    """The number of a constant of floats; None for other values."""
    op = value.owner
    if isinstance(op, arith.ConstantOp) and isa(op.value, FloatAttr):
        return float(op.value.value.data)
    return None


@dataclass(frozen=True)
class PlacesOver(Conditions):
    """The reads of values over a box."""

    def chosen_read(self, value: SSAValue) -> PlacedRead | None:
        """The read of a value; None if the cells of the box have several, or unknown ones."""
        branches = branches_of(value)
        if branches is not None:
            truth = self.truth(branches[0])
            return None if truth is None else self.chosen_read(branches[1 if truth else 2])
        if (number := number_of(value)) is not None:
            return number
        access = access_behind(value)
        if isinstance(access, stencil.AccessOp):
            return tuple(access.offset)
        if access is None:
            return None
        found = [self.offset(place, axis) for axis, place in enumerate(access.offset)]
        known = tuple(each for each in found if each is not None)
        return known if len(known) == len(found) else None

    def offset(self, place: SSAValue, axis: int) -> int | None:
        """The distance of a place from the cell along an axis; None if unknown or several."""
        owner, span = place.owner, self.span(place)
        if span is not None and tuple(self.box.ub)[axis] - tuple(self.box.lb)[axis] == 1:
            same = span.least == span.greatest
            return span.least - tuple(self.box.lb)[axis] if same else None
        match owner:
            case stencil.IndexOp():
                own = owner.dim.value.data == axis
                return tuple(owner.offset)[axis] if own else None
            case arith.AddiOp():
                first = self.moved(owner.lhs, owner.rhs, axis)
                return self.moved(owner.rhs, owner.lhs, axis) if first is None else first
            case arith.SubiOp():
                return self.moved(owner.lhs, owner.rhs, axis, -1)
            case arith.RemSIOp() | arith.RemUIOp():
                return self.wrapped(owner, axis)
            case arith.MaxSIOp() | arith.MinSIOp():
                return self.clamped(owner, axis)
            case arith.IndexCastOp() | arith.TruncIOp() | arith.ExtSIOp() | arith.ExtUIOp():
                return None if span is None else self.offset(owner.input, axis)
            case _:
                return self.branch_offset(place, axis)

    def branch_offset(self, place: SSAValue, axis: int) -> int | None:
        """The distance of a chosen place."""
        branches = branches_of(place)
        truth = None if branches is None else self.truth(branches[0])
        if branches is None or truth is None:
            return None
        return self.offset(branches[1 if truth else 2], axis)

    def number(self, value: SSAValue) -> int | None:
        """An integer equal for all cells of the box; None for others."""
        span = self.span(value)
        return span.least if span is not None and span.least == span.greatest else None

    def moved(self, place: SSAValue, shift: SSAValue, axis: int, sign: int = 1) -> int | None:
        """The distance of a place moved by a number."""
        distance, number = self.offset(place, axis), self.number(shift)
        return None if distance is None or number is None else distance + sign * number

    def wrapped(self, op: arith.RemSIOp | arith.RemUIOp, axis: int) -> int | None:
        """The distance of a remainder, where all cells of the box have one quotient."""
        place, divisor = self.span(op.lhs), self.number(op.rhs)
        distance = self.offset(op.lhs, axis)
        if place is None or divisor is None or distance is None:
            return None
        if divisor <= 0 or place.least < 0:
            return None
        turns = place.least // divisor
        return distance - turns * divisor if place.greatest // divisor == turns else None

    def clamped(self, op: arith.MaxSIOp | arith.MinSIOp, axis: int) -> int | None:
        """The distance of the greater or the lesser of two places, where known."""
        one, other = self.span(op.lhs), self.span(op.rhs)
        if one is None or other is None:
            return None
        if one.least >= other.greatest:
            return self.offset(op.lhs if isinstance(op, arith.MaxSIOp) else op.rhs, axis)
        if other.least >= one.greatest:
            return self.offset(op.rhs if isinstance(op, arith.MaxSIOp) else op.lhs, axis)
        return None


def read_pieces(value: SSAValue, box: StencilBoundsAttr, axes: set[int]) -> list[ReadPiece] | None:
    """
    The reads of a value over a box, with halves along `axes` where several; None if some read stays
    unknown.
    """
    found: list[ReadPiece] = []
    waiting = [box]
    while waiting:
        part = waiting.pop()
        read = PlacesOver(part).chosen_read(value)
        if read is not None:
            found.append(ReadPiece(part, read))
            continue
        low, high = tuple(part.lb), tuple(part.ub)
        size, axis = max(((high[axis] - low[axis], axis) for axis in axes), default=(1, 0))
        if size == 1 or len(found) + len(waiting) > MOST_PIECES:
            return None
        middle = low[axis] + size // 2
        halves = below(part, axis, middle), above(part, axis, middle)
        waiting += [half for half in halves if half is not None]
    return found
