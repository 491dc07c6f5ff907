"""Candidates of a choice among schedules, and their order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import prod

from timetile.dialects.tile.kinds import Form, TileLevel
from timetile.dialects.tile.schedule import Schedule
from timetile.passes.cost.terms import Cost
from timetile.passes.targets.parameters import Worth


@dataclass(frozen=True)
class Candidate:
    """A schedule at a depth, with the model's prediction."""

    schedule: Schedule
    depth: int
    cost: Cost
    worth: float
    """
    The measure for comparing candidates: the predicted speed (GCells/s), reduced where predictions
    are less certain.
    """


def worth_of(schedule: Schedule, depth: int, cost: Cost, factors: Worth) -> float:
    """
    The predicted speed (GCells/s), reduced for depth, and for kinds of kernels known to fall short
    of predictions.
    """
    speed = cost.gcells_per_second * factors.level**depth
    if schedule.resident and schedule.tile is TileLevel.DEVICE:
        speed *= factors.resident_device
    wide = schedule.form is Form.ROWS and schedule.cells[-1] >= factors.wide_sum_cells
    if wide and depth > 1:
        speed *= factors.wide_sums
    return speed


NEARLY = 0.95
"""
The share of the best single step's worth from which tiles are nearly alike. One H200, waves of
order 8 in FP32: 259 GPts/s with 88 registers by the model, 257 with 132, 236 with 220.
"""

AS_GOOD = 0.98
"""
The share of the best single step's worth from which wide rows in a thread are taken. Tilted media
in FP32, one H200, GPts/s in columns and rows of two cells, predictions within 1%: 33 and 35 with 13
arrays, 55 and 65 with 8 arrays and another order of terms.
"""

FREE_PIPES = 0.75
"""Computing of a step, as a share of its moving, below which the memory alone decides."""


def is_moving(candidate: Candidate) -> bool:
    """Whether a candidate is a tile of whole sums of a single step, bound by memory alone."""
    schedule, cost = candidate.schedule, candidate.cost
    is_tile = schedule.tile is TileLevel.BLOCK and not schedule.resident
    whole = candidate.depth == 1 and len(schedule.cells) == 2 and schedule.form is Form.NONE
    return is_tile and whole and cost.compute_seconds < FREE_PIPES * cost.memory_seconds


def leanest(order: Sequence[Candidate]) -> Candidate:
    """
    The tile with fewest registers among those nearly as good as the first, a single step bound by
    memory: the model does not tell such tiles apart. Lanes with pairs of cells come before lanes
    with single cells (one H200, waves of order 8 with a coefficient in FP64: 104 and 105 GPts/s
    with pairs, 91 to 101 with single cells).
    """
    best = order[0]
    wide = (each for each in order if 2 * each.schedule.cells[-1] >= best.schedule.cells[-1])
    near = [each for each in wide if is_moving(each) and each.worth >= NEARLY * best.worth]
    pairs = [each for each in near if each.schedule.cells[-1] > 1]
    return min(pairs or near, key=lambda each: each.cost.registers)


def widest_rows(order: Sequence[Candidate]) -> Candidate:
    """
    Of candidates by worth, the best one, or the same tile of a single step with wider rows in a
    thread, if as good: cells side by side are read from shared memory as vectors.
    """
    best = order[0]
    schedule, cells = best.schedule, prod(best.schedule.cells)
    if best.depth > 1 or schedule.resident or len(schedule.cells) != 2:
        return best
    near = (each for each in order if each.depth == 1 and each.worth >= AS_GOOD * best.worth)
    own = {"cells": schedule.cells, "blocks_alone": schedule.blocks_alone}
    alike = (each for each in near if replace(each.schedule, **own) == schedule)
    same = (each for each in alike if prod(each.schedule.cells) == cells)
    return max(same, key=lambda each: each.schedule.cells[-1])


def by_worth(found: Iterable[Candidate]) -> list[Candidate]:
    """
    Candidates by worth, of equals the one with fewer registers first. Of single steps nearly alike,
    the leanest tile comes first where the memory decides, and the widest elsewhere.
    """
    order = sorted(found, key=lambda each: (-each.worth, each.cost.registers))
    if not order:
        return order
    first = leanest(order) if is_moving(order[0]) else widest_rows(order)
    return [first, *(each for each in order if each is not first)]
