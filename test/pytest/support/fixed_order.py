"""Reductions in the fixed order of `temporal.reduce`, cell by cell."""

from __future__ import annotations

from typing import Any

import numpy as np

from support.reference import extreme

JOIN = {
    "total": np.add,
    "maximum": extreme(greatest=True, skips_nan=False),
    "minimum": extreme(greatest=False, skips_nan=False),
}


def in_order(kind: str, cells: Any) -> Any:
    """
    The number of all cells: blocks of 1024 cells of a row, 32 lanes, halves; then a row of the
    numbers of the blocks. Cell by cell, without a cell that is missing.
    """
    if cells.size == 1:
        return cells.reshape(())[()]
    numbers: list[Any] = []
    for row in cells.reshape(-1, cells.shape[-1]):
        for begin in range(0, len(row), 1024):
            block = row[begin : begin + 1024]
            lanes: list[Any] = [None] * 32
            for k, cell in enumerate(block):
                lanes[k % 32] = cell if lanes[k % 32] is None else JOIN[kind](lanes[k % 32], cell)
            half = 16
            while half:
                for k in range(half):
                    pair = [lane for lane in (lanes[k], lanes[k + half]) if lane is not None]
                    lanes[k] = JOIN[kind](*pair) if len(pair) == 2 else (pair or [None])[0]
                half //= 2
            numbers.append(lanes[0])
    return in_order(kind, np.array(numbers))
