"""Rings of planes in shared memory: allocation, slot addresses, and the layout of a plane in a slot."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import gcd

from xdsl.dialects import arith
from xdsl.dialects.builtin import i32
from xdsl.ir import Attribute, SSAValue

from timetile.dialects.simt import CELL_BYTES, SHARED_SPACE, SharedOp, buffer_type
from timetile.lowering.emitter import Emitter
from timetile.passes.analysis.geometry.plane_geometry import SLICE_ALIGNMENT


@dataclass
class SharedMemory:
    """Hands out slices of the block's dynamic shared memory, one after the other."""

    emit: Emitter
    bytes: int = 0

    def allocate(self, element: Attribute, cells: int) -> SSAValue:
        """A buffer of `cells` elements."""
        at = self.bytes
        size = cells * CELL_BYTES[element]
        self.bytes = (at + size + SLICE_ALIGNMENT - 1) // SLICE_ALIGNMENT * SLICE_ALIGNMENT
        return self.emit.add(SharedOp(at, buffer_type(element, cells, SHARED_SPACE))).result


@dataclass(frozen=True)
class Address:
    """A cell of a buffer: `index` (elements, None for 0) plus a constant."""

    index: SSAValue | None
    offset: int


@dataclass
class Ring:
    """
    `slots` planes of `plane_cells` cells each, of which the loop writes `period` in a turn. `shifted` holds, for
    shifting addressing, the carried offsets of the slots, newest first.
    """

    buffer: SSAValue
    slots: int
    addressing: str
    plane_cells: int
    period: int
    shifted: list[SSAValue] = field(default_factory=list[SSAValue])
    computed: dict[tuple[int, SSAValue], SSAValue] = field(
        default_factory=dict[tuple[int, SSAValue], SSAValue]
    )

    def early_slot(self, step: int) -> Address:
        """The slot of the plane of a step, counted from the chunk's first, ahead of the loop."""
        number = -step if self.addressing == "shifting" else step
        return Address(None, number % self.slots * self.plane_cells)

    def slot(
        self, emit: Emitter, count: SSAValue | None, turn: int, age: int, base: int
    ) -> Address:
        """
        The slot of the plane that is `age` steps old in step `count + turn` of the chunk, where `turn` counts the
        copies of the unrolled body.
        """
        number = turn - age + base
        if self.slots == 1:
            return Address(None, 0)
        if count is None or self.addressing == "fixed":
            # Without a stream every queue of the circular multi-queue has a slot of its own.
            return Address(None, number % self.slots * self.plane_cells)
        if self.addressing == "shifting":
            return Address(self.shifted[age % self.slots], 0)
        # The steps of a turn begin at a multiple of its length: slots of one group lie at constant offsets.
        group = gcd(self.period, self.slots)
        first, within = divmod(number % self.slots, group)
        return Address(self.group(emit, count, first * group), within * self.plane_cells)

    def group(self, emit: Emitter, count: SSAValue, first: int) -> SSAValue | None:
        """The offset of the slot of step `count + first`, which is a multiple of the group's length; None for 0."""
        if self.period % self.slots == 0:
            return None
        if (first, count) not in self.computed:
            number = emit.add_int(count, first)
            masked = emit.binary(arith.AndIOp, number, emit.int(self.slots - 1))
            self.computed[first, count] = emit.mul_int(masked, self.plane_cells)
        return self.computed[first, count]

    def rotate(self) -> None:
        """One step has passed: the oldest slot becomes the newest."""
        if self.shifted:
            self.shifted = [self.shifted[-1], *self.shifted[:-1]]


def carried_offsets(emit: Emitter, ring: Ring) -> list[SSAValue]:
    """The slots' offsets before the first step, newest first."""
    return [emit.int(k * ring.plane_cells, i32) for k in range(ring.slots)]


def add_offsets(emit: Emitter, *parts: SSAValue | None) -> SSAValue | None:
    """The sum of the offsets that are there."""
    total: SSAValue | None = None
    for part in parts:
        if part is not None:
            total = part if total is None else emit.add_int(total, part)
    return total
