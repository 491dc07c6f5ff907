"""an5d: own cells in registers at fixed places, each level's plane in shared memory, one cell a
thread.

Before: `temporal.loop %n (...) rotate [1, 0] {...}`, or a program of the stencil dialect.
After:
```
%u1 = tile.apply @cell(...) home #tile.registers<depth 2, period 3>
%e1 = tile.exchange %u1 what plane delay 1 home #tile.exchange_buffer<slots 2, fixed, ...>
```
1. The model of section 5 ranks the configurations of section 6.3: depth, threads of a block, and
   planes of a chunk, of those with enough registers. The paper runs the best five, and takes the
   fastest; here the fastest of the best five as predicted by the cost model is taken.
2. A thread has one cell of a plane. Loops are unrolled until planes age by renaming registers.
3. Boxes enter sums row by row (associative stencils, section 4.1): each plane is published once.
4. A multiprocessor has as many blocks as the registers of a thread allow (section 6.3).
5. Planes are fetched ahead by asynchronous copies, where the paper's blocks wait for loads.
6. The paper keeps two planes for all levels in shared memory, the kernels here two for each level.
   Chunks of the stream have heights by `peel-boundaries`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from timetile.dialects.tile import LANES
from timetile.dialects.tile.kinds import Form, Published, TileLevel
from timetile.dialects.tile.schedule import Schedule
from timetile.passes.cost.papers.an5d import (
    THREADS_OF_A_MULTIPROCESSOR,
    Configuration,
    ranked,
)
from timetile.passes.diagnostics import refuse
from timetile.passes.systems.programs import PaperProgram
from timetile.passes.systems.system import BEST, Point, SystemPass
from timetile.passes.targets.target import Target
from timetile.passes.tiling.register_streaming import RegisterStreamingPass

AHEAD = 3
"""Planes fetched ahead. Without, star2d1r in FP32 waits for memory a third of its time."""

SUMS = 1.5
"""
Registers that the assembler takes for sums entered row by row, over the model's count: 1.5 to 2 for
boxes of radius 2 and more in two axes.
"""


@dataclass(frozen=True)
class An5dPass(SystemPass):
    """AN5D; see the module's documentation."""

    name = "an5d"

    @property
    def streaming(self) -> RegisterStreamingPass:
        return RegisterStreamingPass(what=Published.PLANE)

    def point(self, program: PaperProgram, target: Target) -> Point:
        self.refuse_rank(program, (2, 3), "its blocks stream along one of several axes")
        ranked = self.ranked(program, target)
        points = [self.of(program, target, chosen) for chosen in ranked[:BEST]]
        return self.fastest(program, points, target) or points[0]

    def of(self, program: PaperProgram, target: Target, chosen: Configuration) -> Point:
        """The point of a configuration."""
        *outer, row = chosen.block
        schedule = Schedule(
            tile=TileLevel.BLOCK,
            cells=(1,) * len(chosen.block),
            lanes=(*[1] * len(outer), LANES),
            warps=(*outer, row // LANES),
            form=Form.ROWS if program.reads_several_planes_beside else Form.NONE,
            ahead=AHEAD,
            occupancy=1,
        )
        depth = self.bounded(program, chosen.depth)
        return Point(depth, self.occupied(program, target, depth, self.sized(schedule)))

    def occupied(
        self, program: PaperProgram, target: Target, depth: int, schedule: Schedule
    ) -> Schedule:
        """The schedule with as many blocks on a multiprocessor as threads and registers allow."""
        if self.occupancy is not None:
            return schedule
        threads = schedule.layout().threads
        needed = self.registers(program, Point(depth, schedule), target)
        if schedule.form is Form.ROWS:
            needed = min(target.isa.registers_per_thread, int(needed * SUMS))
        most = target.isa.registers_per_multiprocessor // (threads * needed)
        return replace(
            schedule, occupancy=max(1, min(most, THREADS_OF_A_MULTIPROCESSOR // threads))
        )

    def ranked(self, program: PaperProgram, target: Target) -> list[Configuration]:
        """
        The configurations with the sizes of the options, from the best by the paper's model; at
        least one.
        """
        given, axes = self.given_depth(program), program.rank - 1
        blocks = None
        if self.warps is not None and len(self.warps) == axes:
            blocks = [(*self.warps[:-1], self.warps[-1] * LANES)]
        depths = None if given is None else [given]
        found = ranked(program.of_an5d(), target, depths, blocks)
        if not found:
            asked = "one step" if given is None else f"{given} steps"
            refuse(
                program.loop,
                f"{self.name} has no configuration for {asked} of a stencil of radius "
                f"{program.radius}: the overlap takes all cells of a block, or the planes of all "
                "levels take more registers than a thread has; give a smaller depth",
            )
        return found
