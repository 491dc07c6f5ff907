"""Values of cells with different places and equal work: `sin(T[0])` and `sin(T[1])`."""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.ir import Block, Operation, SSAValue

from timetile.dialects.temporal import UpdateOp

Place = tuple[int, ...]
"""A distance from the updated cell, per axis."""


def distance(place: Place | None, origin: Place | None) -> Place | None:
    """The way from an origin to a place; None for a value without a place."""
    if place is None or origin is None:
        return None
    return tuple(a - b for a, b in zip(place, origin, strict=True))


@dataclass
class Shapes:
    """
    Numbers of values, equal for values that differ in place alone. The place of a value is the
    place of the first tap or coordinate. Reads of a field before and after an update that writes
    the field are different.
    """

    numbers: dict[tuple[object, ...], int] = field(default_factory=dict[tuple[object, ...], int])
    known: dict[SSAValue, tuple[int, Place | None]] = field(
        default_factory=dict[SSAValue, tuple[int, Place | None]]
    )
    writes: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])

    def number(self, *key: object) -> int:
        """The number of a key."""
        return self.numbers.setdefault(key, len(self.numbers))

    def read(self, update: UpdateOp, block: Block) -> None:
        """
        Number the values of the next update's cell. Sources continued behind an edge have numbers
        of the update's own.
        """
        own = update if update.beyond is not None else None
        arguments = iter(block.args)
        for tap, argument in zip(update.tap_list, arguments):
            at = tap.offset if own is not None else None
            source = update.sources[tap.operand]
            key = self.number("tap", source, self.writes.get(source, 0), own, at)
            self.known[argument] = key, tap.offset
        for scalar, argument in zip(update.scalars, arguments):
            self.known[argument] = self.number("scalar", scalar), None
        here = (0,) * update.rank
        for axis, argument in zip(update.index_axes, arguments):
            self.known[argument] = self.number("coordinate", axis), here
        for op in block.ops:
            for result in op.results:
                self.known[result] = self.result(op, result)
        for target in update.targets:
            self.writes[target] = self.writes.get(target, 0) + 1

    def result(self, op: Operation, result: SSAValue) -> tuple[int, Place | None]:
        """The number and the place of a result, from the operands' own."""
        parts = [self.known[operand] for operand in op.operands]
        place = next((at for _, at in parts if at is not None), None)
        operands = [(number, distance(at, place)) for number, at in parts]
        facts = sorted({**op.attributes, **op.properties}.items(), key=lambda fact: fact[0])
        return self.number(type(op), *facts, result.type, *operands), place
