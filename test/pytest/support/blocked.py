"""Passes of time loops on the processor by some steps and places."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import pytest

from timetile.runtime.native import loops as native
from timetile.runtime.native.blocking import Blocking, BlockingRule


@contextmanager
def passes(depth: int, rows: int, columns: int) -> Generator[None]:
    """
    Loops pass over their fields by a number of steps and places, with fewer steps if threads would
    have too few places; threads share even a few cells.
    """

    def choice(rule: BlockingRule, steps: int, threads: int) -> Blocking:
        possible = [d for d in range(1, depth + 1) if threads <= max(1, rule.most_threads(d))]
        return Blocking(max(possible, default=1), rows, columns, together=bool(possible))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "CELLS_PER_THREAD", 1)
        patch.setattr(BlockingRule, "choice", choice)
        yield
