"""When a launch ends: tiles of two kinds, the dear ones first, on slots that take the next when free."""

from __future__ import annotations


def makespan(first: tuple[int, float], second: tuple[int, float], slots: int) -> float:
    """
    The time at which the last of `first` (count, cost each) and then `second` is done, when each of
    `slots` takes the next one as soon as it is free.
    """
    count, cost = first
    rounds, extra = divmod(count, slots)
    starts = [(extra, (rounds + 1) * cost), (slots - extra, rounds * cost)]
    busy = (rounds + (extra > 0)) * cost
    if second[0] == 0:
        return busy

    def done_by(time: float) -> int:
        return sum(
            number * int((time - start) / second[1] + 1e-9)
            for number, start in starts
            if time > start
        )

    low, high = busy, busy + (second[0] // slots + 2) * second[1]
    if done_by(low) >= second[0]:
        return low
    for _ in range(24):
        middle = (low + high) / 2
        low, high = (low, middle) if done_by(middle) >= second[0] else (middle, high)
    return high
