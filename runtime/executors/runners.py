"""
Executors of programs on NumPy arrays, beside the machine code of `runtime/native/` and the GPU of
`runtime/device/gpu.py`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from threading import get_ident
from typing import Any, Protocol

import numpy as np
from xdsl.dialects import gpu
from xdsl.ir import SSAValue

from timetile.dialects.temporal import LoopOp
from timetile.dialects.tile import CopyOp, KernelOp, LaunchOp, ScratchOp, StepValueOp
from timetile.lowering.plan_launches import parts_of_step
from timetile.lowering.tile_to_gpu.message_buffers import launch_words
from timetile.runtime.executors.checked_memory import BufferMemory, CellsMemory
from timetile.runtime.executors.early_steps import EarlySteps
from timetile.runtime.executors.edge_runs import EdgeRunners
from timetile.runtime.executors.homes import MarkedCells
from timetile.runtime.executors.numpy_loops import Progress, run_loop
from timetile.runtime.executors.planes import PlanesLaunch
from timetile.runtime.executors.rival_runs import RivalRuns
from timetile.runtime.executors.series import step_value
from timetile.runtime.executors.simt.interpreter import SimtLaunch
from timetile.runtime.executors.simt.machine import BlockCode
from timetile.runtime.executors.simt.memory import Buffer
from timetile.runtime.host.functions import Host, HostValues
from timetile.runtime.host.halo_notice import HaloNotice
from timetile.runtime.host.halos import HaloFrame, compared_in_turn, halos_differ
from timetile.runtime.host.memory import ArrayMemory, ViewMemory
from timetile.runtime.host.memory_protocol import GOES_ON, Memory
from timetile.runtime.kernels.lowered import launch_facts
from timetile.runtime.kernels.of_program import ProgramKernels
from timetile.runtime.kernels.planning import launched_by, planned_function

RESIDENT_BLOCKS = 8
"""Blocks resident at once on the interpreters' device, for tiles of several blocks."""


