"""
Ranges on the time line of NVIDIA's profilers, by the package `nvtx`. Without the package or a
profiler, a range costs about a microsecond.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

DOMAIN = "timetile"
"""The name that a profiler's time line gives the ranges of timetile."""


@cache
def annotation() -> Callable[..., AbstractContextManager[Any]] | None:
    """The annotations of `nvtx`; None where the package is not installed."""
    if importlib.util.find_spec("nvtx") is None:
        return None
    made: Callable[..., AbstractContextManager[Any]] = importlib.import_module("nvtx").annotate
    return made


def profiled(name: str) -> AbstractContextManager[Any]:
    """A range of a name, as long as the context: `with profiled("compile @heat_d8"):`."""
    annotate = annotation()
    return nullcontext() if annotate is None else annotate(name, domain=DOMAIN)
