"""Sections about the kernels of a time loop: tiles, resources and queues, and the launches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields

from xdsl.ir import Block, SSAValue

from timetile.dialects.temporal import LoopOp
from timetile.dialects.tile import (
    ApplyOp,
    ExchangeOp,
    KernelOp,
    LoadOp,
    RoleKind,
    StageOp,
    queue_lag,
)
from timetile.dialects.tile.schedule import Schedule, entry_text
from timetile.lowering.plan_launches import PlannedKernel
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.analysis.launches.liveness import cycles_in_turn
from timetile.passes.analysis.launches.trip_counts import constant_steps
from timetile.passes.analysis.placed import layout_of
from timetile.passes.analysis.queues.lags import oldest_age
from timetile.passes.cost.papers.an5d import multiprocessor_utilisation
from timetile.passes.raising.narrow_fields import read_field
from timetile.passes.targets.target import Target
from timetile.runtime.explain.data import Fact, Section
from timetile.runtime.explain.figures import (
    chunk_heights,
    launch_counts,
    occupancy,
    redundancy,
    traffic,
)
from timetile.runtime.explain.names import name_of, short
from timetile.runtime.explain.summary_facts import product
from timetile.runtime.explain.utilisation import classify
from timetile.runtime.kernels.assembler import assembles
from timetile.runtime.kernels.kernel import Kernel

NO_ASSEMBLER = 'unknown without the assembler; pip install "timetile[assembler]"'


def told(schedule: Schedule) -> str:
    """All decisions of a schedule that say something: `tile warp, cells [4], ahead 3`."""
    parts = ((part.name, getattr(schedule, part.name)) for part in fields(schedule))
    return ", ".join(entry_text(n, v) for n, v in parts if v is not False and v not in (None, ()))


def schedule_section(loop: LoopOp, deepest: KernelOp) -> Section:
    """The decisions for all kernels of a loop."""
    chosen = "the passes' own options" if loop.schedule is None else told(loop.decisions)
    stream = "none" if deepest.stream is None else f"axis {deepest.stream.data}"
    return Section(
        "Schedule",
        (
            Fact("steps of a launch", ", ".join(map(str, loop.depth_list))),
            Fact("a tile", short(layout_of(deepest))),
            Fact("streaming axis", stream),
            Fact("decided by", chosen),
        ),
    )


def work_row(kernel: KernelOp) -> tuple[str, ...]:
    """One kernel's tiles and computed cells."""
    geometry, extra = Geometry(kernel), redundancy(kernel)
    return (
        f"@{kernel.sym_name.data}",
        str(kernel.steps.data),
        product(axis.count for axis in geometry.axes),
        product(axis.layout.extent for axis in geometry.axes),
        product(axis.useful for axis in geometry.axes),
        chunk_heights(kernel),
        f"{extra.plane:.2f} x {extra.stream:.2f} = {extra.total:.2f}",
        f"{traffic(kernel):.1f}",
    )


def classes_text(kernel: KernelOp) -> str:
    """The purposes of the cells of a kernel's tiles, as shares."""
    classes = classify(Geometry(kernel))
    counts = {
        "stored": classes.valid,
        "computed for neighbours": classes.redundant,
        "read from the halo": classes.boundary,
        "outside the field": classes.out_of_bound,
    }
    return ", ".join(f"{count / classes.total:.1%} {name}" for name, count in counts.items())


def work_section(kernels: Sequence[KernelOp]) -> Section:
    """The cut of the domain, and cells computed more than once."""
    columns = ("kernel", "steps", "tiles", "cells of a tile", "stored", "planes of a chunk",
               "computed / useful cells", "bytes")  # fmt: skip
    deepest = kernels[0]
    notes = (
        Fact(f"cells of @{deepest.sym_name.data}", f"{classes_text(deepest)} (AN5D, section 5)"),
        Fact(
            "planes of a chunk",
            "for each kind of column of tiles, in launch order; `in N` is the number of columns of "
            "a kind, "
            "`joined` the planes that a block goes on with in the next column",
        ),
        Fact("computed / useful", "overlap of tiles x filling and draining the stream"),
        Fact("bytes", "least memory traffic of a cell and step"),
    )
    return Section("Kernels", (), columns, tuple(map(work_row, kernels)), notes)


