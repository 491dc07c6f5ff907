"""A PTX kernel with instructions bound to operands, once for all launches."""

from __future__ import annotations

import numpy as np

from timetile.lowering.ptx.symbols import SHARED_SYMBOL
from timetile.runtime.executors.ptx.accesses import ACCESSES
from timetile.runtime.executors.ptx.arithmetic import RULES, Array
from timetile.runtime.executors.ptx.memory import PtxMemory
from timetile.runtime.executors.ptx.operands import Context, LaneAction, computes
from timetile.runtime.executors.ptx.parse import Entry, Instruction
from timetile.runtime.executors.ptx.together import TOGETHER
from timetile.runtime.executors.simt.errors import SimtError

LOOKS = ("ld.relaxed.", "ld.acquire.", "mbarrier.try_wait.")
"""Beginnings of instructions by which a lane looks for actions of other lanes."""

JUMPS = ("bra", "ret")

SPECIAL = ACCESSES | TOGETHER
"""Instructions that do more than compute."""


def is_known(name: str) -> bool:
    """Whether the executor has an instruction of this name."""
    return name in JUMPS or name in RULES or name in SPECIAL


class Program:
    """
    A kernel, ready to run. Raises SimtError for an unknown instruction, or for wrong operands.
    """

    def __init__(self, entry: Entry):
        self.entry = entry
        names: dict[str, Array] = {SHARED_SYMBOL: np.array(0, dtype=np.uint32)}
        for k, name in enumerate(entry.variables):
            names[name] = np.array(PtxMemory.address_of(k), dtype=np.uint64)
        self.context = Context(entry, names)
        self.steps = [self.step(instruction) for instruction in entry.code]
        """The step of each instruction; None for jumps."""
        self.targets = [self.target(instruction) for instruction in entry.code]
        """Where branches go; -1 for other instructions."""
        self.looks = [self.looks_again(place) for place in range(len(entry.code))]
        """Whether the instruction goes back to a look for actions of other lanes."""

    def step(self, instruction: Instruction) -> LaneAction | None:
        """
        The step of an instruction; None for a jump. Raises SimtError for an unknown instruction.
        """
        if not is_known(instruction.name):
            raise SimtError(instruction.text, "the executor of PTX does not know the instruction")
        if instruction.name in JUMPS:
            return None
        if (rule := RULES.get(instruction.name)) is not None:
            return computes(self.context, instruction, rule)
        return SPECIAL[instruction.name](self.context, instruction)

    def target(self, instruction: Instruction) -> int:
        """The number of the instruction after a jump; -1 for other instructions."""
        if instruction.name != "bra":
            return -1
        label = instruction.operands[0]
        assert isinstance(label, str)
        return self.entry.labels[label]

    def looks_again(self, place: int) -> bool:
        """
        Whether the instruction at a place closes a loop around a look for actions of other lanes.
        """
        first = self.targets[place]
        if not 0 <= first <= place:
            return False
        within = range(first, place)
        if any(0 <= self.targets[k] <= k for k in within):
            return False
        return any(self.entry.code[k].name.startswith(LOOKS) for k in within)
