"""
The common part of the passes named after published systems: from a program to placed kernels.

1. A program of the stencil dialect becomes time loops first, as by the passes of `time_loops.py`.
2. A system gives each time loop a point of the space of schedules: a depth and a schedule, with
   sizes by the formulas of the paper (`passes/cost/papers`). Options of the pass override sizes.
3. `device-tiling`, `split-sums`, `multi-queue-buffering` and `register-streaming` make and place
   the kernels; `carry-halos` and `peel-boundaries` end as in the default pipeline.

A loop that a system cannot express is refused by the system's name, with a way out.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Self

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass, PassPipeline
from xdsl.rewriter import Rewriter

from timetile.dialects.syntax import encode_integers
from timetile.dialects.temporal import MOST_DEPTH, LoopOp
from timetile.dialects.tile import KernelOp
from timetile.dialects.tile.kinds import Sync
from timetile.dialects.tile.schedule import Schedule, ScheduleAttr
from timetile.passes.analysis.block_memory import BlockMemory
from timetile.passes.analysis.boundaries import check_kept
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.analysis.launches.trip_counts import most_steps_at_once
from timetile.passes.cost.launch import predict
from timetile.passes.cost.terms import Cost
from timetile.passes.diagnostics import (
    CompileError,
    apply_verified,
    check_options,
    muted_remarks,
    refuse,
)
from timetile.passes.enum_options import EnumOptionsPass
from timetile.passes.loops.temporal_fusion import write_depths
from timetile.passes.systems.programs import PaperProgram
from timetile.passes.targets.target import DEFAULT_ARCH, Target, target_named
from timetile.passes.tiling.carry_halos import CarryHalosPass
from timetile.passes.tiling.device_tiling import DeviceTilingPass
from timetile.passes.tiling.multi_queue_buffering import MultiQueueBufferingPass
from timetile.passes.tiling.peel_boundaries import PeelBoundariesPass
from timetile.passes.tiling.register_streaming import RegisterStreamingPass
from timetile.passes.tiling.split_sums import SplitSumsPass, split_stages, why_none
from timetile.passes.time_loops import temporal_passes

BEST = 5
"""Points compared by predicted time: AN5D runs the best five of its model (section 6.3)."""

SUMS = 1.5
"""
Registers that the assembler takes for sums entered row by row or lane by lane, over the model's
count: 1.5 to 2 for boxes of radius 2 and more in two axes.
"""


@dataclass(frozen=True)
class Point:
    """A point of the space of schedules: steps of a launch, and the schedule."""

    depth: int
    schedule: Schedule


@dataclass(frozen=True)
class SystemPass(EnumOptionsPass, ABC):
    """
    A pass named after a published system; see the module's documentation. Each option overrides a
    size of the paper's formulas. `arch` and `multiprocessors` are those of the compilation unless
    given.
    """

    depth: int | None = None
    cells: tuple[int, ...] | None = None
    warps: tuple[int, ...] | None = None
    blocks: tuple[int, ...] | None = None
    occupancy: int | None = None
    ahead: int | None = None
    sync: Sync | None = None
    arch: str | None = None
    multiprocessors: int | None = None

    @abstractmethod
    def point(self, program: PaperProgram, target: Target) -> Point:
        """The point of a loop, by the formulas, with the options of the pass."""

    @property
    @abstractmethod
    def streaming(self) -> RegisterStreamingPass | None:
        """How own cells move to registers; None for planes as `multi-queue-buffering` places."""

    @property
    def buffering(self) -> MultiQueueBufferingPass:
        """How planes are placed, before own cells move to registers."""
        return MultiQueueBufferingPass()

    @property
    def splitting(self) -> SplitSumsPass:
        """How sums are split."""
        return SplitSumsPass()

    def for_target(self, arch: str, multiprocessors: int | None) -> Self:
        """The pass for a target of the compilation, unless the pass has a target by its options."""
        if self.arch is not None:
            return self
        return replace(self, arch=arch, multiprocessors=self.multiprocessors or multiprocessors)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        check_options(
            self, depth=1, cells=1, warps=1, blocks=1, occupancy=1, ahead=0, multiprocessors=1
        )
        if self.depth is not None and self.depth > MOST_DEPTH:
            raise CompileError(f"{self.name}: depth is at most {MOST_DEPTH}, got {self.depth}")
        target = target_named(self.arch or DEFAULT_ARCH, self.multiprocessors)
        if not any(isinstance(inner, LoopOp) for inner in op.walk()):
            apply_verified(temporal_passes(), op, ctx)
        loops = [loop for loop in op.walk() if isinstance(loop, LoopOp) and loop.updates]
        for loop in loops:
            check_kept(loop, images=True)
            self.write(loop, self.point(PaperProgram(loop, op), target))
        PassPipeline(self.passes(target)).apply(ctx, op)
        for loop in loops:
            self.check_depth(loop)

    def write(self, loop: LoopOp, point: Point) -> None:
        """Write a point on a loop, for the passes below."""
        loop.schedule = ScheduleAttr(point.schedule)
        write_depths(loop, [point.depth])

    def passes(self, target: Target) -> tuple[ModulePass, ...]:
        """The passes from time loops with schedules to placed kernels."""
        streams = () if self.streaming is None else (self.streaming,)
        return (
            DeviceTilingPass(),
            self.splitting,
            self.buffering,
            *streams,
            CarryHalosPass(),
            PeelBoundariesPass(target.part.name, multiprocessors=target.multiprocessors),
        )

    def check_depth(self, loop: LoopOp) -> None:
        """Refuse a loop without the kernel of its deepest depth."""
        deepest = max(loop.depth_list)
        if deepest in {kernel.steps.data for kernel in kernels_named_by(loop)}:
            return
        axes = loop.decisions.layout().axis_layouts
        extents = " x ".join(str(axis.extent) for axis in axes)
        refuse(
            loop,
            f"{self.name} cannot take {deepest} steps at once: no cell of a tile of {extents} "
            "cells is left, or no step reads cells of an earlier step; give a smaller depth, or "
            "more cells or warps",
        )

    # What the systems share.

    def refuse_rank(self, program: PaperProgram, ranks: tuple[int, ...], why: str) -> None:
        """Refuse a domain with another number of axes than a system has."""
        if program.rank not in ranks:
            has = " or ".join(map(str, ranks))
            refuse(
                program.loop,
                f"{self.name} is for domains of {has} axes, got {program.rank}: {why}; use the "
                "default passes",
            )

    def given_depth(self, program: PaperProgram) -> int | None:
        """The depth asked for: by option, or on the loop; None if the formulas choose."""
        given, loop = self.depth, program.loop
        if given is None and loop.depths is not None:
            given = max(loop.depth_list)
        return given

    def bounded(self, program: PaperProgram, depth: int) -> int:
        """A depth, or the number of steps of the program's longest run if smaller."""
        most = most_steps_at_once(program.loop)
        return depth if most is None else min(depth, most)

    def sized(self, schedule: Schedule) -> Schedule:
        """
        A schedule with the sizes of the options in place of its own. Raises CompileError for sizes
        of another number of axes.
        """
        axes = len(schedule.cells)
        for name in ("cells", "warps", "blocks"):
            given: tuple[int, ...] | None = getattr(self, name)
            if given is not None and len(given) != axes:
                example = ",".join(map(str, (*given, *[1] * axes)[:axes]))
                raise CompileError(
                    f"{self.name}: {name} has a number for each of {axes} in-plane axes, got "
                    f"{len(given)}; give {name}={example}, say"
                )
        own = {
            name: value
            for name in ("cells", "warps", "blocks", "occupancy", "ahead", "sync", "every")
            if (value := getattr(self, name, None)) is not None
        }
        return replace(schedule, **own)

    def trial(self, program: PaperProgram, point: Point, target: Target) -> list[KernelOp]:
        """The placed kernel of a point of one loop, made on a copy of the module."""
        loop, module = self.copied(program)
        self.write(loop, point)
        # Kernels of fewer steps, for the rest of a run, decide nothing.
        loop.depths = encode_integers([max(loop.depth_list)])
        with muted_remarks():
            PassPipeline(self.passes(target)).apply(Context(), module)
        return list(kernels_named_by(loop))

    def splits_a_sum(self, program: PaperProgram, point: Point) -> bool:
        """Whether the form of a point cuts a sum of the deepest kernel, tried on a copy."""
        loop, module = self.copied(program)
        self.write(loop, point)
        with muted_remarks():
            DeviceTilingPass().apply(Context(), module)
        for kernel in kernels_named_by(loop):
            whole = len(kernel.stages)
            if why_none(kernel, point.schedule.form) is None:
                split_stages(kernel, module, point.schedule.form, {}, self.splitting.carried)
            if len(kernel.stages) > whole:
                return True
        return False

    def copied(self, program: PaperProgram) -> tuple[LoopOp, ModuleOp]:
        """
        The loop of a program in a copy of the program's module, without other loops: their domains
        may have another number of axes, and their schedules are not written.
        """
        module = program.module.clone()
        copies = (loop for loop in module.walk() if isinstance(loop, LoopOp))
        loops = (loop for loop in program.module.walk() if isinstance(loop, LoopOp))
        copy = next(copy for loop, copy in zip(loops, copies) if loop is program.loop)
        for function in [each for each in module.ops if isinstance(each, FuncOp)]:
            inside = [op for op in function.walk() if isinstance(op, LoopOp)]
            if inside and copy not in inside:
                Rewriter.erase_op(function)
                continue
            for other in inside:
                if other is not copy:
                    Rewriter.replace_op(other, [], list(other.buffers[: len(other.res)]))
        return copy, module

    def deepest(self, program: PaperProgram, point: Point, target: Target) -> KernelOp | None:
        """The placed kernel with the depth of a point, in a copy; None if a tile has no cell."""
        kernels = self.trial(program, point, target)
        return next((kernel for kernel in kernels if kernel.steps.data == point.depth), None)

    def registers(self, program: PaperProgram, point: Point, target: Target) -> int:
        """Registers of a thread of a point's deepest kernel, as predicted; 1 without a kernel."""
        kernel = self.deepest(program, point, target)
        if kernel is None:
            return 1
        counted = predict(kernel, module_around(kernel), target).registers
        return self.trusted(program, point, counted)

    def trusted(self, program: PaperProgram, point: Point, counted: int) -> int:
        """Registers of a thread of a point that our model counts as `counted`."""
        return counted

    def cost_if_held(self, program: PaperProgram, point: Point, target: Target) -> Cost | None:
        """
        The predicted cost of a launch if a multiprocessor holds the blocks of a point, by shared
        memory and registers; else None.
        """
        kernel = self.deepest(program, point, target)
        if kernel is None:
            return None
        isa, occupancy = target.isa, point.schedule.occupancy
        room = isa.shared_per_multiprocessor // occupancy - isa.shared_overhead
        taken = BlockMemory.of(Geometry(kernel)).bytes
        threads = point.schedule.layout().threads * occupancy
        cost = predict(kernel, module_around(kernel), target)
        holds = self.trusted(program, point, cost.registers) <= isa.registers_for(threads)
        return cost if holds and taken <= min(room, isa.shared_per_block) else None

    def fastest(
        self,
        program: PaperProgram,
        points: Iterable[Point],
        target: Target,
        *,
        alike: float,
        preferred: Callable[[Point], int],
    ) -> Point | None:
        """
        Of the first `BEST` points that a multiprocessor holds, the most preferred with at least the
        share `alike` of the highest predicted speed; None if no point is held. Points are in the
        order of a paper's formulas.
        """
        speeds: dict[Point, float] = {}
        for point in points:
            cost = self.cost_if_held(program, point, target)
            if cost is not None:
                speeds[point] = cost.gcells_per_second
            if len(speeds) == BEST:
                break
        if not speeds:
            return None
        least = alike * max(speeds.values())
        fast = (point for point, speed in speeds.items() if speed >= least)
        return max(fast, key=lambda point: (preferred(point), speeds[point]))


def module_around(op: Operation) -> ModuleOp:
    """The module around an operation."""
    module = op.get_toplevel_object()
    assert isinstance(module, ModuleOp)
    return module


def kernels_named_by(loop: LoopOp) -> Iterator[KernelOp]:
    """The kernels of a loop, as named on the loop."""
    named = {op.sym_name.data: op for op in module_around(loop).ops if isinstance(op, KernelOp)}
    return (named[name] for name in loop.kernel_names)
