"""Runs planned launches on a GPU, on one stream."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from threading import RLock
from typing import Any

import numpy as np
from xdsl.dialects import scf
from xdsl.dialects.builtin import f32

from timetile.dialects.temporal import LoopOp
from timetile.dialects.tile import CopyOp, LaunchOp, ScratchOp
from timetile.runtime.arguments import Arguments
from timetile.runtime.executors import PlannedRunner
from timetile.runtime.gpu import Device, checked
from timetile.runtime.halos import HaloFrame
from timetile.runtime.host import Values
from timetile.runtime.kernels import Kernel, ProgramKernels

LAUNCHES_OF_A_GRAPH = 16
"""A launch of a graph takes the host 4 us, as one of a kernel does; the GPU is as quick with 16 kernels as with more."""

FEWEST_LAUNCHES = 4 * LAUNCHES_OF_A_GRAPH
"""Of a loop that is worth a graph: making one takes 0.1 to 0.4 ms."""

MOST_GRAPHS = 8
"""Of loops, and of runs, that are kept for when the same launches are made again."""


@dataclass(frozen=True)
class DeviceBuffer:
    """A field's memory on the device."""

    pointer: int
    bytes: int


@dataclass(frozen=True, eq=False)
class Prepared:
    """A launch as it was made last: what it was given, and what the driver is told of that."""

    given: tuple[DeviceBuffer | bytes, ...]
    kernel: Kernel
    arguments: Arguments


@dataclass(eq=False)
class Run:
    """The launches of a whole run, in a graph once it is made again, and which of its buffers its results are."""

    launches: list[Prepared]
    results: tuple[int, ...]
    graph: Any = None


