"""Calls the machine code of sweeps on NumPy arrays, on all cores."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from math import prod
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from timetile.dialects.boxes import sizes_of
from timetile.dialects.temporal import SweepOp
from timetile.lowering.arguments import fields_of, scalars_of
from timetile.lowering.cpu.sweeps import kinds_of, sweep_name
from timetile.passes.analysis.skews import extent_of
from timetile.runtime.machine.llvm import Code
from timetile.runtime.machine.teams import Team
from timetile.runtime.native.loops import CELLS_PER_THREAD


class SweepCode:
    """The machine code of one sweep."""

    def __init__(self, op: SweepOp, number: int, code: Code):
        self.op = op
        self.function = code.function(sweep_name(number), kinds_of(op))
        self.cells = prod(sizes_of(op.box))
        lines = op.line_axes
        self.span = extent_of(op.box, lines[0]) if lines else (0, 1)
        """The lines shared by threads: a sweep of one axis is a single line."""

    def run(
        self, fields: Mapping[SSAValue, Any], numbers: Mapping[SSAValue, Any], threads: int
    ) -> None:
        """Run on NumPy arrays in one piece, in place."""
        given = [fields[field].ctypes.data for field in fields_of(self.op)]
        given += [np.asarray(numbers[scalar]).item() for scalar in scalars_of(self.op)]
        low, high = self.span
        size = max(1, min(threads, self.cells // CELLS_PER_THREAD, high - low))
        borders = [low + (high - low) * k // size for k in range(size + 1)]
        with Team(size) as team:
            team.run(
                [partial(self.function, *given, borders[k], borders[k + 1]) for k in range(size)]
            )
