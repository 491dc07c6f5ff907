"""Compiling without Python's search for unreachable cycles.

The IR is a graph of many objects, all alive until a kernel is made: searching the graph again and
again takes a tenth of the time of a compilation, and finds nothing.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


@contextmanager
def paused_collection() -> Generator[None]:
    """Search for no cycles in the block. A search that was off before stays off."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def without_collection(function: Callable[P, R]) -> Callable[P, R]:
    """The function, with the search for cycles paused."""

    @wraps(function)
    def run(*arguments: P.args, **named: P.kwargs) -> R:
        with paused_collection():
            return function(*arguments, **named)

    return run
