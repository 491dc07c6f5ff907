"""
An even number of launches with some steps in all: the newest values come back to the first buffer.
"""

from __future__ import annotations

from collections.abc import Sequence

LEAST_PART = 2 / 3
"""
The least time of a launch, as a part of the time of the deepest: to read and write all cells. On an
H200 a step of 8192 x 8192 cells takes as long as 7 steps of a kernel of 10 in FP64 (0.70), and 8 of
13 in FP32 (0.62): the number lies between.
"""

PAIRS_COMPARED = 2
"""Pairs of deepest launches that other launches may stand for."""


def even_launches(steps: int, depths: Sequence[int]) -> tuple[list[int], int] | None:
    """
    Launches of known depths, deepest first, and the steps of a last launch with a kernel of its
    own, of several steps and no deeper: the ones that take least time. None if there are none.
    """
    deepest = max(depths)
    pairs = max(steps // (2 * deepest) - PAIRS_COMPARED, 0)
    left = steps - 2 * deepest * pairs
    found = fastest(left, depths)
    ways = [
        (time + time_of_launch(last, deepest), [*launches, last])
        for last in range(2, deepest + 1)
        for time, launches in [found.get((left - last, True), (0.0, []))]
        if launches
    ]
    if not ways:
        return None
    # Of equal times the one with the deepest launches: no other kernel is as fast a step.
    _, chosen = min(ways, key=lambda way: (way[0], [-depth for depth in way[1]]))
    *launches, last = chosen
    return [deepest] * (2 * pairs) + launches, last


def fastest(most: int, depths: Sequence[int]) -> dict[tuple[int, bool], tuple[float, list[int]]]:
    """
    The time and the launches, deepest first, of up to `most` steps by an odd number of launches
    (True), and by an even number.
    """
    deepest = max(depths)
    found: dict[tuple[int, bool], tuple[float, list[int]]] = {(0, False): (0.0, [])}
    for steps in range(1, most + 1):
        for odd in (False, True):
            ways = [
                (time + time_of_launch(depth, deepest), sorted([*launches, depth], reverse=True))
                for depth in depths
                if (steps - depth, not odd) in found
                for time, launches in [found[steps - depth, not odd]]
            ]
            if ways:
                found[steps, odd] = min(ways, key=lambda way: (way[0], [-d for d in way[1]]))
    return found


def time_of_launch(depth: int, deepest: int) -> float:
    """The time of a launch, in steps of the deepest."""
    return max(depth, LEAST_PART * deepest)
