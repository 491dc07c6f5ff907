"""The end of a launch: the closed form against slots that take tiles one after the other."""

from __future__ import annotations

import heapq

from hypothesis import given
from hypothesis import strategies as st

from timetile.passes.analysis.geometry.makespan import makespan

KINDS = st.lists(st.tuples(st.integers(0, 40), st.integers(1, 60)), min_size=1, max_size=4)


def simulated(kinds: list[tuple[int, int]], slots: int) -> int:
    """Every tile starts on the first free slot."""
    free, end = [0] * slots, 0
    for count, cost in kinds:
        for _ in range(count):
            done = heapq.heappop(free) + cost
            heapq.heappush(free, done)
            end = max(end, done)
    return end


@given(KINDS, st.integers(1, 12))
def test_tiles_of_several_kinds_start_one_after_the_other(kinds: list[tuple[int, int]], slots: int):
    assert makespan(kinds, slots) == simulated(kinds, slots)
