"""`timetile explain`: what was recognised, what the kernels are like, and what was not done and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import DenseArrayBase, DictionaryAttr, IntegerAttr, StringAttr
from xdsl.dialects.stencil import StencilBoundsAttr
from xdsl.ir import Attribute, Block, BlockArgument, SSAValue

from timetile.dialects.simt import CELL_BYTES
from timetile.dialects.syntax import Integers, decode_integers, element_type
from timetile.dialects.temporal import LoopOp, UpdateOp
from timetile.dialects.tile import ApplyOp, ExchangeOp, KernelOp, LoadOp, StageOp, queue_lag
from timetile.lowering.plan_launches import constant_steps
from timetile.passes.analysis.attainable import depth_that_shifts, shared_reads
from timetile.passes.analysis.geometry import Geometry
from timetile.passes.analysis.lags import oldest_age
from timetile.passes.analysis.liveness import live_arguments, rotation_of, written_bounds
from timetile.passes.analysis.utilisation import (
    classify,
    fits,
    multiprocessor_utilisation,
    thread_reads,
)
from timetile.passes.device_tiling import default_stream
from timetile.runtime.assembler import assembler_version
from timetile.runtime.cpu import cell_function
from timetile.runtime.explain.costs import CostReport
from timetile.runtime.explain.figures import (
    arithmetic,
    cell_bytes,
    chunk_heights,
    copy_bound,
    flops,
    launch_counts,
    loop_alu_utilisation,
    loop_flops,
    occupancy,
    reach,
    read_fields,
    redundancy,
    traffic,
    written_fields,
)
from timetile.runtime.explain.report import Report, product
from timetile.runtime.kernels import Kernel, loops_of
from timetile.runtime.loop_facts import is_trip_count
from timetile.runtime.program import CompiledProgram, Parameter, cast_results


def name_of(value: SSAValue) -> str:
    """`%u`, or `%1` by position where the program has no name for a block's argument."""
    if value.name_hint is not None:
        return f"%{value.name_hint}"
    return f"%{value.index}" if isinstance(value, BlockArgument) else "a value without a name"


def names(values: Iterable[SSAValue]) -> str:
    """Values by name, with commas; `none` where there are none."""
    return ", ".join(map(name_of, values)) or "none"


def spans(bounds: StencilBoundsAttr) -> str:
    """`[0, 8) x [0, 8)`."""
    return " x ".join(f"[{low}, {high})" for low, high in zip(bounds.lb, bounds.ub))


def short(attribute: Attribute) -> str:
    """An attribute as the IR prints it, without its dialect."""
    return str(attribute).removeprefix("#").removeprefix("tile.")


NO_ASSEMBLER = 'unknown without the assembler; pip install "timetile[assembler]"'


