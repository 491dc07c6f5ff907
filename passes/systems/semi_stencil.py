"""semi-stencil: sums of far planes in two halves, planes of one half in shared memory.

Before: `temporal.loop %n (...) rotate [1, 0] {...}`, or a program of the stencil dialect.
After, a star of radius 4 along the stream:
```
%f = tile.apply @cell_halves0(%u0[-4,0,0], ..., %u0[-1,0,0])  home #tile.registers<depth 7, ...>
%u1 = tile.apply @cell_halves1(%f[0,0,0], %u0[0,0,0], ...)    home #tile.registers<depth 0, ...>
```
1. A block has 32 x 16 threads with one cell of a plane each (table III), the fastest of the paper.
2. The planes before the cell's own enter the sum together (section III A): R + 1 planes are read at
   once instead of 2 R + 1. Slots of planes change places.
3. Several sums may pass to the second half: of the tilted wave's two fields, each has three sums of
   differences with far planes (section III A has one for each axis of each field).
4. One step a launch, unless the depth is given.

A sum that does not take the planes one after the other has no halves, and is refused. The sums
between the halves, and coefficients, lie in registers.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from timetile.dialects.tile import LANES
from timetile.dialects.tile.kinds import Addressing, Form, Storage, TileLevel
from timetile.dialects.tile.schedule import Schedule
from timetile.passes.cost.papers.semi_stencil import BLOCK
from timetile.passes.diagnostics import refuse
from timetile.passes.systems.programs import PaperProgram
from timetile.passes.systems.system import Point, SystemPass
from timetile.passes.targets.target import Target
from timetile.passes.tiling.multi_queue_buffering import MultiQueueBufferingPass
from timetile.passes.tiling.split_sums import SplitSumsPass

CARRIED = 12
"""
The most sums that pass from the first half to the second: registers hold each for as many planes as
the cell reaches ahead.
"""


@dataclass(frozen=True)
class SemiStencilPass(SystemPass):
    """The semi-stencil; see the module's documentation."""

    name = "semi-stencil"

    @property
    def streaming(self) -> None:
        return None

    @property
    def buffering(self) -> MultiQueueBufferingPass:
        # Planes are fetched early on request (`semi+b`, and `semi+a` by copies).
        return MultiQueueBufferingPass(ahead=self.ahead)

    @property
    def splitting(self) -> SplitSumsPass:
        return SplitSumsPass(carried=CARRIED)

    def point(self, program: PaperProgram, target: Target) -> Point:
        self.refuse_rank(program, (2, 3), "its planes arrive along one of several axes")
        block = BLOCK if program.rank == 3 else (prod(BLOCK),)
        axes = len(block)
        schedule = Schedule(
            tile=TileLevel.BLOCK,
            cells=(1,) * axes,
            lanes=(*[1] * (axes - 1), LANES),
            warps=(*block[:-1], block[-1] // LANES),
            form=Form.HALVES,
            storage=Storage.SHARED,
            addressing=Addressing.SHIFTING,
            occupancy=1,
        )
        depth = self.given_depth(program) or 1
        point = Point(self.bounded(program, depth), self.sized(schedule))
        if not self.splits_a_sum(program, point):
            refuse(
                program.loop,
                f"{self.name} cuts sums into halves, and no sum of a step takes planes before the "
                "cell's own before the others; write the terms from the oldest plane to the "
                "newest, or use the default passes",
            )
        return point
