"""Sections about the program: arguments, and a step of each time loop."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import SSAValue

from timetile.dialects.temporal import LoopOp, SweepOp, UpdateOp
from timetile.passes.analysis.cells.cell_functions import named_function
from timetile.passes.analysis.launches.liveness import live_arguments
from timetile.passes.analysis.launches.trip_counts import constant_steps
from timetile.passes.raising.names import names_of
from timetile.passes.raising.narrow_fields import read_field
from timetile.passes.targets.target import Target
from timetile.runtime.explain.data import Fact, Section
from timetile.runtime.explain.figures import (
    arithmetic,
    bytes_of_cells,
    copy_bound,
    flops,
    loop_alu_utilisation,
    loop_flops,
    offset_ranges,
    read_fields,
    written_fields,
)
from timetile.runtime.explain.names import name_of, names, spans
from timetile.runtime.explain.summary_facts import plural
from timetile.runtime.host.loop_facts import is_trip_count
from timetile.runtime.host.parameters import Parameter
from timetile.runtime.kernels.loops import loops_of
from timetile.runtime.program.compiled_program import CompiledProgram


def role(program: CompiledProgram, parameter: Parameter, value: SSAValue) -> str:
    """The role of an argument in the time loops."""
    if parameter.bounds is None:
        return "number of steps" if is_trip_count(value) else "scalar"
    aliases = set(names_of(value))
    for loop in loops_of(program.module):
        if aliases & set(loop.buffers):
            return "buffer"
        if aliases & set(loop.captures):
            return "coefficient field"
    for op in program.function.walk():
        if isinstance(op, SweepOp) and aliases & {*op.targets, *op.sources}:
            return "field of a sweep"
    return "not used by a time loop"


def argument_section(program: CompiledProgram) -> Section:
    """The arguments of the program's function."""
    arguments = program.function.body.block.args
    rows = tuple(
        (
            f"{p.position} {name_of(value)}",
            str(p.kind),
            spans(p.bounds) if p.bounds else "",
            role(program, p, value),
        )
        for p, value in zip(program.parameters, arguments)
    )
    columns = ("argument", "type", "bounds, halos included", "role")
    return Section(f"Arguments of @{program.function.sym_name.data}", (), columns, rows)


def update_text(update: UpdateOp) -> str:
    """One update in a line."""
    function = named_function(update)
    counts = ", ".join(f"{n} {name}" for name, n in arithmetic(function).items())
    return (
        f"{names(update.targets)} = {update.cell.string_value()} in {spans(update.box)}: "
        f"{plural(len(update.tap_list), 'read')} of {names(update.sources)}; "
        f"{counts or 'no arithmetic'} = {plural(flops(function), 'flop')}"
    )


def loop_facts(loop: LoopOp, target: Target) -> Iterator[Fact]:
    """A step of a time loop, and the costs of a cell."""
    args = loop.body.block.args
    constant = constant_steps(loop)
    yield Fact("steps", name_of(loop.steps) if constant is None else str(constant))
    buffers = (f"{name_of(a)} = {name_of(b)}" for a, b in zip(args, loop.buffers))
    yield Fact("buffers", ", ".join(buffers))
    rotation = (f"{name_of(a)} <- {name_of(args[k])}" for a, k in zip(args, loop.rotation))
    yield Fact("rotation", ", ".join(rotation))
    live = [arg for arg, is_live in zip(args, live_arguments(loop)) if is_live]
    yield Fact("live before a step", names(live))
    yield Fact("coefficient fields", names([read_field(field).field for field in loop.captures]))
    yield Fact("scalars", names(loop.scalars))
    for update in loop.updates:
        yield Fact("update", update_text(update))
    axes = " x ".join(f"[{low:+}, {high:+}]" for low, high in offset_ranges(loop.updates))
    yield Fact("offsets that are read", axes or "none")
    loaded, stored = bytes_of_cells(read_fields(loop)), bytes_of_cells(written_fields(loop))
    work = loop_flops(loop)
    yield Fact(
        "a cell and step",
        f"{loaded} bytes read, {stored} written, {plural(work, 'flop')}: "
        f"{work / (loaded + stored):.2f} flops per byte",
    )
    fused = loop_alu_utilisation(loop)
    yield Fact(
        "arithmetic units",
        f"used by {fused:.0%}, as fused multiply-adds count twice (AN5D, section 5)",
    )
    yield Fact(
        "one step per launch",
        f"at most {copy_bound(loop, target):.0f} GCells/s on {target.title}, whose memory copies "
        f"{target.part.copy_tb_per_s} TB/s",
    )


def loop_section(loop: LoopOp, title: str, target: Target) -> Section:
    """A time loop."""
    return Section(title, tuple(loop_facts(loop, target)))
