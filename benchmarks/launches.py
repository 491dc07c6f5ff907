"""
Time 10,000 launches of short kernels with 4 to 36 arguments, through `cuda.core` and as timetile
calls the driver (`cuda.bindings`): one by one, and in graphs of 100. Kernels whose blocks wait for
each other are launched cooperatively, one by one. What timetile asks of the driver beside launches
follows (`driver_pieces.py`).

    python benchmarks/launches.py --out benchmarks/results/launches-h200.json

`host_us` is the time of the host's loop, and `us` the time until the GPU is done, both for a
launch, the least of five runs. `equal_bits`: all fields end with the bits of timetile's own calls.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from driver_pieces import PieceRow, piece_rows
from fields import Fields
from measure import commit
from pinned_programs import compiled_at
from real_steps import PROGRAMS
from reports import write_report
from timing import launch_of

import timetile
from timetile.frontend.model import Model
from timetile.lowering.ptx.symbols import symbol
from timetile.lowering.tile_to_gpu.message_buffers import launch_words
from timetile.runtime.cache.store import Cache
from timetile.runtime.device.arguments import LaunchArguments
from timetile.runtime.device.gpu import MESSAGE_WORD_BYTES, Device, device, image_of
from timetile.runtime.kernels.kernel import Kernel
from timetile.runtime.machine.driver import checked
from timetile.runtime.program.compiled_program import Executor

LAUNCHES, OF_A_GRAPH, RUNS = 10_000, 100, 5

Call = Callable[[], object]

SMALL = {2: (66, 130), 3: (12, 20, 36)}
"""Domains of a few microseconds a launch, by the number of axes."""

MODELS = ("heat_2d", "acoustic_2d_so4", "yee3", "elastic_3d_so4", "waiting")
"""
Programs with kernels of 4, 9, 24 and 36 arguments, and one whose blocks wait for each other.
"""

WAITING = ("2", "3,2", "8,1", "tile=device", "blocks=[4, 1]", "sync=flags", "ahead=2")
"""Depth and schedule of the kernel whose blocks wait for each other."""


@dataclass(frozen=True)
class LaunchRow:
    """A way of launching, with what was measured."""

    program: str
    arguments: int
    way: str
    launches: int
    host_us: float
    us: float
    equal_bits: bool


def compiled(name: str, executor: Executor) -> timetile.CompiledProgram:
    """A program for a small domain."""
    if name == "waiting":
        module = PROGRAMS["heat_3d"].module((20, 100, 68), "float32")
        return compiled_at(module, WAITING, Cache(Path("build/launches-cache")), executor)
    model: Model = PROGRAMS[name]
    module = model.module(SMALL[model.step.rank], "float32")
    cache = Cache(Path("build/launches-cache"))
    return timetile.compile(module, executor=executor, halos="common", cache=cache)


class Ways:
    """The ways of launching a kernel on a stream: each is a call, and the launches of the call."""

    def __init__(self, gpu: Device, kernel: Kernel, arguments: LaunchArguments, stream: int):
        self.gpu, self.kernel, self.arguments, self.stream = gpu, kernel, arguments, stream
        self.core: Any = import_module("cuda.core")
        self.card = self.core.Device(gpu.number)
        self.card.set_current()
        self.on = self.core.Stream.from_handle(stream)
        self.code = self.core.ObjectCode.from_cubin(image_of(kernel, gpu.arch))
        self.function = self.code.get_kernel(symbol(kernel.name))
        attribute = gpu.cuda.CUfunction_attribute
        most = attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        handle = gpu.cuda.CUkernel(int(self.function.handle))
        checked(gpu.cuda.cuKernelSetAttribute(most, kernel.shared_bytes, handle, gpu.handle))
        self.config = self.core.LaunchConfig(
            grid=kernel.grid,
            block=kernel.block,
            shmem_size=kernel.shared_bytes,
            is_cooperative=kernel.has_messages,
        )

    def own(self) -> tuple[Call, int]:
        return lambda: self.gpu.launch(self.kernel, self.arguments, self.stream), 1

    def through_core(self) -> tuple[Call, int]:
        launch, on, config, function = self.core.launch, self.on, self.config, self.function
        pointers = self.arguments.values
        if self.kernel.has_messages:
            return self.waiting_through_core(), 1
        return lambda: launch(on, config, function, *pointers), 1

    def waiting_through_core(self) -> Call:
        """A cooperative launch of all tiles, after setting the words of messages to 0."""
        kernel, gpu = self.kernel, self.gpu
        size = launch_words(kernel.tiles, kernel.message_words) * MESSAGE_WORD_BYTES
        words, tiles = gpu.allocate(size), np.int32(kernel.tiles)

        def call() -> None:
            checked(gpu.cuda.cuMemsetD8Async(words, 0, size, self.stream))
            given = (*self.arguments.values, words, tiles)
            self.core.launch(self.on, self.config, self.function, *given)

        return call

    def own_graph(self) -> tuple[Call, int]:
        graph = self.gpu.graph([(self.kernel, self.arguments)] * OF_A_GRAPH)
        return lambda: self.gpu.launch_graph(graph, self.stream), OF_A_GRAPH

    def graph_of_core(self) -> tuple[Call, int]:
        builder = self.card.create_graph_builder().begin_building()
        for _ in range(OF_A_GRAPH):
            self.core.launch(builder, self.config, self.function, *self.arguments.values)
        graph = builder.end_building().complete()
        return lambda: graph.launch(self.on), OF_A_GRAPH


def timed(gpu: Device, stream: int, call: Callable[[], object], calls: int) -> tuple[float, float]:
    """Microseconds of a call for the host, and until the GPU is done: the least of the runs."""
    best = (float("inf"), float("inf"))
    for _ in range(RUNS):
        gpu.synchronize(stream)
        began = time.perf_counter()
        for _ in range(calls):
            call()
        asked = time.perf_counter() - began
        gpu.synchronize(stream)
        best = (min(best[0], asked), min(best[1], time.perf_counter() - began))
    return best[0] / calls * 1e6, best[1] / calls * 1e6


def first_launch(
    gpu: Device, program: timetile.CompiledProgram
) -> tuple[Kernel, LaunchArguments, Fields]:
    """A program's first kernel, the arguments of a launch, and the fields."""
    shapes = [each.shape for each in program.parameters[:-1]]
    generator = np.random.default_rng(7)
    fields = Fields(gpu, [generator.random(shape, dtype=np.float32) for shape in shapes])
    return *launch_of(program, program.kernels.facts[0][0], fields), fields


