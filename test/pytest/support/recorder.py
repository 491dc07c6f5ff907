"""A device that records launches, copies and graphs, and programs that run on the device."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import timetile
from support.catalogue import entry
from support.programs import program_text
from timetile.runtime.cache.store import Cache
from timetile.runtime.device.arguments import LaunchArguments
from timetile.runtime.device.cells import DeviceBuffer
from timetile.runtime.device.gpu import Device
from timetile.runtime.device.gpu_runner import GpuRunner
from timetile.runtime.host.halos import HaloFrame
from timetile.runtime.kernels.kernel import Kernel
from timetile.runtime.kernels.loops import loops_of
from timetile.runtime.kernels.options import Halos
from timetile.runtime.program.compiled_program import CompiledProgram

SCRATCH = 77
"""Where the recording device finds memory for a scratch buffer."""


@dataclass
class Graph:
    """Launches made together."""

    launches: list[tuple[str, tuple[Any, ...]]]
    times: int = 0
    freed: bool = False


class Recorder(Device):
    """A device that only records calls, with given results for comparisons of halos."""

    def __init__(self, *, same_halos: bool = False, captures: bool = False):
        self.same_halos, self.captures = same_halos, captures
        self.comparisons: list[tuple[int, int]] = []
        self.launched: list[tuple[str, tuple[Any, ...]]] = []
        self.copied: list[tuple[int, int]] = []
        self.done: list[tuple[Any, ...]] = []
        """Launches and copies, in order."""
        self.graphs: list[Graph] = []
        self.at_launch: Callable[[], None] = lambda: None
        self.kernels, self.loaded, self.resident, self.message_buffers = {}, {}, {}, {}
        self.users, self.streams = Counter(), Counter()
        self.marks: list[str] = []
        self.cuda = self

    def launch(self, kernel: Kernel, arguments: LaunchArguments, stream: int) -> None:
        self.launched.append((kernel.name, arguments.values))
        self.done.append(self.launched[-1])
        self.at_launch()

    def graph(
        self,
        launches: Sequence[tuple[Kernel, LaunchArguments]],
        waits: Sequence[Sequence[int]] | None = None,
    ) -> Graph:
        assert waits is None or len(waits) == len(launches)
        recorded = [(kernel.name, arguments.values) for kernel, arguments in launches]
        self.graphs.append(Graph(recorded))
        return self.graphs[-1]

    def launch_graph(self, graph: Graph, stream: int) -> None:
        assert not graph.freed
        graph.times += 1
        self.launched += graph.launches
        self.done += graph.launches

    def free_graph(self, graph: Graph) -> None:
        assert not graph.freed
        graph.freed = True

    def allocate(self, size: int) -> int:
        return SCRATCH

    def free(self, pointer: int) -> None:
        assert pointer == SCRATCH

    def is_capturing(self, stream: int) -> bool:
        return self.captures

    def halos_differ(
        self, frame: HaloFrame, first: int, other: int, stream: int, cache: Cache | None = None
    ) -> bool:
        self.comparisons.append((first, other))
        return not self.same_halos

    @contextmanager
    def giving_back(self) -> Generator[Device]:
        yield self

    def mark(self, event: str | None, stream: int) -> str:
        self.marks.append(event or f"event of {stream}")
        return self.marks[-1]

    def wait_for_mark(self, event: str) -> None:
        self.marks.remove(event)
        self.marks.append(f"{event} waited for")

    def cuMemcpyDtoDAsync(self, target: int, source: int, size: int, stream: int) -> tuple[int]:
        self.copied.append((source, target))
        self.done.append(self.copied[-1])
        return (0,)


@cache
def heat(depth: int, halos: Halos = "compared", *, bound_waits: bool = False) -> CompiledProgram:
    """The compiled program of a heated plate, compiled once: runners and devices are the tests'."""
    text = program_text(entry("heat-2d").make((29, 131)))
    return timetile.compile(
        text, executor="simt", depth=depth, halos=halos, cache=False, bound_waits=bound_waits
    )


def launches(
    depth: int,
    steps: int,
    *calls: tuple[int, int],
    same_halos: bool = False,
    captures: bool = False,
    halos: Halos = "compared",
    bound_waits: bool = False,
    close: bool = False,
) -> Recorder:
    """The recorded calls of runs on pairs of buffers, given by addresses."""
    compiled = heat(depth, halos, bound_waits=bound_waits)
    loop = loops_of(compiled.kernels.source)[0]
    outside = dict.fromkeys((*loop.captures, *loop.scalars), 0.1)
    on = Recorder(same_halos=same_halos, captures=captures)
    runner = GpuRunner(compiled.kernels, on)
    for call in calls:
        runner(loop, steps, [DeviceBuffer(pointer, 8) for pointer in call], outside)
    if close:
        runner.close()
    return on


def buffers_of(on: Recorder) -> list[tuple[str, int, int]]:
    """Kernels with one source and one target."""
    return [(name, values[0], values[1]) for name, values in on.launched]
