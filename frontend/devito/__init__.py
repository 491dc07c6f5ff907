"""timetile runs operators of Devito (https://www.devitoproject.org), as Devito from PyPI makes them.

    with timetile.devito.backend():
        op = Operator([Eq(u.forward, solve(pde, u.forward))])
    op.apply(time=100, dt=dt)

The operator's arrays are updated in place; what has no translation runs in Devito's own C, and a warning says which
equation that is and why.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from timetile.frontend.devito.library import module
from timetile.frontend.devito.operators import LANGUAGE, DevitoWarning, register

__all__ = ["DevitoWarning", "backend", "register"]


@contextmanager
def backend(**options: Any) -> Generator[None]:
    """
    Operators that are made in the block run on timetile, in the block and after it. `options` are those of
    `timetile.compile`: `executor`, `depth`, `cache` and the like.
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
