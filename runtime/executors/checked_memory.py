"""Memory of the executors that check accesses: fields of marked cells, and of checked buffers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from xdsl.dialects import gpu
from xdsl.ir import Operation, SSAValue

from timetile.dialects.temporal import ReduceOp, SweepOp
from timetile.lowering.reduction_kernels import rounds_of
from timetile.lowering.sweep_frames import SweepFrame
from timetile.runtime.arithmetic.cells import Array
from timetile.runtime.arithmetic.sweeps import BoxSlices, run_sweep
from timetile.runtime.executors.homes import MarkedCells, PlaneError
from timetile.runtime.executors.simt.interpreter import SimtLaunch
from timetile.runtime.executors.simt.memory import Buffer
from timetile.runtime.host.memory import ArrayMemory
from timetile.runtime.kernels.reducing import OLDEST_ARCH, THREADS, round_code
from timetile.runtime.kernels.sweeping import sweep_code


class CellsMemory(ArrayMemory):
    """
    Memory with fields of cells marked as set or unset, and arrays for memory used by the host only.
    """

    def read(self, buffer: Any, place: int, dtype: np.dtype[Any]) -> Any:
        """A cell of a buffer, read by the host."""
        return super().read(
            buffer.data if isinstance(buffer, MarkedCells) else buffer, place, dtype
        )

    def write(self, buffer: Any, place: int, value: Any) -> None:
        """Write a cell of a buffer, and mark the cell as set."""
        if isinstance(buffer, MarkedCells):
            super().write(buffer.known, place, True)
            buffer = buffer.data
        super().write(buffer, place, value)

    def new(self, op: Operation, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        """A new buffer of unset cells."""
        return MarkedCells.of(super().new(op, shape, dtype), known=False)

    def contents(self, buffer: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """The cells of a buffer as an array."""
        return buffer.data

    def fill(self, buffer: Any, cells: Array) -> None:
        """Fill a buffer with the cells of an array, and mark all as set."""
        buffer.data[...] = cells
        buffer.known[...] = True

    def sweep(
        self, op: SweepOp, fields: Mapping[SSAValue, Any], numbers: Mapping[SSAValue, Any]
    ) -> None:
        """Run a sweep. PlaneError for an unset cell."""

        def check(field: SSAValue, cells: BoxSlices) -> None:
            if not fields[field].known[cells].all():
                raise PlaneError(op, "it reads a cell that was never set")

        def mark(field: SSAValue, cells: BoxSlices) -> None:
            fields[field].known[cells] = True

        arrays = {field: buffer.data for field, buffer in fields.items()}
        run_sweep(op, arrays, numbers, before_read=check, before_write=mark)


class BufferMemory(ArrayMemory):
    """Memory with fields checked for races, and arrays for memory used by the host only."""

    def __init__(self) -> None:
        super().__init__()
        self.sweeps: dict[SweepOp, gpu.FuncOp] = {}
        """The kernels of sweeps made so far."""
        self.words: dict[SweepOp, Buffer] = {}
        """The words for messages of sweeps, from launch to launch."""

    def read(self, buffer: Any, place: int, dtype: np.dtype[Any]) -> Any:
        """A cell of a buffer, read by the host."""
        return super().read(buffer.data if isinstance(buffer, Buffer) else buffer, place, dtype)

    def write(self, buffer: Any, place: int, value: Any) -> None:
        """Write a cell of a buffer, and mark the cell as set."""
        if isinstance(buffer, Buffer):
            buffer.unset[place] = False
            buffer = buffer.data
        super().write(buffer, place, value)

    def new(self, op: Operation, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        """A new buffer of unset cells."""
        return Buffer(super().new(op, shape, dtype), unset=True)

    def contents(self, buffer: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """The cells of a buffer as an array."""
        return buffer.data.reshape(shape)

    def fill(self, buffer: Any, cells: Array) -> None:
        """Fill a buffer with the cells of an array, and mark all as set."""
        buffer.data[:] = cells.reshape(-1)
        buffer.unset[:] = False

    def reduce(self, op: ReduceOp, buffer: Any) -> Any:
        """The number made by the kernels of a reduction, thread by thread."""
        for made in rounds_of(op):
            numbers = Buffer(np.zeros(made.blocks, buffer.data.dtype), unset=True)
            SimtLaunch(round_code(made), made.grid, THREADS, [buffer, numbers]).run()
            buffer = numbers
        return buffer.data[0]

    def sweep(
        self, op: SweepOp, fields: Mapping[SSAValue, Any], numbers: Mapping[SSAValue, Any]
    ) -> None:
        """Run the kernel of a sweep, thread by thread."""
        frame = SweepFrame.of(op)
        if op not in self.sweeps:
            self.sweeps[op] = sweep_code(frame, OLDEST_ARCH)
            self.words[op] = Buffer(np.zeros(frame.words, np.int64))
        given = [*(fields[f] for f in frame.fields), *(numbers[s] for s in frame.scalars)]
        if frame.words:
            given.append(self.words[op])
        SimtLaunch(self.sweeps[op], frame.grid, frame.threads, given).run()
