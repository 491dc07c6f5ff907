"""Launches timed with events, and a device copy beside."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
from fields import Fields
from settings import wait_for_choices

from timetile.runtime.device.arguments import LaunchArguments
from timetile.runtime.device.gpu import Device
from timetile.runtime.kernels.kernel import Kernel
from timetile.runtime.machine.driver import checked
from timetile.runtime.program.compiled_program import CompiledProgram

wait_for_choices()


def events(
    gpu: Device, run: Callable[[], object], repeats: int, *, queued: bool = False
) -> list[float]:
    """
    Milliseconds of each of `repeats` runs, after a warm-up run. A `queued` run waits behind another
    run of its kind: the host's share, 10 to 20 us a launch, passes before the first event.
    """
    cuda = gpu.cuda
    run()
    times: list[float] = []
    start, end = (checked(cuda.cuEventCreate(0)) for _ in range(2))
    for _ in range(repeats):
        if queued:
            run()
        checked(cuda.cuEventRecord(start, 0))
        run()
        checked(cuda.cuEventRecord(end, 0))
        checked(cuda.cuEventSynchronize(end))
        times.append(checked(cuda.cuEventElapsedTime(start, end)))
    return times


def copy_bandwidth(gpu: Device, size: int = 2 << 30) -> float:
    """Bytes read plus bytes written per second of a device copy, in TB/s."""
    a, b = gpu.allocate(size), gpu.allocate(size)
    times = events(gpu, lambda: checked(gpu.cuda.cuMemcpyDtoDAsync(a, b, size, 0)), 10)
    gpu.free(a)
    gpu.free(b)
    return 2 * size / (float(np.median(times)) * 1e-3) / 1e12


def launch_of(
    compiled: CompiledProgram, facts: Any, fields: Fields
) -> tuple[Kernel, LaunchArguments]:
    """
    A kernel and the arguments of a launch: sources are the first fields, captures the last fields,
    targets the fields between and as many new fields as needed; all are different. Halos are the
    program's fields.
    """
    kinds = [role.role[0] for role in facts.roles]
    captured = range(len(fields.host) - kinds.count("capture"), len(fields.host))
    sources, captures = itertools.count(), iter(captured)
    targets = (n for n in itertools.count(kinds.count("source")) if n not in captured)
    places: list[int] = []
    for role in facts.roles:
        match role.role:
            case ("source", _):
                places.append(next(sources))
            case ("target", _):
                places.append(next(targets))
            case ("halo", index):
                places.append(index)
            case ("capture", _):
                places.append(next(captures))
            case kind:
                raise ValueError(f"the benchmarks have no arguments of the kind {kind}")
    pointers = [fields.pointer(place) for place in places]
    arguments = LaunchArguments(pointers, (ctypes.c_void_p,) * len(pointers))
    return compiled.kernels.kernel(facts.name), arguments


SHORT = 0.1
"""Milliseconds. Shorter launches are timed several at a time, for four times as long."""


def launch_times(
    compiled: CompiledProgram, facts: Any, fields: Fields, repeats: int
) -> list[float]:
    """
    How long each of `repeats` launches takes, in milliseconds. Short launches go as a graph, as in
    long runs, and the time between two launches counts.
    """
    gpu = fields.gpu
    kernel, arguments = launch_of(compiled, facts, fields)
    times = events(gpu, lambda: gpu.launch(kernel, arguments, 0), repeats, queued=True)
    alone = float(np.median(times))
    if alone >= SHORT or kernel.is_attended:
        return times
    many = 1 + int(4 * SHORT / alone)
    graph = gpu.graph([(kernel, arguments)] * many)
    times = events(gpu, lambda: gpu.launch_graph(graph, 0), repeats, queued=True)
    gpu.free_graph(graph)
    return [time / many for time in times]
