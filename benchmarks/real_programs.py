"""
Measure real programs beside their naive kernels and a copy, in one call.

    nvcc -O3 -std=c++17 -arch=sm_90 -o naive benchmarks/naive/naive.cu
    python benchmarks/real_programs.py --naive ./naive --out benchmarks/results/real-programs.json

Every program of `real_steps.py` and `coupled_programs.py` runs through the public interface at the
schedule that timetile chooses, in FP32 and FP64, from random cells and from a quiet start, on
arrays in GPU memory. The chosen schedule runs on a small domain of odd extents first, where it must
leave the bits of the unfused program. `copy_bound_one_step` is the speed of a step that moves each
field once; of a step in several kernels, each kernel's fields once.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import time
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import reduce
from importlib import import_module
from math import prod
from pathlib import Path
from typing import Any, Literal

from coupled_programs import SYSTEMS
from measure import commit, predicted
from real_steps import PROGRAMS, first_cells
from reports import write_report
from rich.console import Console
from rows import described, read_schedule
from timing import copy_bandwidth, events
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

import timetile
from timetile.dialects.boxes import CellBox, cells_of
from timetile.dialects.cell_types import CELL_BYTES
from timetile.dialects.syntax import element_type
from timetile.dialects.temporal import LoopOp
from timetile.dialects.tile import KernelOp
from timetile.frontend.field_types import DType
from timetile.frontend.model import Model
from timetile.lowering.pipelines import tile_passes
from timetile.lowering.plan_launches import PlannedKernel
from timetile.passes.analysis.cells.sums import FpReassoc
from timetile.passes.analysis.launches.accesses import kernel_accesses
from timetile.passes.loops import store_layers
from timetile.passes.loops.temporal_fusion import write_depths
from timetile.passes.scheduling.choose_schedule import ChooseSchedulePass
from timetile.runtime.cache.store import Cache
from timetile.runtime.device.gpu import Device, device
from timetile.runtime.kernels.loops import loops_of
from timetile.runtime.program.compiled_program import CompiledProgram, Executor

DTYPES: dict[str, DType] = {"f32": "float32", "f64": "float64"}

SMALL = {2: (67, 333), 3: (19, 37, 141)}
"""Odd domains for comparing bits, by the number of axes."""

SMALL_WITH_LAYERS = (61, 63, 141)
"""The odd domain of steps with absorbing layers at both ends of each axis."""

CHECKED_STEPS = 9
"""Steps of a comparison of bits."""

ORDERS: dict[str, tuple[FpReassoc, ...]] = {"tti8": ("flags", "on"), "tti13": ("flags", "on")}
"""Orders of terms; of other programs the program's own."""

SECONDS = 0.1
"""The least time of a timed run."""


@dataclass(frozen=True)
class PinnedSchedule(ModulePass):
    """
    Gives a time loop a schedule and a depth, and its inside a schedule, if one is given; the model
    chooses for sweeps.
    """

    name = "pinned-schedule"

    schedule: str
    """The attribute's text."""
    depth: int
    inside: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for loop in [inner for inner in op.walk() if isinstance(inner, LoopOp)]:
            if loop.sweep is not None:
                continue
            loop.schedule = read_schedule(self.schedule)
            loop.inside = read_schedule(self.inside) if self.inside else None
            write_depths(loop, [self.depth])
        ChooseSchedulePass().apply(ctx, op)


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
    equal_bits: bool = False
    error: str = ""


def time_loop(program: CompiledProgram) -> tuple[LoopOp, list[PlannedKernel]]:
    """The time loop of a program, behind and before sweeps, and the facts of its kernels."""
    loops = zip(loops_of(program.kernels.tiled), program.kernels.facts, strict=True)
    ((loop, facts),) = (each for each in loops if each[0].sweep is None)
    return loop, facts


def model_of(program: str) -> Model:
    """The step of a program."""
    return SYSTEMS[program].step if program in SYSTEMS else PROGRAMS[program]


def domain_of(program: str, element: str) -> tuple[int, ...]:
    """The domain of a program."""
    if program in SYSTEMS:
        return SYSTEMS[program].domains[element]
    return (8192, 8192) if PROGRAMS[program].step.rank == 2 else (512, 512, 512)


def compiled(row: ProgramRow, folder: Path) -> CompiledProgram:
    """The program of a row at the chosen schedule."""
    module, order = model_of(row.program).module(row.domain, DTYPES[row.dtype]), row.fp_reassoc
    cache = Cache(folder)
    return timetile.compile(module, executor="gpu", halos="common", cache=cache, fp_reassoc=order)


