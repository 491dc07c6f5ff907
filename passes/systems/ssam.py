"""ssam: a warp's registers as a systolic array: cells stay in their lane, sums travel.

Before: `temporal.loop %n (...) rotate [1, 0] {...}`, or a program of the stencil dialect.
After, for a body that adds one column after the other:
```
%p1 = tile.apply @cell_lanes0(%u0[-1,0], %u0[0,0], %u0[1,0])             : !tile.queue<f64, lag 1>
%s1 = tile.apply @cell_lanes1(%p1[0,-1], %u0[-1,0], %u0[0,0], %u0[1,0])  : !tile.queue<f64, lag 1>
```
1. A tile is a warp; blocks of 128 threads hold four (section 6.2). Nothing is exchanged between
   warps: tiles overlap (section 4.5). A multiprocessor has as many blocks as the registers of a
   thread allow, up to half of its threads: few warps do not keep memory busy.
2. A lane has P = 4 cells of a row, the sliding window of section 4.2; of small filters eight in
   FP32 and six in FP64. Rows arrive one after the other, so that a lane keeps N rows of P cells
   instead of N + P - 1 cells of a column.
3. Partial sums pass from lane to lane (section 4.4). Sums in another order than by columns stay
   whole, with a remark: neighbours' cells are then shuffled.
4. In volumes the four warps of a block have P = 4 rows of a plane each, and exchange rows in shared
   memory; planes arrive one after the other. (In section 4.9 a warp has a plane, and sums of
   neighbouring planes pass through shared memory.)
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from timetile.dialects.tile import LANES
from timetile.dialects.tile.kinds import Form, TileLevel
from timetile.dialects.tile.schedule import Schedule
from timetile.passes.cost.papers.ssam import OUTPUTS, WARPS_OF_A_BLOCK
from timetile.passes.systems.programs import PaperProgram
from timetile.passes.systems.system import SUMS, Point, SystemPass
from timetile.passes.targets.target import Target
from timetile.passes.tiling.register_streaming import RegisterStreamingPass

MOST_BLOCKS = 8
"""
Blocks of a multiprocessor. Each of its warps begins a chunk of rows, and reads the rows around it:
more blocks read more.
"""

SMALL_CELLS, AHEAD = 6, 5
"""
Cells of a lane, and rows on their way, of small filters in FP64, in blocks whose chunks follow from
registers alone. A filter of 3 x 3 on an H200, GCells/s: 243, with seven rows 238, with eight cells
and four rows 239, with four cells and seven rows 230, in blocks of four with three rows 224.
"""

NARROW_BYTES = 4
"""Bytes that a lane may keep: eight FP32 cells or four FP64 cells."""

WIDE_BLOCKS = 4
"""Blocks of a multiprocessor from which on a lane of narrow cells has twice the cells."""


@dataclass(frozen=True)
class SsamPass(SystemPass):
    """SSAM; see the module's documentation."""

    name = "ssam"

    @property
    def streaming(self) -> RegisterStreamingPass:
        return RegisterStreamingPass()

    def point(self, program: PaperProgram, target: Target) -> Point:
        self.refuse_rank(program, (2, 3), "a warp holds rows, one after the other")
        depth = self.bounded(program, self.given_depth(program) or 1)
        if program.rank > 2:
            return Point(depth, self.of_volume(program, target, depth))
        schedule = Schedule(
            tile=TileLevel.WARP,
            cells=(OUTPUTS,),
            lanes=(LANES,),
            warps=(1,),
            pack=WARPS_OF_A_BLOCK,
            form=Form.LANES,
        )
        narrow = self.occupied(program, target, depth, self.sized(schedule))
        if program.cell_bytes > NARROW_BYTES:
            return Point(depth, self.alone(narrow))
        if self.cells is not None:
            return Point(depth, narrow)
        wide = self.sized(replace(schedule, cells=(2 * OUTPUTS,)))
        wide = self.occupied(program, target, depth, wide)
        return Point(depth, wide if wide.occupancy >= WIDE_BLOCKS else narrow)

    def of_volume(self, program: PaperProgram, target: Target, depth: int) -> Schedule:
        """Blocks of four warps, each with four rows of a plane."""
        schedule = Schedule(
            tile=TileLevel.BLOCK,
            cells=(OUTPUTS, 1),
            lanes=(1, LANES),
            warps=(WARPS_OF_A_BLOCK, 1),
            form=Form.LANES,
            occupancy=1,
        )
        return self.occupied(program, target, depth, self.sized(schedule))

    def alone(self, schedule: Schedule) -> Schedule:
        """
        The schedule of wide cells: of small filters each multiprocessor has a single wave of
        chunks, and rows are on their way for longer.
        """
        given = self.occupancy is not None or self.ahead is not None
        if given or schedule.occupancy < WIDE_BLOCKS:
            return schedule
        cells = (SMALL_CELLS,) if self.cells is None else schedule.cells
        return replace(schedule, cells=cells, occupancy=1, ahead=AHEAD)

    def occupied(
        self, program: PaperProgram, target: Target, depth: int, schedule: Schedule
    ) -> Schedule:
        """The schedule with as many blocks on a multiprocessor as registers allow."""
        if self.occupancy is not None:
            return schedule
        isa, threads = target.isa, schedule.layout().threads
        counted = self.registers(program, Point(depth, schedule), target)
        needed = min(isa.registers_per_thread, int(SUMS * counted))
        held = isa.registers_per_multiprocessor // (threads * needed)
        return replace(schedule, occupancy=max(1, min(held, MOST_BLOCKS)))
