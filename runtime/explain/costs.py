"""Sections about the cost model: predictions for kernels, and compared schedules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from timetile.dialects.tile import LANES, KernelOp, TileLevel
from timetile.dialects.tile.schedule import Schedule
from timetile.passes.cost.terms import Cost
from timetile.passes.scheduling.candidates import Candidate, Rejection
from timetile.passes.scheduling.ran_out import Drop
from timetile.passes.targets.target import Target
from timetile.runtime.explain.data import Fact, Section
from timetile.runtime.explain.summary_facts import product
from timetile.runtime.kernels.assembled_choice import AssembledSchedule

RUNNERS_UP = 6
"""The number of shown schedules, the chosen schedule first."""


def cost_sections(
    costs: Mapping[KernelOp, Cost], found: Sequence[Candidate], target: Target
) -> Iterator[Section]:
    """The predictions for the kernels, the best schedules, and the best of each kind of tile."""
    yield prediction_section(costs, target)
    if not found:
        return
    yield candidate_section(found)
    levels: dict[str, Candidate] = {}
    for candidate in found:
        levels.setdefault(level_of(candidate.schedule), candidate)
    if len(levels) > 1:
        yield level_section(list(levels.values()))


def prediction_section(costs: Mapping[KernelOp, Cost], target: Target) -> Section:
    """The terms of the cost model for every kernel."""
    columns = (
        "kernel", "GCells/s", "stream steps", "ns/stream step", "pipe", "issue", "shared",
        "not hidden", "computing", "waiting", "memory",
    )  # fmt: skip
    notes = (
        Fact(
            "GCells/s",
            "predicted: cell updates of a launch by the launch's time, from the start to the end "
            f"of the last block, plus {target.parameters.waiting.launch * 1e6:.0f} us launch "
            "overhead (more for very long kernels)",
        ),
        Fact("stream steps", "of the last block to finish"),
        Fact(
            "pipe, issue, shared",
            "cycles of a multiprocessor for a stream step of one warp: floating-point pipe, issue "
            "slots, shared memory; the largest and `not hidden` add up",
        ),
        Fact("computing", "ns of a stream step for all warps, `waiting` included"),
        Fact("waiting", "ns of a stream step: waits of warps for each other"),
        Fact("memory", "ns to move the cells of a stream step"),
        Fact(
            "ns/stream step",
            f"norm of order {target.parameters.moving.overlap_power} of computing and memory; the "
            "sum of both for resident tiles",
        ),
    )
    rows = tuple(prediction_row(kernel, cost) for kernel, cost in costs.items())
    return Section(f"Predicted on {target.title}", (), columns, rows, notes)


def assembled_section(seen: Sequence[AssembledSchedule]) -> Section:
    """The schedules that the assembler saw, the chosen schedule first."""
    columns = ("steps", "schedule", "registers", "words spilled a step", "GCells/s")
    notes = (
        Fact(
            "words spilled a step",
            "32-bit words of a thread moved between registers and local memory in a stream step, "
            "read from the steady loop of the machine code",
        ),
        Fact("GCells/s", "predicted with these words"),
    )
    rows = tuple(
        (
            str(each.depth),
            each.schedule,
            str(each.registers),
            f"{each.spilled_words:.0f}",
            f"{each.gcells_per_second:.0f}",
        )
        for each in seen
    )
    return Section("Assembled schedules", (), columns, rows, notes)


def prediction_row(kernel: KernelOp, cost: Cost) -> tuple[str, ...]:
    """One kernel's terms in the cost model."""
    cycles = cost.cycles
    return (
        f"@{kernel.sym_name.data}",
        f"{cost.gcells_per_second:.0f}",
        f"{cost.steps:.0f}",
        f"{cost.step_seconds * 1e9:.0f}",
        *(f"{n:.0f}" for n in (cycles.pipe, cycles.issue, cycles.shared, cycles.unhidden)),
        f"{cost.compute_seconds * 1e9:.0f}",
        f"{cost.waiting_seconds * 1e9:.0f}",
        f"{cost.memory_seconds * 1e9:.0f}",
    )


def drop_section(drop: Drop, depth: int) -> Section:
    """The resource that ran out at a depth much slower than the depth before."""
    facts = (
        Fact(f"{depth - 1} steps a launch", f"{drop.before:.0f} GCells/s predicted"),
        Fact(f"{depth} steps a launch", f"{drop.now:.0f} GCells/s predicted"),
        Fact("ran out", drop.why),
    )
    return Section(f"Much slower than {depth - 1} steps a launch", facts)


