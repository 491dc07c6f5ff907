"""Reasons for leaving out a schedule at a depth, with the missing resource and its numbers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Resource(StrEnum):
    """What a schedule lacks at a depth."""

    REGISTERS = "registers"
    SHARED_MEMORY = "shared memory"
    CELLS = "cells"
    BLOCKS = "blocks"
    CODE = "code"
    EXCHANGES = "exchanges"
    STEPS = "steps"


@dataclass(frozen=True)
class Kind:
    """A kind of reason."""

    resource: Resource
    text: str
    """The reason without numbers: equal for all schedules of a table's row."""
    unit: str = ""
    """The unit of `Reason.taken` and `Reason.room`; empty for reasons without numbers."""


NO_KERNEL = Kind(
    Resource.STEPS,
    "no step reads cells that an earlier step writes, or sums cannot be cut in this form",
)
UNTRIED = Kind(
    Resource.CODE,
    "the levels of a resident tile are unrolled, and resident tiles are tried at few depths",
)
DIVIDES_IN_PLACE = Kind(
    Resource.REGISTERS,
    "cells divide or take roots, and resident tiles with such cells have unknown registers",
)
LOOKS_BEYOND = Kind(Resource.CELLS, "a step looks beyond the rows of the next warp")
EXCHANGES_PLANES = Kind(Resource.EXCHANGES, "sums by rows exchange fewer planes")
NO_SPAN = Kind(
    Resource.BLOCKS, "one block spans the axis, or the device does not hold enough blocks"
)
WAITS_WITHIN = Kind(Resource.BLOCKS, "blocks would wait for each other within a step")
NO_CELL = Kind(Resource.CELLS, "the overlap leaves no cell of a tile")
NO_REGISTERS = Kind(
    Resource.REGISTERS, "planes do not fit the registers of a thread", "registers a thread"
)
NO_SHARED_MEMORY = Kind(
    Resource.SHARED_MEMORY, "planes and edges do not fit the shared memory", "bytes a block"
)
NO_ADDRESSES = Kind(Resource.REGISTERS, "rows begin between vectors, and registers are scarce")
TOO_LONG = Kind(
    Resource.CODE,
    "all levels written out do not fit the instruction cache",
    "instructions",
)
LONG_CODE = Kind(
    Resource.CODE, "the code of a step takes the assembler many seconds", "instructions"
)


@dataclass(frozen=True)
class Reason:
    """A reason for leaving out a schedule at a depth."""

    kind: Kind
    taken: int = 0
    """The need of the schedule's tile, in `kind.unit`."""
    room: int = 0
    """The supply, in `kind.unit`; of registers, without the registers for guards."""

    def __str__(self) -> str:
        text = f"{self.kind.resource}: {self.kind.text}"
        if not self.kind.unit:
            return text
        return f"{text}; a tile takes {self.taken} {self.kind.unit}, and has {self.room}"
