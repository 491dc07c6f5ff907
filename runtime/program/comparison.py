"""Compares the fields of two runs bit for bit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

BITS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}

CELLS_AT_ONCE = 1 << 16
"""Cells compared at once: temporaries then stay in a cache."""


@dataclass(frozen=True)
class Difference:
    """
    A difference of two fields: the number of different cells, the first such cell, and its two
    values.
    """

    count: int
    first: tuple[int, ...]
    values: tuple[float, float]

    def __str__(self) -> str:
        cell = f"[{', '.join(map(str, self.first))}]"
        return (
            f"{self.count} cells differ, the first at {cell}: {self.values[0]!r} and "
            f"{self.values[1]!r}"
        )


def difference(a: Array, b: Array) -> Difference | None:
    """
    How two fields of one shape and type differ; None where they have the same bits. Two NaN count
    as the same: which of the many NaN an operation returns is left open by IEEE 754.
    """
    bits = BITS[a.dtype.itemsize]
    count, first = 0, -1
    cells, others = a.reshape(-1), b.reshape(-1)
    for start in range(0, a.size, CELLS_AT_ONCE):
        x, y = (flat[start : start + CELLS_AT_ONCE] for flat in (cells, others))
        unequal = x.view(bits) != y.view(bits)
        if not unequal.any():
            continue
        places = np.flatnonzero(unequal & ~((x != x) & (y != y)))
        if count == 0 and places.size:
            first = start + int(places[0])
        count += places.size
    if count == 0:
        return None
    place = tuple(int(k) for k in np.unravel_index(first, a.shape))
    return Difference(count, place, (a[place].item(), b[place].item()))
