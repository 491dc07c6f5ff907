"""Reductions of NumPy arrays in the fixed order of `temporal.reduce`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from timetile.dialects.temporal.reduce import BLOCK_CELLS, IDENTITY, LANES, Reduction
from timetile.runtime.arithmetic.cells import Array, maximum, minimum, no_signals

JOINED: dict[Reduction, Callable[[Array, Array], Array]] = {
    Reduction.TOTAL: no_signals(np.add),
    Reduction.MAXIMUM: no_signals(maximum),
    Reduction.MINIMUM: no_signals(minimum),
}
"""The number made of two numbers."""


def block_numbers(kind: Reduction, rows: Array) -> Array:
    """The number of each block of each row, in order."""
    join, identity = JOINED[kind], rows.dtype.type(IDENTITY[kind])
    count, cells = rows.shape
    blocks = -(-cells // BLOCK_CELLS)
    padded = np.full((count, blocks * BLOCK_CELLS), identity)
    padded[:, :cells] = rows
    lined = padded.reshape(count * blocks, BLOCK_CELLS // LANES, LANES)
    lanes = np.full((count * blocks, LANES), identity)
    for turn in range(lined.shape[1]):
        lanes = join(lanes, lined[:, turn])
    half = LANES // 2
    while half:
        lanes = join(lanes[:, :half], lanes[:, half : 2 * half])
        half //= 2
    return lanes[:, 0]


def greatest_or_least(kind: Reduction, cells: Array) -> Any:
    """The maximum or the minimum of some cells, as `reduced` makes it."""
    is_greatest = kind is Reduction.MAXIMUM
    found = cells.max() if is_greatest else cells.min()
    if found != found:
        # NumPy's own NaN may have other bits.
        return cells[np.isnan(cells)][0]
    if found != 0:
        return found
    # -0 is below 0.
    signs = np.signbit(cells[cells == 0])
    is_negative = signs.all() if is_greatest else signs.any()
    return cells.dtype.type(-0.0 if is_negative else 0.0)


def reduced(kind: Reduction, cells: Array) -> Array:
    """The number that a reduction makes of all cells, as an array without axes."""
    rows = np.ascontiguousarray(cells).reshape(-1, cells.shape[-1])
    while rows.size > 1:
        rows = block_numbers(kind, rows).reshape(1, -1)
    return rows.reshape(())
