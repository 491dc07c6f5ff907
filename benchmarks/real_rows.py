"""Rows of real programs: compiled and described, and bits compared on small domains."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from math import prod
from pathlib import Path
from typing import Any

from kept import kept, with_cache
from measure import predicted
from rows import described
from small_domains import (
    DTYPES,
    PinnedSchedule,
    SmallProgram,
    model_of,
    passes_at,
    with_kernels,
)

import timetile
from timetile.dialects.boxes import CellBox, cells_of
from timetile.dialects.cell_types import CELL_BYTES
from timetile.dialects.syntax import element_type
from timetile.dialects.temporal import LoopOp
from timetile.dialects.tile import KernelOp, LoadOp
from timetile.lowering.plan_launches import PlannedKernel
from timetile.passes.analysis.cells.sums import FpReassoc
from timetile.passes.analysis.launches.accesses import kernel_accesses
from timetile.runtime.cache.store import Cache
from timetile.runtime.kernels.loops import loops_of
from timetile.runtime.program.compiled_program import CompiledProgram, Executor

ORDERS: dict[str, tuple[FpReassoc, ...]] = {"tti8": ("flags", "on"), "tti13": ("flags", "on")}
"""Orders of terms; of other programs the program's own."""


@dataclass
class ProgramRow:
    """A program, element type and start, with what was measured."""

    program: str
    dtype: str
    domain: tuple[int, ...]
    start: str
    fp_reassoc: FpReassoc = "flags"
    schedule: str = ""
    inside: str = ""
    fields: int = 0
    kernels_per_step: int = 0
    depth: int = 0
    registers: int = 0
    spilled_bytes: int = 0
    gpts_per_s: float = 0.0
    naive_gpts_per_s: float = 0.0
    copy_bound_one_step: float = 0.0
    share: float = 0.0
    predicted: float = 0.0
    bytes_of_step: float = 0.0
    equal_bits: bool | None = None
    """Whether bits are equal, or None: they were not compared."""
    given: bool = False
    """The schedule is one of a file, chosen by `--choose`."""
    error: str = ""


def time_loop(program: CompiledProgram) -> tuple[LoopOp, list[PlannedKernel]]:
    """The time loop of a program, behind and before sweeps, and the facts of its kernels."""
    loops = zip(loops_of(program.kernels.tiled), program.kernels.facts, strict=True)
    ((loop, facts),) = (each for each in loops if each[0].sweep is None)
    return loop, facts


def pinned(row: ProgramRow) -> PinnedSchedule:
    """The schedule of a row."""
    inside = f"#tile.schedule<{row.inside}>" if row.inside else ""
    return PinnedSchedule(f"#tile.schedule<{row.schedule}>", row.depth, inside)


def compiled(
    row: ProgramRow, folder: Path, arch: str | None = None, executor: Executor = "gpu"
) -> CompiledProgram:
    """
    The program of a row at the chosen or given schedule. `arch`: the target, unless the GPU's own;
    the executor `planes` makes a GPU's kernels without the GPU.
    """
    made = timetile.compile(
        model_of(row.program).module(row.domain, DTYPES[row.dtype]),
        executor=executor,
        arch=arch,
        halos="common",
        passes=passes_at(pinned(row)) if row.given else None,
        cache=Cache(folder),
        fp_reassoc=row.fp_reassoc,
    )
    return with_cache(made, Cache(folder)) if row.given else made


def prepared(row: ProgramRow, folder: Path, arch: str | None = None) -> ProgramRow:
    """Compile a program into the cache, and describe it; for a named target without the GPU."""
    try:
        program = compiled(row, folder, arch, "planes" if arch else "gpu")
        found = kept(Cache(folder), lambda: description(row, program), program.kernels.key)
        return replace(row, **found)
    except Exception as error:
        return replace(row, error=described(error))


def description(row: ProgramRow, program: CompiledProgram) -> dict[str, Any]:
    """What a row says about the program's kernels, all of which are assembled."""
    loop, facts = time_loop(with_kernels(program))
    kernels = [program.kernels.kernel(each.name) for each in facts]
    schedule, depth = loop.decisions, max(loop.depth_list)
    parts = facts if schedule.reads_memory else facts[:1]
    seconds = sum(predicted(program, each.name).seconds for each in parts) / depth
    return {
        "depth": depth,
        "schedule": str(schedule),
        "inside": "" if loop.inside is None else str(loop.inside.data),
        "kernels_per_step": len(schedule.cuts) + 1 if schedule.reads_memory else 1,
        "fields": len(model_of(row.program).step.fields),
        "registers": max(kernel.registers for kernel in kernels),
        "spilled_bytes": max(kernel.spill_bytes for kernel in kernels),
        "predicted": round(prod(row.domain) / seconds / 1e9, 1),
        "bytes_of_step": bytes_of_step(program),
    }


def small_program(row: ProgramRow, arch: str | None) -> SmallProgram:
    """A row's program and schedule on a small domain, for a target."""
    return SmallProgram(row.program, row.dtype, pinned(row), row.fp_reassoc, arch=arch)


def assembled(row: ProgramRow, folder: Path, arch: str | None = None) -> None:
    """Compile a row's program on a small domain into the cache; without a GPU for an `arch`."""
    small_program(row, arch).assembled(Cache(folder), "planes" if arch else "gpu")


def made_ahead(row: ProgramRow, folder: Path, arch: str) -> None:
    """Compile a row's program on a small domain into the cache, and run the unfused program."""
    small_program(row, arch).prepare(Cache(folder))


def checked(row: ProgramRow, folder: Path, arch: str | None = None) -> bool:
    """Whether a row's schedule leaves the unfused program's bits on a small domain."""
    return small_program(row, arch).has_equal_bits(Cache(folder))


def bytes_of_step(program: CompiledProgram) -> float:
    """
    Bytes for a cell and a step: a kernel reads or writes each field once, in the cells of its
    bounds. A layer's own fields have the layer's cells.
    """
    loop, _ = time_loop(program)
    names = loop.kernel_names if loop.decisions.reads_memory else loop.kernel_names[-1:]
    kernels = [op for op in program.kernels.tiled.ops if isinstance(op, KernelOp)]
    boxes = {op: CellBox.of(op.bounds) for op in kernels if op.sym_name.data in names}
    every = cells_of(reduce(CellBox.__or__, boxes.values()))
    return sum(bytes_of_launch(op, box) for op, box in boxes.items()) / every


def bytes_of_launch(kernel: KernelOp, bounds: CellBox) -> int:
    """
    Bytes of the cells in a kernel's bounds read and written by a launch. Of fields that give cells
    outside the bounds alone, none is read.
    """
    moved = 0
    data = {load.data for load in kernel.stages if isinstance(load, LoadOp)}
    for buffer, access in zip(kernel.body.block.args, kernel_accesses(kernel), strict=True):
        reads = access.reads if buffer in data else None
        boxes = [box for box in (reads, access.writes) if box is not None]
        for box in (each for each in boxes if len(each.lower) == len(bounds.lower)):
            moved += cells_of(box & bounds) * CELL_BYTES[element_type(buffer)]
    return moved
