"""
Time what timetile asks of the driver beside launches, through `cuda.core` and as timetile calls the
driver: the import, events, streams, modules, memory, facts of the GPU and graphs. `launches.py`
writes the rows.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from rows import described

from timetile.lowering.ptx.symbols import symbol
from timetile.runtime.device.arguments import LaunchArguments
from timetile.runtime.device.gpu import Device, image_of
from timetile.runtime.kernels.kernel import Kernel
from timetile.runtime.machine.driver import checked

Call = Callable[[], object]

CALLS, RUNS = 10_000, 3

BYTES = 1 << 20
"""Bytes of the memory that is taken, set and copied."""

NODES = 100
"""Launches of a graph."""

IMPORTS = {"own": "cuda.bindings.driver, cuda.pathfinder", "core": "cuda.core"}
"""What a process imports before its first call of the driver."""


@dataclass(frozen=True)
class PieceRow:
    """A piece, and the microseconds of the host for a call: the least of the runs."""

    piece: str
    calls: int
    own_us: float
    core_us: float
    error: str = ""


def imported(modules: str) -> float:
    """Microseconds of an import in a process of its own: the median of five."""
    code = f"import numpy, time; a = time.perf_counter(); import {modules}; "
    words = [sys.executable, "-c", code + "print(time.perf_counter() - a)"]
    found = [
        float(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
        for _ in range(5)
    ]
    return statistics.median(found) * 1e6


class Pieces:
    """The calls of each piece, own and through `cuda.core`; a kernel serves modules and graphs."""

    def __init__(self, gpu: Device, kernel: Kernel, arguments: LaunchArguments):
        self.gpu, self.kernel, self.arguments = gpu, kernel, arguments
        self.core: Any = import_module("cuda.core")
        self.card = self.core.Device(gpu.number)
        self.card.set_current()
        self.streams = gpu.new_stream(), gpu.new_stream()
        self.others = tuple(self.core.Stream.from_handle(each) for each in self.streams)
        self.image = image_of(kernel, gpu.arch)
        self.memory = gpu.allocate(BYTES), gpu.allocate(BYTES)
        self.buffers = tuple(self.core.Buffer.from_handle(at, BYTES) for at in self.memory)

    def event(self) -> tuple[Call, Call]:
        """A new event behind the work of a stream, asked whether it has passed, and destroyed."""
        gpu, stream, other = self.gpu, self.streams[0], self.others[0]

        def own() -> bool:
            mark = gpu.mark(None, stream)
            passed = gpu.has_passed(mark)
            gpu.destroy_event(mark)
            return passed

        def core() -> bool:
            mark = other.record()
            passed = mark.is_done
            mark.close()
            return passed

        return own, core

    def kept_event(self) -> tuple[Call, Call]:
        """An event that is there, behind the work of a stream."""
        gpu, stream, other = self.gpu, self.streams[0], self.others[0]
        mark, made = gpu.mark(None, stream), other.record()
        return lambda: gpu.mark(mark, stream), lambda: other.record(made)

    def stream_behind_stream(self) -> tuple[Call, Call]:
        """A stream waits for the work of another."""
        (first, second), (one, other) = self.streams, self.others
        return lambda: self.gpu.wait_for_stream(first, second), lambda: one.wait(other)

    def stream(self) -> tuple[Call, Call]:
        """A stream, made and destroyed."""
        gpu, card = self.gpu, self.card
        return lambda: gpu.destroy_stream(gpu.new_stream()), lambda: card.create_stream().close()

    def foreign_stream(self) -> tuple[Call, Call]:
        """The stream of another library, by its number: own calls take the number."""
        stream, core = self.streams[0], self.core.Stream
        return lambda: int(stream), lambda: core.from_handle(stream)

    def current(self) -> tuple[Call, Call]:
        """The GPU is current for a call, and the one before again afterwards."""
        gpu, card = self.gpu, self.card

        def own() -> None:
            with gpu.current():
                pass

        return own, card.set_current

    def fact(self) -> tuple[Call, Call]:
        """A number of the GPU: `cuda.core` keeps the answer."""
        gpu, facts = self.gpu, self.card.properties
        return lambda: gpu.attribute("MULTIPROCESSOR_COUNT"), lambda: facts.multiprocessor_count

    def memory_of_gpu(self) -> tuple[Call, Call]:
        """Memory of the GPU, taken and given back: `cuda.core` takes from a pool of the driver."""
        gpu, card, on = self.gpu, self.card, self.others[0]
        return (
            lambda: gpu.free(gpu.allocate(BYTES)),
            lambda: card.allocate(BYTES, stream=on).close(on),
        )

    def set_memory(self) -> tuple[Call, Call]:
        """Bytes set to 0, as work of a stream."""
        gpu, at, stream = self.gpu, self.memory[0], self.streams[0]
        buffer, on = self.buffers[0], self.others[0]

        def own() -> None:
            checked(gpu.cuda.cuMemsetD8Async(at, 0, BYTES, stream))

        return own, lambda: buffer.fill(0, stream=on)

    def copy(self) -> tuple[Call, Call]:
        """A copy between two buffers, as work of a stream."""
        (one, other), stream = self.memory, self.streams[0]
        (first, second), on = self.buffers, self.others[0]
        return (
            lambda: self.gpu.copy(one, other, BYTES, stream),
            lambda: first.copy_to(second, stream=on),
        )

    def module(self) -> tuple[Call, Call]:
        """A kernel's module loaded, its function found, and the module unloaded."""
        gpu, name, core = self.gpu, self.kernel.name, self.core.ObjectCode

        def own() -> None:
            function = gpu.function(self.image, name)
            checked(gpu.cuda.cuModuleUnload(checked(gpu.cuda.cuFuncGetModule(function))))

        return own, lambda: core.from_cubin(self.image).get_kernel(symbol(name))

    def chain(self) -> Any:
        """A graph of launches through `cuda.core`, one behind the other."""
        kernel, core = self.kernel, self.core
        function = core.ObjectCode.from_cubin(self.image).get_kernel(symbol(kernel.name))
        config = core.LaunchConfig(
            grid=kernel.grid, block=kernel.block, shmem_size=kernel.shared_bytes
        )
        graphs = import_module("cuda.core.graph")

        def made() -> Any:
            node = definition = graphs.GraphDefinition()
            for _ in range(NODES):
                node = node.launch(config, function, *self.arguments.values)
            return definition.instantiate()

        return made

    def graph(self) -> tuple[Call, Call]:
        """A graph of launches made and given back."""
        gpu, launches = self.gpu, [(self.kernel, self.arguments)] * NODES
        gpu.load(self.kernel)
        chain = self.chain()
        return lambda: gpu.free_graph(gpu.graph(launches)), lambda: chain().close()

    def launch_of_a_graph(self) -> tuple[Call, Call]:
        """A launch of a graph made node by node."""
        gpu, stream, on = self.gpu, self.streams[0], self.others[0]
        own = gpu.graph([(self.kernel, self.arguments)] * NODES)
        core = self.chain()()
        return lambda: gpu.launch_graph(own, stream), lambda: core.launch(on)

    def own_graph_through_core(self) -> tuple[Call, Call]:
        """A launch of one graph of `cuda.core`, by the driver's call and by its own."""
        stream, on, core = self.streams[0], self.others[0], self.chain()()
        handle = core.handle
        return lambda: self.gpu.launch_graph(handle, stream), lambda: core.launch(on)


