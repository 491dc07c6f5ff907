"""Work on large arrays by several threads: one thread alone copies 4 GB/s to new memory."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from timetile.runtime.machine.teams import thread_count

T = TypeVar("T")

PART_BYTES = 4 << 20
"""The least bytes of a thread's part."""

MOST_THREADS = 8
"""Threads that fill the memory's bandwidth."""


def by_parts(array: NDArray[Any], work: Callable[[slice], T]) -> list[T]:
    """
    The results of work on parts of an array along the first axis, in order. NumPy lets threads run
    side by side inside the functions of whole arrays.
    """
    rows = array.shape[0] if array.ndim else 1
    most = min(thread_count(None), MOST_THREADS, rows, array.nbytes // PART_BYTES)
    if most < 2:
        return [work(slice(rows))]
    ends = [rows * k // most for k in range(most + 1)]
    parts = [slice(first, last) for first, last in pairwise(ends)]
    with ThreadPoolExecutor(most) as pool:
        return list(pool.map(work, parts))


def copy_in_rows(array: NDArray[Any]) -> NDArray[Any]:
    """A copy of an array in C order, of no other class."""
    if not array.ndim:
        return np.array(array)
    made = np.empty(array.shape, array.dtype)

    def copy(part: slice) -> None:
        np.copyto(made[part], array[part])

    by_parts(array, copy)
    return made