def has_equal_bits(
    program: str,
    element: str,
    pinned: PinnedSchedule,
    cache: Cache | Literal[False] = False,
    order: FpReassoc = "flags",
) -> bool:
    """
    Whether a schedule leaves the unfused program's bits on a small domain, from both starts. Rows
    of odd length are staged in shared memory: where a schedule has no room, rows are longer by the
    cells to the next vector. `cache`: of the kernels on the small domain.
    """
    has_layers = program in SYSTEMS and SYSTEMS[program].without
    shape = SMALL_WITH_LAYERS if has_layers else SMALL[model_of(program).step.rank]
    try:
        return has_equal_bits_on(program, element, pinned, shape, cache, order)
    except timetile.CompileError:
        whole = (*shape[:-1], -(-shape[-1] // 4) * 4)
        return has_equal_bits_on(program, element, pinned, whole, cache, order)


def has_equal_bits_on(
    program: str,
    element: str,
    pinned: PinnedSchedule,
    shape: tuple[int, ...],
    cache: Cache | Literal[False] = False,
    order: FpReassoc = "flags",
) -> bool:
    """
    Whether a schedule leaves the unfused program's bits on a domain, from both starts. Layers are
    stored alone on small domains, too.
    """
    store_layers.LEAST_CELLS = 1
    module = model_of(program).module(shape, DTYPES[element])
    passes = tuple(
        pinned if isinstance(each, ChooseSchedulePass) else each for each in tile_passes()
    )
    for quiet in (False, True):
        ends: list[bytes] = []
        executors: tuple[Executor, ...] = ("gpu", "numpy")
        for executor in executors:
            given = passes if executor == "gpu" else None
            made = timetile.compile(
                module.clone(),
                executor=executor,
                halos="common",
                passes=given,
                cache=cache,
                fp_reassoc=order,
            )
            arrays = [
                first_cells(name_of(p.name), p.shape, DTYPES[element], quiet=quiet)
                for p in made.parameters[:-1]
            ]
            made(*arrays, steps=CHECKED_STEPS)
            ends.append(b"".join(array.tobytes() for array in arrays))
        if ends[0] != ends[1]:
            return False
    return True


def name_of(parameter: str | None) -> str:
    """The field of a buffer: `u` of `u_next` and of `u_prev`."""
    return (parameter or "").removesuffix("_next").removesuffix("_prev")


def prepared(row: ProgramRow, folder: Path) -> ProgramRow:
    """Compile a program into the cache, and describe it."""
    try:
        program = compiled(row, folder)
        loop, facts = time_loop(program)
        kernels = [program.kernels.kernel(each.name) for each in facts]
        schedule = loop.decisions
        row.depth, row.schedule = max(loop.depth_list), str(schedule)
        row.kernels_per_step = len(schedule.cuts) + 1 if schedule.reads_memory else 1
        row.fields = len(model_of(row.program).step.fields)
        row.registers = max(kernel.registers for kernel in kernels)
        row.spilled_bytes = max(kernel.spill_bytes for kernel in kernels)
        parts = facts if schedule.reads_memory else facts[:1]
        seconds = sum(predicted(program, each.name).seconds for each in parts) / row.depth
        row.predicted = round(prod(row.domain) / seconds / 1e9, 1)
        row.inside = "" if loop.inside is None else str(loop.inside.data)
    except Exception as error:
        row.error = described(error)
    return row


def checked(row: ProgramRow) -> bool:
    """Whether a row's schedule leaves the unfused program's bits on a small domain."""
    inside = f"#tile.schedule<{row.inside}>" if row.inside else ""
    pinned = PinnedSchedule(f"#tile.schedule<{row.schedule}>", row.depth, inside)
    return not row.error and has_equal_bits(row.program, row.dtype, pinned, order=row.fp_reassoc)


def bytes_of_step(program: CompiledProgram) -> float:
    """
    Bytes for a cell and a step: of each kernel of a single step, the cells of the kernel's bounds
    read and written of each field, once. A layer's own fields have the layer's cells.
    """
    loop, _ = time_loop(program)
    names = loop.kernel_names if loop.decisions.reads_memory else loop.kernel_names[-1:]
    kernels = [op for op in program.kernels.tiled.ops if isinstance(op, KernelOp)]
    boxes = {op: CellBox.of(op.bounds) for op in kernels if op.sym_name.data in names}
    every = cells_of(reduce(CellBox.__or__, boxes.values()))
    return sum(bytes_of_launch(op, box) for op, box in boxes.items()) / every


def bytes_of_launch(kernel: KernelOp, bounds: CellBox) -> int:
    """Bytes of the cells in a kernel's bounds read and written by a launch."""
    moved = 0
    for field, access in zip(kernel.body.block.args, kernel_accesses(kernel), strict=True):
        boxes = [box for box in (access.reads, access.writes) if box is not None]
        for box in (each for each in boxes if len(each.lower) == len(bounds.lower)):
            moved += cells_of(box & bounds) * CELL_BYTES[element_type(field)]
    return moved


def measured(row: ProgramRow, program: CompiledProgram, gpu: Device, copy: float) -> None:
    """Time a program, the best of three runs."""
    cupy: Any = import_module("cupy")
    quiet, dtype = row.start == "quiet", DTYPES[row.dtype]
    arrays = [
        first_cells(name_of(p.name), p.shape, dtype, quiet=quiet, library=cupy)
        for p in program.parameters[:-1]
    ]

    def run(steps: int) -> None:
        program(*arrays, steps=steps)

    steps = 2 * row.depth
    run(steps)
    spent = min(events(gpu, lambda: run(steps), 2))
    steps = row.depth * max(2, int(SECONDS * 2e3 / max(spent, 1e-3)))
    best = min(events(gpu, lambda: run(steps), 3))
    row.gpts_per_s = round(prod(row.domain) * steps / best / 1e6, 1)
    row.copy_bound_one_step = round(copy * 1e3 / bytes_of_step(program), 1)
    row.share = round(row.gpts_per_s / row.copy_bound_one_step, 3)


def naive_speeds(binary: Path | None) -> dict[tuple[str, str], float]:
    """The speeds of the naive kernels, by program and element; none without a binary."""
    if binary is None:
        return {}
    said = subprocess.run([binary.resolve()], capture_output=True, text=True, check=True).stdout
    rows = (line.split() for line in said.splitlines())
    return {(name, element): float(speed) for name, element, speed in rows}


def arguments() -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", nargs="*", help="names of programs; all unless given")
    parser.add_argument("--naive", type=Path, help="the program built from naive/naive.cu")
    parser.add_argument("--elements", nargs="+", choices=tuple(DTYPES), default=tuple(DTYPES))
    parser.add_argument("--starts", nargs="+", default=("random", "quiet"))
    parser.add_argument("--out", type=Path)
    parser.add_argument("--commit", default=None)
    parser.add_argument(
        "--seconds",
        type=float,
        default=500,
        help="no program begins later, and no comparison of bits",
    )
    parser.add_argument("--folder", type=Path, default=Path("build/real-programs-cache"))
    return parser.parse_args()


def timed(row: ProgramRow, start: str, folder: Path, gpu: Device, copy: float) -> ProgramRow:
    """A row of a start, timed."""
    own = replace(row, start=start)
    try:
        program = compiled(row, folder)
        measured(own, program, gpu, copy)
        program.close()
    except Exception as error:
        own.error = described(error)
    import_module("cupy").get_default_memory_pool().free_all_blocks()
    return own


def with_bits(rows: list[ProgramRow], equal: Future[bool], seconds: float) -> None:
    """Note in the rows of a program whether bits are equal, if known in so many seconds."""
    try:
        bits = equal.result(max(seconds, 0.0))
    except Exception as error:
        for row in rows:
            row.error = row.error or f"bits not compared: {described(error)}"
        return
    for row in rows:
        row.equal_bits = bits


def main() -> None:
    options, began = arguments(), time.perf_counter()
    console = Console(width=200)
    rows = [
        ProgramRow(name, element, domain_of(name, element), "random", order)
        for name in options.programs or (*PROGRAMS, *SYSTEMS)
        for order in ORDERS.get(name, ("flags",))
        for element in options.elements
    ]
    done: list[list[ProgramRow]] = []

    def left() -> float:
        return options.seconds - (time.perf_counter() - began)

    # All processes begin here: a process that begins behind the GPU has no GPU.
    count = min(os.cpu_count() or 1, len(rows))
    with ProcessPoolExecutor(count) as pool:
        waiting = [pool.submit(prepared, row, options.folder) for row in rows]
        naive, gpu = naive_speeds(options.naive), device()
        with gpu.current():
            copy = copy_bandwidth(gpu)
            for each in waiting:
                row = each.result()
                row.naive_gpts_per_s = naive.get((row.program, row.dtype), 0.0)
                if row.error or left() < 0:
                    done.append([row])
                    continue
                rows_of = [timed(row, start, options.folder, gpu, copy) for start in options.starts]
                done.append(rows_of)
                for own in rows_of:
                    said = json.dumps(asdict(own))
                    console.print(said, markup=False, highlight=False, soft_wrap=True)
        # Comparisons use the GPU, and come behind all timings.
        timings = [(k, own[0]) for k, own in enumerate(done) if own[0].gpts_per_s]
        equal = {k: pool.submit(checked, row) for k, row in timings}
        for number, own in enumerate(done):
            if number in equal:
                with_bits(own, equal[number], left())
            row = own[0]
            said = f"{row.program} {row.dtype} {row.fp_reassoc}: {row.equal_bits} {row.error}"
            console.print(said, markup=False, highlight=False, soft_wrap=True)
        about = {
            "commit": options.commit or commit(),
            "device": gpu.name,
            "copy_tb_per_s": round(copy, 3),
            "command": "python benchmarks/real_programs.py --naive naive",
        }
        if options.out is not None:
            write_report(options.out, about, [asdict(row) for own in done for row in own])
        pool.shutdown(wait=False, cancel_futures=True)


if __name__ == "__main__":
    main()