def resident_tiles(grid: int, blocks_per_tile: int) -> int:
    """
    How many tiles of a launch with `grid` blocks are resident at once on the interpreters' device:
    at least 1.
    """
    return min(grid // blocks_per_tile, max(1, RESIDENT_BLOCKS // blocks_per_tile))


class LoopRunner(Protocol):
    """
    Runs a time loop on buffers. `outside` maps captured fields and, after them, scalars. `memory`
    is how the host reads and writes single cells of the buffers.
    """

    @property
    def memory(self) -> Memory:
        """How the host reads and writes single cells of the buffers."""
        ...

    def __call__(
        self, loop: LoopOp, steps: int, buffers: Sequence[Any], outside: dict[SSAValue, Any]
    ) -> Sequence[Any]: ...


class NumpyRunner:
    """Runs time loops with NumPy, step by step."""

    def __init__(self, progress: Progress | None = None):
        self.progress = progress
        self.memory: Memory = ViewMemory()

    def __call__(
        self, loop: LoopOp, steps: int, buffers: Sequence[Any], outside: dict[SSAValue, Any]
    ) -> Sequence[Any]:
        return run_loop(loop, steps, buffers, outside, self.progress)


class NoticingRunner:
    """A runner with a look at the halos of arrays before a run."""

    def __init__(self, runner: LoopRunner, notice: HaloNotice):
        self.runner, self.notice = runner, notice

    @property
    def memory(self) -> Memory:
        """How the host reads and writes single cells of the buffers."""
        return self.runner.memory

    def __call__(
        self, loop: LoopOp, steps: int, buffers: Sequence[Any], outside: dict[SSAValue, Any]
    ) -> Sequence[Any]:
        self.notice.look(loop, steps, buffers)
        return self.runner(loop, steps, buffers, outside)


class PlannedRunner:
    """Runs time loops as planned launches; subclasses launch kernels and make scratch buffers."""

    takes_machine_code = False
    """A run asks for every kernel as PTX or machine code: all are begun side by side."""

    def __init__(self, kernels: ProgramKernels, progress: Progress | None = None):
        self.kernels, self.progress = kernels, progress
        self.memory: Memory = ArrayMemory()
        self.host = Host(
            {
                LaunchOp: self.counted_launch,
                ScratchOp: self.scratch,
                CopyOp: self.copy,
                StepValueOp: step_value,
            }
        )
        self.plans: dict[tuple[LoopOp, int, bool], Any] = {}
        """Plans by loop and steps, and whether another run follows."""
        self.depths: dict[str, int] = {}
        """The steps advanced by each kernel."""
        self.advanced: dict[LaunchOp, int] = {}
        """The steps advanced by each launch made so far."""
        self.compared: dict[LoopOp, list[tuple[HaloFrame, int, int]]] = {}
        """The buffers of each loop with compared halos, by role."""
        self.common: PlannedRunner | None = None
        """The runner of kernels for common halos."""
        self.uncounted: PlannedRunner | None = None
        """For runs of more steps than the program states."""
        self.edges = EdgeRunners(self)
        """The runners of kernels that continue fields with edge cells."""
        self.early = EarlySteps(self)
        """Steps before the schedules are chosen."""
        self.rivals = RivalRuns(self)
        """Long runs that try other schedules."""
        self.done, self.total = 0, 0

    def __call__(
        self, loop: LoopOp, steps: int, buffers: Sequence[Any], outside: dict[SSAValue, Any]
    ) -> Sequence[Any]:
        if self.memory.leaves_cells(loop, outside):
            return buffers
        found = self.kernels.edges.of(loop, steps)
        if found is not None:
            return self.edges.run(loop, found, steps, buffers, outside)
        return self.run_as_written(loop, steps, buffers, outside)

    def run_as_written(
        self, loop: LoopOp, steps: int, buffers: Sequence[Any], outside: dict[SSAValue, Any]
    ) -> Sequence[Any]:
        """Run the updates of a loop as they are."""
        kernels, own = self.kernels.for_steps(loop, steps)
        if kernels is not self.kernels:
            if self.uncounted is None:
                self.uncounted = self.with_kernels(kernels)
            return self.uncounted(own, steps, buffers, outside)
        if self.has_common_halos(loop, steps, buffers):
            if self.common is None:
                self.common = self.with_kernels(self.kernels.common)
            common = self.kernels.common_loop(loop)
            return self.common.early.run(common, steps, buffers, outside)
        return self.early.run(loop, steps, buffers, outside)

    def begins_early(self) -> bool:
        """Whether a run may begin before the schedules are chosen."""
        return False

    def wait(self) -> None:
        """Wait for the launches made so far."""

    def now(self) -> float:
        """The time after all launches made so far, in seconds."""
        self.wait()
        return time.perf_counter()

    def loads(self) -> bool:
        """Load the kernels made. Whether all can be loaded."""
        return True

    def has_common_halos(self, loop: LoopOp, steps: int, buffers: Sequence[Any]) -> bool:
        """Whether the run has several steps, and rotating buffers with equal halos."""
        if not self.kernels.compares_halos(loop, steps):
            return False
        known = self.memory.halos.get(get_ident())
        if known is None:
            return self.halos_agree(loop, buffers)
        key = (loop, *sorted(map(id, buffers)))
        if key not in known:
            # The buffers stay, so that no other buffer has their names.
            known[key] = self.halos_agree(loop, buffers), tuple(buffers)
        return known[key][0]

    def halos_agree(self, loop: LoopOp, buffers: Sequence[Any]) -> bool:
        """Whether rotating buffers have equal halos now."""
        if loop not in self.compared:
            self.compared[loop] = compared_in_turn(loop)
        if not self.compared[loop]:
            return False
        for frame, first, other in self.compared[loop]:
            if not self.same_halos(frame, buffers[first], buffers[other]):
                self.kernels.notice.say(loop, first)
                return False
        return True

    def run(
        self, loop: LoopOp, steps: int, buffers: Sequence[Any], around: Sequence[Any]
    ) -> Sequence[Any]:
        """Run a time loop of the kernels' program as launches."""
        if self.takes_machine_code:
            self.kernels.expect(loop, steps)
        facts = self.kernels.facts_of(loop)
        self.depths |= {fact.name: fact.steps for fact in facts}
        # A step in parts ends with the last part.
        self.depths |= dict.fromkeys((fact.name for fact in parts_of_step(facts)[:-1]), 0)
        self.done, self.total = 0, steps
        key = (loop, steps, goes_on := GOES_ON.get())
        if key not in self.plans:
            plan = planned_function(loop, facts, steps, goes_on=goes_on)
            self.plans[key] = plan
            if self.takes_machine_code:
                self.kernels.begin(launched_by(plan))
        return self.host.run(self.plans[key], [steps, *buffers, *around])

    def counted_launch(
        self, op: LaunchOp, operands: Sequence[Any], values: HostValues
    ) -> Sequence[Any]:
        """Run a launch, and count its steps."""
        results = self.launch(op, operands, values)
        if op not in self.advanced:
            self.advanced[op] = self.depths[op.kernel.string_value()]
        self.done += self.advanced[op]
        if self.progress is not None:
            self.progress(self.done, self.total)
        return results

    def with_kernels(self, kernels: ProgramKernels) -> PlannedRunner:
        """A runner of equal kind for other kernels."""
        return type(self)(kernels, self.progress)

    def same_halos(self, frame: HaloFrame, first: Any, other: Any) -> bool:
        """Two buffers have the same cells around the frame's box."""
        return not halos_differ(frame, first.data, other.data)

    def launch(self, op: LaunchOp, operands: Sequence[Any], values: HostValues) -> Sequence[Any]:
        """Run a launch."""
        raise NotImplementedError

    def scratch(self, op: ScratchOp, operands: Sequence[Any], values: HostValues) -> Sequence[Any]:
        """Make a scratch buffer."""
        raise NotImplementedError

    def copy(self, op: CopyOp, operands: Sequence[Any], values: HostValues) -> Sequence[Any]:
        """Copy a buffer."""
        raise NotImplementedError


class PlanesRunner(PlannedRunner):
    """Runs planned launches at the tile level, plane by plane, on cells marked as set or unset."""

    def __init__(self, kernels: ProgramKernels, progress: Progress | None = None):
        super().__init__(kernels, progress)
        self.memory = CellsMemory()
        self.launches: dict[str, PlanesLaunch] = {}

    def launch(self, op: LaunchOp, operands: Sequence[Any], values: HostValues) -> Sequence[Any]:
        """Run a launch plane by plane."""
        name = op.kernel.string_value()
        if name not in self.launches:
            module = self.kernels.kernel_module(name)
            kernel = next(k for k in module.ops if isinstance(k, KernelOp))
            self.launches[name] = PlanesLaunch(kernel, operands)
        self.launches[name].on(operands).run()
        return []

    def scratch(self, op: ScratchOp, operands: Sequence[Any], values: HostValues) -> Sequence[Any]:
        """Make a scratch buffer of unset cells."""
        return [MarkedCells.of(np.zeros_like(operands[0].data), known=False)]

    def copy(self, op: CopyOp, operands: Sequence[Any], values: HostValues) -> Sequence[Any]:
        """Copy a buffer, with its marks."""
        source, target = operands
        target.data[:] = source.data
        target.known[:] = source.known
        return []


class SimtRunner(PlannedRunner):
    """Runs planned launches with the SIMT interpreter, on buffers checked for races."""

    def __init__(self, kernels: ProgramKernels, progress: Progress | None = None):
        super().__init__(kernels, progress)
        self.memory = BufferMemory()
        self.code: BlockCode = {}

    def launch(self, op: LaunchOp, operands: Sequence[Any], values: HostValues) -> Sequence[Any]:
        """Run a launch thread by thread."""
        module = self.kernels.threads(op.kernel.string_value())
        function = module.body.block.first_op
        assert isinstance(function, gpu.FuncOp)
        shape = launch_facts(module).shape
        grid, block, blocks = shape.grid, shape.block, shape.blocks_per_tile
        if not shape.has_messages:
            SimtLaunch(function, grid, block, operands, shape.cluster, code=self.code).run()
            return []
        together = resident_tiles(grid, blocks)
        words = launch_words(together, shape.message_words)
        buffers = Buffer(np.zeros(words, dtype=np.int64), unset=True)
        given = [*operands, buffers, together]
        SimtLaunch(function, together * blocks, block, given, 1, blocks, self.code).run()
        return []

    def scratch(self, op: ScratchOp, operands: Sequence[Any], values: HostValues) -> Sequence[Any]:
        """Make a scratch buffer of unset cells."""
        return [Buffer(np.zeros_like(operands[0].data), unset=True)]

    def copy(self, op: CopyOp, operands: Sequence[Any], values: HostValues) -> Sequence[Any]:
        """Copy a buffer, with its marks."""
        source, target = operands
        target.data[:] = source.data
        target.unset[:] = source.unset
        return []
