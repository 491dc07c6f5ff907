"""
Names of the cells that the updates of a step leave, without numbers: a cell after a step is a cell
from before the step, a result of an update, or a constant.

A domain has few classes of cells that updates treat alike: places near an end of the box one by
one, and all places far from both ends together. A class is named by its first place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import BlockArgument, SSAValue
from xdsl.traits import SymbolTable
from xdsl.utils.hints import isa

from timetile.dialects.boxes import CellBox
from timetile.dialects.temporal import UpdateOp

MOST_PLACES = 40
"""Most classes along an axis."""

CellPlace = tuple[int, ...]
"""A cell, by its coordinates."""

CellSymbol = tuple[object, ...]
"""
The name of a cell's value: the field and the place of a cell from before the step, an update with
the number of a result and a place, or a constant's text.
"""


def number_symbol(number: float) -> CellSymbol:
    """The symbol of cells with one number."""
    return ("number", number, repr(number))


@dataclass(frozen=True)
class CopyUpdate:
    """An update that only moves cells: for each target, the tap, or the constant, of its cells."""

    update: UpdateOp
    of: tuple[int | float, ...]


def copy_of(update: UpdateOp) -> CopyUpdate | None:
    """An update as a copy; None if it computes anything."""
    if update.outside or update.beyond or update.points:
        return None
    function = SymbolTable.lookup_symbol(update, update.cell)
    if not isinstance(function, FuncOp):
        return None
    end = function.body.block.last_op
    if not isinstance(end, ReturnOp):
        return None
    found = [moved_cell(value, len(update.tap_list)) for value in end.arguments]
    of = tuple(each for each in found if each is not None)
    return CopyUpdate(update, of) if len(of) == len(found) else None


def moved_cell(value: SSAValue, taps: int) -> int | float | None:
    """The number of the tap returned by a cell function, or the constant; None for others."""
    if isinstance(value, BlockArgument):
        return value.index if value.index < taps else None
    if isinstance(value.owner, arith.ConstantOp) and isa(value.owner.value, FloatAttr):
        return float(value.owner.value.value.data)
    return None


@dataclass(frozen=True)
class PlaceClasses:
    """
    The classes of cells of fields around a box: places up to `near` cells from an end of the box
    are classes of their own.
    """

    box: CellBox
    around: CellBox
    near: int

    @cached_property
    def firsts(self) -> tuple[tuple[int, ...], ...]:
        """The first places of the classes along each axis, in order."""
        found: list[tuple[int, ...]] = []
        ends = zip(self.around.lower, self.box.lower, self.box.upper, self.around.upper)
        for first, low, high, last in ends:
            below, above = (
                range(first, min(low + self.near + 1, high)),
                range(max(high - self.near, low), last),
            )
            found.append(tuple(sorted({*below, *above})))
        return tuple(found)

    @property
    def few(self) -> bool:
        """Whether the classes are few enough to look at each."""
        return all(len(places) <= MOST_PLACES for places in self.firsts)

    def last(self, axis: int, first: int) -> int:
        """The place behind a class along an axis."""
        places = self.firsts[axis]
        number = places.index(first) + 1
        return places[number] if number < len(places) else self.around.upper[axis]

    def within(self, box: CellBox) -> Iterator[CellPlace]:
        """The classes of a box."""
        spans = zip(self.firsts, box.lower, box.upper, strict=True)
        yield from product(*([p for p in places if low <= p < high] for places, low, high in spans))

    def divides(self, box: CellBox) -> bool:
        """Whether a box consists of whole classes."""
        ends = zip(self.firsts, box.lower, box.upper, self.around.upper, strict=True)
        return all(
            low in places and (high in places or high == last) for places, low, high, last in ends
        )

    def moved(self, place: CellPlace, offset: Sequence[int]) -> CellPlace | None:
        """The class at an offset from a class; None if the moved cells are no whole class."""
        there: list[int] = []
        for axis, (first, distance) in enumerate(zip(place, offset, strict=True)):
            if not distance:
                there.append(first)
                continue
            if first + distance not in self.firsts[axis]:
                return None
            if self.last(axis, first + distance) - distance != self.last(axis, first):
                return None
            there.append(first + distance)
        return tuple(there)


@dataclass
class StepCells:
    """The symbols of all cells of a step's fields, as update after update runs."""

    classes: PlaceClasses
    before: Mapping[tuple[SSAValue, CellPlace], CellSymbol] | None = None
    """The cells that differ from their own names before the step."""

    def __post_init__(self) -> None:
        self.known: dict[tuple[SSAValue, CellPlace], CellSymbol] = dict(self.before or {})
        self.written: set[tuple[SSAValue, CellPlace]] = set()
        self.unknown = 0

    def at(self, source: SSAValue, place: CellPlace) -> CellSymbol:
        """The symbol of a cell."""
        return self.known.get((source, place), (source, place))

    def read(self, source: SSAValue, place: CellPlace, offset: Sequence[int]) -> CellSymbol:
        """The symbol of the cells at an offset; a new one where the cells have several."""
        there = self.classes.moved(place, offset)
        if there is not None:
            return self.at(source, there)
        self.unknown += 1
        return ("unknown", self.unknown)

    def write(self, made: Iterable[tuple[tuple[SSAValue, CellPlace], CellSymbol]]) -> None:
        """Write cells, all after the last read."""
        for cell, symbol in list(made):
            self.known[cell] = symbol
            self.written.add(cell)

    def copy(self, copy: CopyUpdate) -> None:
        """Run a copy."""
        update, taps = copy.update, copy.update.tap_list
        self.write(
            ((target, place), number_symbol(of) if isinstance(of, float)
             else self.read(update.sources[taps[of].operand], place, taps[of].offset))
            for target, of in zip(update.targets, copy.of, strict=True)
            for place in self.classes.within(CellBox.of(update.box))
        )  # fmt: skip

    def compute(self, update: UpdateOp) -> None:
        """Run an update that computes: each result has a name of its own."""
        self.write(
            ((target, place), (update, number, place))
            for number, target in enumerate(update.targets)
            for place in self.classes.within(CellBox.of(update.box))
        )
