"""
Time what timetile asks of the driver beside launches, through `cuda.core` and through the driver's
bindings: a GPU opened by a process, events, streams, modules, memory, facts of the GPU and graphs.
`launches.py` writes the rows.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
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

OPENED = {
    "core": "gpu.device()",
    "bindings": "checked(driver().cuDevicePrimaryCtxRetain(checked(driver().cuDeviceGet(0))))",
}
"""How a process opens its first GPU: timetile, and the driver's bindings alone."""

PROCESSES = 5


@dataclass(frozen=True)
class PieceRow:
    """A piece, and the microseconds of the host for a call: the least of the runs."""

    piece: str
    calls: int
    core_us: float
    bindings_us: float
    error: str = ""


def opened() -> PieceRow:
    """
    A GPU opened by a process with timetile imported, the driver's bindings and `cuda.core` not: the
    median of some processes.
    """
    first = "import time; from timetile.runtime.device import gpu; "
    first += "from timetile.runtime.machine.driver import checked, driver; "
    found: dict[str, list[float]] = {way: [] for way in OPENED}
    for _ in range(PROCESSES):
        for way, call in OPENED.items():
            timed = f"a = time.perf_counter(); {call}; print(time.perf_counter() - a)"
            words = [sys.executable, "-c", first + timed]
            out = subprocess.run(words, check=True, capture_output=True, text=True).stdout
            found[way].append(float(out) * 1e6)
    core, bindings = (round(statistics.median(each), 1) for each in found.values())
    return PieceRow("opened", 1, core, bindings)


