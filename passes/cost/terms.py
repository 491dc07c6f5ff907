"""The terms of a prediction, and their sum for a launch."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class Limit(StrEnum):
    """
    The resource taking most of a step's time: global MEMORY, the floating-point PIPE, the ISSUE
    slots of the schedulers, or the SHARED-memory pipe.
    """

    MEMORY = "memory"
    PIPE = "pipe"
    ISSUE = "issue"
    SHARED = "shared"


class Moves(NamedTuple):
    """
    The costs of moving cells between threads, registers and memory, for a warp in a stream step.
    """

    instructions: float
    shared: float
    """Cycles of the shared-memory pipe."""

    def and_also(self, other: Moves) -> Moves:
        """Both together."""
        return Moves(self.instructions + other.instructions, self.shared + other.shared)


@dataclass(frozen=True)
class StepCycles:
    """
    Cycles of a multiprocessor for one stream step of one warp: of the floating-point `pipe`, of the
    schedulers' `issue` slots, of the `shared`-memory pipe, and what the busiest does not hide.
    """

    pipe: float
    issue: float
    shared: float
    unhidden: float

    @property
    def limit(self) -> Limit:
        """The busiest pipe."""
        cycles = {Limit.PIPE: self.pipe, Limit.ISSUE: self.issue, Limit.SHARED: self.shared}
        return max(cycles, key=cycles.__getitem__)

    @property
    def total(self) -> float:
        """Cycles of a step: the busiest pipe, and unhidden instructions."""
        return max(self.pipe, self.issue, self.shared) + self.unhidden


@dataclass(frozen=True)
class Cost:
    """
    The prediction for one launch: `registers` a thread, `shared_bytes` a block, stream `steps`
    until the last slot is done, and `cycles` a step. For all tiles together: seconds a step for
    computing, seconds a step for moving cells, and cell updates a launch.
    """

    registers: int
    shared_bytes: int
    steps: float
    cycles: StepCycles
    compute_seconds: float
    memory_seconds: float
    updates: int
    valid: float
    """The share of a tile's cells stored, the rest being overlap (EBISU, equations 8 and 9)."""
    waiting_seconds: float
    """
    Seconds of a step's computing spent waiting for other warps of the tile (the synchronisation of
    equation 11).
    """
    overlap_power: int
    """
    A step's time is the norm of this order of the times for computing and moving; 1 without overlap
    of the two.
    """
    launch_seconds: float
    """Seconds of a launch beside its steps."""
    exposed_seconds: float = 0.0
    """Seconds of every step spent waiting for planes not fetched ahead."""
    spilled_seconds: float = 0.0
    """Seconds of a step that waits for spilled words, if there are any."""
    counted_spills: float = 1.0
    """How many times as long computing takes for registers counted beyond the limit."""
    has_further_blocks: bool = False
    """
    Whether a stream has more blocks than the device holds as planned: where a multiprocessor has
    room for more, further blocks start beside those counted on.
    """

    @property
    def limit(self) -> Limit:
        """The resource taking most of a step's time."""
        if self.memory_seconds > self.compute_seconds:
            return Limit.MEMORY
        return self.cycles.limit

    @property
    def is_slowed_by_further_blocks(self) -> bool:
        """
        Whether further blocks of a multiprocessor slow a launch: they stream through other parts of
        the fields, where the memory is busy already. They fill the waits of blocks that compute for
        longer than they move cells, or that fetch nothing ahead. One H200, GCells/s with further
        blocks and without: boxes of 27 points in FP32 217 and 337, with computing of 0.86 of the
        time for moving, stars of radius 4 361 and 288, with 1.11.
        """
        waits = self.exposed_seconds > 0 or self.compute_seconds > self.memory_seconds
        return self.has_further_blocks and not waits

    @property
    def gcells_per_second(self) -> float:
        """Predicted GCells/s: cell updates over seconds."""
        return self.updates / self.seconds / 1e9

    @property
    def step_seconds(self) -> float:
        """One stream step."""
        power = self.overlap_power
        overlapped = (self.compute_seconds**power + self.memory_seconds**power) ** (1 / power)
        return overlapped + self.exposed_seconds

    @property
    def seconds(self) -> float:
        """One launch."""
        return self.launch_seconds + self.steps * self.step_seconds
