"""The cells of a queue read by a thread: own cells, cells of other lanes, and vectors of shared
memory.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import prod

from timetile.passes.analysis.geometry.plane_geometry import Row, moved_by
from timetile.passes.targets.hardware import LANES, SHARED_BYTES_PER_CYCLE


@dataclass(frozen=True)
class TapFacts:
    """
    A tap of a queue: the plane's age in stream steps, and the cells from the own one along every
    in-plane axis.
    """

    age: int
    offset: tuple[int, ...]
    shared: bool
    """Whether an exchange has whole planes in shared memory, for taps beside own cells."""


TapSet = frozenset[TapFacts]

REMEMBERED = 4096
"""Most answers of `neighbours` kept: schedules of one loop ask for few, and ask often."""


def span(offsets: Collection[int]) -> int:
    """The distance from the smallest offset to the largest."""
    return max(offsets) - min(offsets)


def wavefronts(cells: int, cell_bytes: int) -> float:
    """Cycles of the shared-memory pipe when each lane of a warp moves `cells` consecutive cells."""
    return cells * cell_bytes * LANES / SHARED_BYTES_PER_CYCLE


def spans(taps: Collection[TapFacts]) -> tuple[int, ...]:
    """The distance between the farthest taps along every in-plane axis; empty without taps."""
    return tuple(span(axis) for axis in zip(*(tap.offset for tap in taps)))


def cells_beside(patch: tuple[int, ...], far: tuple[int, ...]) -> int:
    """
    Cells beside a patch, in the box around the patch and all cells read by taps that span `far`.
    """
    return prod(n + more for n, more in zip(patch, far)) - prod(patch) if far else 0


@lru_cache(maxsize=REMEMBERED)
def neighbours(taps: TapSet, patch: tuple[int, ...], group: int) -> tuple[int, int]:
    """
    Cells of a queue fetched by a thread with a patch of cells, each once: the number of shuffled
    cells, and of aligned vectors of `group` cells from shared memory. Rows of other warps come from
    shared memory. Without whole planes there, cells beside the own columns are shuffled.
    """
    *others, cells = patch
    own_rows = set(product(*map(range, others)))
    shuffled: set[tuple[int, Row, int]] = set()
    vectors: set[tuple[int, Row, int]] = set()
    for tap in taps:
        *moved, cell = tap.offset
        for own in own_rows:
            row = moved_by(own, moved)
            own_row = row in own_rows
            if tap.shared and not (own_row and cell == 0):
                first, last = cell // group, (cell + cells - 1) // group
                for number in range(first, last + 1):
                    if not (own_row and 0 <= number * group < cells):
                        vectors.add((tap.age, row, number))
                continue
            if not own_row:
                vectors.update((tap.age, row, number) for number in range(cells // group))
            beyond = range(cell, 0) if cell < 0 else range(cells, cells + cell)
            shuffled.update((tap.age, row, place) for place in beyond)
    return len(shuffled), len(vectors)
