"""Gathers the explanation of a program, and compiles missing kernels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from timetile.dialects.boxes import sizes_of
from timetile.dialects.syntax import element_type
from timetile.dialects.temporal import LoopOp
from timetile.dialects.tile import KernelOp
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.analysis.launches.liveness import written_bounds, written_cells
from timetile.passes.cost.launch import predict
from timetile.passes.cost.memory_reads import launches_in_turn, memory_cost
from timetile.passes.cost.spills import WORD_BYTES, spilled_cost
from timetile.passes.cost.terms import Cost, Limit
from timetile.passes.scheduling.candidates import Candidate, Comparison, compare
from timetile.passes.scheduling.choose_schedule import ModelChoice, fitting
from timetile.passes.scheduling.ran_out import drop_at
from timetile.passes.scheduling.turns import warps_of
from timetile.runtime.explain.advice import advice
from timetile.runtime.explain.costs import (
    assembled_section,
    cost_sections,
    drop_section,
    rejection_section,
)
from timetile.runtime.explain.data import Alternative, Explanation, LoopSummary, Resources, Section
from timetile.runtime.explain.edges import edges_text, series_text
from timetile.runtime.explain.figures import (
    bytes_of_cells,
    copy_bound,
    loop_flops,
    loop_radius,
    occupancy,
    read_fields,
    redundancy,
    written_fields,
)
from timetile.runtime.explain.kernel_sections import (
    launch_section,
    queue_section,
    resource_section,
    schedule_section,
    work_section,
)
from timetile.runtime.explain.paper_models import model_section
from timetile.runtime.explain.point_lists import points_text
from timetile.runtime.explain.program_sections import argument_section, loop_section
from timetile.runtime.explain.summary_facts import plural
from timetile.runtime.explain.sweep_summaries import sweep_summaries
from timetile.runtime.kernels.assembled_choice import steady_step
from timetile.runtime.kernels.kernel import Kernel
from timetile.runtime.kernels.loops import loops_of
from timetile.runtime.kernels.machine_code import steady_loop
from timetile.runtime.program.compiled_program import CompiledProgram
from timetile.runtime.program.pieces import checked_steps

LIMITS = {
    Limit.MEMORY: "global memory",
    Limit.PIPE: "the floating-point units",
    Limit.ISSUE: "the issue of instructions",
    Limit.SHARED: "shared memory",
}
"""The limits of the cost model, in words."""


def limit_text(cost: Cost) -> str:
    """The resource taking most of a launch's time."""
    busiest = LIMITS[cost.limit]
    overhead = cost.launch_seconds / cost.seconds
    waiting = cost.waiting_seconds / cost.step_seconds
    if overhead > 0.5:
        return f"launch overhead, {overhead:.0%} of a launch; then by {busiest}"
    if waiting > 0.5:
        return (
            f"waits of a tile's warps and blocks for each other, {waiting:.0%} of a step; then by "
            f"{busiest}"
        )
    return busiest


