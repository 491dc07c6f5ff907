"""ebisu: large tiles at low occupancy, all levels in one ring of shared memory, and in registers.

Before: `temporal.loop %n (...) rotate [1, 0] {...}`, or a program of the stencil dialect.
After, for planes of one axis (one block of 256 threads a tile, section 6.4.1):
```
%u1 = tile.apply @cell(...) home #tile.registers<depth 2, period 1>
%e1 = tile.exchange %u1 what plane delay 1 home #tile.exchange_buffer<slots 4, computed, ...>
```
For planes of two axes (the device holds a tile, sections 4.1 and 6.4.2), blocks exchange edges by
messages: `space global, sync flags`; with `sync=grid` between barriers of the grid.

1. A block has 256 threads, the only one of its multiprocessor (section 6.1).
2. Planes of one axis: overlapping tiles of 512 cells, two a thread, as deep as shifts the
   bottleneck from global to shared memory (equation 17). The slots of planes are computed.
3. Planes of two axes: blocks along the first axis span the domain and its overlap, and rows of 64
   cells overlap. The paper's blocks of 32 x 32 cells span both axes: `blocks=11,12`. Shapes and
   depths are ranked by the paper's equations (`passes/cost/papers/device_tiles.py`); of the first
   five that a multiprocessor holds, the deepest of the fastest as predicted is taken: as deep as
   possible (6.4.2). Slots are shifted.
4. Boxes enter sums plane by plane: the neighbours in a plane are read once, when the plane arrives
   (redundant register streaming, section 4.3.3).
5. One synchronisation a step serves all levels (lazy streaming, section 4.3.2): a barrier of the
   block, or, where the paper has a grid barrier, messages between neighbouring blocks. With
   `every=4` a block has one barrier in four steps, with `ring=shared` one ring for all levels. With
   `loads=copies` asynchronous copies bring a field's planes, and the cells around, to the readers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from timetile.dialects.tile import LANES, KernelOp
from timetile.dialects.tile.kinds import (
    Addressing,
    Form,
    Published,
    RingUse,
    Storage,
    Sync,
    TileLevel,
)
from timetile.dialects.tile.schedule import Schedule
from timetile.passes.cost.papers.device_tiles import DeviceSpeeds, DeviceTiles
from timetile.passes.cost.papers.ebisu import SIDE, THREADS, deepest, least_depth
from timetile.passes.diagnostics import check_options, refuse
from timetile.passes.systems.programs import PaperProgram
from timetile.passes.systems.system import Point, SystemPass
from timetile.passes.targets.target import Target
from timetile.passes.tiling.register_streaming import RegisterStreamingPass

WARPS = THREADS // LANES

CELLS = 2
"""
Cells of a thread along a plane of one axis. Two are faster than the paper's four, in a column:
steps in different levels are independent work as well, and registers hold deeper launches.
"""

SHAPES = ((4, 1), (2, 2), (3, 2), (4, 2), (1, 4), (2, 4))
"""
Cells of a thread in planes of two axes: the paper's four along the first axis, and as many or more
in wider rows, for less overlap along the rows.
"""

FOR_DEPTH = 0.95
"""The share of the highest predicted speed that is given for depth: "as deep as possible"."""

PLANES = 0.6
"""The share of a thread's registers for the planes of all levels; the rest is for cells at work."""


@dataclass(frozen=True)
class EbisuStreamingPass(RegisterStreamingPass):
    """
    `register-streaming` of whole planes; of what neighbours read (section 4.3.3 lets either memory
    keep less) where blocks exchange messages, which carry edges.
    """

    def stream(self, kernel: KernelOp, module: ModuleOp, schedule: Schedule) -> None:
        plain = RegisterStreamingPass(
            delay=self.delay, what=self.what, loads=self.loads, ring=self.ring
        )
        if schedule.sync is Sync.FLAGS:
            plain = replace(plain, what=None)
        plain.stream(kernel, module, schedule)


