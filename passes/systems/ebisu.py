"""ebisu: large tiles at low occupancy, all levels in one ring of shared memory, and in registers.

Before: `temporal.loop %n (...) rotate [1, 0] {...}`, or a program of the stencil dialect.
After, for planes of one axis (one block of 256 threads a tile, section 6.4.1):
```
%u1 = tile.apply @cell(...) home #tile.registers<depth 2, period 1>
%e1 = tile.exchange %u1 what plane delay 1 home #tile.exchange_buffer<slots 4, computed, ...>
```
For planes of two axes (the device holds a tile, sections 4.1 and 6.4.2), exchanges are between
barriers of the grid: `space global, sync grid`.

1. A block has 256 threads, the only one of its multiprocessor (section 6.1).
2. Planes of one axis: overlapping tiles of 256 cells, as deep as shifts the bottleneck from global
   to shared memory (equation 17). The slots of planes are computed.
3. Planes of two axes: 32 x 32 cells a block (equation 23), four a thread, and as many blocks as
   span the first axis; as deep as shared memory and registers hold (section 6.4.2). Slots are
   shifted. The paper's blocks lie along both axes, here along the first: tiles overlap along the
   rows, and no more steps are taken than give the most valid cells (equations 1 and 8).
4. Boxes enter sums plane by plane: the neighbours in a plane are read once, when the plane arrives
   (redundant register streaming, section 4.3.3).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil

from timetile.dialects.tile import LANES
from timetile.dialects.tile.kinds import Addressing, Form, Published, Storage, Sync, TileLevel
from timetile.dialects.tile.schedule import Schedule
from timetile.passes.cost.papers.ebisu import SIDE, THREADS, deepest, least_depth, widest_depth
from timetile.passes.systems.programs import PaperProgram
from timetile.passes.systems.system import Point, SystemPass
from timetile.passes.targets.target import Target
from timetile.passes.tiling.register_streaming import RegisterStreamingPass

WARPS = THREADS // LANES


@dataclass(frozen=True)
class EbisuPass(SystemPass):
    """EBISU; see the module's documentation."""

    name = "ebisu"

    @property
    def streaming(self) -> RegisterStreamingPass:
        # With a delay for all exchanges, one barrier a step serves boxes, too (section 4.3.2).
        return RegisterStreamingPass(delay=1, what=Published.PLANE)

    def point(self, program: PaperProgram, target: Target) -> Point:
        self.refuse_rank(program, (2, 3), "its tiles are streamed along one of several axes")
        if program.rank == 2:
            return self.overlapping(program, target)
        return self.on_device(program, target)

    @staticmethod
    def form(program: PaperProgram) -> Form:
        """Sums plane by plane for boxes: a plane's neighbours are read once (section 4.3.3)."""
        return Form.ROWS if program.reads_several_planes_beside else Form.NONE

    def overlapping(self, program: PaperProgram, target: Target) -> Point:
        """Tiles of one block (section 6.4.1)."""
        schedule = Schedule(
            tile=TileLevel.BLOCK,
            cells=(1,),
            lanes=(LANES,),
            warps=(WARPS,),
            form=self.form(program),
            storage=Storage.SHARED,
            addressing=Addressing.COMPUTED,
            occupancy=1,
        )
        given = self.given_depth(program)
        depth = given or least_depth(
            program.global_accesses,
            program.shared_accesses(in_registers=True),
            target.part.copy_tb_per_s,
            target.shared_tb_per_s,
        )
        return Point(self.bounded(program, depth), self.sized(schedule))

    def on_device(self, program: PaperProgram, target: Target) -> Point:
        """Tiles of the whole device (section 6.4.2)."""
        schedule = Schedule(
            tile=TileLevel.DEVICE,
            cells=(SIDE // WARPS, 1),
            lanes=(1, LANES),
            warps=(WARPS, 1),
            form=self.form(program),
            storage=Storage.SHARED,
            addressing=Addressing.SHIFTING,
            sync=Sync.GRID,
            occupancy=1,
        )
        schedule = self.with_blocks(program, target, self.sized(schedule))
        given = self.given_depth(program)
        if given is not None:
            return Point(self.bounded(program, given), schedule)
        room = target.isa.shared_per_block
        most = deepest(room, SIDE, program.radius, program.cell_bytes)
        most = self.bounded(program, min(most, widest_depth(SIDE, program.radius)))
        return self.deepest_fitting(program, schedule, target, most)

    def with_blocks(self, program: PaperProgram, target: Target, schedule: Schedule) -> Schedule:
        """A schedule with as many blocks along the first axis as span the domain, and fit."""
        if self.blocks is not None:
            return schedule
        rows = schedule.cells[0] * schedule.lanes[0] * schedule.warps[0]
        most = target.resident_blocks(schedule.occupancy)
        blocks = min(ceil(program.domain[1] / rows), most)
        if blocks > 1:
            return replace(schedule, blocks=(blocks, 1))
        # A single block exchanges nothing.
        return replace(schedule, tile=TileLevel.BLOCK, sync=Sync.BARRIER)

    def deepest_fitting(
        self, program: PaperProgram, schedule: Schedule, target: Target, most: int
    ) -> Point:
        """The deepest point of at most `most` steps whose kernel a multiprocessor holds."""
        least = 1
        while least < most:
            middle = (least + most + 1) // 2
            if self.fits(program, Point(middle, schedule), target):
                least = middle
            else:
                most = middle - 1
        return Point(least, schedule)
