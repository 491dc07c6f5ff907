"""
Time 10,000 launches of a short kernel through `cuda.core` and through timetile's own calls of the
driver (`cuda.bindings`), one by one and in graphs of 100.

    python benchmarks/launches.py --out benchmarks/results/launches-h200.json

`host_us` is the time of the host's loop, and `us` the time until the GPU is done, both for a
launch, the least of five runs. `equal_bits`: all fields end with the bits of timetile's own calls.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from fields import Fields
from measure import commit
from real_steps import PROGRAMS
from reports import write_report
from timing import launch_of

import timetile
from timetile.frontend.model import Model
from timetile.lowering.ptx.symbols import symbol
from timetile.runtime.cache.store import Cache
from timetile.runtime.device.arguments import LaunchArguments
from timetile.runtime.device.gpu import Device, device, image_of
from timetile.runtime.kernels.kernel import Kernel
from timetile.runtime.machine.driver import checked
from timetile.runtime.program.compiled_program import Executor

LAUNCHES, OF_A_GRAPH, RUNS = 10_000, 100, 5

Call = Callable[[], object]

SMALL = {2: (66, 130), 3: (12, 20, 36)}
"""Domains of a few microseconds a launch, by the number of axes."""

MODELS = ("heat_2d", "elastic_3d_so4")
"""Programs of few and of many arguments."""


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
            grid=kernel.grid, block=kernel.block, shmem_size=kernel.shared_bytes
        )

    def own(self) -> tuple[Call, int]:
        return lambda: self.gpu.launch(self.kernel, self.arguments, self.stream), 1

    def through_core(self) -> tuple[Call, int]:
        launch, on, config, function = self.core.launch, self.on, self.config, self.function
        pointers = self.arguments.values
        return lambda: launch(on, config, function, *pointers), 1

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


def rows_of(gpu: Device, name: str, launches: int) -> list[LaunchRow]:
    """The rows of a program's first kernel."""
    program = compiled(name, "gpu")
    shapes = [each.shape for each in program.parameters[:-1]]
    generator = np.random.default_rng(7)
    fields = Fields(gpu, [generator.random(shape, dtype=np.float32) for shape in shapes])
    kernel, arguments = launch_of(program, program.kernels.facts[0][0], fields)
    stream = gpu.new_stream()
    rows: list[LaunchRow] = []
    wanted: list[Any] = []
    made = Ways(gpu, kernel, arguments, stream)
    for way in (made.own, made.through_core, made.own_graph, made.graph_of_core):
        call, each = way()
        fields.reset()
        call()
        gpu.synchronize(stream)
        found = fields.read()
        wanted = wanted or found
        equal = all(a.tobytes() == b.tobytes() for a, b in zip(found, wanted, strict=True))
        host, spent = timed(gpu, stream, call, launches // each)
        host, spent = round(host / each, 3), round(spent / each, 3)
        rows.append(
            LaunchRow(name, len(arguments.values), way.__name__, launches, host, spent, equal)
        )
        print(json.dumps(asdict(rows[-1])), flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().partition("\n\n")[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--launches", type=int, default=LAUNCHES)
    options, gpu = parser.parse_args(), device()
    with gpu.current():
        rows = [row for name in MODELS for row in rows_of(gpu, name, options.launches)]
    if options.out is not None:
        about = {
            "device": gpu.name,
            "commit": commit(),
            "command": "python benchmarks/launches.py",
            "cuda-core": version("cuda-core"),
        }
        write_report(options.out, about, [asdict(row) for row in rows])


if __name__ == "__main__":
    main()
