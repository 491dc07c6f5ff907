"""The considered schedules of kernels that read every tap from memory, and their trials.

Steps of many fields move more cells than tiles can keep: kernels of a single step without kept
planes run at the memory's speed if threads need few registers. The step is cut into as few parts as
possible, with and without results computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product

from xdsl.dialects.builtin import ModuleOp

from timetile.dialects.boxes import CellBox, cells_of
from timetile.dialects.cell_types import CELL_BYTES
from timetile.dialects.syntax import cell_type, element_type
from timetile.dialects.temporal import LoopOp
from timetile.dialects.tile import LANES, KernelOp
from timetile.dialects.tile.kinds import TileLevel
from timetile.dialects.tile.schedule import Schedule
from timetile.passes.analysis.edges import loop_boundary
from timetile.passes.analysis.launches.liveness import written_bounds, written_cells
from timetile.passes.cost.memory_reads import PartFacts, launches_in_turn, memory_cost
from timetile.passes.cost.terms import Cost
from timetile.passes.loops.split_regions import StepInRegions
from timetile.passes.targets.hardware import LEAST_COPY, VECTOR_BYTES
from timetile.passes.targets.target import Target
from timetile.passes.tiling.part_kernels import lay_out, part_kernels
from timetile.passes.tiling.step_parts import (
    fused_parts,
    has_large_bodies,
    largest_parts,
    parts_by_width,
    region_parts,
    wide_parts,
)

Shape = tuple[int, ...]

PLATE_CELLS = ((1, 1), (2, 1), (1, 2), (2, 2), (1, 4), (4, 2))
"""
Cells of a thread along the axes of a plate: wide rows share sectors, rows below share loads. One
H200, boxes of 3 x 3 in FP32, GCells/s: 407 with two rows of two cells, 474 with four.
"""

FEW_CELLS = ((1, 1, 1), (2, 1, 1), (1, 1, 2), (1, 1, 4))
"""Up to four cells of a thread, in a row or in planes."""

PAIRS = ((2, 1, 2), (4, 1, 2))
"""Two cells of a row in several planes: rows of FP32 between halos seldom begin with four."""

VOLUME_CELLS = (*FEW_CELLS, (2, 1, 4), *PAIRS)
"""
Cells of a thread along the axes of a volume. One H200: a step of Yee's equations in FP32 runs at 68
GPts/s with four cells and at 73 with eight; 7 points in FP64 at 226 GCells/s with two pairs, at 235
with four, and at 199 as a tile that keeps planes.
"""

PLATE_WARPS = ((8, 1),)
"""Warps of a block along the axes of a plate."""

VOLUME_WARPS = ((1, 8, 1), (1, 4, 2))
"""Warps of a block along the axes of a volume: blocks of little surface."""

SHARING_CELLS = (*FEW_CELLS, (4, 1, 1), *PAIRS)
"""
Cells of a thread for volumes in several kernels, which no tile does as one: neighbours across rows
share loads and results. One H200, slopes of order 8 of slopes in FP32, GPts/s: 56 with four cells,
60 with eight of four planes, 55 with eight of two.
"""

NARROW_CELLS = (*SHARING_CELLS, (2, 1, 4))
"""
Cells of a thread for volumes of narrow fields in several kernels: as many bytes as those of FP32.
Elastic waves of f16 take 152 instructions a cell with eight cells of a thread, and 216 with four.
"""

SHARING_WARPS = (*VOLUME_WARPS, (2, 4, 1))
"""Warps of a block for volumes in several kernels."""

BLOCKS = (4, 3, 2, 1)
"""Blocks of a multiprocessor: of equal predictions, the most warps come first."""


def considers_memory(loop: LoopOp) -> bool:
    """
    Whether schedules that read memory are considered: not where fields go on outside the bounds, as
    all tiles would have images, not for a domain of one axis, and not for steps with points.
    """
    if loop.has_points or loop_boundary(loop) is not None:
        return False
    return len(written_bounds(loop).lb) in (2, 3)


def memory_schedules(step: StepInRegions) -> Iterator[Schedule]:
    """
    The considered schedules, if any. Bodies that need most registers of a thread get a thread for
    each cell.
    """
    loop = step.loop
    if not considers_memory(loop):
        return
    rank = len(written_bounds(loop).lb)
    size = max(CELL_BYTES[cell_type(buffer)] for buffer in loop.buffers)
    alone = has_large_bodies(loop)
    narrow = min(CELL_BYTES[element_type(buffer)] for buffer in loop.buffers) < LEAST_COPY
    for regions, cuts in ways_to_cut(step):
        shapes, warps = shapes_of(rank, cuts, narrow=narrow)
        for cells, beside, blocks in product(shapes[:1] if alone else shapes, warps, BLOCKS):
            if cells[-1] * size <= VECTOR_BYTES:
                yield Schedule(
                    tile=TileLevel.BLOCK, cells=cells, lanes=(*(1,) * (rank - 1), LANES),
                    warps=beside, pack=1, ahead=0, occupancy=blocks, resident=True,
                    reads_memory=True, regions=regions, cuts=cuts,
                )  # fmt: skip


def ways_to_cut(step: StepInRegions) -> list[tuple[bool, tuple[int, ...]]]:
    """The considered cuts of a step, as it is and, with layers, in regions."""
    finders = (fused_parts, largest_parts, wide_parts, parts_by_width)
    ways = dict.fromkeys(find(step.loop) for find in finders)
    found: list[tuple[bool, tuple[int, ...]]] = [(False, cuts) for cuts in ways]
    if step.split is not None:
        ways = dict.fromkeys(region_parts(step.split, again=again) for again in (True, False))
        found += [(True, cuts) for cuts in ways]
    return found


def shapes_of(
    rank: int, cuts: Sequence[int], *, narrow: bool
) -> tuple[Sequence[Shape], Sequence[Shape]]:
    """
    The considered cells of a thread, and warps of a block, for a step with these cuts; `narrow`: of
    fields with cells of less than a word.
    """
    if rank == 2:
        return PLATE_CELLS, PLATE_WARPS
    if not cuts:
        return VOLUME_CELLS, VOLUME_WARPS
    return (NARROW_CELLS if narrow else SHARING_CELLS), SHARING_WARPS


KEEPING = 3.0
"""
How long a step in parts takes, in times of its other parts, to look for a tile that keeps the first
part's planes: the search takes as long as that for a step.
"""

PARTED = 0.9
"""
The factor on the worth of a step whose first part is a tile, beside a tile of the whole step.
Tilted media of 13 arrays in FP32, one H200, GPts/s: a tile of the step runs at 33 and 26 is
predicted, a tile with another kernel behind at 35 where 35 is predicted.
"""

Inside = Callable[[Schedule], Cost | None]
"""The cost of a step's first part as a tile that keeps planes; None where memory is faster."""