class Pieces:
    """
    The calls of each piece, through `cuda.core` and through the driver's bindings; a kernel serves
    modules and graphs.
    """

    def __init__(self, gpu: Device, kernel: Kernel, arguments: LaunchArguments):
        self.gpu, self.kernel, self.arguments = gpu, kernel, arguments
        self.core = gpu.core
        gpu.card.set_current()
        self.streams = gpu.new_stream(), gpu.new_stream()
        self.other = int(checked(gpu.cuda.cuStreamCreate(1)))
        self.flags = int(gpu.cuda.CUevent_flags.CU_EVENT_DISABLE_TIMING)
        self.image = image_of(kernel, gpu.arch)
        self.memory = gpu.allocate(BYTES), gpu.allocate(BYTES)

    def event(self) -> tuple[Call, Call]:
        """A new event behind the work of a stream, asked whether it has passed, and destroyed."""
        gpu, cuda, stream, flags = self.gpu, self.gpu.cuda, self.streams[0], self.flags

        def own() -> None:
            mark = gpu.mark(None, stream)
            gpu.has_passed(mark)
            gpu.destroy_event(mark)

        def bindings() -> None:
            mark = checked(cuda.cuEventCreate(flags))
            checked(cuda.cuEventRecord(mark, stream))
            cuda.cuEventQuery(mark)
            checked(cuda.cuEventDestroy(mark))

        return own, bindings

    def kept_event(self) -> tuple[Call, Call]:
        """An event that is there, behind the work of a stream."""
        gpu, record, stream = self.gpu, self.gpu.cuda.cuEventRecord, self.streams[0]
        mark, made = gpu.mark(None, stream), checked(gpu.cuda.cuEventCreate(self.flags))
        return lambda: gpu.mark(mark, stream), lambda: checked(record(made, stream))

    def stream_behind_stream(self) -> tuple[Call, Call]:
        """A stream waits for the work of another."""
        (first, second), cuda = self.streams, self.gpu.cuda

        def bindings() -> None:
            mark = checked(cuda.cuEventCreate(self.flags))
            checked(cuda.cuEventRecord(mark, second))
            checked(cuda.cuStreamWaitEvent(first, mark, 0))
            checked(cuda.cuEventDestroy(mark))

        return lambda: self.gpu.wait_for_stream(first, second), bindings

    def stream(self) -> tuple[Call, Call]:
        """A stream, made and destroyed."""
        gpu, cuda = self.gpu, self.gpu.cuda
        flags = int(cuda.CUstream_flags.CU_STREAM_NON_BLOCKING)
        return (
            lambda: gpu.card.create_stream().close(),
            lambda: checked(cuda.cuStreamDestroy(checked(cuda.cuStreamCreate(flags)))),
        )

    def foreign_stream(self) -> tuple[Call, Call]:
        """The stream of another library, by its number, in each call after the first."""
        gpu, stream = self.gpu, self.other
        return lambda: gpu.on(stream), lambda: int(stream)

    def fact(self) -> tuple[Call, Call]:
        """A number of the GPU: `cuda.core` keeps the answer."""
        gpu, cuda = self.gpu, self.gpu.cuda
        what = cuda.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
        return (
            lambda: gpu.attribute("MULTIPROCESSOR_COUNT"),
            lambda: int(checked(cuda.cuDeviceGetAttribute(what, gpu.handle))),
        )

    def current(self) -> tuple[Call, Call]:
        """
        The GPU is current for a call, and the one before again afterwards. `cuda.core` leaves the
        GPU current.
        """
        gpu, card = self.gpu, self.gpu.card

        def bindings() -> None:
            with gpu.current():
                pass

        return card.set_current, bindings

    def memory_of_gpu(self) -> tuple[Call, Call]:
        """Memory of the GPU, taken and given back: `cuda.core` takes from a pool of the driver."""
        gpu, card, on = self.gpu, self.gpu.card, self.gpu.on(self.streams[0])
        return (
            lambda: card.allocate(BYTES, stream=on).close(on),
            lambda: gpu.free(gpu.allocate(BYTES)),
        )

    def copy(self) -> tuple[Call, Call]:
        """A copy between two addresses, as work of a stream: buffers of `cuda.core` are made."""
        (one, other), stream, gpu = self.memory, self.streams[0], self.gpu
        buffer, on = gpu.core.Buffer.from_handle, gpu.on(stream)
        return (
            lambda: buffer(one, BYTES).copy_to(buffer(other, BYTES), stream=on),
            lambda: gpu.copy(one, other, BYTES, stream),
        )

    def module(self) -> tuple[Call, Call]:
        """A kernel loaded, found and unloaded: `cuda.core` unloads nothing."""
        gpu, cuda, name = self.gpu, self.gpu.cuda, self.kernel.name

        def bindings() -> None:
            module = checked(cuda.cuModuleLoadData(self.image))
            checked(cuda.cuModuleGetFunction(module, symbol(name).encode()))
            checked(cuda.cuModuleUnload(module))

        code = gpu.core.ObjectCode
        return lambda: code.from_cubin(self.image).get_kernel(symbol(name)), bindings

    def chain(self) -> Any:
        """A graph of launches through `cuda.core`, one behind the other."""
        kernel, core = self.kernel, self.core
        loaded = core.ObjectCode.from_cubin(self.image).get_kernel(symbol(kernel.name))
        config = core.LaunchConfig(
            grid=kernel.grid, block=kernel.block, shmem_size=kernel.shared_bytes
        )

        def made() -> Any:
            node = definition = core.graph.GraphDefinition()
            for _ in range(NODES):
                node = node.launch(config, loaded, *self.arguments.values)
            return definition.instantiate()

        return made

    def graph(self) -> tuple[Call, Call]:
        """A graph of launches made and given back."""
        gpu, launches, chain = self.gpu, [(self.kernel, self.arguments)] * NODES, self.chain()
        return lambda: chain().close(), lambda: gpu.free_graph(gpu.graph(launches))

    def launch_of_a_graph(self) -> tuple[Call, Call]:
        """A launch of a graph made node by node."""
        gpu, stream = self.gpu, self.streams[0]
        core, on = self.chain()(), gpu.on(stream)
        own = gpu.graph([(self.kernel, self.arguments)] * NODES)
        return lambda: core.launch(on), lambda: gpu.launch_graph(own, stream)


SLOW = {
    "memory_of_gpu": 20, "stream": 10, "module": 50, "graph": 200, "launch_of_a_graph": 100,
    "copy": 5,
}  # fmt: skip
"""How many times fewer calls than `CALLS` are made, of calls that take longer."""

PIECES = (
    "event", "kept_event", "stream_behind_stream", "stream", "foreign_stream", "current", "fact",
    "memory_of_gpu", "copy", "module", "graph", "launch_of_a_graph",
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


def piece_rows(gpu: Device, kernel: Kernel, arguments: LaunchArguments) -> Iterator[PieceRow]:
    """The rows of each piece, and of an opened GPU, which takes longest."""
    pieces = Pieces(gpu, kernel, arguments)
    for name in PIECES:
        calls = CALLS // SLOW.get(name, 1)
        try:
            one, other = getattr(pieces, name)()
            found = (least(gpu, each, calls, pieces.streams) for each in (one, other))
            yield PieceRow(name, calls, next(found), next(found))
        except Exception as error:
            yield PieceRow(name, calls, 0.0, 0.0, described(error))
    yield opened()
