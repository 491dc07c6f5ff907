"""an5d: own cells in registers at fixed places, each level's plane in shared memory.

Before: `temporal.loop %n (...) rotate [1, 0] {...}`, or a program of the stencil dialect.
After:
```
%u1 = tile.apply @cell(...) home #tile.registers<depth 2, period 3>
%e1 = tile.exchange %u1 what plane delay 1 home #tile.exchange_buffer<slots 2, fixed, ...>
```
1. The model of section 5 ranks the configurations of section 6.3: depth, threads of a block, and
   planes of a chunk, of those with enough registers. The paper runs the best five, and takes the
   fastest; here the fastest of the best five as predicted by the cost model is taken.
2. A thread has two cells of a plane, in half as many threads as the configuration has: the paper's
   thread has one. Loops are unrolled until planes age by renaming registers.
3. Boxes enter sums row by row (associative stencils, section 4.1): each plane is published once.
4. A multiprocessor has as many blocks as the registers of a thread allow (section 6.3).
5. Planes are fetched ahead by asynchronous copies, where the paper's blocks wait for loads.
6. Each level has two planes in shared memory, and one barrier a step serves all levels. With
   `ring=shared` two planes serve all levels, with a barrier for each level, as in the paper. Chunks
   of the stream have heights by `peel-boundaries`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, prod

from timetile.dialects.tile import LANES
from timetile.dialects.tile.kinds import Addressing, Form, Published, RingUse, TileLevel
from timetile.dialects.tile.schedule import Schedule
from timetile.passes.analysis.geometry.unrolling import operations_of_step, unrolled_steps
from timetile.passes.cost.papers.an5d import (
    THREADS_OF_A_MULTIPROCESSOR,
    Configuration,
    ranked,
    registers_of_cells,
)
from timetile.passes.diagnostics import refuse
from timetile.passes.systems.programs import PaperProgram
from timetile.passes.systems.system import BEST, SUMS, Point, SystemPass, module_around
from timetile.passes.targets.hardware import SCHEDULERS
from timetile.passes.targets.isa import Isa
from timetile.passes.targets.target import Target
from timetile.passes.tiling.register_streaming import RegisterStreamingPass

CELLS = 2
"""
Cells of a thread along the first in-plane axis, one below the other or side by side. Two take half
of the shared memory's reads beside a barrier, and a barrier counts half as much; with one,
star3d1r in FP32 is predicted at 422 GCells/s on an H100, with two at 550.
"""

ALIKE = 0.92
"""
The share of the highest predicted speed that counts as equal. Of such points the one with most
warps of a block is taken: many levels in small blocks are predicted too fast. One H200, GCells/s:
boxes of radius 1 in FP32 1497 with 7 levels in blocks of 8 warps, 1188 with 13 in blocks of 2;
stars of radius 3 in FP64 535 with 7 levels in blocks of 4, 453 with 3 in blocks of 2. At 0.9 of
the highest prediction it is slower: stars of radius 2 in FP32 1102 with 3 levels in blocks of 8,
1311 with 7 in blocks of 2.
"""

TAKEN = 1.25
"""
Registers that the assembler takes over the paper's count: 48 for star3d4r with two cells of FP32 a
thread (the paper counts 39), 40 for box3d4r (39), 116 for j2d5pt in 13 steps (111).
"""

FAR = 2
"""
Our count over the paper's from which on the paper's is taken. Ours counts all cells of the box
around a thread's cells as registers: 136 for star3d4r, where the assembler takes 48.
"""

LONG_TURN = 8_000
"""
Taps and operations of a thread in a turn of the loop, in words of 4 bytes, from which on slots are
shifted, not fixed: unrolled for fixed slots, box3d4r takes 128 registers in FP32 in place of 40,
and box3d3r spills 724 bytes in FP64, where shifted slots take 60 registers.
"""

AHEAD = 3
"""Planes fetched ahead. Without, star2d1r in FP32 waits for memory a third of its time."""


def registers_left(threads: int, isa: Isa) -> int:
    """
    Registers a thread, with `threads` threads on a multiprocessor: each of its schedulers has a
    share of the registers, and a warp takes whole units.
    """
    warps = ceil(threads / (LANES * SCHEDULERS))
    each = isa.registers_per_multiprocessor // (SCHEDULERS * warps * LANES)
    return min(isa.registers_per_thread, each // isa.register_unit * isa.register_unit)


@dataclass(frozen=True)
class An5dPass(SystemPass):
    """AN5D; see the module's documentation."""

    name = "an5d"

    ring: RingUse | None = None

    @property
    def streaming(self) -> RegisterStreamingPass:
        delay = 0 if self.ring is RingUse.SHARED else None
        return RegisterStreamingPass(what=Published.PLANE, delay=delay, ring=self.ring)

    def point(self, program: PaperProgram, target: Target) -> Point:
        self.refuse_rank(program, (2, 3), "its blocks stream along one of several axes")
        best = self.ranked(program, target)[:BEST]
        points: list[Point] = []
        for cells in self.cells_of_a_thread(program):
            points = [self.of(program, target, chosen, cells) for chosen in best]
            fastest = self.fastest(
                program, points, target, alike=ALIKE, preferred=lambda at: prod(at.schedule.warps)
            )
            if fastest is not None:
                return self.with_short_turn(program, fastest, target)
        return points[0]

    def with_short_turn(self, program: PaperProgram, point: Point, target: Target) -> Point:
        """The point, with slots that are shifted where fixed ones make a long turn."""
        kernel = self.deepest(program, point, target)
        if kernel is None:
            return point
        steps, words = unrolled_steps(kernel), program.cell_bytes // 4
        operations = steps * operations_of_step(kernel, module_around(kernel))
        if steps == 1 or words * operations <= LONG_TURN:
            return point
        schedule = replace(point.schedule, addressing=Addressing.SHIFTING)
        return replace(point, schedule=schedule)

    def cells_of_a_thread(self, program: PaperProgram) -> list[tuple[int, ...]]:
        """Cells of a thread in a plane: as given, else one for given warps, else two or one."""
        axes = program.rank - 1
        if self.cells is not None and len(self.cells) == axes:
            return [self.cells]
        given = self.warps is not None or self.cells is not None
        return [(first, *[1] * (axes - 1)) for first in ((1,) if given else (CELLS, 1))]

    def of(
        self, program: PaperProgram, target: Target, chosen: Configuration, cells: tuple[int, ...]
    ) -> Point:
        """The point of a configuration, whose threads have some cells of a plane each."""
        axes = len(chosen.block)
        lanes = (*[1] * (axes - 1), LANES)
        schedule = Schedule(
            tile=TileLevel.BLOCK,
            cells=cells,
            lanes=lanes,
            warps=tuple(
                max(1, extent // (own * lane))
                for extent, own, lane in zip(chosen.block, cells, lanes)
            ),
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
        most = THREADS_OF_A_MULTIPROCESSOR // threads
        held = (n for n in range(most, 1, -1) if registers_left(n * threads, target.isa) >= needed)
        return replace(schedule, occupancy=next(held, 1))

    def trusted(self, program: PaperProgram, point: Point, counted: int) -> int:
        cells, cell_bytes = prod(point.schedule.cells), program.cell_bytes
        paper = registers_of_cells(point.depth, program.radius, cell_bytes, cells)
        return counted if counted <= FAR * paper else int(TAKEN * paper)

    def ranked(self, program: PaperProgram, target: Target) -> list[Configuration]:
        """
        The configurations with the sizes of the options, from the best by the paper's model; at
        least one.
        """
        given, axes = self.given_depth(program), program.rank - 1
        blocks = None
        if self.warps is not None and len(self.warps) == axes:
            *outer, row = (a * b for a, b in zip(self.warps, self.cells_of_a_thread(program)[0]))
            blocks = [(*outer, row * LANES)]
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
