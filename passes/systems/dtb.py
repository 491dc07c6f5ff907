"""dtb: the device holds a tile for many steps, and nothing is streamed.

Before: `temporal.loop %n (...) rotate [1, 0] {...}`, or a program of the stencil dialect.
After, without a streaming axis:
```
%u1 = tile.apply @cell(...) else %h1 home #tile.registers<depth 0, period 1>
%e1 = tile.exchange %u1 what edges delay 0 home #tile.exchange_buffer<slots 1, ..., sync flags>
```
1. Blocks of 512 threads hold the cells of a tile in registers for all steps.
2. Neighbouring blocks send each other their edges after each step. The paper's blocks meet at a
   barrier of the grid (section 3.2): `dtb{sync=grid}`, half as fast.
3. Tiles have as many blocks in a row as need the fewest turns of the device for the whole domain.
   The paper's blocks lie along both axes: `dtb{blocks=12,11}`, with planes in shared memory, and
   columns packed when sent.
4. The depth gives the most valid cells a second, by the equations of the authors' later model for
   tiles that stay (EBISU, equations 2, 8 and 11).

The paper keeps the tile in shared memory (section 3.3): `dtb{storage=shared}`, two planes for all
steps. The default keeps the cells in registers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from timetile.dialects.tile import LANES
from timetile.dialects.tile.kinds import Published, Storage, Sync, TileLevel
from timetile.dialects.tile.schedule import Schedule
from timetile.passes.cost.papers.dtb import Tiles, best_depth
from timetile.passes.systems.programs import PaperProgram
from timetile.passes.systems.system import Point, SystemPass
from timetile.passes.targets.target import Target
from timetile.passes.tiling.register_streaming import RegisterStreamingPass

CELLS = {4: (6, 4), 8: (5, 4)}
"""
Cells a thread, by the bytes of a cell: about as many as its registers hold. In FP64 on an H200, 16,
20 and 24 cells: 684, 694 and 679 GCells/s with messages, 396, 442 and 503 with the barrier.
"""

WARPS = 16


@dataclass(frozen=True)
class DtbPass(SystemPass):
    """DTB; see the module's documentation."""

    name = "dtb"

    storage: Storage | None = None

    @property
    def streaming(self) -> RegisterStreamingPass | None:
        if self.storage is Storage.SHARED:
            return None
        return RegisterStreamingPass(what=Published.EDGES)

    def point(self, program: PaperProgram, target: Target) -> Point:
        self.refuse_rank(program, (2,), "a tile of planes of one axis stays on the device")
        schedule = self.sized(
            Schedule(
                tile=TileLevel.DEVICE,
                cells=CELLS.get(program.cell_bytes, CELLS[8]),
                lanes=(1, LANES),
                warps=(WARPS, 1),
                sync=Sync.FLAGS,
                storage=self.storage or Storage.REGISTERS,
                occupancy=1,
                resident=True,
            )
        )
        across = 1 if self.blocks is None else self.blocks[-1]
        rows, row = (axis.block_extent for axis in schedule.layout().axis_layouts)
        tiles = Tiles(
            (program.domain[0], program.domain[1]),
            (rows, row * across),
            max(1, target.resident_blocks(schedule.occupancy) // across),
            program.radius,
        )
        given = self.given_depth(program)
        chosen = best_depth(
            tiles,
            program.cell_bytes,
            program.global_accesses,
            program.shared_accesses(in_registers=True),
            (target.part.copy_tb_per_s * 1e12, target.shared_tb_per_s * 1e12),
        )
        depth = self.bounded(program, chosen if given is None else given)
        blocks = tiles.blocks(depth)
        if self.blocks is None and blocks > 1:
            schedule = replace(schedule, blocks=(blocks, 1))
        if not schedule.has_several_blocks:
            # A single block exchanges nothing.
            schedule = replace(schedule, tile=TileLevel.BLOCK, blocks=(), sync=Sync.BARRIER)
        return Point(depth, schedule)
