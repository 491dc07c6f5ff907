"""Values for cells of a thread, gathered from a list of points ahead of the levels of a step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from timetile.dialects import simt
from timetile.dialects.temporal import PointSet
from timetile.dialects.tile import LANES
from timetile.lowering.emitter import Emitter

PLANES = 2
"""Planes next to each other with values of a point: weights of two cells along each axis."""


def sets_of_addends(apart: int) -> int:
    """
    The sets of addends in a step whose levels have planes `apart` from each other. Each set costs
    two instructions for each cell of each level.
    """
    return -(-PLANES // apart)


@dataclass(frozen=True)
class Addends:
    """
    Addends of a thread's cells: for each set, the newest first, the plane, a bit for each cell with
    an addend, and a value for each cell. `used`: the sets that values of the step ask for.
    """

    used: SSAValue
    planes: tuple[SSAValue, ...]
    bits: tuple[SSAValue, ...]
    values: tuple[tuple[SSAValue, ...], ...]

    def flat(self) -> list[SSAValue]:
        """All numbers, one after the other."""
        return [self.used, *self.planes, *self.bits, *(v for values in self.values for v in values)]

    @classmethod
    def of(cls, flat: Sequence[SSAValue], sets: int) -> Addends:
        """The addends of `flat` numbers."""
        used, rest = flat[0], flat[1 + 2 * sets :]
        cells = len(rest) // sets
        values = tuple(tuple(rest[cells * k : cells * (k + 1)]) for k in range(sets))
        return cls(used, tuple(flat[1 : 1 + sets]), tuple(flat[1 + sets : 1 + 2 * sets]), values)


AddendsOfLists = Mapping[PointSet, Addends]
"""The values of a step, for each list with values for several levels."""


@dataclass(frozen=True)
class KeptValues:
    """
    The values of a run of planes with few entries, kept in the lanes of a warp for all steps of the
    run. `are_few`: the values are kept, of `count` entries. Lane e has the plane of entry e.
    Numbers e * levels + n have the value of entry e at level n, 32 numbers in each register, and
    the number of the value's cell among the warp's, or a number that no cell has.
    """

    are_few: SSAValue
    count: SSAValue
    planes: SSAValue
    keys: tuple[SSAValue, ...]
    values: tuple[SSAValue, ...]

    def at(self, emit: Emitter, number: SSAValue) -> tuple[SSAValue, SSAValue]:
        """The cell and the value of a number, equal in all lanes."""
        found: list[SSAValue] = []
        for registers in (self.keys, self.values):
            picked = [emit.add(simt.PickOp(each, number)).result for each in registers]
            chosen = picked[0]
            for start, other in enumerate(picked[1:], 1):
                chosen = emit.select(emit.compare("sge", number, LANES * start), other, chosen)
            found.append(chosen)
        key, value = found
        return key, value
