"""stencilgen: planes shift through registers, and each level has a plane in shared memory.

Before: `temporal.loop %n (...) rotate [1, 0] {...}`, or a program of the stencil dialect.
After:
```
%u1 = tile.apply @cell(...) home #tile.registers<depth 2, period 1>
%e1 = tile.exchange %u1 what plane delay 1 home #tile.exchange_buffer<slots 2, shifting, ...>
```
1. Registers hand planes on: a register holds the plane of a distance, not of a place (AN5D, table
   1: "shifting"). The loop has the code of a single step.
2. A block has 128 threads for planes of one axis and 32 x 32 for planes of two (AN5D, section 6.3),
   with one cell each.
3. Four steps a launch, two or one where a thread would have more than 64 registers, the most of the
   system (EBISU, section 1).
4. Blocks of volumes that read planes beside the cell's own enter sums plane by plane; in planes of
   one axis sums stay whole (AN5D, section 6.3).
5. Nothing is fetched ahead.

The paper has one plane a level in shared memory and two barriers for each; here a level has two
planes, and one barrier a step serves all levels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from timetile.dialects.tile import LANES
from timetile.dialects.tile.kinds import Addressing, Form, Published, TileLevel
from timetile.dialects.tile.schedule import Schedule
from timetile.passes.systems.programs import PaperProgram
from timetile.passes.systems.system import Point, SystemPass
from timetile.passes.targets.target import Target
from timetile.passes.tiling.register_streaming import RegisterStreamingPass

REGISTERS = 64
"""The most registers of a thread."""

DEPTHS = (4, 2, 1)
"""Steps of a launch, the first with few enough registers."""

WARPS = {1: (4,), 2: (32, 1)}
"""Warps of a block, by in-plane axes."""


@dataclass(frozen=True)
class StencilgenPass(SystemPass):
    """STENCILGEN; see the module's documentation."""

    name = "stencilgen"

    @property
    def streaming(self) -> RegisterStreamingPass:
        return RegisterStreamingPass(what=Published.PLANE, period=1)

    def point(self, program: PaperProgram, target: Target) -> Point:
        self.refuse_rank(program, (2, 3), "its blocks stream along one of several axes")
        axes = program.rank - 1
        whole = axes == 1 or not program.reads_several_planes_beside
        schedule = self.sized(
            Schedule(
                tile=TileLevel.BLOCK,
                cells=(1,) * axes,
                lanes=(*[1] * (axes - 1), LANES),
                warps=WARPS[axes],
                form=Form.NONE if whole else Form.ROWS,
                addressing=Addressing.SHIFTING,
                period=1,
                ahead=0,
                occupancy=1,
            )
        )
        if self.occupancy is None:
            threads = schedule.layout().threads
            held = target.isa.registers_per_multiprocessor // (REGISTERS * threads)
            schedule = replace(schedule, occupancy=max(1, held))
        given = self.given_depth(program)
        depths = DEPTHS if given is None else (given,)
        points = [Point(self.bounded(program, depth), schedule) for depth in depths]
        held_points = (p for p in dict.fromkeys(points) if self.cost_if_held(program, p, target))
        return next(held_points, points[-1])