def candidate_section(found: Sequence[Candidate]) -> Section:
    """The best schedules, the chosen one first."""
    columns = (
        "depth", "cells", "warps", "form", "blocks/multiprocessor", "ahead", "guards", "GCells/s",
        "worth", "registers", "limit",
    )  # fmt: skip
    notes = (
        Fact("cells", "of a thread, along the axes of a plane"),
        Fact("warps", "of a block"),
        Fact("blocks/multiprocessor", "blocks on a multiprocessor at once"),
        Fact(
            "worth",
            "GCells/s, reduced for depth, for spilling guarded copies and for resident tiles of "
            "the device; the schedule of the largest worth is chosen",
        ),
    )
    rows = tuple(map(candidate_row, found[:RUNNERS_UP]))
    return Section(f"The best of {len(found)} schedules", (), columns, rows, notes)


def rejection_section(rejected: Sequence[Rejection]) -> Section:
    """Reasons for leaving schedules out, each with the number of schedules and the depths."""
    depths: dict[str, list[int]] = {}
    for rejection in rejected:
        depths.setdefault(rejection.reason.kind.text, []).append(rejection.depth)
    rows = tuple(
        (str(len(found)), span_of(found), reason)
        for reason, found in sorted(depths.items(), key=lambda item: -len(item[1]))
    )
    note = Fact(
        "at depth",
        "smallest depth at which the schedule is left out; larger depths are not tried",
    )
    return Section(
        "Schedules that were left out", (), ("schedules", "at depth", "why"), rows, (note,)
    )


def span_of(numbers: Sequence[int]) -> str:
    """The least and the largest of some numbers, or the only number."""
    low, high = min(numbers), max(numbers)
    return str(low) if low == high else f"{low} to {high}"


def candidate_row(candidate: Candidate) -> tuple[str, ...]:
    """A considered schedule, with its limit."""
    schedule, cost = candidate.schedule, candidate.cost
    return (
        str(candidate.depth),
        product(schedule.cells),
        str(schedule.layout().threads // LANES),
        schedule.form,
        ", ".join(map(str, schedule.occupancies or (schedule.occupancy,))),
        str(schedule.ahead),
        schedule.guards,
        f"{cost.gcells_per_second:.0f}",
        f"{candidate.worth:.0f}",
        str(cost.registers),
        cost.limit,
    )


def level_of(schedule: Schedule) -> str:
    """
    The threads holding a tile, and whether the tile is resident: `block, resident`. `memory` if no
    cells are held from step to step.
    """
    if schedule.reads_memory:
        return "memory"
    return f"{schedule.tile}, resident" if schedule.resident else schedule.tile


def level_section(best: Sequence[Candidate]) -> Section:
    """The best schedule of each level of tiles."""
    columns = (
        "tile", "depth", "cells", "blocks/tile", "sync", "GCells/s", "valid", "stream steps",
        "ns/stream step", "waiting",
    )  # fmt: skip
    notes = (
        Fact("blocks/tile", "blocks that hold a tile together"),
        Fact("sync", "waits of the warps of a tile for each other, or of the blocks of a tile"),
        Fact("valid", "stored share of a tile's cells (EBISU, equations 8 and 9)"),
        Fact("stream steps", "of the last block to finish"),
        Fact(
            "waiting",
            "ns of a stream step: waits for other warps and blocks of the tile (EBISU, equations "
            "11, 20, 21)",
        ),
    )
    title = "The best of each level that may hold a tile"
    return Section(title, (), columns, tuple(map(level_row, best)), notes)


def level_row(candidate: Candidate) -> tuple[str, ...]:
    """The best schedule of a level, with gains by less overlap and losses by waiting."""
    schedule, cost = candidate.schedule, candidate.cost
    return (
        level_of(schedule),
        str(candidate.depth),
        product(schedule.cells),
        product(schedule.blocks) or "1",
        "" if schedule.tile is TileLevel.WARP else schedule.sync,
        f"{cost.gcells_per_second:.0f}",
        f"{cost.valid:.0%}",
        f"{cost.steps:.0f}",
        f"{cost.step_seconds * 1e9:.0f}",
        f"{cost.waiting_seconds * 1e9:.0f}",
    )
