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
4. A multiprocessor has as many blocks as sums, threads and shared memory let in: the quotas of a
   block decide (section IV).
5. One step a launch, unless the depth is given. With `ahead=2` planes are fetched early, by
   asynchronous copies into the ring (section III B and C: `semi+b`, `semi+a`).

A sum that does not take the planes one after the other has no halves, and is refused. The sums
between the halves, and coefficients, lie in registers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, prod

from timetile.dialects.cell_types import CELL_BYTES
from timetile.dialects.tile import LANES, KernelOp, LoadOp, RegistersAttr, queue_type
from timetile.dialects.tile.kinds import Addressing, Form, Storage, TileLevel
from timetile.dialects.tile.schedule import Schedule
from timetile.passes.analysis.block_memory import BlockMemory
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.cost.papers.an5d import THREADS_OF_A_MULTIPROCESSOR
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


OTHERS = 25
"""
Registers of a thread beside sums, planes and addresses of fields. The assembler takes 31 and 36 for
a star of radius 4 in FP32 and FP64, with 6 and 12 for sums, and spills no register of 40 for the
wave equation with two fields more.
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
        return self.occupied(program, point, target) if self.occupancy is None else point

    def occupied(self, program: PaperProgram, point: Point, target: Target) -> Point:
        """The point with as many blocks on a multiprocessor as threads and memory allow."""
        kernel = self.deepest(program, point, target)
        if kernel is None:
            return point
        isa, threads = target.isa, point.schedule.layout().threads
        taken = BlockMemory.of(Geometry(kernel)).bytes + isa.shared_overhead
        most = min(THREADS_OF_A_MULTIPROCESSOR // threads, isa.shared_per_multiprocessor // taken)
        needed = held_registers(kernel) + OTHERS
        held = (n for n in range(most, 1, -1) if isa.registers_for(n * threads) >= needed)
        return replace(point, schedule=replace(point.schedule, occupancy=next(held, 1)))


def held_registers(kernel: KernelOp) -> int:
    """
    Registers of a cell for the planes that a kernel keeps from step to step, and for the addresses
    of loaded fields.
    """
    words = sum(isinstance(stage, LoadOp) and stage.data is not None for stage in kernel.stages)
    for stage in kernel.stages:
        if isinstance(stage.home, RegistersAttr) and (depth := stage.home.depth.data):
            kinds = (queue_type(result).element for result in stage.results)
            words += sum((depth + 1) * ceil(CELL_BYTES[kind] / 4) for kind in kinds)
    return words