@dataclass
class Explanation(Report):
    """Prints a compiled program to a console, section by section."""

    program: CompiledProgram
    steps: int | None = None

    def show(self) -> None:
        """Everything but the remarks."""
        self.show_arguments()
        loops = [op for op in self.program.function.walk() if isinstance(op, LoopOp)]
        tiled = loops_of(self.program.kernels.tiled)
        for number, loop in enumerate(loops):
            position = loops_of(self.program.module).index(loop)
            self.show_loop(loop, f"Time loop {number}" if len(loops) > 1 else "Time loop")
            self.show_kernels(loop, tiled[position])

    # The program.

    def show_arguments(self) -> None:
        self.heading(f"@{self.program.function.sym_name.data}")
        arguments = self.program.function.body.block.args
        self.table(
            ("argument", "type", "bounds, halos included", "role"),
            (
                (
                    f"{p.position} {name_of(value)}",
                    str(p.kind),
                    spans(p.bounds) if p.bounds else "",
                    self.role(p, value),
                )
                for p, value in zip(self.program.parameters, arguments)
            ),
        )

    def role(self, parameter: Parameter, value: SSAValue) -> str:
        """What the time loops make of an argument."""
        if parameter.bounds is None:
            return "number of steps" if is_trip_count(value) else "scalar"
        same = {value, *cast_results(value)}
        for loop in loops_of(self.program.module):
            if same & set(loop.buffers):
                return "buffer"
            if same & set(loop.captures):
                return "coefficient field"
        return "not used by a time loop"

    def show_loop(self, loop: LoopOp, title: str) -> None:
        """What a step does, and what that costs."""
        self.heading(title)
        args = loop.body.block.args
        constant = constant_steps(loop)
        self.say("steps", name_of(loop.steps) if constant is None else str(constant))
        self.say(
            "buffers", ", ".join(f"{name_of(a)} = {name_of(b)}" for a, b in zip(args, loop.buffers))
        )
        self.say(
            "rotation",
            ", ".join(f"{name_of(a)} <- {name_of(args[k])}" for a, k in zip(args, loop.rotation)),
        )
        live = [arg for arg, is_live in zip(args, live_arguments(loop)) if is_live]
        self.say("live before a step", names(live))
        self.say("coefficient fields", names(loop.captures))
        self.say("scalars", names(loop.scalars))
        for update in loop.updates:
            self.say("update", self.update_text(update))
        axes = reach(loop.updates)
        self.say("reach of a step", " x ".join(f"[{low:+}, {high:+}]" for low, high in axes))
        loaded, stored = cell_bytes(read_fields(loop)), cell_bytes(written_fields(loop))
        work = loop_flops(loop)
        self.say(
            "a cell and step",
            f"{loaded} bytes read, {stored} written, {work} flops: "
            f"{work / (loaded + stored):.2f} flops per byte",
        )
        self.say("arithmetic units", f"used by {loop_alu_utilisation(loop):.0%} (AN5D, section 5)")
        arch = self.program.kernels.options.target
        self.say(
            "one step per launch",
            f"at most {copy_bound(loop, arch):.0f} GCells/s on {arch.name}, whose memory copies "
            f"{arch.copy_tb_per_s} TB/s",
        )

        self.show_levels(loop)

    def deepest_of_an5d(self, loop: LoopOp) -> int:
        """The deepest kernel that AN5D's registers allow."""
        arch = self.program.kernels.options.target
        radius = max(max(-low, high) for low, high in reach(loop.updates))
        size = max(CELL_BYTES[element_type(buffer)] for buffer in loop.buffers)
        return max(
            (depth for depth in range(256) if fits(depth, radius, size, 256, arch)), default=0
        )

    def show_levels(self, loop: LoopOp) -> None:
        """What the levels of a launch ask of shared memory, in the model of EBISU."""
        taps: dict[SSAValue, set[tuple[int, ...]]] = {}
        for update in loop.updates:
            for tap in update.tap_list:
                taps.setdefault(update.sources[tap.operand], set()).add(tap.offset)
        stream = default_stream(len(written_bounds(loop).lb))
        if stream is None or not taps:
            return
        results = sum(len(update.targets) for update in loop.updates)
        plain, kept = (
            results + sum(shared_reads(of, stream, in_registers=way) for of in taps.values())
            for way in (False, True)
        )
        self.say(
            "levels in shared memory",
            f"{plain:g} accesses a cell, {kept:g} with planes in registers, too (EBISU, table 2)",
        )
        beside = sum(thread_reads(of, stream, cached=True) for of in taps.values())
        self.say(
            "planes in registers only",
            f"{beside} reads of shared memory a cell and step (AN5D, table 2), at most "
            f"{self.deepest_of_an5d(loop)} steps a launch with 256 threads a block (section 6.3)",
        )
        arch = self.program.kernels.options.target
        fields = len(read_fields(loop)) + len(written_fields(loop))
        steps = depth_that_shifts(fields, kept, arch.copy_tb_per_s, arch.shared_tb_per_s)
        self.say(
            "then limited by",
            f"shared memory from {steps:.1f} steps a launch on, before by global memory (equation 17)",
        )

    def update_text(self, update: UpdateOp) -> str:
        """One update in a line."""
        function = cell_function(update)
        counts = (
            ", ".join(f"{n} {name}" for name, n in arithmetic(function).items()) or "no arithmetic"
        )
        return (
            f"{names(update.targets)} = {update.cell.string_value()} in {spans(update.box)}: "
            f"{len(update.tap_list)} reads of {names(update.sources)}; {counts} = {flops(function)} flops"
        )

    # The kernels.

    def show_kernels(self, loop: LoopOp, tiled: LoopOp) -> None:
        """The kernels of a loop, the queues of the deepest, and the launches."""
        kernels = self.program.kernels
        placed = {
            op.sym_name.data: op
            for op in kernels.tiled.ops
            if isinstance(op, KernelOp) and op.sym_name.data in tiled.kernel_names
        }
        deepest = placed[tiled.kernel_names[0]]
        self.show_schedule(tiled, deepest)
        self.show_work(placed.values())
        CostReport(self.console, self.program).show(loop, placed.values())
        self.show_resources(map(kernels.kernel, placed))
        self.heading(f"Queues of @{deepest.sym_name.data}")
        self.table(("queue", "made by", "lag", "planes", "home"), queue_rows(deepest, loop))
        self.show_launches(loop)

    def show_schedule(self, loop: LoopOp, deepest: KernelOp) -> None:
        """What was decided for all kernels of a loop."""
        assert deepest.layout is not None
        self.heading("Schedule")
        self.say("depths", ", ".join(map(str, loop.depth_list)))
        self.say("a tile", short(deepest.layout))
        self.say(
            "streamed along", "none" if deepest.stream is None else f"axis {deepest.stream.data}"
        )
        entries = DictionaryAttr({}) if loop.schedule is None else loop.schedule
        chosen = ", ".join(f"{name} {entry_text(entry)}" for name, entry in entries.data.items())
        self.say("decided by", chosen or "the passes' own options")

    def show_work(self, kernels: Iterable[KernelOp]) -> None:
        """How the kernels cut the domain, and what they compute more than once."""
        self.heading("Kernels")
        columns = ("kernel", "steps", "tiles", "cells of a tile", "stored", "planes of a chunk",
                   "computed / useful cells", "bytes")  # fmt: skip
        kernels = tuple(kernels)
        self.table(columns, map(work_row, kernels))
        deepest = kernels[0]
        self.say(f"cells of @{deepest.sym_name.data}", f"{classes_text(deepest)} (AN5D, section 5)")
        self.say(
            "planes of a chunk", "of the columns in the order in which they start, and of how many"
        )
        self.say("computed / useful", "by the tiles' overlap x by filling and draining the stream")
        self.say("bytes", "of memory traffic that a cell and step cannot avoid")

    def show_resources(self, kernels: Iterable[Kernel]) -> None:
        """What the kernels need of a multiprocessor."""
        arch = self.program.kernels.options.target
        self.heading(f"Resources on {arch.name}")
        if assembler_version() is None:
            self.say("registers", NO_ASSEMBLER)
        rows: list[list[str]] = []
        for kernel in kernels:
            row = [f"@{kernel.name}", f"{kernel.grid} x {kernel.block}", f"{kernel.shared_bytes} B"]
            if kernel.registers:
                room = occupancy(kernel, arch)
                blocks = f"{room.blocks} x {room.warps} warps, limited by {room.limit}"
                used = multiprocessor_utilisation(kernel.grid, room.blocks * arch.multiprocessors)
                row += [str(kernel.registers), f"{kernel.spill_bytes} B", blocks, f"{used:.0%}"]
            rows.append(row + [""] * (7 - len(row)))
        columns = ("kernel", "grid x block", "shared", "registers", "spilled", "a multiprocessor",
                   "waves full")  # fmt: skip
        self.table(columns, rows)
        self.say("waves full", "utilisation of the multiprocessors (AN5D, section 5)")

    def show_launches(self, loop: LoopOp) -> None:
        """The plan for a number of steps."""
        self.heading("Launches")
        steps = constant_steps(loop) if self.steps is None else self.steps
        if steps is None:
            self.say("plan", "made per call, when the number of steps is known; see --steps N")
            return
        counts = launch_counts(loop, self.program.kernels.facts_of(loop), steps)
        text = ", ".join(f"{n} x @{name}" for name, n in counts.launches.items()) or "none"
        self.say(f"{steps} steps", f"{counts.launches.total()} launches: {text}")
        self.say("scratch buffers", f"{counts.scratch}, after {counts.copies} copies")
        if rotation_of(loop).turns and loop.common_halos is None:
            self.say("halos", "each buffer's own; where they are in common, see --halos common")


