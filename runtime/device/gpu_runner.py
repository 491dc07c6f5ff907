"""Runs planned launches on a GPU, on one stream."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from threading import RLock
from typing import Any, TypeVar

import numpy as np
from xdsl.dialects import scf
from xdsl.ir import SSAValue

from timetile.dialects.temporal import LoopOp
from timetile.dialects.tile import CopyOp, LaunchOp, ScratchOp, StepValueOp
from timetile.passes.diagnostics import LOGGER, CompileError
from timetile.runtime.device.actions import (
    FEWEST_LAUNCHES,
    LAUNCHES_OF_A_GRAPH,
    Action,
    Copied,
    GraphRun,
    LaunchOrder,
    Prepared,
    Repeated,
    arguments_of,
)
from timetile.runtime.device.arguments import LaunchArguments
from timetile.runtime.device.cells import DeviceBuffer, DeviceMemory
from timetile.runtime.device.driven import Driven, DrivenLoop, is_driven
from timetile.runtime.device.gpu import Device
from timetile.runtime.executors.runners import PlannedRunner
from timetile.runtime.host.functions import HostValues
from timetile.runtime.host.halos import HaloFrame
from timetile.runtime.host.memory_protocol import GOES_ON
from timetile.runtime.kernels.kernel import Kernel
from timetile.runtime.kernels.of_program import ProgramKernels
from timetile.runtime.machine.driver import checked
from timetile.runtime.machine.ranges import profiled

MOST_GRAPHS = 8
"""Most graphs of loops, and of runs, kept for repetitions."""


class GpuRunner(PlannedRunner):
    """Runs planned launches on a device, on one stream."""

    takes_machine_code = True

    def __init__(
        self, kernels: ProgramKernels, on: Device, stream: int = 0, *, alone: bool = False
    ):
        """`alone`: no other GPU works on the run, which may begin before schedules are chosen."""
        super().__init__(kernels)
        self.alone = kernels.beside.is_allowed = alone
        self.device, self.stream = on, stream
        arch, cache = kernels.options.target.name, kernels.cache
        self.memory = self.fields = DeviceMemory(on, stream, arch, cache)
        self.fields.is_alone = alone
        self.scratches: dict[tuple[int, int], DeviceBuffer] = {}
        self.scratch_count = 0
        self.prepared: dict[LaunchOp, Prepared] = {}
        self.retained: set[Kernel] = set()
        """The kernels of prepared launches, kept loaded by the device."""
        self.last: Any = None
        """An event after the last run, if any."""
        self.repeated: dict[tuple[Any, ...], Any] = {}
        """Graphs of repeated launches, by launches, the graph used last at the end."""
        self.runs: dict[tuple[Any, ...], GraphRun] = {}
        """Runs, by loop, steps, what follows, and operands; the run made last at the end."""
        self.actions: list[Action] = []
        """The actions of the present run so far."""
        self.captured = False
        """The stream of the present run is being captured into a graph of the caller's."""
        self.one_run = RLock()
        """
        Held by a run: a run notes its launches, and shares scratch buffers with other runs of the
        stream.
        """
        self.host.handlers[scf.ForOp] = self.repeat

    def __call__(
        self, loop: LoopOp, steps: int, buffers: Sequence[Any], outside: dict[SSAValue, Any]
    ) -> Sequence[Any]:
        # The lock covers the comparison of halos: threads share the runner of common halos as well.
        with self.one_run:
            return super().__call__(loop, steps, buffers, outside)

    def launch(self, op: LaunchOp, operands: Sequence[Any], values: HostValues) -> Sequence[Any]:
        """Make a launch."""
        self.act(Repeated([self.prepare(op, operands)], 1))
        return []

    def act(self, action: Action) -> None:
        """Do an action, and note the action."""
        self.actions.append(action)
        self.do(action)

    def do(self, action: Action) -> None:
        """
        Launch or copy. For small fields the GPU would wait for the host, so many launches go as a
        graph, made while the GPU works on the first launches.
        """
        if isinstance(action, Copied):
            pointers = action.target.pointer, action.source.pointer
            checked(self.device.cuda.cuMemcpyDtoDAsync(*pointers, action.source.bytes, self.stream))
            return
        if isinstance(action, Driven):
            action.make(lambda kernel, given: self.device.launch(kernel, given, self.stream))
            return
        times = action.times
        if self.is_worth_a_graph(action):
            times = self.repeat_as_graph(action.launches, times)
        self.launch_all(action.launches * times)

    def prepare(
        self, op: LaunchOp, operands: Sequence[Any], further: Sequence[int] = ()
    ) -> Prepared:
        """
        A launch as made before if the operands are equal, otherwise a new one; `further` are
        pointers behind the operands.
        """
        known = self.prepared.get(op)
        given = (*map(identity, operands), *map(identity, further))
        if known is None or known.given != given:
            kernel = self.kernel_of(op)
            arguments = arguments_of(op, operands)
            if further:
                arguments = arguments.followed_by(further, (ctypes.c_void_p,) * len(further))
            known = self.prepared[op] = Prepared(given, kernel, arguments)
        return known

    def kernel_of(self, op: LaunchOp) -> Kernel:
        """The kernel of a launch, kept loaded by the device."""
        kernel = self.device.known(self.kernels.kernel(op.kernel.string_value()))
        self.retain(kernel)
        return kernel

    def retain(self, kernel: Kernel) -> None:
        """Let the device keep a kernel loaded."""
        if kernel not in self.retained:
            self.device.retain(kernel, self.stream)
            self.retained.add(kernel)

    def launch_all(self, launches: Sequence[Prepared]) -> None:
        """Launch one after the other."""
        for launch in launches:
            self.device.launch(launch.kernel, launch.arguments, self.stream)

    def repeat(self, op: scf.ForOp, operands: Sequence[Any], values: HostValues) -> Sequence[Any]:
        """The launches of a loop; with numbers of series, turn by turn."""
        if any(isinstance(inner, StepValueOp) for inner in op.body.block.ops):
            return self.repeat_driven(op, operands, values)
        launches = [
            self.prepare(inner, [values[operand] for operand in inner.operands])
            for inner in op.body.block.ops
            if isinstance(inner, LaunchOp)
        ]
        self.act(Repeated(launches, len(range(*map(int, operands)))))
        return []

    def repeat_driven(
        self, op: scf.ForOp, operands: Sequence[Any], values: HostValues
    ) -> Sequence[Any]:
        """The launches of a loop with numbers of series."""
        turns = range(*map(int, operands[:3]))
        if not turns or not is_driven(op):
            return self.host.run_for(op, operands, values)

        def prepared(launch: LaunchOp, given: Sequence[Any]) -> tuple[Kernel, LaunchArguments]:
            # Each launch gets new arguments, since a turn changes their numbers.
            return self.kernel_of(launch), arguments_of(launch, given)

        launches = DrivenLoop(op, turns, values).launches(prepared)
        if any(each.kernel.is_attended for each in launches):
            return self.host.run_for(op, operands, values)
        self.act(Driven(launches, len(turns)))
        return []

    def is_worth_a_graph(self, repeated: Repeated) -> bool:
        """
        Whether a graph pays: many launches, on a stream not being captured into another graph.
        """
        many = len(repeated.launches) * repeated.times >= FEWEST_LAUNCHES
        return many and not self.captured and not repeated.is_attended

    def repeat_as_graph(self, launches: list[Prepared], repeats: int) -> int:
        """Repeat launches by a graph. Returns the number of repetitions left."""
        rounds = max(1, LAUNCHES_OF_A_GRAPH // len(launches))
        key = tuple((each.kernel, each.given) for each in launches)
        graph = used(self.repeated, key)
        if graph is None:
            self.launch_all(launches * rounds)
            repeats -= rounds
            graph = self.graph(launches * rounds)
            oldest = keep(self.repeated, key, graph)
            if oldest is not None:
                self.device.free_graph(oldest)
        for _ in range(repeats // rounds):
            self.device.launch_graph(graph, self.stream)
        return repeats % rounds

    def with_kernels(self, kernels: ProgramKernels) -> GpuRunner:
        """
        A runner for other kernels, with shared scratch buffers: runs on one stream are made one
        after the other.
        """
        other = GpuRunner(kernels, self.device, self.stream, alone=self.alone)
        other.scratches, other.one_run = self.scratches, self.one_run
        return other

    def has_common_halos(self, loop: LoopOp, steps: int, buffers: Sequence[Any]) -> bool:
        """
        Whether halos are equal. A stream being captured into a graph cannot wait for the answer,
        and gets False.
        """
        compared = self.kernels.options.halos == "compared"
        if compared and self.device.is_capturing(self.stream):
            return False
        return super().has_common_halos(loop, steps, buffers)

    def same_halos(self, frame: HaloFrame, first: Any, other: Any) -> bool:
        """
        Whether two buffers have equal halos, compared on the device after all earlier work of the
        stream.
        """
        one, two, cache = first.pointer, other.pointer, self.kernels.cache
        return not self.device.halos_differ(frame, one, two, self.stream, cache)

    def begins_early(self) -> bool:
        """A stream being captured waits for nothing, and its graph keeps the kernels."""
        return self.alone and not self.device.is_capturing(self.stream)

    def wait(self) -> None:
        """Wait for the launches made so far."""
        self.device.synchronize(self.stream)

    def loads(self) -> bool:
        """Load the kernels made. Whether the GPU has room for all."""
        try:
            for kernel in map(self.device.known, self.kernels.made.values()):
                self.device.load(kernel)
                self.retain(kernel)
        except (CompileError, RuntimeError) as error:
            LOGGER.info("kernels of a schedule are not loaded: %s", error)
            return False
        return True

    def run(
        self, loop: LoopOp, steps: int, buffers: Sequence[Any], around: Sequence[Any]
    ) -> Sequence[Any]:
        """
        Make a run. A run made again on equal fields repeats its actions, except during a capture.
        """
        key = (loop, steps, GOES_ON.get(), *map(identity, (*buffers, *around)))
        with self.one_run, profiled(f"launch {steps} steps"):
            self.captured = self.device.is_capturing(self.stream)
            if self.captured:
                return self.run_first(loop, steps, buffers, around)
            known = used(self.runs, key)
            if known is not None:
                self.run_again(known)
                results = [buffers[place] for place in known.results]
            else:
                results = self.run_first(loop, steps, buffers, around)
                self.remember(key, buffers, results)
            self.last = self.device.mark(self.last, self.stream)
            return results

    def run_first(
        self, loop: LoopOp, steps: int, buffers: Sequence[Any], around: Sequence[Any]
    ) -> Sequence[Any]:
        """Make a run for the first time, or during a capture."""
        self.scratch_count, self.actions = 0, []
        return super().run(loop, steps, buffers, around)

    def remember(
        self, key: tuple[Any, ...], buffers: Sequence[Any], results: Sequence[Any]
    ) -> None:
        """Keep the actions of a run for a repetition, if its results are among its buffers."""
        places = [k for result in results for k, each in enumerate(buffers) if each is result]
        if len(places) != len(results):
            return
        oldest = keep(self.runs, key, GraphRun(self.actions, tuple(places)))
        if oldest is not None:
            self.forget(oldest)

    def run_again(self, run: GraphRun) -> None:
        """Repeat the actions of a run, as a graph if one pays."""
        run.again += 1
        if run.graph is None and run.launches is not None and run.is_due:
            run.graph = self.graph(run.launches)
        if run.graph is not None:
            self.device.launch_graph(run.graph, self.stream)
            return
        for action in run.actions:
            self.do(action)

    def graph(self, launches: Sequence[Prepared]) -> Any:
        """A graph of launches, side by side where none writes what another reads or writes."""
        waits = LaunchOrder(launches).waits
        return self.device.graph([(each.kernel, each.arguments) for each in launches], waits)

    def forget(self, known: GraphRun) -> None:
        """Free the graph of a run, if any."""
        if known.graph is not None:
            self.device.free_graph(known.graph)

    def scratch(self, op: ScratchOp, operands: Sequence[Any], values: HostValues) -> Sequence[Any]:
        """Scratch buffers are kept from call to call."""
        size = operands[0].bytes
        key = (self.scratch_count, size)
        self.scratch_count += 1
        if key not in self.scratches:
            self.scratches[key] = DeviceBuffer(self.device.allocate(size), size)
        return [self.scratches[key]]

    def copy(self, op: CopyOp, operands: Sequence[Any], values: HostValues) -> Sequence[Any]:
        """Copy a field."""
        self.act(Copied(*operands))
        return []

    def close(self) -> None:
        """
        Give back scratch buffers, graphs, and kernels without another runner, after all runs are
        done. A GPU without an answer is a warning. The owner of a graph with captured runs must
        keep the runner open.
        """
        with self.one_run:
            try:
                with self.device.giving_back():
                    self.give_back()
            except RuntimeError as error:
                LOGGER.warning("what a program held on the GPU is not given back: %s", error)

    def give_back(self) -> None:
        """Do the work of `close`, with the device current."""
        others = (
            self.common,
            self.uncounted,
            self.early.taken(),
            *self.rivals.taken(),
            *self.edges.taken(),
        )
        self.common = self.uncounted = None
        for other in others:
            if isinstance(other, GpuRunner):
                other.give_back()
        last, self.last = self.last, None
        if last is not None:
            self.device.wait_for_mark(last)
        while self.repeated:
            self.device.free_graph(self.repeated.popitem()[1])
        while self.runs:
            self.forget(self.runs.popitem()[1])
        while self.scratches:
            self.device.free(self.scratches.popitem()[1].pointer)
        self.fields.close()
        self.prepared.clear()
        retained, self.retained = self.retained, set()
        self.device.release(retained, self.stream)


Kept = TypeVar("Kept")


def keep(kept: dict[tuple[Any, ...], Kept], key: tuple[Any, ...], new: Kept) -> Kept | None:
    """
    Keep a new entry. Returns the entry used least lately, removed if the dictionary is full;
    otherwise None.
    """
    oldest = kept.pop(next(iter(kept))) if len(kept) == MOST_GRAPHS else None
    kept[key] = new
    return oldest


def used(kept: dict[tuple[Any, ...], Kept], key: tuple[Any, ...]) -> Kept | None:
    """The entry of a key, moved to the end; None without an entry."""
    if key in kept:
        kept[key] = kept.pop(key)
    return kept.get(key)


def identity(operand: Any) -> DeviceBuffer | bytes:
    """The identity of an operand: a field's memory, or the bits of a number, as -0.0 is not 0.0."""
    return operand if isinstance(operand, DeviceBuffer) else np.asarray(operand).tobytes()
