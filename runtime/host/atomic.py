"""Changes of a cell by the host, as of `memref.atomic_rmw`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def replaced(old: Any, new: Any) -> Any:
    """The new value."""
    return new


ATOMIC_KINDS: dict[int, Callable[[Any, Any], Any]] = {
    0: np.add,
    1: np.add,
    2: replaced,
    3: np.maximum,
    4: np.maximum,
    6: np.minimum,
    7: np.minimum,
    9: np.multiply,
    10: np.multiply,
}
"""Meanings of `memref.atomic_rmw`, by number of the kind in MLIR's arith dialect."""