@dataclass
class LoopReport:
    """One time loop of a program, and its kernels at tile level."""

    program: CompiledProgram
    number: int
    loop: LoopOp
    tiled: LoopOp
    alone: bool

    @property
    def title(self) -> str:
        """The title of the loop's sections."""
        return "Time loop" if self.alone else f"Time loop {self.number}"

    @cached_property
    def kernels(self) -> list[KernelOp]:
        """The loop's kernels, the deepest first."""
        named = {
            op.sym_name.data: op
            for op in self.program.kernels.tiled.ops
            if isinstance(op, KernelOp)
        }
        return [named[name] for name in self.tiled.kernel_names]

    @cached_property
    def costs(self) -> dict[KernelOp, Cost]:
        """The predictions of the kernels, with the deepest kernel's spills by the assembler."""
        kernels = self.program.kernels
        target, deepest = kernels.options.target, self.kernels[0]
        costs = {k: predict(k, kernels.tiled, target) for k in self.kernels}
        parts = [kernel for kernel in self.kernels if kernel.reads_memory]
        if parts:
            # A step runs all kernels; the first may keep planes.
            cells = written_cells(self.tiled)
            turns = launches_in_turn(self.kernels, self.tiled.rotation)
            cost = memory_cost(parts, kernels.tiled, target, cells, turns)
            if not deepest.reads_memory:
                cost = replace(cost, exposed_seconds=costs[deepest].seconds)
            return costs | {deepest: cost}
        warps = warps_of(self.tiled.decisions)
        words, _, period = steady_step(self.kernel(deepest), deepest)
        blocks = self.tiled.decisions.occupancy
        cost = spilled_cost(costs[deepest], words, warps, target, period=period, blocks=blocks)
        return costs | {deepest: cost}

    @cached_property
    def comparison(self) -> Comparison:
        """The compared schedules, and those left out; none for given passes."""
        options = self.program.kernels.options
        if options.passes is not None:
            return Comparison([], [])
        if self.choice is not None:
            return self.choice.comparison
        return compare(self.loop, self.program.module, options.target, options.depth)

    @property
    def choice(self) -> ModelChoice | None:
        """The model's choice at the depth asked for; None for another depth or given schedules."""
        kernels = self.program.kernels
        choice = kernels.model_choices[loops_of(kernels.tiled).index(self.tiled)]
        return choice if choice is not None and choice.depth == kernels.options.depth else None

    @cached_property
    def chosen(self) -> Candidate | None:
        """The candidate with the schedule of the loop; None for a schedule of another kind."""
        depth, schedule = self.kernels[0].steps.data, self.tiled.decisions
        found = self.comparison.found
        same = (each for each in found if each.depth == depth and each.schedule == schedule)
        options = self.program.kernels.options
        if (found := next(same, None)) is not None or options.depth is None:
            return found
        if self.choice is not None:
            return self.choice.chosen
        return fitting(self.loop, self.program.module, options.target, options.depth)

    @cached_property
    def found(self) -> list[Candidate]:
        """The compared schedules, the chosen one first if compared; none for given passes."""
        options, found = self.program.kernels.options, self.comparison.found
        if options.passes is not None:
            return []
        chosen = self.chosen
        if chosen is None:
            return found
        # A schedule that spills, or has few warps, is chosen if other schedules do not fit or are
        # much slower.
        return [chosen, *(other for other in found if other.schedule != chosen.schedule)]

    def kernel(self, op: KernelOp) -> Kernel:
        """The assembled kernel."""
        return self.program.kernels.kernel(op.sym_name.data)

    def resources(self, op: KernelOp) -> Resources:
        """The resources of a block of a kernel."""
        kernel = self.kernel(op)
        if not kernel.registers:
            return Resources(kernel.shared_bytes)
        room = occupancy(kernel, self.program.kernels.options.target)
        return Resources(
            kernel.shared_bytes,
            kernel.registers,
            kernel.spill_bytes,
            room.blocks,
            room.warps,
            room.limit,
            self.spill_words(kernel),
        )

    def spill_words(self, kernel: Kernel) -> int:
        """The words spilled in a turn of the loop inside; without such a loop, in the kernel."""
        loop = None if kernel.cubin is None else steady_loop(kernel.cubin, kernel.arch)
        return kernel.spill_bytes // WORD_BYTES if loop is None else loop.spill_words

    def alternative(self) -> Alternative | None:
        """The best schedule not chosen."""
        others = self.found if self.chosen is None else self.found[1:]
        if not others:
            return None
        other = others[0]
        return Alternative(other.depth, other.schedule.cells, other.cost.gcells_per_second)

    def element(self) -> str:
        """The types of the loop's buffers."""
        return ", ".join(dict.fromkeys(str(element_type(buffer)) for buffer in self.loop.buffers))

    def summary(self) -> LoopSummary:
        """Speed, limits and possible changes of the loop."""
        target = self.program.kernels.options.target
        deepest = self.kernels[0]
        cost, geometry, resources = self.costs[deepest], Geometry(deepest), self.resources(deepest)
        kernel = self.kernel(deepest)
        held = (resources.blocks or 0) * target.multiprocessors
        fill = min(1.0, kernel.grid / held) if held else None
        bounds = written_bounds(self.loop)
        return LoopSummary(
            title=self.title,
            cells=sizes_of(bounds),
            element=self.element(),
            radius=loop_radius(self.loop),
            bytes_read=bytes_of_cells(read_fields(self.loop)),
            bytes_written=bytes_of_cells(written_fields(self.loop)),
            flops=loop_flops(self.loop),
            target=target.title,
            kernel=kernel.name,
            depth=deepest.steps.data,
            gcells_per_second=cost.gcells_per_second,
            single_step_bound=copy_bound(self.loop, target),
            launch_seconds=cost.seconds,
            overhead_seconds=cost.launch_seconds,
            limit=limit_text(cost),
            tile=tuple(axis.layout.extent for axis in geometry.axes),
            stored=tuple(axis.useful for axis in geometry.axes),
            blocks=kernel.grid,
            threads=kernel.block,
            redundancy=redundancy(deepest).total,
            resources=resources,
            fill=fill,
            alternative=self.alternative(),
            advice=tuple(
                advice(self.program, self.loop, deepest, cost, self.found, resources, fill)
            ),
            measured=self.measured(),
            scaled=target.fit_text,
            points=points_text(deepest),
            edges=edges_text(self.loop),
            series=series_text(self.loop),
        )

    def measured(self) -> str | None:
        """
        What was measured for the program: with its own halos, else with common halos; None without
        a record.
        """
        kernels = self.program.kernels
        own = kernels.record
        record = own
        if own is None and kernels.options.halos == "compared":
            record = kernels.common.record
        if record is None:
            return None
        steps = record.best.chosen[self.number]
        launches = "" if steps is None else f", by launches of {plural(steps.depth, 'step')}"
        halos = "" if own is not None else " with equal halos"
        whole = "" if self.alone else " of all time loops together"
        where = " in a run" if record.in_run else ""
        return (
            f"{record.best.gcells_per_second:.0f} on {record.device}{halos}{launches}{whole}{where}"
            f"; {record.default:.0f} by the model's choice"
        )

    def drop_sections(self) -> Iterator[Section]:
        """The resource that ran out at a requested depth, if much slower than the depth before."""
        options = self.program.kernels.options
        if options.passes is not None or options.depth is None:
            return
        drop = drop_at(self.loop, self.program.module, options.target, options.depth)
        if drop is not None:
            yield drop_section(drop, options.depth)

    def sections(self, steps: int | None) -> Iterator[Section]:
        """All details."""
        target, deepest = self.program.kernels.options.target, self.kernels[0]
        yield loop_section(self.loop, self.title, target)
        yield schedule_section(self.tiled, deepest)
        yield work_section(self.kernels)
        yield from cost_sections(self.costs, self.found, target)
        seen = self.program.kernels.choice.seen
        if seen and seen[self.number - 1]:
            yield assembled_section(seen[self.number - 1])
        if self.comparison.rejected:
            yield rejection_section(self.comparison.rejected)
        yield from self.drop_sections()
        models = model_section(self.loop, deepest, self.costs[deepest], target)
        if models.facts:
            yield models
        yield resource_section(map(self.kernel, self.kernels), target)
        yield queue_section(deepest, self.loop)
        kernels, loop = self.program.kernels, self.loop
        if steps is not None:
            kernels, loop = kernels.for_steps(loop, steps)
        yield launch_section(loop, kernels.facts_of(loop), steps)


