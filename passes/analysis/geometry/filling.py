"""
Finds the stages left out by the first steps of a chunk, as their level waits for its first plane.
"""

from __future__ import annotations

from collections import Counter
from itertools import combinations, pairwise
from math import prod

from timetile.dialects.tile import ApplyOp, ExchangeOp, KernelOp, StoreOp
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.analysis.geometry.tile_shape import TileShape

FILLING_LOOPS = 2
"""Most loops ahead of the steady loop. Each loop makes more levels than the loop before."""

FILLING_TAPS = 1800
"""
Most taps of a thread in one turn of all filling loops and the steady loop together. Longer code
does not stay in the instruction cache (measured: 1500 taps in the 9-point box in FP64, 1391 to 1402
GCells/s; 3000 taps in 25 points in FP32, 1036 to 1011).
"""


def first_step(geometry: Geometry, stage: ApplyOp | StoreOp) -> int:
    """
    The first step of a chunk, counted from its beginning, with a plane of the chunk dependent on a
    stage.
    """
    if isinstance(stage, StoreOp):
        return geometry.fill + stage.lag
    leads = (geometry.lead(queue) for queue in stage.res if queue in geometry.extents)
    return geometry.fill - max(leads, default=-geometry.drain)


def may_fill(kernel: KernelOp) -> bool:
    """
    Whether stages may be left out: in strips streamed by one warp alone, without another warp
    waiting for an exchange.
    """
    is_strip = TileShape.of(kernel) is TileShape.STRIP
    return is_strip and not any(isinstance(stage, ExchangeOp) for stage in kernel.stages)


def filling_loops(geometry: Geometry) -> tuple[int, ...]:
    """
    The steps, counted from a chunk's first step, at the end of each filling loop. The loops leave
    out most taps with short code. Empty if no stage can be left out, and for kernels of one time
    step, bound by memory.
    """
    if not may_fill(geometry.kernel) or geometry.kernel.steps.data == 1:
        return ()
    cells = prod(axis.layout.cells for axis in geometry.axes) * geometry.period
    work: Counter[int] = Counter()
    for stage in geometry.kernel.stages:
        if isinstance(stage, ApplyOp):
            work[first_step(geometry, stage)] += cells * len(stage.tap_list)
    turns = sorted({first // geometry.period * geometry.period for first in work} - {0})

    def code(ends: tuple[int, ...]) -> int:
        loops = (*ends, geometry.fill + geometry.drain + 1)
        return sum(taps for end in loops for first, taps in work.items() if first < end)

    def left_out(ends: tuple[int, ...]) -> int:
        return sum(
            (end - begin) * sum(taps for first, taps in work.items() if first >= end)
            for begin, end in pairwise((0, *ends))
        )

    choices = [ends for count in range(FILLING_LOOPS + 1) for ends in combinations(turns, count)]
    return max((ends for ends in choices if code(ends) <= FILLING_TAPS), key=left_out, default=())
