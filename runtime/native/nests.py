"""Calls the machine code of the host's loops on NumPy arrays and numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Operation, SSAValue

from timetile.dialects.temporal import LoopOp
from timetile.dialects.verified import memref_type
from timetile.lowering.cpu.host_nests import NestFunction
from timetile.lowering.cpu.nest_rules import turns_of
from timetile.passes.raising.memory import is_memory, memory_of
from timetile.runtime.arithmetic.cells import dtype_of
from timetile.runtime.executors.numpy_loops import Progress
from timetile.runtime.host.arrays import is_numpy_array
from timetile.runtime.host.functions import HostValues, NestRun
from timetile.runtime.host.loop_facts import KnownLoops
from timetile.runtime.host.memory import refuse_index
from timetile.runtime.host.run_record import among
from timetile.runtime.machine.llvm import Code
from timetile.runtime.native.loops import CELLS_PER_CALL, LoopCode

CELLS_FOR_A_TEAM = 1 << 20
"""
Cells of a step up to which a time loop runs on one thread: a team is started for each sweep, and
the interpreter runs each step (about a millisecond on a busy machine of two cores).
"""

STATUS = 3
"""The numbers of a status: the access counted from 1, the axis, the index; 0 for no fault."""


class NestCode:
    """The machine code of one loop of the host."""

    def __init__(self, nest: NestFunction, code: Code):
        self.nest = nest
        self.function = code.function(nest.name, nest.kinds)
        self.needs = list(self.accessed())
        """The accessed memory from outside: type and number of cells."""

    def accessed(self) -> Iterator[tuple[SSAValue, np.dtype[Any], int]]:
        """The memory behind each access. Buffers that take turns are accessed as one."""
        loop = self.nest.nest
        begins = dict(zip(loop.regions[0].block.args[self.nest.rank :], self.nest.carried))
        for op in self.nest.accesses:
            kind, root = memref_type(op.memref), self.root(op.memref)
            need = dtype_of(kind.element_type), prod(kind.get_shape())
            turning = [begin for begin in begins.values() if begin.type == root.type]
            for memory in turning if root in begins else [root]:
                yield memory, *need

    def root(self, value: SSAValue) -> SSAValue:
        """The memory of a value, through the sweeps of the loop."""
        root = memory_of(value)
        while isinstance(sweep := root.owner, LoopOp) and sweep in self.nest.sweeps:
            root = memory_of(sweep.buffers[sweep.rotation[sweep.results.index(root)]])
        return root

    def fits(self, arrays: Mapping[SSAValue, Any]) -> bool:
        """Whether all accessed memory lies in one piece, as the machine code takes it."""
        return all(
            is_numpy_array(array := arrays.get(memory))
            and array.flags.c_contiguous
            and (array.dtype, array.size) == (dtype, cells)
            for memory, dtype, cells in self.needs
        )

    def call(
        self, counts: Sequence[range], given: Sequence[Any], ways: Sequence[Any]
    ) -> NDArray[np.int64]:
        """
        Run over ranges, and return the results, 8 bytes each. Raises CompileError for an access
        outside memory.
        """
        results = np.zeros(max(self.nest.slots, 1), np.int64)
        status = np.zeros(STATUS, np.int64)
        bounds = [bound for r in counts for bound in (r.start, r.stop, r.step)]
        numbers = [item_of(value) for value in given]
        self.function(*bounds, *numbers, *ways, results.ctypes.data, status.ctypes.data)
        access, axis, index = map(int, status)
        if access:
            op = self.nest.accesses[access - 1]
            refuse_index(op, axis, index, memref_type(op.memref).get_shape()[axis])
        return results


def item_of(value: Any) -> Any:
    """A number, or the address of an array, for a call."""
    if is_numpy_array(value) and value.ndim:
        return value.ctypes.data
    return np.asarray(value).item()


class HostNests:
    """Runs loops of the host with machine code, where a program has some."""

    def __init__(
        self,
        nests: Mapping[Operation, NestCode],
        loops: Mapping[LoopOp, LoopCode],
        threads: int,
        progress: Progress | None,
    ):
        self.nests, self.loops, self.threads, self.progress = nests, loops, threads, progress
        self.known = KnownLoops()

    def run(
        self, op: Operation, counts: Sequence[range], carried: Sequence[Any], values: HostValues
    ) -> NestRun | None:
        """
        Run a loop over ranges, in place; None for a loop without machine code, for arrays in
        several pieces, and for a time loop with work for several threads or with reported progress.
        """
        code = self.nests.get(op)
        if code is None or not self.is_alone(code):
            return None
        nest = code.nest
        outside = [values[value] for value in nest.outside]
        given = {**values, **dict(zip(nest.carried, carried))}
        memory = [v for v in (*nest.carried, *nest.outside) if is_memory(v.type)]
        if not all(is_numpy_array(given[v]) for v in memory) or not code.fits(given):
            return None
        arrays = {array.ctypes.data: array for array in (given[v] for v in memory)}
        ways = [each for sweep in nest.sweeps for each in self.ways(sweep)]
        cells = self.cells(nest)
        slots = np.zeros(max(nest.slots, 1), np.int64)
        for part in run_pieces(counts, cells):
            slots = code.call(part, [*carried, *outside], ways)
            carried = [
                result_of(value, slots[k : k + 1], arrays) for k, value in enumerate(nest.carried)
            ]
        turns = len(counts[0]) if nest.sweeps else 0
        return NestRun(carried, cells * turns, self.written(nest, slots, arrays))

    def is_alone(self, code: NestCode) -> bool:
        """Whether all work of the loop is for a single thread, without reports."""
        sweeps = code.nest.sweeps
        if not sweeps:
            return True
        most = max(self.loops[sweep].most_threads for sweep in sweeps)
        is_small = min(self.threads, most) <= 1 or self.cells(code.nest) <= CELLS_FOR_A_TEAM
        return self.progress is None and is_small

    def cells(self, nest: NestFunction) -> int:
        """The cells updated by the sweeps of a step, and by its inner loops."""
        return sum(self.known.of(sweep).cells * turns_of(sweep) for sweep in nest.sweeps)

    def ways(self, sweep: LoopOp) -> tuple[int, bool, int, int]:
        """How a thread passes over the fields of a sweep."""
        blocking = self.loops[sweep].blocking(turns_of(sweep), 1)
        return blocking.depth, blocking.together, blocking.rows, blocking.columns

    def written(
        self, nest: NestFunction, slots: NDArray[np.int64], arrays: Mapping[int, Any]
    ) -> list[Any]:
        """The buffers written by the sweeps of the last step, the last sweep's first."""
        found: list[Any] = []
        first = len(nest.carried)
        for sweep in nest.sweeps:
            names = slots[first : first + len(sweep.results)]
            first += len(sweep.results)
            new = [arrays[int(names[k])] for k in self.known.of(sweep).latest if names[k]]
            found = [*new, *(buffer for buffer in found if not among(buffer, new))]
        return found


def run_pieces(counts: Sequence[range], cells: int) -> Iterator[Sequence[range]]:
    """The ranges of the calls of a loop: a call does not last, so that Python hears of signals."""
    most = max(1, CELLS_PER_CALL // cells) if cells else 0
    if not most:
        yield counts
        return
    for begin in range(0, max(len(counts[0]), 1), most):
        yield [counts[0][begin : begin + most], *counts[1:]]


def result_of(value: SSAValue, slot: NDArray[np.int64], arrays: Mapping[int, Any]) -> Any:
    """A carried value after a call: a number, or an array by its address."""
    if is_memory(value.type):
        return arrays[int(slot[0])]
    return slot.view(np.uint8)[: dtype_of(value.type).itemsize].view(dtype_of(value.type))[0]