def entry_text(entry: Attribute) -> str:
    """An entry of a schedule without its type."""
    match entry:
        case StringAttr():
            return entry.data
        case IntegerAttr():
            return str(entry.value.data)
        case DenseArrayBase():
            return product(decode_integers(cast(Integers, entry)))
        case _:
            return short(entry)


def classes_text(kernel: KernelOp) -> str:
    """What the cells of a kernel's tiles are there for, as shares."""
    classes = classify(Geometry(kernel))
    shares = [
        f"{count / classes.total:.1%} {name}"
        for name, count in (
            ("valid", classes.valid),
            ("redundant", classes.redundant),
            ("boundary", classes.boundary),
            ("out of bounds", classes.out_of_bound),
        )
    ]
    return ", ".join(shares)


def work_row(kernel: KernelOp) -> list[str]:
    """One kernel's tiles and what they compute."""
    geometry, extra = Geometry(kernel), redundancy(kernel)
    return [
        f"@{kernel.sym_name.data}",
        str(kernel.steps.data),
        product(axis.count for axis in geometry.axes),
        product(axis.layout.extent for axis in geometry.axes),
        product(axis.useful for axis in geometry.axes),
        chunk_heights(kernel),
        f"{extra.plane:.2f} x {extra.stream:.2f} = {extra.total:.2f}",
        f"{traffic(kernel):.1f}",
    ]


