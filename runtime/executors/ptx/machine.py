"""A launch of a PTX kernel: runs lanes until all have ended."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from timetile.dialects.tile import LANES
from timetile.runtime.executors.ptx.arithmetic import Array
from timetile.runtime.executors.ptx.memory import WORD_BYTES, PtxMemory
from timetile.runtime.executors.ptx.program import Program
from timetile.runtime.executors.ptx.strand import Strand
from timetile.runtime.executors.ptx.waiting import Barriers
from timetile.runtime.executors.simt.errors import SimtError
from timetile.runtime.executors.simt.memory import Buffer, Clocks, Mask, some

BLOCKS = ("bar.sync", "barrier.cluster.wait.aligned")
"""Instructions after which lanes may have to wait."""


class PtxLaunch:
    """
    A launch: `grid` blocks with `block` threads each. `cluster` blocks reach each other's shared
    memory; `blocks_per_tile` blocks hold a tile and exchange through global memory. Warps and
    blocks that exchange run one after the other, each as far as possible: the order furthest from
    lockstep.
    """

    def __init__(
        self, program: Program, grid: int, block: int, shared_bytes: int,
        arguments: Sequence[Buffer | Array], cluster: int = 1, blocks_per_tile: int = 1,
    ):  # fmt: skip
        self.program, self.block = program, block
        self.clocks = Clocks.of(grid, block, max(cluster, blocks_per_tile))
        self.fields = [Buffer(np.zeros(4, dtype=np.uint8)) for _ in program.entry.variables]
        self.parameters: dict[str, Array] = {}
        for (_, name), argument in zip(program.entry.parameters, arguments):
            value = argument
            if isinstance(argument, Buffer):
                value = np.array(PtxMemory.address_of(len(self.fields)), dtype=np.uint64)
                self.fields.append(argument)
            self.parameters[name] = np.asarray(value)
        words = np.zeros(grid * (shared_bytes // WORD_BYTES), dtype=np.uint8)
        self.memory = PtxMemory(self.fields, Buffer(words, grid, unset=True), self.clocks, cluster)
        team, warps = max(cluster, blocks_per_tile), block // LANES
        self.strands = [
            Strand(self, number, number % warps, np.arange(number // warps, grid, team), block)
            for number in range(warps * team)
        ]
        self.barriers = Barriers(self.strands, self.memory, self.clocks, cluster)
        self.seen = -1
        """The number of events when all lanes looked last."""

    # Running.

    def run(self) -> None:
        """Run all threads to the end; SimtError where the kernel is wrong."""
        with np.errstate(all="ignore"):
            while not all(strand.ended.all() for strand in self.strands):
                ran = [self.run_strand(strand) for strand in self.strands]
                if not any(ran):
                    self.wake()
        self.barriers.check_end()
        for buffer in self.fields:
            buffer.forget()

    def wake(self) -> None:
        """
        Let all lanes look again that looked in vain. Raises SimtError if nothing has happened
        since.
        """
        if self.memory.events == self.seen or not any(s.asleep.any() for s in self.strands):
            strand = next(strand for strand in self.strands if not strand.ended.all())
            place = int(strand.at[~strand.ended].min())
            raise SimtError(
                self.program.entry.code[max(place - 1, 0)].text,
                "waits for an event that never comes",
            )
        self.seen = self.memory.events
        for strand in self.strands:
            strand.asleep[:] = False

    def run_strand(self, strand: Strand) -> bool:
        """
        Run a strand as far as possible, lanes furthest behind first. Returns whether any lane ran.
        """
        ran = False
        while True:
            ready = ~(strand.blocked | strand.asleep | strand.ended)
            if not some(ready):
                return ran
            ran = True
            at = np.where(ready, strand.at, len(self.program.entry.code))
            here = int(at.min())
            active = at == here
            if not some(~active):
                self.run_from(strand, here, None, len(self.program.entry.code))
            else:
                self.run_from(strand, here, active, int(at[~active].min()))

    def run_from(self, strand: Strand, place: int, mask: Mask | None, limit: int) -> None:
        """Run lanes from an instruction on, until the lanes part, wait, or reach other lanes."""
        code = self.program.entry.code
        while place < limit:
            instruction, lanes = code[place], mask
            if instruction.guard is not None:
                holds = strand.guarded(
                    instruction.guard, instruction.negated, mask, instruction.text
                )
                if not some(holds):
                    place += 1
                    continue
                everyone = not some(~holds if mask is None else holds != mask)
                lanes = mask if everyone else holds
            step = self.program.steps[place]
            if step is not None:
                step(strand, lanes)
                place += 1
                if instruction.name in BLOCKS:
                    break
                continue
            if instruction.name == "ret":
                strand.ended[slice(None) if lanes is None else lanes] = True
                break
            target = self.program.targets[place]
            looks = self.program.looks[place]
            place += 1
            if lanes is mask and not looks:
                place = target
                continue
            strand.at[slice(None) if mask is None else mask] = place
            chosen = slice(None) if lanes is None else lanes
            strand.at[chosen] = target
            strand.asleep[chosen] |= looks
            return
        strand.at[slice(None) if mask is None else mask] = place
