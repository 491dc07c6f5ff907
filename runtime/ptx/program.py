"""A kernel of PTX whose instructions are bound to their operands, once for all its launches."""

from __future__ import annotations

import numpy as np

from timetile.lowering.ptx.symbols import SHARED_SYMBOL
from timetile.runtime.ptx.accesses import ACCESSES
from timetile.runtime.ptx.arithmetic import RULES, Array
from timetile.runtime.ptx.memory import Memory
from timetile.runtime.ptx.operands import Context, Step, computes
from timetile.runtime.ptx.parse import Entry, Instruction
from timetile.runtime.ptx.together import TOGETHER
from timetile.runtime.simt.errors import SimtError

LOOKS = ("ld.relaxed.", "ld.acquire.", "mbarrier.try_wait.")
"""How instructions begin by which a lane looks for what others do."""

JUMPS = ("bra", "ret")

SPECIAL = ACCESSES | TOGETHER
"""Instructions that do more than compute."""


def is_known(name: str) -> bool:
    """The executor knows an instruction of this name."""
    return name in JUMPS or name in RULES or name in SPECIAL


class Program:
    """A kernel, ready to be run; SimtError where an instruction is not known, or its operands do not fit it."""

    def __init__(self, entry: Entry):
        self.entry = entry
        names: dict[str, Array] = {SHARED_SYMBOL: np.array(0, dtype=np.uint32)}
        for k, name in enumerate(entry.variables):
            names[name] = np.array(Memory.address_of(k), dtype=np.uint64)
        self.context = Context(entry, names)
        self.steps = [self.step(instruction) for instruction in entry.code]
        """What each instruction does; None where it only says where to go on."""
        self.targets = [self.target(instruction) for instruction in entry.code]
        """Where branches go; -1 for other instructions."""
        self.looks = [self.looks_again(place) for place in range(len(entry.code))]
        """The instruction goes back to where its lane looks once more for what others do."""

    def step(self, instruction: Instruction) -> Step | None:
        if not is_known(instruction.name):
            raise SimtError(instruction.text, "the executor of PTX does not know the instruction")
        if instruction.name in JUMPS:
            return None
        if (rule := RULES.get(instruction.name)) is not None:
            return computes(self.context, instruction, rule)
        return SPECIAL[instruction.name](self.context, instruction)

    def target(self, instruction: Instruction) -> int:
        if instruction.name != "bra":
            return -1
        label = instruction.operands[0]
        assert isinstance(label, str)
        return self.entry.labels[label]

    def looks_again(self, place: int) -> bool:
        first = self.targets[place]
        if not 0 <= first <= place:
            return False
        within = range(first, place)
        if any(0 <= self.targets[k] <= k for k in within):
            return False
        return any(self.entry.code[k].name.startswith(LOOKS) for k in within)
