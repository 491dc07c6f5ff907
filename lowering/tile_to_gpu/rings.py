"""Rings of planes in shared memory: allocation, and where the slots of a ring lie in a step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import gcd

from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from timetile.dialects.simt import SHARED_SPACE, SharedOp, buffer_type
from timetile.dialects.tile import Addressing
from timetile.lowering.emitter import Emitter
from timetile.passes.analysis.block_memory import Slice


@dataclass
class SharedMemory:
    """The slices of the block's dynamic shared memory, as buffers."""

    emit: Emitter
    buffers: dict[Slice, SSAValue] = field(default_factory=dict[Slice, SSAValue])

    def buffer(self, part: Slice) -> SSAValue:
        """The buffer of a slice, which exchanges that take turns share."""
        if part not in self.buffers:
            kind = buffer_type(part.element, part.cells, SHARED_SPACE)
            self.buffers[part] = self.emit.add(SharedOp(part.at, kind)).result
        return self.buffers[part]


@dataclass(frozen=True)
class Address:
    """A cell of a buffer: `index` (elements, None for 0) plus a constant."""

    index: SSAValue | None
    offset: int


@dataclass(frozen=True, eq=False)
class Ring:
    """`slots` planes of `plane_cells` cells each; a turn of the loop writes `period` planes."""

    buffer: SSAValue
    slots: int
    addressing: Addressing
    plane_cells: int
    period: int

    @property
    def finds_any_step(self) -> bool:
        """Slots are found from the number of a step, not from its place in an unrolled body."""
        if self.slots == 1 or self.addressing is Addressing.SHIFTING:
            return True
        return self.addressing is Addressing.COMPUTED and gcd(self.period, self.slots) == 1

    def early_slot(self, step: int) -> Address:
        """The slot of the plane of a step, counted from the chunk's first, ahead of the loop."""
        return fixed_slot(self, -step if self.addressing is Addressing.SHIFTING else step)


def fixed_slot(ring: Ring, number: int) -> Address:
    """The slot of a ring for a plane of a constant number."""
    return Address(None, number % ring.slots * ring.plane_cells)


class RingSlots:
    """
    Where slots lie in one loop over stream steps. `count` is the number of steps before a turn of
    the loop. `shifted` holds, for each ring of shifting addressing, the carried offsets of its
    slots, newest first. `is_rolled`: the loop's body has a single step, and begins at any step.
    """

    def __init__(
        self, count: SSAValue, shifted: dict[Ring, list[SSAValue]], *, is_rolled: bool = False
    ):
        self.count, self.shifted, self.is_rolled = count, shifted, is_rolled
        self.computed: dict[tuple[Ring, int], SSAValue] = {}

    def with_shifted(self, shifted: dict[Ring, list[SSAValue]]) -> RingSlots:
        """The slots with other carried offsets."""
        return RingSlots(self.count, shifted, is_rolled=self.is_rolled)

    def slot(self, emit: Emitter, ring: Ring, turn: int, age: int, base: int) -> Address:
        """
        The slot that holds, in the chunk's step `count + turn`, the plane `age` steps old. `turn`
        counts the copies of the unrolled body.
        """
        if ring.slots > 1 and ring.addressing is Addressing.SHIFTING:
            return Address(self.shifted[ring][(age - base) % ring.slots], 0)
        number, period = turn - age + base, self.period(ring)
        if period % ring.slots == 0:
            return fixed_slot(ring, number)
        # The unrolled body begins at a multiple of its length: slots of a group lie at constant
        # offsets.
        group = gcd(period, ring.slots)
        first, within = divmod(number % ring.slots, group)
        index = self.group(emit, ring, first * group)
        return Address(index, within * ring.plane_cells)

    def period(self, ring: Ring) -> int:
        """The steps of the loop's body, a multiple of which comes before each turn."""
        return 1 if self.is_rolled else ring.period

    def group(self, emit: Emitter, ring: Ring, first: int) -> SSAValue:
        """
        The offset of the slot of step `count + first`, which is a multiple of the group's length.
        """
        if (ring, first) not in self.computed:
            number = emit.add_int(self.count, first)
            rest = emit.remainder(number, ring.slots)
            self.computed[ring, first] = emit.mul_int(rest, ring.plane_cells)
        return self.computed[ring, first]

    def rotate(self) -> None:
        """One step has passed: the oldest slot of each shifting ring becomes the newest."""
        for ring, offsets in self.shifted.items():
            self.shifted[ring] = [offsets[-1], *offsets[:-1]]

    def carried(self, rings: Sequence[Ring]) -> list[SSAValue]:
        """The offsets of shifting rings, as the loop carries them on."""
        return [offset for ring in rings for offset in self.shifted[ring]]


def first_offsets(emit: Emitter, ring: Ring) -> list[SSAValue]:
    """The slots' offsets before the first step, newest first."""
    return [emit.int(k * ring.plane_cells, i32) for k in range(ring.slots)]


def add_offsets(emit: Emitter, *parts: SSAValue | None) -> SSAValue | None:
    """The sum of the given offsets."""
    total: SSAValue | None = None
    for part in parts:
        if part is not None:
            total = part if total is None else emit.add_int(total, part)
    return total
