"""Compares the fields of two runs bit for bit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

BITS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


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
    unequal = (a.view(bits) != b.view(bits)) & ~((a != a) & (b != b))
    if not unequal.any():
        return None
    first = tuple(int(k) for k in np.argwhere(unequal)[0])
    return Difference(int(unequal.sum()), first, (a[first].item(), b[first].item()))
