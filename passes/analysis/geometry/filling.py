"""The first steps of a chunk, in which levels wait for their first plane: which stages they may leave out."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, pairwise
from math import prod

from timetile.dialects.tile import ApplyOp, ExchangeOp, KernelOp, StoreOp
from timetile.passes.analysis.geometry.kernel_geometry import Geometry

FILLING_LOOPS = 2
"""Loops ahead of the steady one, each of which makes more levels."""

FILLING_TAPS = 1800
"""
Taps of a thread in a turn of these loops and of the steady one, together: longer code does not stay in the instruction
cache (measured: 1500 in the 9-point box in FP64, 1391 to 1402 GCells/s; 3000 in 25 points in FP32, 1036 to 1011).
"""


def first_step(geometry: Geometry, stage: ApplyOp | StoreOp) -> int:
    """
    The step of a chunk, counted from its first, from which the chunk's own planes and those that they are made of need
    a stage.
    """
    if isinstance(stage, StoreOp):
        return geometry.fill + stage.lag
    leads = (geometry.lead(queue) for queue in stage.res if queue in geometry.extents)
    return geometry.fill - max(leads, default=-geometry.drain)


def may_fill(kernel: KernelOp) -> bool:
    """Stages are left out of strips that a warp streams alone: nobody waits for what it makes."""
    strip = kernel.stream_axis is not None and len(kernel.plane_axes) == 1
    return strip and not any(isinstance(stage, ExchangeOp) for stage in kernel.stages)


def filling_loops(geometry: Geometry) -> tuple[int, ...]:
    """
    The steps, counted from a chunk's first, at which the loops end that fill the pipeline: those that leave out most taps,
    of which the code is short enough; none where nothing can be left out, and in single steps, which wait for memory.
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
