"""Turns of steps between two checks, led by the host: the GPU waits for no check.

The host decides after each check whether a turn follows. Meanwhile the GPU makes the first launch
of the next turn: it reads the newest values, and writes buffers that hold no values for a later
step. After a check that ends the run the newest values still lie where they lay.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from timetile.dialects.temporal import Reduction
from timetile.runtime.arithmetic.reductions import greatest_or_least
from timetile.runtime.device.gpu import ROW_BYTES
from timetile.runtime.device.gpu_memory import WorkResult
from timetile.runtime.kernels.loop_ends import Comparison

MOST_NUMBERS = ROW_BYTES // 8
"""Most numbers of a check, those of all warps counted."""

MOST_LATE = 8
"""Checks in a row after which the GPU had to wait for the host, until the host gives up."""

CELLS: dict[int, Any] = {4: ctypes.c_float, 8: ctypes.c_double}
"""The types of numbers, by bytes."""


@dataclass(frozen=True)
class NumbersOfWarps:
    """Numbers on the GPU, one after the other, and what the host makes of them."""

    pointer: Any
    dtype: np.dtype[Any]
    count: int
    kind: Reduction

    @property
    def bytes(self) -> int:
        """The bytes of all numbers."""
        return self.count * self.dtype.itemsize


class CheckedTurns:
    """
    Turns on a stream. `first` gives the first launch of a turn to the stream, and `rest` the others
    with the numbers of the check, whose places it returns; the stream records both once. Raises
    RuntimeError where it cannot.
    """

    def __init__(
        self,
        gpu: Any,
        stream: int,
        first: Callable[[], object],
        rest: Callable[[], Sequence[NumbersOfWarps]],
        comparisons: Sequence[Comparison],
    ):
        self.gpu, self.stream, self.comparisons = gpu, stream, comparisons
        self.late = 0
        """Checks in a row that the GPU waited for."""
        self.done: Any = None
        """An event after a turn, for the copies of its numbers."""
        self.ahead: Any = None
        """An event after the first launch of the next turn."""
        self.known: Any = None
        """An event after the copies."""
        self.graphs: list[Any] = []
        self.numbers: Sequence[NumbersOfWarps] = []
        self.cells: list[np.ndarray[Any, Any]] = []
        """The copies of the numbers."""
        self.beside, self.room = gpu.take_side()
        try:
            self.record(first)
            self.numbers = self.record(rest)
            self.cells = [*self.copies()]
        except BaseException:
            self.close()
            raise

    def copies(self) -> Iterator[np.ndarray[Any, Any]]:
        """Where the copies of the numbers lie, for each number of a check."""
        place = self.room
        for each in self.numbers:
            cells = CELLS[each.dtype.itemsize] * each.count
            yield np.ctypeslib.as_array(cells.from_address(place))
            place += 8 * each.count

    def record(self, work: Callable[[], WorkResult]) -> WorkResult:
        """Record a graph of some work. Returns what the work returns."""
        graph, made = self.gpu.recorded(self.stream, work)
        self.graphs.append(self.gpu.instantiated(graph))
        return made

    @property
    def is_late(self) -> bool:
        """Whether the GPU waited for the host at every check of late."""
        return self.late >= MOST_LATE

    def begin(self, *, more: bool) -> None:
        """Give the first turn to the GPU; `more`: another may follow."""
        self.gpu.launch_graph(self.graphs[0], self.stream)
        self.give(more=more)

    def go_on(self, *, more: bool) -> None:
        """Give the next turn to the GPU, which has its first launch; `more`: another may follow."""
        self.late = self.late + 1 if self.gpu.has_passed(self.ahead) else 0
        self.give(more=more)

    def give(self, *, more: bool) -> None:
        """
        Give the rest of a turn to the GPU, and the first launch of the next. Copies of the numbers
        are work of another stream.
        """
        gpu, (first, rest) = self.gpu, self.graphs
        gpu.launch_graph(rest, self.stream)
        self.done = gpu.mark(self.done, self.stream)
        if more:
            gpu.launch_graph(first, self.stream)
            self.ahead = gpu.mark(self.ahead, self.stream)
        gpu.wait_for_event(self.beside, self.done)
        for each, cells in zip(self.numbers, self.cells):
            gpu.begin_download(cells.ctypes.data, each.pointer, each.bytes, self.beside)
        self.known = gpu.mark(self.known, self.beside)

    def row(self) -> tuple[float, ...]:
        """Wait for the check of the turn given last: its numbers."""
        self.gpu.wait_for(self.known)
        pairs = zip(self.numbers, self.cells)
        return tuple(float(greatest_or_least(each.kind, cells)) for each, cells in pairs)

    def goes_on(self, row: Sequence[float]) -> bool:
        """Whether each comparison of numbers has the given outcome."""
        return all(each.outcome(row) == each.holds for each in self.comparisons)

    def close(self) -> None:
        """Give back graphs and events, after all launches are done."""
        gpu = self.gpu
        gpu.synchronize(self.stream)
        gpu.synchronize(self.beside)
        for event in (self.done, self.ahead, self.known):
            if event is not None:
                gpu.destroy_event(event)
        for graph in self.graphs:
            gpu.free_graph(graph)
        gpu.give_side((self.beside, self.room))
