"""Runs operators of Devito (https://www.devitoproject.org), unchanged from PyPI, on timetile.

    with timetile.devito.backend():
        op = Operator([Eq(u.forward, solve(pde, u.forward))])
    op.apply(time=100, dt=dt)

The operator's arrays are updated in place. An operator without a translation runs in Devito's own
C, and a warning names the equation and the reason.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from timetile.frontend.devito.library import module
from timetile.frontend.devito.operators import LANGUAGE, DevitoWarning, register
from timetile.frontend.devito.where_calls_ran import RanOn, call_counts

__all__ = ["DevitoWarning", "RanOn", "backend", "call_counts", "register"]


@contextmanager
def backend(**options: Any) -> Generator[None]:
    """
    Operators made in the block run on timetile, in the block and afterwards. `options` are options
    of `timetile.compile`: `executor`, `depth`, `cache` and the like.
    """
    configuration = module("devito").configuration
    known = module("devito.operator.registry").operator_registry
    operators = {key: kind for key, kind in known.items() if key[2] == LANGUAGE}
    before = configuration["language"]
    register(**options)
    configuration["language"] = LANGUAGE
    try:
        yield
    finally:
        configuration["language"] = before
        if operators:
            known.update(operators)
        else:
            register()