def reports_of(program: CompiledProgram) -> list[LoopReport]:
    """The time loops of the program's function."""
    loops = loops_of(program.module)
    tiled = loops_of(program.kernels.tiled)
    inside = [op for op in program.function.walk() if isinstance(op, LoopOp)]
    return [
        LoopReport(program, number, loop, tiled[loops.index(loop)], len(inside) == 1)
        for number, loop in enumerate(inside)
    ]


def kernel_names(program: CompiledProgram) -> list[str]:
    """All kernels of a program."""
    return [kernel.name for kernels in program.kernels.facts for kernel in kernels]


def with_taken_kernels(program: CompiledProgram) -> CompiledProgram:
    """The program with the kernels of most steps: kernels that continue fields with edge cells."""
    edges = program.kernels.edges
    if not edges.steps:
        return program
    kernels = edges.continued.kernels
    return CompiledProgram(
        kernels.source, kernels, program.executor, program.gpu, program.threads, program.unused
    )


def take_records(program: CompiledProgram) -> None:
    """Let a program use records of its runs. Runners keep their kernels, and know the fastest."""
    records = program.kernels.records
    if records is not None and records.is_new:
        program.kernels, records.is_new = program.kernels.with_new_records(), False


def explanation_of(program: CompiledProgram, steps: int | None = None) -> Explanation:
    """
    The explanation of a program. `steps` is the number of steps of a run with counted launches.
    Missing kernels are compiled.
    """
    if steps is not None:
        steps = checked_steps(steps)
    take_records(program)
    reports = reports_of(with_taken_kernels(program))
    summaries = tuple(report.summary() for report in reports)
    sections = [argument_section(program)]
    for report in reports:
        sections += report.sections(steps)
    shown = (*program.kernels.remarks, *reports[0].program.kernels.remarks) if reports else ()
    remarks = tuple(dict.fromkeys((*program.kernels.remarks, *shown)))
    name, sweeps = program.function.sym_name.data, tuple(sweep_summaries(program))
    return Explanation(name, summaries, tuple(sections), remarks, sweeps)
