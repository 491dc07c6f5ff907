"""The terms of a prediction, and how they add up to a launch."""

from __future__ import annotations

from dataclasses import dataclass


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
    def limit(self) -> str:
        """What is busiest."""
        return max(("pipe", "issue", "shared"), key=lambda name: getattr(self, name))

    @property
    def total(self) -> float:
        return max(self.pipe, self.issue, self.shared) + self.unhidden


@dataclass(frozen=True)
class Cost:
    """
    The prediction for one launch: `registers` per thread, `shared_bytes` per block, the `steps` of
    the slot that is done last, the `cycles` of a step, the seconds in which a step of all tiles
    computes and moves its cells, and the cell updates of the launch.
    """

    registers: int
    shared_bytes: int
    steps: float
    cycles: StepCycles
    compute_seconds: float
    memory_seconds: float
    updates: int
    valid: float
    """
    The share of a tile's cells that are stored: what overlap leaves (EBISU, equations 8 and 9).
    """
    waiting_seconds: float
    """
    What of a step's computing is waiting for other warps of the tile (its synchronisation, equation
    11).
    """
    overlap_power: int
    """
    A step's time is the norm of this order of the times to compute and to move its cells; 1 where
    none overlaps.
    """
    launch_seconds: float
    """What the launch costs besides its steps."""
    exposed_seconds: float = 0.0
    """What every step waits for planes that are not fetched ahead."""

    @property
    def limit(self) -> str:
        """What a step spends most of its time on."""
        if self.memory_seconds > self.compute_seconds:
            return "memory"
        return self.cycles.limit

    @property
    def gcells_per_second(self) -> float:
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
