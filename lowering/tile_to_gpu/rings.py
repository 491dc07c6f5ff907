"""Rings of planes in shared memory: allocation, slot addresses, and the layout of a plane in a slot."""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.dialects import arith
from xdsl.dialects.builtin import i32
from xdsl.ir import Attribute, SSAValue

from timetile.dialects.simt import CELL_BYTES, SHARED_SPACE, SharedOp, buffer_type
from timetile.lowering.emitter import Emitter
from timetile.passes.analysis.geometry import SLICE_ALIGNMENT


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
    `slots` planes of `plane_cells` cells each. `shifted` holds, for shifting addressing, the carried
    offsets of the slots, newest first.
    """

    buffer: SSAValue
    slots: int
    addressing: str
    plane_cells: int
    shifted: list[SSAValue] = field(default_factory=list[SSAValue])
    computed: dict[tuple[int, SSAValue], SSAValue] = field(
        default_factory=dict[tuple[int, SSAValue], SSAValue]
    )

    def slot(self, emit: Emitter, step: SSAValue | None, turn: int, age: int, base: int) -> Address:
        """
        The slot of the plane that is `age` steps old in step `step + turn`, where `turn` counts the
        copies of the unrolled body.
        """
        if self.slots == 1:
            return Address(None, 0)
        if step is None:
            # Without a stream every queue of the circular multi-queue has a slot of its own.
            return Address(None, (base - age) % self.slots * self.plane_cells)
        if self.addressing == "shifting" and not self.shifted:
            # Ahead of the loop.
            return Address(None, (age - turn) % self.slots * self.plane_cells)
        if self.addressing == "fixed":
            return Address(None, (turn - age + base) % self.slots * self.plane_cells)
        if self.addressing == "shifting":
            return Address(self.shifted[age % self.slots], 0)
        key = (turn - age + base, step)
        if key not in self.computed:
            number = emit.add_int(step, turn - age + base)
            masked = emit.binary(arith.AndIOp, number, emit.int(self.slots - 1))
            self.computed[key] = emit.mul_int(masked, self.plane_cells)
        return Address(self.computed[key], 0)

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
