"""The schedule of the inside of a step with layers: a tile with kept planes, if expected faster.

A step in parts reads every tap from memory. The first part, with most of the cells, gets the
schedule of a step without the other updates, at one step a launch: a wave of order 8 runs at 0.93
of a copy in tiles with kept planes, and at 0.63 in kernels reading memory (an H200, 600 cells along
each axis, FP32).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from timetile.dialects.boxes import CellBox, cells_of
from timetile.dialects.temporal import LoopOp
from timetile.dialects.tile.schedule import Schedule
from timetile.passes.analysis.launches.liveness import written_bounds
from timetile.passes.cost.terms import Cost
from timetile.passes.loops.split_regions import StepInRegions
from timetile.passes.scheduling.candidates import Candidate
from timetile.passes.tiling.inside_kernel import first_updates, inside_kernel
from timetile.passes.tiling.step_parts import LEAST_BOX, parts_of

Choosing = Callable[[LoopOp], Candidate | None]
"""Gives the tile of a loop of single steps, in a module; None for kernels reading memory."""


@dataclass
class InsideTiles:
    """The tiles that keep the planes of a step's first part, found once for each first part."""

    step: StepInRegions
    choose: Choosing
    found: dict[tuple[bool, tuple[int, ...]], Candidate | None] = field(
        default_factory=dict[tuple[bool, tuple[int, ...]], Candidate | None]
    )

    def tile(self, schedule: Schedule) -> Candidate | None:
        """The tile for a schedule that reads memory; None if memory is faster."""
        key = schedule.regions, schedule.cuts[:1]
        if key not in self.found:
            self.found[key] = inside_tile(self.step, schedule, self.choose)
        return self.found[key]

    def cost(self, schedule: Schedule) -> Cost | None:
        """The cost of the tile for a schedule that reads memory; None if memory is faster."""
        tile = self.tile(schedule)
        return None if tile is None else tile.cost


def inside_tile(
    step_in_regions: StepInRegions, schedule: Schedule, choose: Choosing
) -> Candidate | None:
    """
    The tile of a step's first part, if tiles with kept planes are expected to be faster; None for
    steps in one part, for small first parts, and for parts with results computed again.
    """
    if not schedule.reads_memory or not schedule.cuts:
        return None
    step = step_in_regions.of(regions=schedule.regions)
    part = parts_of(step, schedule.cuts)[0]
    every = cells_of(CellBox.of(written_bounds(step)))
    if part.computes_again or cells_of(CellBox.of(part.box)) < LEAST_BOX * every:
        return None
    count = len(part.updates)
    alone = first_updates(step, count)
    found = None if alone is None else choose(alone)
    if found is None or inside_kernel(step, count, found.schedule, "trial") is None:
        return None
    return found
