"""A loop in a graph of a GPU: runs some work again and again until a check of numbers ends it.

The host gives the number of checks to make at most, and looks at the numbers later: a second launch
follows the first without a wait. A launch after the end does nothing.
"""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from timetile.runtime.device.arguments import LaunchArguments
from timetile.runtime.device.gpu import Device
from timetile.runtime.kernels.loop_ends import (
    BEGIN,
    CHECK,
    WORDS,
    Comparison,
    begin_text,
    check_text,
)
from timetile.runtime.machine.driver import checked

MOST_CHECKS = 4096
"""Most checks of a launch: rows of the table."""

SLOTS = 2
"""Launches under way at once."""

PlacedNumber = tuple[int, np.dtype[Any]]
"""The address of a number on the GPU, and its type."""


class GraphLoop:
    """
    The loop of `work` on a stream. `work` gives its launches to the stream, which records them, and
    returns the numbers of a check, of some `types`. Raises RuntimeError where the driver has
    no loops in graphs.
    """

    def __init__(
        self,
        gpu: Device,
        stream: int,
        work: Callable[[], Sequence[PlacedNumber]],
        types: Sequence[np.dtype[Any]],
        comparisons: Sequence[Comparison],
    ):
        self.gpu, self.stream, self.numbers = gpu, stream, len(types)
        self.events: deque[tuple[int, Any]] = deque()
        """The slot and the event of each launch under way."""
        self.free = deque(range(SLOTS))
        row, self.graph = 8 * max(self.numbers, 1), None
        self.bytes = 4 * (WORDS + 1) + row * MOST_CHECKS
        self.memory = gpu.allocate(self.bytes)
        self.locked = gpu.allocate_locked(self.bytes * SLOTS)
        checked(gpu.cuda.cuMemsetD8Async(self.memory, 0, self.bytes, stream))
        try:
            # Loaded before the recording: a recorded launch loads nothing.
            text = check_text(types, comparisons, gpu.arch)
            self.graph = self.recorded(work, gpu.common.function(text, CHECK))
        except BaseException:
            self.close()
            raise

    @property
    def table(self) -> int:
        """The address of the table with the numbers of each check of a launch."""
        return self.memory + 4 * (WORDS + 1)

    def recorded(self, work: Callable[[], Sequence[PlacedNumber]], check: Any) -> Any:
        """The graph: a kernel at the beginning, and the loop of the work and its check."""
        cuda = self.gpu.cuda
        # The work is recorded alone: a recording that fails inside of a loop takes the loop with
        # it, and the driver crashes when the graph is destroyed.
        recording, numbers = self.gpu.recorded(self.stream, work)
        graph = checked(cuda.cuGraphCreate(0))
        try:
            self.add_loop(graph, recording, numbers, check)
            return checked(cuda.cuGraphInstantiate(graph, 0))
        finally:
            checked(cuda.cuGraphDestroy(graph))
            checked(cuda.cuGraphDestroy(recording))

    def add_loop(
        self, graph: Any, recording: Any, numbers: Sequence[PlacedNumber], check: Any
    ) -> None:
        """Add the kernel at the beginning, and the loop of recorded work and its check."""
        gpu, cuda = self.gpu, self.gpu.cuda
        loop = checked(
            cuda.cuGraphConditionalHandleCreate(
                graph, gpu.context, 1, cuda.CU_GRAPH_COND_ASSIGN_DEFAULT
            )
        )
        begin = gpu.common.function(begin_text(gpu.arch), BEGIN)
        first = self.add_kernel(graph, None, begin, (int(loop), self.memory))
        what = cuda.CUgraphNodeParams()
        what.type = cuda.CUgraphNodeType.CU_GRAPH_NODE_TYPE_CONDITIONAL
        what.conditional.handle, what.conditional.ctx = loop, gpu.context
        what.conditional.type = cuda.CUgraphConditionalNodeType.CU_GRAPH_COND_TYPE_WHILE
        what.conditional.size = 1
        checked(cuda.cuGraphAddNode(graph, [first], None, 1, what))
        body = what.conditional.phGraph_out[0]
        done = checked(cuda.cuGraphAddChildGraphNode(body, [], 0, recording))
        places = (pointer for pointer, _ in numbers)
        self.add_kernel(body, done, check, (int(loop), self.memory, self.table, *places))

    def add_kernel(self, graph: Any, before: Any, function: Any, values: tuple[int, ...]) -> Any:
        """Add a kernel of one thread behind another node; `values` are words of 8 bytes."""
        cuda = self.gpu.cuda
        given = LaunchArguments(values, (ctypes.c_uint64,) * len(values))
        what = cuda.CUDA_KERNEL_NODE_PARAMS()
        what.func, what.kernelParams = function, given.address
        what.gridDimX = what.gridDimY = what.gridDimZ = 1
        what.blockDimX = what.blockDimY = what.blockDimZ = 1
        others = [] if before is None else [before]
        return checked(cuda.cuGraphAddKernelNode(graph, others, len(others), what))

    @property
    def is_full(self) -> bool:
        """Whether the next launch has to wait for the first under way."""
        return not self.free

    @property
    def is_under_way(self) -> bool:
        """Whether some launch is under way."""
        return bool(self.events)

    def launch(self, most: int) -> None:
        """Give a launch of at most `most` checks to the stream."""
        gpu, slot = self.gpu, self.free.popleft()
        checked(gpu.cuda.cuMemsetD32Async(self.memory + 4, most, 1, self.stream))
        gpu.launch_graph(self.graph, self.stream)
        gpu.begin_download(
            self.locked + slot * self.bytes, self.memory, self.bytes_of(most), self.stream
        )
        self.events.append((slot, gpu.mark(None, self.stream)))

    def bytes_of(self, checks: int) -> int:
        """The bytes of the words, and of the rows of some checks."""
        return 4 * (WORDS + 1) + 8 * self.numbers * checks

    def taken(self) -> tuple[np.ndarray[Any, Any], bool]:
        """
        Wait for the first launch under way: the numbers of its checks, of shape (checks, numbers),
        and whether the last check ended the loop.
        """
        slot, event = self.events.popleft()
        self.gpu.wait_for_mark(event)
        place = self.locked + slot * self.bytes
        done, _, ended = (ctypes.c_uint32 * WORDS).from_address(place)
        count = done * self.numbers
        cells = (ctypes.c_double * count).from_address(place + 4 * (WORDS + 1))
        rows = np.array(cells, np.float64).reshape(done, self.numbers)
        self.free.append(slot)
        return rows, bool(ended)

    def close(self) -> None:
        """Give back the graph and the memory, after all launches are done."""
        gpu, graph = self.gpu, self.graph
        self.graph = None
        gpu.synchronize(self.stream)
        while self.events:
            gpu.destroy_event(self.events.popleft()[1])
        if graph is not None:
            gpu.free_graph(graph)
        if self.memory:
            gpu.free(self.memory)
            gpu.free_locked(self.locked)
            self.memory = 0
