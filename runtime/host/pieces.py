"""The pieces of a run with points: kernels run one while the host works on the cells of another."""

from __future__ import annotations

from collections.abc import Iterator

WHOLE_TURNS = (240, 48)
"""
Pieces have a multiple of one of these steps. Launches of 2 to 6, 8, 10, 12 or 15 steps leave live
data of up to three buffers where the next piece looks for them, without shorter launches (240), and
launches of 2, 3, 4, 6 or 8 steps (48).
"""

MOST_LAST = 96
"""
Most steps of the last piece, where more would leave the GPU waiting for the host: each piece takes
up to a launch longer than its steps.
"""


def tapered_pieces(steps: int, rows: int) -> Iterator[tuple[int, int]]:
    """
    Pieces of at most `rows` steps: the first step and the number of steps. The last pieces are half
    of what is left, and all but the last have whole turns.
    """
    begin = 0
    while begin < steps:
        left = steps - begin
        count = left if left <= min(rows, MOST_LAST) else in_whole_turns(min(rows, left // 2))
        yield begin, count
        begin += count


def in_whole_turns(most: int) -> int:
    """Steps of a piece of at most `most` steps."""
    return next((most // turn * turn for turn in WHOLE_TURNS if most >= turn), max(most, 1))
