"""The options of a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from timetile.dialects.decomposition import Decomposition
from timetile.passes.analysis.cells.sums import FpReassoc
from timetile.passes.cells.contract_cells import FpContract
from timetile.passes.cells.simplify_cells import FpDivision
from timetile.runtime.cache.store import Cache
from timetile.runtime.program.compiled_program import Executor


class Options(TypedDict, total=False):
    """Options of `timetile.compile` for a model."""

    executor: Executor | None
    depth: int | None
    arch: str | None
    fp_contract: FpContract
    fp_division: FpDivision
    fp_reassoc: FpReassoc
    gpu: int
    threads: int | None
    cache: Cache | bool
    tune: bool | None
    comm: object
    parts: Sequence[int] | Decomposition | None
    exchange_every: int | None
    gpus: int | Sequence[int] | None
