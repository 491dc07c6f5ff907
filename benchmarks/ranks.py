"""Rank correlation, and the rows held out of a fit."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

HELD_OUT = 64
"""Rows with a first byte of the hash below the number are held out: a quarter."""


THIRD = 85
"""That number for a third."""


def is_held_out(row: str, most: int = HELD_OUT) -> bool:
    """The row judges values fitted to other rows."""
    return hashlib.sha256(row.encode()).digest()[0] < most


def ranks(values: Sequence[float]) -> np.ndarray[Any, Any]:
    """The rank of each value; equal values share the mean of their ranks."""
    array = np.asarray(values)
    below = (array[:, None] > array[None, :]).sum(axis=1)
    return below + ((array[:, None] == array[None, :]).sum(axis=1) - 1) / 2


def rank_correlation(predicted: Sequence[float], measured: Sequence[float]) -> float:
    """Spearman's rank correlation: 1 for equal orders, -1 for opposite orders."""
    a, b = ranks(predicted), ranks(measured)
    return float(np.corrcoef(a, b)[0, 1])