class GpuRunner(PlannedRunner):
    """Runs planned launches on a device, on one stream."""

    def __init__(self, kernels: ProgramKernels, on: Device, stream: int = 0):
        super().__init__(kernels)
        self.device, self.stream = on, stream
        self.scratches: dict[tuple[int, int], DeviceBuffer] = {}
        self.scratch_count = 0
        self.prepared: dict[LaunchOp, Prepared] = {}
        self.repeated: dict[tuple[Any, ...], Any] = {}
        """Graphs of launches that loops made, several times over, by those launches, the oldest first."""
        self.runs: dict[tuple[Any, ...], Run] = {}
        """By their loop, their steps and what they are given, the oldest first."""
        self.made: list[Prepared] | None = None
        """The launches of the present run; None where it does more, or a loop's go as a graph."""
        self.one_run = RLock()
        """Held by a run: it notes its launches, and shares scratch buffers with others of the stream."""
        self.host.handlers[scf.ForOp] = self.repeat

    def launch(self, op: LaunchOp, operands: Sequence[Any], values: Values) -> Sequence[Any]:
        self.launch_prepared(self.prepare(op, operands))
        return []

    def launch_prepared(self, launch: Prepared) -> None:
        if self.made is not None:
            self.made.append(launch)
        self.device.launch(launch.kernel, launch.arguments, self.stream)

    def prepare(self, op: LaunchOp, operands: Sequence[Any]) -> Prepared:
        """A launch as it was made before, where its operands are the same."""
        known, given = self.prepared.get(op), tuple(map(identity, operands))
        if known is None or known.given != given:
            kernel = self.device.known(self.kernels.kernel(op.kernel.string_value()))
            known = self.prepared[op] = Prepared(given, kernel, arguments_of(op, operands))
        return known

    def repeat(self, op: scf.ForOp, operands: Sequence[Any], values: Values) -> Sequence[Any]:
        """
        The launches of a loop. Small fields would wait for the host, so many launches go as a graph, which is made
        while the GPU works on the first of them.
        """
        repeats = len(range(*map(int, operands)))
        launches = [
            self.prepare(inner, [values[operand] for operand in inner.operands])
            for inner in op.body.block.ops
            if isinstance(inner, LaunchOp)
        ]
        if self.are_worth_a_graph(launches, repeats):
            repeats = self.repeat_as_graph(launches, repeats)
        for launch in launches * repeats:
            self.launch_prepared(launch)
        return []

    def are_worth_a_graph(self, launches: Sequence[Prepared], repeats: int) -> bool:
        """There are many; a stream that is captured takes launches into a graph of its own."""
        if len(launches) * repeats < FEWEST_LAUNCHES or self.device.is_capturing(self.stream):
            return False
        return not any(launch.kernel.is_attended for launch in launches)

    def repeat_as_graph(self, launches: list[Prepared], repeats: int) -> int:
        """Repeat launches by means of a graph; how often they are to be repeated yet."""
        self.made = None
        rounds = max(1, LAUNCHES_OF_A_GRAPH // len(launches))
        key = tuple((each.kernel, each.given) for each in launches)
        graph = self.repeated.get(key)
        if graph is None:
            for launch in launches * rounds:
                self.launch_prepared(launch)
            repeats -= rounds
            graph = self.graph(launches * rounds)
            if len(self.repeated) == MOST_GRAPHS:
                self.device.free_graph(self.repeated.pop(next(iter(self.repeated))))
            self.repeated[key] = graph
        for _ in range(repeats // rounds):
            self.device.launch_graph(graph, self.stream)
        return repeats % rounds

    def with_kernels(self, kernels: ProgramKernels) -> GpuRunner:
        """It shares the scratch buffers: what runs on one stream runs one after the other."""
        other = GpuRunner(kernels, self.device, self.stream)
        other.scratches, other.one_run = self.scratches, self.one_run
        return other

    def same_halos(self, frame: HaloFrame, first: Any, other: Any) -> bool:
        """
        Compared on the device; the answer waits for what the stream has been given so far. A stream that is captured
        into a graph cannot wait: nothing is known then.
        """
        if self.device.is_capturing(self.stream):
            return False
        return not self.device.halos_differ(frame, first.pointer, other.pointer, self.stream)

    def run(
        self, loop: LoopOp, steps: int, buffers: Sequence[Any], around: Sequence[Any]
    ) -> Sequence[Any]:
        """A short run that is made again, of the same fields, goes as a graph; one that is captured does not."""
        key = (loop, steps, *map(identity, (*buffers, *around)))
        with self.one_run:
            captured = self.device.is_capturing(self.stream)
            known = None if captured else self.runs.get(key)
            if known is not None:
                if known.graph is None:
                    known.graph = self.graph(known.launches)
                self.device.launch_graph(known.graph, self.stream)
                return [buffers[place] for place in known.results]
            self.begin()
            results = super().run(loop, steps, buffers, around)
            if not captured and self.made is not None and 1 < len(self.made) < FEWEST_LAUNCHES:
                places = tuple(
                    next(k for k, each in enumerate(buffers) if each is result)
                    for result in results
                )
                self.remember(key, Run(self.made, places))
            return results

    def begin(self) -> None:
        """Note the launches of a run from now on."""
        self.scratch_count, self.made = 0, []

    def remember(self, key: tuple[Any, ...], run: Run) -> None:
        """Keep a run whose launches may go as a graph, in the place of the oldest."""
        if any(launch.kernel.is_attended for launch in run.launches):
            return
        if len(self.runs) == MOST_GRAPHS:
            self.forget(self.runs.pop(next(iter(self.runs))))
        self.runs[key] = run

    def graph(self, launches: Sequence[Prepared]) -> Any:
        """A graph of launches, one after the other."""
        return self.device.graph([(each.kernel, each.arguments) for each in launches])

    def forget(self, known: Run) -> None:
        """Free its graph, if there is one."""
        if known.graph is not None:
            self.device.free_graph(known.graph)

    def scratch(self, op: ScratchOp, operands: Sequence[Any], values: Values) -> Sequence[Any]:
        """Scratch buffers are kept from call to call."""
        size = operands[0].bytes
        key = (self.scratch_count, size)
        self.scratch_count += 1
        if key not in self.scratches:
            self.scratches[key] = DeviceBuffer(self.device.allocate(size), size)
        return [self.scratches[key]]

    def copy(self, op: CopyOp, operands: Sequence[Any], values: Values) -> Sequence[Any]:
        self.made = None
        source, target = operands
        cuda = self.device.cuda
        checked(cuda.cuMemcpyDtoDAsync(target.pointer, source.pointer, source.bytes, self.stream))
        return []

    def close(self) -> None:
        """Free the scratch buffers and the graphs, and what kernels on this stream needed."""
        if isinstance(self.common, GpuRunner):
            self.common.close()
        for graph in self.repeated.values():
            self.device.free_graph(graph)
        for known in self.runs.values():
            self.forget(known)
        self.repeated.clear()
        self.runs.clear()
        for buffer in self.scratches.values():
            self.device.free(buffer.pointer)
        self.scratches.clear()
        self.device.forget(self.kernels.made.values(), self.stream)


def identity(operand: Any) -> DeviceBuffer | bytes:
    """By which an operand is known again: a field's memory, or the bits of a number, as -0.0 is not 0.0."""
    return operand if isinstance(operand, DeviceBuffer) else np.asarray(operand).tobytes()


def arguments_of(op: LaunchOp, operands: Sequence[Any]) -> Arguments:
    """The arguments of a launch, by the types that its kernel declares."""
    values: list[Any] = []
    types: list[Any] = []
    for operand, value in zip(operands, op.arguments):
        if isinstance(operand, DeviceBuffer):
            values.append(operand.pointer)
            types.append(ctypes.c_void_p)
            continue
        wide = getattr(value.type, "width", None)
        is_float = hasattr(operand, "dtype") and operand.dtype.kind == "f"
        is_float = is_float or isinstance(operand, float) or value.type.name.startswith("f")
        values.append(float(operand) if is_float else int(operand))
        if is_float:
            types.append(ctypes.c_float if value.type == f32 else ctypes.c_double)
        else:
            types.append(ctypes.c_int32 if wide is not None and wide.data == 32 else ctypes.c_int64)
    return Arguments(values, types)
