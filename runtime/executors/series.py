"""Series: the numbers that change from step to step, for the steps of a run and for launches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from timetile.dialects.temporal import LoopOp
from timetile.dialects.tile import StepValueOp
from timetile.passes.diagnostics import refuse
from timetile.runtime.arithmetic.cells import Array
from timetile.runtime.host.functions import HostValues


def step_value(op: StepValueOp, operands: Sequence[Any], values: HostValues) -> Sequence[Any]:
    """The number of a series at a step of a run."""
    series, step = operands
    return [series[int(step) + op.plus.data]]


def series_entries(loop: LoopOp, series: Any, first: int, steps: int) -> Array:
    """The numbers of a series for some steps. Refuses a shorter series."""
    entries = np.asarray(series).reshape(-1)
    if len(entries) < first + steps:
        refuse(
            loop,
            f"a series has {len(entries)} numbers, and the run ends with step {first + steps - 1}; "
            "give a number for each step, from 0 on",
        )
    return entries[first : first + steps]