def resource_row(kernel: Kernel, target: Target) -> tuple[str, ...]:
    """The resources of one kernel."""
    row = [f"@{kernel.name}", f"{kernel.grid} x {kernel.block}", f"{kernel.shared_bytes} B"]
    if kernel.registers:
        room = occupancy(kernel, target)
        blocks = f"{room.blocks} x {room.warps} warps, limited by {room.limit}"
        used = multiprocessor_utilisation(kernel.grid, room.blocks * target.multiprocessors)
        row += [str(kernel.registers), f"{kernel.spill_bytes} B", blocks, f"{used:.0%}"]
    return (*row, *[""] * (7 - len(row)))


def resource_section(kernels: Iterable[Kernel], target: Target) -> Section:
    """The resources of the kernels."""
    facts = () if assembles(target.name) else (Fact("registers", NO_ASSEMBLER),)
    columns = ("kernel", "blocks x threads", "shared", "registers", "spilled",
               "blocks of a multiprocessor",
               "waves full")  # fmt: skip
    rows = tuple(resource_row(kernel, target) for kernel in kernels)
    note = Fact(
        "waves full", "share of the launch's waves of blocks that have work (AN5D, section 5)"
    )
    return Section(f"Resources on {target.title}", facts, columns, rows, (note,))


def queue_rows(kernel: KernelOp, loop: LoopOp) -> Iterator[tuple[str, ...]]:
    """The maker, time, number of kept planes and home of each queue."""
    numbers: dict[SSAValue, str] = {}
    for stage in kernel.stages:
        for result in stage.results:
            numbers[result] = f"%{len(numbers)}"
            home = "" if stage.home is None else short(stage.home)
            if isinstance(stage, LoadOp) and stage.planes_ahead:
                home += f", fetched {stage.planes_ahead} planes ahead"
            window = oldest_age(result, kernel.stream_axis) + 1
            made = made_by(stage, numbers, loop)
            yield numbers[result], made, str(queue_lag(result)), str(window), home


def made_by(stage: StageOp, numbers: dict[SSAValue, str], loop: LoopOp) -> str:
    """A stage in a few words."""
    match stage:
        case LoadOp(data=None, halo=halo) if halo is not None:
            return f"halo of {field_of(halo, loop)}"
        case LoadOp(data=data) if data is not None:
            axes = "" if stage.axes is None else f" along axes {list(stage.axes)}"
            return f"load of {field_of(data, loop)}{axes}"
        case ExchangeOp():
            return f"exchange of {numbers[stage.queue]}, {stage.what.data}"
        case ApplyOp():
            queues = ", ".join(numbers[queue] for queue in stage.queues)
            return f"{stage.cell.string_value()} of {queues}"
        case _:
            return stage.name


def field_of(argument: SSAValue, loop: LoopOp) -> str:
    """The program's name for the field behind a kernel's argument."""
    kernel = argument.owner.parent_op() if isinstance(argument.owner, Block) else None
    assert isinstance(kernel, KernelOp)
    kind, index = kernel.argument_role(argument).role
    if kind is RoleKind.CAPTURE:
        return name_of(read_field(loop.captures[index]).field)
    return name_of(loop.body.block.args[index])


def queue_section(deepest: KernelOp, loop: LoopOp) -> Section:
    """The queues of the deepest kernel."""
    columns = ("queue", "made by", "lag", "planes", "kept in")
    notes = (
        Fact("lag", "stream steps by which a plane is made later than the first plane arrives"),
        Fact("planes", "that are kept at a time"),
    )
    rows = tuple(queue_rows(deepest, loop))
    return Section(f"Queues of @{deepest.sym_name.data}", (), columns, rows, notes)


def launch_facts(
    loop: LoopOp, kernels: Sequence[PlannedKernel], given: int | None
) -> Iterator[Fact]:
    """The launches of a number of steps, if known."""
    steps = constant_steps(loop) if given is None else given
    if steps is None:
        yield Fact("plan", "made per call, when the number of steps is known; see --steps N")
        return
    counts = launch_counts(loop, kernels, steps)
    text = ", ".join(f"{n} x @{name}" for name, n in counts.launches.items()) or "none"
    yield Fact(f"{steps} steps", f"{counts.launches.total()} launches: {text}")
    yield Fact("scratch buffers", f"{counts.scratch}, after {counts.copies} copies")
    if cycles_in_turn(loop) and loop.common_halos is None:
        yield Fact("halos", "each buffer's own; if they are equal, see --halos common")


def launch_section(loop: LoopOp, kernels: Sequence[PlannedKernel], given: int | None) -> Section:
    """The plan for a number of steps."""
    return Section("Launches", tuple(launch_facts(loop, kernels, given)))
