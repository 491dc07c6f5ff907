"""When a launch ends: tiles of two kinds, the dear ones first, on slots that take the next when free."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil


def makespan(first: tuple[int, float], second: tuple[int, float], slots: int) -> float:
    """
    The time at which the last of `first` (count, cost each) and then `second` is done, when each of
    `slots` takes the next one as soon as it is free.
    """
    count, cost = first
    rounds, extra = divmod(count, slots)
    busy = (rounds + (extra > 0)) * cost
    if second[0] == 0:
        return busy
    # Slots that are free for the second kind, the earliest first.
    free = [(slots - extra, rounds * cost), (extra, (rounds + 1) * cost)]
    free = [(number, start) for number, start in free if number]
    return max(busy, done(free, *second))


def done(free: Sequence[tuple[int, float]], count: int, cost: float) -> float:
    """The time at which `count` tiles are done by groups of slots, each (number, start)."""

    def done_by(time: float) -> int:
        return sum(
            number * int((time - start) / cost + 1e-9) for number, start in free if start < time
        )

    # If slots could share a tile, it would be this time, of the first groups alone or of all.
    least = min(
        (count * cost + sum(number * start for number, start in free[:groups]))
        / sum(number for number, _ in free[:groups])
        for groups in range(1, len(free) + 1)
    )
    ends = [start + cost * max(1, ceil((least - start) / cost - 1e-9)) for _, start in free]
    while done_by(time := min(ends)) < count:
        ends[ends.index(time)] += cost
    return time