class PartTrials:
    """The kernels of a loop's step in parts, built once for each way to cut the step."""

    def __init__(self, step: StepInRegions, module: ModuleOp, inside: Inside | None = None):
        """`inside`: for steps whose first part may keep planes."""
        self.step, self.loop, self.module = step, step.loop, module
        self.inside = inside
        loop = step.loop
        self.cells = cells_of(CellBox.of(written_bounds(loop))) if loop.updates else 0
        """The cells of the box around those written by a step."""
        self.known: dict[tuple[bool, tuple[int, ...]], list[KernelOp]] = {}
        self.in_turn: dict[tuple[bool, tuple[int, ...]], int] = {}
        """The launches of a step that wait for each other, by the way to cut the step."""
        self.facts: dict[KernelOp, PartFacts] = {}
        self.costs: dict[Schedule, Cost] = {}
        """The costs found so far, by schedules of one block or two."""

    def kernels(self, schedule: Schedule) -> list[KernelOp]:
        """The kernels of a step, with the layout of a schedule."""
        key = schedule.regions, schedule.cuts
        if key not in self.known:
            step = self.step.of(regions=schedule.regions)
            self.known[key] = part_kernels(step, schedule, "trial")
        found = self.known[key]
        lay_out(found, schedule, self.cells)
        return found

    def cost(self, schedule: Schedule, target: Target) -> Cost:
        """The prediction for a step, equal for two blocks of a multiprocessor and for more."""
        alike = schedule.but(occupancy=min(schedule.occupancy, 2))
        if alike not in self.costs:
            kernels, cells = self.kernels(alike), written_cells(self.loop)
            key = schedule.regions, schedule.cuts
            if key not in self.in_turn:
                self.in_turn[key] = launches_in_turn(kernels, self.loop.rotation)
            for kernel in kernels:
                if kernel not in self.facts:
                    self.facts[kernel] = PartFacts.of(kernel, self.module)
            turns = self.in_turn[key]
            whole = memory_cost(kernels, self.module, target, cells, turns, self.facts)
            kept = self.with_kept_planes(alike, kernels, whole, target)
            self.costs[alike] = kept or whole
        return self.costs[alike]

    def with_kept_planes(
        self, schedule: Schedule, kernels: list[KernelOp], whole: Cost, target: Target
    ) -> Cost | None:
        """
        The prediction for a step of several parts whose first part is a tile that keeps planes;
        None where no such tile is faster. Schedules of layers are compared by the layers' time:
        that of the whole step says nothing about cells that the tile computes.
        """
        if self.inside is None or len(kernels) == 1:
            return None
        turns = self.in_turn[schedule.regions, schedule.cuts]
        rest = memory_cost(kernels[1:], self.module, target, whole.updates, turns, self.facts)
        if whole.seconds < KEEPING * rest.seconds:
            return None
        inside = self.inside(schedule)
        if inside is None or rest.seconds + inside.seconds >= whole.seconds:
            return None
        return replace(rest, exposed_seconds=inside.seconds)
