"""Memory of NumPy arrays, with reductions and sweeps by machine code, on all cores."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from math import prod
from typing import Any

import numpy as np
from xdsl.ir import Attribute, SSAValue

from timetile.dialects.temporal import ReduceOp, Reduction, SweepOp
from timetile.dialects.temporal.reduce import BLOCK_CELLS, LANES
from timetile.lowering.cpu.reductions import BLOCKS, reduction_name
from timetile.runtime.arithmetic.cells import Array
from timetile.runtime.host.field_cells import box_cells
from timetile.runtime.host.memory import ViewMemory
from timetile.runtime.machine.llvm import Code
from timetile.runtime.machine.teams import Team
from timetile.runtime.native.sweeps import SweepCode

CELLS_PER_THREAD = 1 << 18
"""Least cells for a thread: fewer are read sooner than a thread starts."""


class NativeMemory(ViewMemory):
    """Memory of NumPy arrays, with reductions and sweeps by machine code on some threads."""

    def __init__(self, code: Code, threads: int, sweeps: Mapping[SweepOp, SweepCode]):
        super().__init__()
        self.code, self.threads, self.sweeps = code, threads, sweeps

    def sweep(
        self, op: SweepOp, fields: Mapping[SSAValue, Any], numbers: Mapping[SSAValue, Any]
    ) -> None:
        if op.parts is not None:
            super().sweep(op, fields, numbers)
            return
        self.sweeps[op].run(fields, numbers, self.threads)

    def reduce(self, op: ReduceOp, buffer: Any) -> Any:
        cells = box_cells(op, buffer)
        while cells.size > 1:
            cells = self.round(op.reduction, op.result.type, cells)
        return cells.reshape(())[()]

    def round(self, kind: Reduction, element: Attribute, cells: Array) -> Array:
        """A number for each block of each row, in order; the array has 1 to 3 axes."""
        function = self.code.function(reduction_name(kind, element), BLOCKS)
        *outer, width = cells.shape
        blocks = -(-width // BLOCK_CELLS)
        count = prod(outer) * blocks
        numbers = np.empty(count, cells.dtype)
        distances = [stride // cells.itemsize for stride in cells.strides[:-1]]
        rows, far, near = 1, 0, 0
        if outer:
            rows, near = outer[-1], distances[-1]
        if len(outer) > 1:
            far = distances[0]
        size = max(1, min(self.threads, cells.size // CELLS_PER_THREAD, count))
        lanes = np.empty((size, 2 * LANES), cells.dtype)
        borders = [count * k // size for k in range(size + 1)]
        with Team(size) as team:
            team.run(
                [
                    partial(
                        function, cells.ctypes.data, numbers.ctypes.data, lanes[k].ctypes.data,
                        borders[k], borders[k + 1], blocks, width, rows, far, near,
                    )
                    for k in range(size)
                ]
            )  # fmt: skip
        return numbers
