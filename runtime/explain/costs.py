"""What the cost model says of a program's kernels, and of the schedules that lost, for `timetile explain`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from timetile.dialects.temporal import LoopOp
from timetile.dialects.tile import KernelOp
from timetile.dialects.tile_attributes import LANES
from timetile.passes.candidates import Candidate, candidates, predict
from timetile.passes.cost.terms import LAUNCH_SECONDS, OVERLAP_POWER, Cost
from timetile.passes.schedule import Schedule
from timetile.runtime.explain.report import Report, product
from timetile.runtime.program import CompiledProgram

RUNNERS_UP = 6
"""Schedules that are shown beside the chosen one."""


@dataclass
class CostReport(Report):
    """Prints the model's terms of a program's kernels, and what it compared."""

    program: CompiledProgram

    def show(self, loop: LoopOp, kernels: Iterable[KernelOp]) -> None:
        """What the cost model says of the kernels, and of the schedules that lost."""
        options, module = self.program.kernels.options, self.program.kernels.tiled
        arch = options.target
        self.heading(f"Predicted on {arch.name}")
        columns = (
            "kernel",
            "GCells/s",
            "steps",
            "ns a step",
            "pipe",
            "issue",
            "shared",
            "not hidden",
            "computing",
            "waiting",
            "memory",
        )
        self.table(columns, (prediction_row(k, predict(k, module, arch)) for k in kernels))
        self.say(
            "pipe, issue, shared",
            "cycles of a multiprocessor for a stream step of a warp; the most of them and what is not hidden add up",
        )
        self.say("computing", "ns a step of all of its warps, with what they wait for each other")
        self.say("memory", "ns a step to move its cells")
        self.say(
            "ns a step",
            f"the norm of order {OVERLAP_POWER} of computing and memory, their sum where tiles stay",
        )
        self.say(
            "GCells/s",
            f"of the steps of the slot that is done last, and {LAUNCH_SECONDS * 1e6:.0f} us of the launch, more where a "
            "block's code is long",
        )
        if options.passes is None:
            self.show_candidates(candidates(loop, self.program.module, arch, options.depth))

    def show_candidates(self, found: Sequence[Candidate]) -> None:
        """The best schedules, and the best of each level that may hold a tile."""
        if not found:
            return
        self.heading(f"The best of {len(found)} schedules")
        columns = (
            "depth",
            "cells",
            "warps",
            "form",
            "blocks",
            "ahead",
            "guards",
            "GCells/s",
            "worth",
            "registers",
            "limit",
        )
        self.table(columns, map(candidate_row, found[:RUNNERS_UP]))
        self.say("warps", "of a block")
        self.say(
            "worth",
            "GCells/s, less for depth, for rims that spill and for tiles that stay on the device: the first is chosen",
        )
        levels: dict[str, Candidate] = {}
        for candidate in found:
            levels.setdefault(level_of(candidate.schedule), candidate)
        if len(levels) == 1:
            return
        self.heading("The best of each level that may hold a tile")
        columns = (
            "tile",
            "depth",
            "cells",
            "blocks",
            "sync",
            "GCells/s",
            "valid",
            "steps",
            "ns a step",
            "waiting",
        )
        self.table(columns, map(level_row, levels.values()))
        self.say(
            "sync",
            "how warps or, where there are several, blocks of a tile wait for each other: the best of the ways that are compared",
        )
        self.say("valid", "share of a tile's cells that overlap leaves (EBISU, equations 8 and 9)")
        self.say("steps", "of the slot that is done last: chunks, waves and guarded tiles")
        self.say(
            "waiting",
            "ns of a step, for other warps and blocks of the tile (equations 11, 20 and 21)",
        )


def prediction_row(kernel: KernelOp, cost: Cost) -> list[str]:
    """One kernel's terms in the cost model."""
    cycles = cost.cycles
    return [
        f"@{kernel.sym_name.data}",
        f"{cost.gcells_per_second:.0f}",
        f"{cost.steps:.0f}",
        f"{cost.step_seconds * 1e9:.0f}",
        *(f"{n:.0f}" for n in (cycles.pipe, cycles.issue, cycles.shared, cycles.unhidden)),
        f"{cost.compute_seconds * 1e9:.0f}",
        f"{cost.waiting_seconds * 1e9:.0f}",
        f"{cost.memory_seconds * 1e9:.0f}",
    ]


def candidate_row(candidate: Candidate) -> list[str]:
    """A schedule that was considered, with what limits it."""
    schedule, cost = candidate.schedule, candidate.cost
    registers = f"{cost.registers}, tight" if candidate.tight else str(cost.registers)
    return [
        str(candidate.depth),
        product(schedule.cells),
        str(schedule.layout().threads // LANES),
        schedule.form,
        str(schedule.occupancy),
        str(schedule.ahead),
        schedule.guards,
        f"{cost.gcells_per_second:.0f}",
        f"{candidate.worth:.0f}",
        registers,
        cost.limit,
    ]


def level_of(schedule: Schedule) -> str:
    """What holds a tile, and that it stays where nothing is streamed: `block, stays`."""
    return f"{schedule.tile}, stays" if schedule.stays else schedule.tile


def level_row(candidate: Candidate) -> list[str]:
    """The best schedule of a level, with what it wins by overlapping less and loses by waiting."""
    schedule, cost = candidate.schedule, candidate.cost
    return [
        level_of(schedule),
        str(candidate.depth),
        product(schedule.cells),
        product(schedule.blocks) or "1",
        "" if schedule.tile == "warp" else schedule.sync,
        f"{cost.gcells_per_second:.0f}",
        f"{cost.valid:.0%}",
        f"{cost.steps:.0f}",
        f"{cost.step_seconds * 1e9:.0f}",
        f"{cost.waiting_seconds * 1e9:.0f}",
    ]