SLOW = {
    "memory_of_gpu": 20, "stream": 10, "module": 50, "graph": 200, "launch_of_a_graph": 100,
    "own_graph_through_core": 100, "copy": 5, "set_memory": 5,
}  # fmt: skip
"""How many times fewer calls than `CALLS` are made, of calls that take longer."""

PIECES = (
    "event", "kept_event", "stream_behind_stream", "stream", "foreign_stream", "current", "fact",
    "memory_of_gpu", "set_memory", "copy", "module", "graph", "launch_of_a_graph",
    "own_graph_through_core",
)  # fmt: skip


def least(gpu: Device, call: Call, calls: int, streams: tuple[int, ...]) -> float:
    """Microseconds of the host for a call: the least of the runs."""
    call()
    best = float("inf")
    for _ in range(RUNS):
        for stream in streams:
            gpu.synchronize(stream)
        began = time.perf_counter()
        for _ in range(calls):
            call()
        best = min(best, time.perf_counter() - began)
    return round(best / calls * 1e6, 3)


def piece_rows(gpu: Device, kernel: Kernel, arguments: LaunchArguments) -> list[PieceRow]:
    """The rows of the import and of each piece."""
    own, core = (round(imported(IMPORTS[way]), 1) for way in ("own", "core"))
    rows = [PieceRow("import", 1, own, core)]
    pieces = Pieces(gpu, kernel, arguments)
    for name in PIECES:
        calls = CALLS // SLOW.get(name, 1)
        try:
            one, other = getattr(pieces, name)()
            found = (least(gpu, each, calls, pieces.streams) for each in (one, other))
            rows.append(PieceRow(name, calls, next(found), next(found)))
        except Exception as error:
            rows.append(PieceRow(name, calls, 0.0, 0.0, described(error)))
    return rows
