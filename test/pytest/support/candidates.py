"""The schedules compared for a program."""

from __future__ import annotations

from functools import cache

from timetile.passes.scheduling.candidates import Candidate, candidates
from timetile.passes.targets.target import target_named
from timetile.runtime.kernels.loops import loops_of
from timetile.runtime.kernels.of_program import raise_program
from timetile.runtime.kernels.options import Options
from timetile.runtime.loading.modules import load


@cache
def considered(text: str, depth: int | None = None) -> list[Candidate]:
    """The candidates of a program with common halos, the best first."""
    module = raise_program(load(text), Options(halos="common"))
    (loop,) = loops_of(module)
    return candidates(loop, module, target_named("sm_90"), depth)
