"""
The end of a launch: tiles of several kinds, one kind after the other, on slots taking the next tile
when free.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

ROUNDING = 1e-9
"""Tolerance for rounding in sums of costs, as a share of a tile."""

Free = list[tuple[int, float]]
"""Groups of slots: the number of slots, and the time of being free."""


def makespan(kinds: Sequence[tuple[int, float]], slots: int) -> float:
    """
    The time of the end of the last tile. Tiles start in the order of kinds (count, cost of each),
    and each of `slots` slots takes the next tile when free.
    """
    free: Free = [(slots, 0.0)]
    end = 0.0
    *others, last = [(count, cost) for count, cost in kinds if count] or [(0, 0.0)]
    for count, cost in others:
        time = done(free, count, cost)
        free, end = after(free, count, cost, time), max(end, time)
    count, cost = last
    return max(end, done(free, count, cost)) if count else end


def tiles_by(time: float, start: float, cost: float) -> int:
    """Tiles finished at `time` by a slot free at `start`."""
    return int((time - start) / cost + ROUNDING) if start < time else 0


def done(free: Free, count: int, cost: float) -> float:
    """When `count` tiles are done."""

    def done_by(time: float) -> int:
        return sum(number * tiles_by(time, start, cost) for number, start in free)

    # A lower bound: the time if slots could share a tile, least over the first n groups of slots.
    earliest = sorted(free, key=lambda group: group[1])
    least = min(
        (count * cost + sum(number * start for number, start in earliest[:groups]))
        / sum(number for number, _ in earliest[:groups])
        for groups in range(1, len(free) + 1)
    )
    ends = [start + cost * max(1, ceil((least - start) / cost - ROUNDING)) for _, start in free]
    while done_by(time := min(ends)) < count:
        ends[ends.index(time)] += cost
    return time


def after(free: Free, count: int, cost: float, time: float) -> Free:
    """The groups of slots once `count` tiles are done, the last at some time."""
    left: dict[float, int] = {}
    spare = sum(number * tiles_by(time, start, cost) for number, start in free) - count
    for number, start in free:
        each = tiles_by(time, start, cost)
        end = start + each * cost
        # Some of the slots that could end last find no tile left.
        idle = min(spare, number) if each and end > time - ROUNDING * cost else 0
        spare -= idle
        for slots, moment in ((number - idle, end), (idle, end - cost)):
            if slots:
                left[moment] = left.get(moment, 0) + slots
    return [(number, moment) for moment, number in left.items()]