def queue_rows(kernel: KernelOp, loop: LoopOp) -> Iterator[list[str]]:
    """What each queue is made by, when, how many planes of it are kept, and where."""
    numbers: dict[SSAValue, str] = {}
    for stage in kernel.stages:
        for result in stage.results:
            numbers[result] = f"%{len(numbers)}"
            home = "" if stage.home is None else short(stage.home)
            if isinstance(stage, LoadOp) and stage.planes_ahead:
                home += f", fetched {stage.planes_ahead} planes ahead"
            window = oldest_age(result, kernel.stream_axis) + 1
            yield [
                numbers[result],
                made_by(stage, numbers, loop),
                str(queue_lag(result)),
                str(window),
                home,
            ]


def made_by(stage: StageOp, numbers: dict[SSAValue, str], loop: LoopOp) -> str:
    """A stage in a few words."""
    match stage:
        case LoadOp(data=None, halo=halo) if halo is not None:
            return f"halo of {field_of(halo, loop)}"
        case LoadOp(data=data) if data is not None:
            return f"load of {field_of(data, loop)}"
        case ExchangeOp():
            return f"exchange of {numbers[stage.queue]}, {stage.what.data}"
        case ApplyOp():
            queues = ", ".join(numbers[queue] for queue in stage.queues)
            return f"{stage.cell.string_value()} of {queues}"
        case _:
            return stage.name


def field_of(argument: SSAValue, loop: LoopOp) -> str:
    """The field of the program that a kernel's argument stands for, by the name that it has there."""
    kernel = argument.owner.parent_op() if isinstance(argument.owner, Block) else None
    assert isinstance(kernel, KernelOp)
    kind, index = kernel.argument_role(argument).role
    return name_of(loop.captures[index] if kind == "capture" else loop.body.block.args[index])