@dataclass(frozen=True)
class EbisuPass(SystemPass):
    """EBISU; see the module's documentation."""

    name = "ebisu"

    every: int | None = None
    ring: RingUse | None = None
    loads: Published | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        check_options(self, every=1)
        super().apply(ctx, op)

    @property
    def streaming(self) -> RegisterStreamingPass:
        # With a delay for all exchanges, one barrier a step serves boxes, too (section 4.3.2).
        return EbisuStreamingPass(delay=1, what=Published.PLANE, loads=self.loads, ring=self.ring)

    def point(self, program: PaperProgram, target: Target) -> Point:
        self.refuse_rank(program, (2, 3), "its tiles are streamed along one of several axes")
        on_device = program.rank > 2
        point = (self.on_device if on_device else self.overlapping)(program, target)
        if self.every is not None and point.schedule.steps_between_barriers != self.every:
            refuse(
                program.loop,
                f"{self.name}{{every={self.every}}} is one barrier in {self.every} steps, and the "
                "blocks of a tile send messages every step; give sync=grid, too",
            )
        return point

    @staticmethod
    def form(program: PaperProgram) -> Form:
        """Sums plane by plane for boxes: a plane's neighbours are read once (section 4.3.3)."""
        return Form.ROWS if program.reads_several_planes_beside else Form.NONE

    def overlapping(self, program: PaperProgram, target: Target) -> Point:
        """Tiles of one block (section 6.4.1)."""
        given = self.given_depth(program)
        depth = given or least_depth(
            program.global_accesses,
            program.shared_accesses(in_registers=True),
            target.part.copy_tb_per_s,
            target.shared_tb_per_s,
        )
        plain = Schedule(
            tile=TileLevel.BLOCK,
            cells=(1,),
            lanes=(LANES,),
            warps=(WARPS,),
            form=self.form(program),
            storage=Storage.SHARED,
            addressing=Addressing.COMPUTED,
            occupancy=1,
        )
        each = (replace(plain, cells=(cells,)) for cells in (CELLS, 1))
        points = [Point(self.bounded(program, depth), self.sized(one)) for one in each]
        held = (p for p in dict.fromkeys(points) if self.cost_if_held(program, p, target))
        return next(held, points[-1])

    def on_device(self, program: PaperProgram, target: Target) -> Point:
        """Tiles of the whole device (section 6.4.2)."""
        plain = Schedule(
            tile=TileLevel.DEVICE,
            cells=(SIDE // WARPS, 1),
            lanes=(1, LANES),
            warps=(WARPS, 1),
            form=self.form(program),
            storage=Storage.SHARED,
            addressing=Addressing.SHIFTING,
            sync=Sync.FLAGS,
            occupancy=1,
        )
        given = self.given_depth(program)
        room = deepest(target.isa.shared_per_block, SIDE, program.radius, program.cell_bytes)
        depths = range(1, self.bounded(program, room) + 1)
        if given is not None:
            depths = (self.bounded(program, given),)
        tiles = device_tiles(program, target)
        found: dict[Point, float] = {}
        # Blocks take rows of a neighbour's nearest warp alone.
        shapes = [cells for cells in SHAPES if cells[0] >= program.radius] or SHAPES[:1]
        for cells, depth in product(shapes, depths):
            schedule = self.sized(replace(plain, cells=cells))
            point, speed = self.spanned(tiles, schedule, depth)
            found[point] = speed
        points = sorted(found, key=lambda point: -found[point])
        # Where nothing fits, the fewest cells a thread spill least.
        fewest = min(points, key=lambda point: prod(point.schedule.cells))
        points = [p for p in points if leaves_registers(program, p, target)]
        return (
            self.fastest(
                program, points, target, alike=FOR_DEPTH, preferred=lambda point: point.depth
            )
            or fewest
        )

    def spanned(self, tiles: DeviceTiles, schedule: Schedule, depth: int) -> tuple[Point, float]:
        """A point with the best number of blocks along the first axis, and its speed."""
        rows, row = (axis.block_extent for axis in schedule.layout().axis_layouts)
        across = 1 if self.blocks is None else self.blocks[-1]
        tiles, row = tiles.with_blocks_across(across), row * across
        blocks = self.blocks[0] if self.blocks else tiles.best_blocks((rows, row), depth)
        if self.blocks is None and blocks > 1:
            schedule = replace(schedule, blocks=(blocks, 1))
        if not schedule.has_several_blocks:
            # A single block exchanges nothing.
            schedule = replace(schedule, tile=TileLevel.BLOCK, blocks=(), sync=Sync.BARRIER)
        return Point(depth, schedule), tiles.speed((rows, row), blocks, depth)


def leaves_registers(program: PaperProgram, point: Point, target: Target) -> bool:
    """
    Whether planes of all levels, and as many sums if planes enter sums one by one, take at most
    `PLANES` of a thread's registers.
    """
    kinds = 1 if point.schedule.form is Form.NONE else 2
    kept = kinds * 2 * program.radius * point.depth * prod(point.schedule.cells)
    most = target.isa.registers_for(point.schedule.layout().threads)
    return kept * program.cell_bytes // 4 <= PLANES * most


def device_tiles(program: PaperProgram, target: Target) -> DeviceTiles:
    """The tiles of a volume on the blocks that a target holds at once."""
    stream, first, second = program.domain
    return DeviceTiles(
        (stream, first, second),
        program.radius,
        program.cell_bytes,
        program.global_accesses,
        program.shared_accesses(in_registers=True),
        DeviceSpeeds(
            target.resident_blocks(1),
            target.part.copy_tb_per_s * 1e12,
            target.shared_tb_per_s * 1e12,
        ),
    )
