"""The calls of Devito's operators that run now: what a call knows ends with the call."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from timetile.frontend.devito.where_calls_ran import RanOn


class RunsInC(Exception):
    """A call of a quickly built operator runs in Devito's own C."""


@dataclass(eq=False)
class RunningCall:
    """A call of an operator: whether Devito's own C was asked to run it, and where it ran."""

    operator: Any
    in_c: bool = False
    ran_on: RanOn = field(default_factory=RanOn)


CALLS: ContextVar[tuple[RunningCall, ...]] = ContextVar("timetile_devito_calls", default=())
"""The calls that run in this thread, the innermost last."""


def running_call(operator: Any) -> RunningCall | None:
    """The call of an operator that runs in this thread."""
    return next((call for call in CALLS.get() if call.operator is operator), None)


@contextmanager
def calling(operator: Any) -> Generator[RunningCall]:
    """The call of an operator that runs in this thread, begun here if none runs."""
    if (running := running_call(operator)) is not None:
        yield running
        return
    call = RunningCall(operator)
    token = CALLS.set((*CALLS.get(), call))
    try:
        yield call
    finally:
        CALLS.reset(token)