def pieces_of(gpu: Device) -> Iterator[PieceRow]:
    """The rows beside launches, with the kernel of the first program."""
    program = compiled(MODELS[0], "gpu")
    kernel, arguments, _ = first_launch(gpu, program)
    yield from piece_rows(gpu, kernel, arguments)


def rows_of(gpu: Device, name: str, launches: int) -> Iterator[LaunchRow]:
    """The rows of a program's first kernel."""
    program = compiled(name, "gpu")
    kernel, arguments, fields = first_launch(gpu, program)
    stream = gpu.new_stream()
    wanted: list[Any] = []
    made = Ways(gpu, kernel, arguments, stream)
    singly, in_graphs = (made.own, made.through_core), (made.own_graph, made.graph_of_core)
    for way in singly if kernel.has_messages else (*singly, *in_graphs):
        call, each = way()
        fields.reset()
        call()
        gpu.synchronize(stream)
        found = fields.read()
        wanted = wanted or found
        equal = all(a.tobytes() == b.tobytes() for a, b in zip(found, wanted, strict=True))
        host, spent = timed(gpu, stream, call, launches // each)
        host, spent = round(host / each, 3), round(spent / each, 3)
        yield LaunchRow(name, len(arguments.values), way.__name__, launches, host, spent, equal)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().partition("\n\n")[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--commit", default=None)
    parser.add_argument("--launches", type=int, default=LAUNCHES)
    options, gpu = parser.parse_args(), device()
    about = {
        "device": gpu.name,
        "commit": options.commit or commit(),
        "command": "python benchmarks/launches.py",
        "cuda-core": version("cuda-core"),
    }
    rows: list[dict[str, Any]] = []
    with gpu.current():
        launched = (rows_of(gpu, name, options.launches) for name in MODELS)
        for row in chain(*launched, pieces_of(gpu)):
            rows.append(asdict(row))
            print(json.dumps(rows[-1]), flush=True)
            if options.out is not None:
                write_report(options.out, about, rows)


if __name__ == "__main__":
    main()
