"""
Measure the published systems by name, beside the default and the authors' own code.

    python benchmarks/systems.py --out benchmarks/results/systems.json
    python benchmarks/systems.py --only ebisu,an5d:star2d --out benchmarks/results/systems.json

A row runs a program of a paper on the paper's domain through the public interface, once with the
pipeline by name and once with the default, on equal cells in GPU memory: the best of three long
runs. Kernels are compiled on all cores before. The pipeline runs on a small domain of odd extents
first, where it must leave the bits of the unfused program. `ratio` is the pipeline's speed over the
authors'. `--only` names the beginnings of rows (`system:program:dtype`); rows in the output that
are not measured anew stay.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from math import prod
from pathlib import Path
from typing import Any, cast

import numpy as np
from fields import ELEMENTS, View
from measure import commit
from reports import write_report
from rich.console import Console
from rows import assemble, described
from system_rows import SystemCase, system_cases
from timing import copy_bandwidth, events

import timetile
from timetile.runtime.cache.store import Cache
from timetile.runtime.device.gpu import Device, device
from timetile.runtime.kernels.loops import loops_of
from timetile.runtime.machine.driver import checked
from timetile.runtime.program.compiled_program import CompiledProgram

SMALL = {2: (67, 333), 3: (19, 67, 141)}
"""Odd domains for comparing bits, by the number of axes."""

CHECKED_STEPS = 13
"""Steps of a comparison of bits: a launch of each depth, for most rows."""

SECONDS = 0.05
"""The least time of a timed run."""

CHUNK = 1 << 23
"""Random cells drawn on the host, and repeated over a field."""


@dataclass
class SystemRow:
    """A row of the table."""

    system: str
    program: str
    dtype: str
    domain: tuple[int, ...]
    pipeline: str
    technique: str = ""
    fp_division: str = "exact"
    device: str = ""
    depth: int = 0
    gcells_per_s: float = 0.0
    default_depth: int = 0
    default_gcells_per_s: float = 0.0
    paper_gcells_per_s: float = 0.0
    paper_device: str = ""
    ratio: float = 0.0
    default_ratio: float = 0.0
    equal_bits: bool = False
    registers: int = 0
    spilled_bytes: int = 0
    shared_bytes: int = 0
    schedule: str = ""
    commit: str = ""
    error: str = ""

    @staticmethod
    def of(case: SystemCase) -> SystemRow:
        """The row of a case, before measuring."""
        return SystemRow(
            case.system,
            case.program,
            case.dtype,
            case.domain,
            case.pipeline,
            case.technique,
            case.fp_division,
        )


def compiled(case: SystemCase, folder: Path, *, named: bool) -> CompiledProgram:
    """The program of a case with the pipeline by name, or with the default passes."""
    return timetile.compile(
        case.text(case.domain),
        executor="gpu",
        halos="common",
        passes=case.pipeline if named else None,
        depth=None if named else case.default_depth,
        fp_division=case.fp_division,
        cache=Cache(folder),
    )


def depth_of(program: CompiledProgram) -> int:
    """Steps of the deepest launch."""
    return max(fact.steps for fact in program.kernels.facts[0])


def has_equal_bits(case: SystemCase) -> bool:
    """
    Whether the pipeline leaves the unfused program's bits on a small domain of odd extents. With
    approximate quotients, the unfused program runs on the GPU, too.
    """
    text = case.text(SMALL[len(case.domain)])
    ends: list[list[bytes]] = []
    for named in (True, False):
        on_gpu = named or case.fp_division == "fast"
        program = timetile.compile(
            text,
            executor="gpu" if on_gpu else "numpy",
            halos="common",
            passes=case.pipeline if named else None,
            depth=1 if on_gpu and not named else None,
            fp_division=case.fp_division,
            cache=False,
        )
        spans = [p.bounds for p in program.parameters if p.bounds is not None]
        shape = [high - low for low, high in zip(spans[0].lb, spans[0].ub)]
        first = np.random.default_rng(3).random(shape).astype(ELEMENTS[case.dtype])
        arrays = [first.copy() for _ in spans]
        program(*arrays, CHECKED_STEPS)
        ends.append([array.tobytes() for array in arrays])
    return ends[0] == ends[1]


def prepared(case: SystemCase, folder: Path) -> SystemRow:
    """Compile both programs of a case into the cache, compare bits, and describe the pipeline."""
    row = SystemRow.of(case)
    try:
        program = compiled(case, folder, named=True)
        assemble(program)
        deepest = max(program.kernels.facts[0], key=lambda fact: fact.steps)
        kernel = program.kernels.kernel(deepest.name)
        row.depth, row.registers = deepest.steps, kernel.registers
        row.spilled_bytes, row.shared_bytes = kernel.spill_bytes, kernel.shared_bytes
        schedule = loops_of(program.kernels.tiled)[0].schedule
        row.schedule = "" if schedule is None else str(schedule.data)
        default = compiled(case, folder, named=False)
        assemble(default)
        row.default_depth = depth_of(default)
        row.equal_bits = has_equal_bits(case)
    except Exception as error:
        row.error = described(error)
    return row


class DeviceFields:
    """A field of random cells in GPU memory, halo included, for each field of a program."""

    def __init__(self, gpu: Device, shapes: Sequence[tuple[int, ...]], dtype: str):
        self.gpu, self.shapes, self.dtype = gpu, tuple(shapes), dtype
        kind = np.dtype(ELEMENTS[dtype])
        drawn = np.random.default_rng(7).random(CHUNK, dtype=kind.type)
        self.pointers: list[int] = []
        self.views: list[View] = []
        for shape in self.shapes:
            size = prod(shape) * kind.itemsize
            pointer = gpu.allocate(size)
            self.pointers.append(pointer)
            done = min(size, drawn.nbytes)
            gpu.upload(pointer, drawn[: done // kind.itemsize])
            while done < size:
                more = min(done, size - done)
                gpu.copy(pointer, pointer + done, more, 0)
                done += more
            like = np.lib.stride_tricks.as_strided(np.empty(1, kind), shape, (0,) * len(shape))
            self.views.append(View(pointer, like))
        gpu.synchronize(0)

    def free(self) -> None:
        """Give the memory back."""
        for pointer in self.pointers:
            self.gpu.free(pointer)


class KeptFields:
    """The fields of the latest row, for the next row if alike."""

    def __init__(self, gpu: Device):
        self.gpu = gpu
        self.latest: DeviceFields | None = None

    def of(self, program: CompiledProgram, dtype: str) -> DeviceFields:
        """Fields for a program."""
        bounds = [p.bounds for p in program.parameters if p.bounds is not None]
        shapes = tuple(tuple(high - low for low, high in zip(b.lb, b.ub)) for b in bounds)
        if self.latest is None or (self.latest.shapes, self.latest.dtype) != (shapes, dtype):
            self.free()
            self.latest = DeviceFields(self.gpu, shapes, dtype)
        return self.latest

    def free(self) -> None:
        """Give the memory back."""
        if self.latest is not None:
            self.latest.free()
        self.latest = None


def speed_of(program: CompiledProgram, fields: DeviceFields, domain: Sequence[int]) -> float:
    """GCells/s of the best of three runs of at least `SECONDS`."""
    depth = depth_of(program)

    def run(steps: int) -> None:
        program(*fields.views, steps, steps=steps)

    steps = 2 * depth
    run(steps)
    spent = min(events(fields.gpu, lambda: run(steps), 2))
    steps = depth * max(2, int(SECONDS * 2e3 / max(spent, 1e-3)))
    best = min(events(fields.gpu, lambda: run(steps), 3))
    return round(prod(domain) * steps / best / 1e6, 1)


class Timer:
    """Times programs on a GPU; fields and speeds of defaults serve several rows."""

    def __init__(self, gpu: Device, folder: Path):
        self.folder = folder
        self.fields = KeptFields(gpu)
        self.defaults: dict[tuple[Any, ...], float] = {}

    def speed(self, case: SystemCase, *, named: bool) -> float:
        """GCells/s of the pipeline of a case, or of the default."""
        program = compiled(case, self.folder, named=named)
        try:
            return speed_of(program, self.fields.of(program, case.dtype), case.domain)
        finally:
            program.close()

    def measure(self, row: SystemRow, case: SystemCase) -> None:
        """Time the pipeline and the default of a row."""
        row.gcells_per_s = self.speed(case, named=True)
        key = (case.program, case.dtype, case.domain, case.default_depth, case.fp_division)
        if key not in self.defaults:
            self.defaults[key] = self.speed(case, named=False)
        row.default_gcells_per_s = self.defaults[key]
        if row.paper_gcells_per_s:
            row.ratio = round(row.gcells_per_s / row.paper_gcells_per_s, 3)
            row.default_ratio = round(row.default_gcells_per_s / row.paper_gcells_per_s, 3)


def chosen(cases: Sequence[SystemCase], only: str | None, *, everything: bool) -> list[SystemCase]:
    """The cases that an option names, or the main ones, or all."""
    if only is not None:
        begins = tuple(only.split(","))
        return [case for case in cases if case.key.startswith(begins)]
    return [case for case in cases if everything or case.is_main]


def kept_rows(path: Path | None, rows: Sequence[SystemRow]) -> list[dict[str, Any]]:
    """The rows of an earlier output, with the rows measured now in their places or at the end."""
    new = {row_key(asdict(row)): asdict(row) for row in rows}
    before: list[dict[str, Any]] = []
    if path is not None and path.is_file():
        before = cast(list[dict[str, Any]], json.loads(path.read_text())["rows"])
    old = [new.pop(row_key(row), row) for row in before]
    return [*old, *new.values()]


def row_key(row: dict[str, Any]) -> tuple[Any, ...]:
    """What names a row: all but what was measured."""
    names = ("system", "program", "dtype", "pipeline")
    return (*(row[n] for n in names), tuple(row["domain"]), row.get("fp_division", "exact"))


def arguments() -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="beginnings of rows, with commas between")
    parser.add_argument("--all", action="store_true", help="all rows, not the main ones alone")
    parser.add_argument("--list", action="store_true", help="print the rows and end")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--commit", default=None)
    parser.add_argument("--seconds", type=float, default=500, help="no row begins later")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--folder", type=Path, default=Path("build/systems-cache"))
    return parser.parse_args()


def main() -> None:
    options, began = arguments(), time.perf_counter()
    console = Console(width=200)
    cases = chosen(system_cases(), options.only, everything=options.all)
    if options.list:
        for case in cases:
            console.print(case.key, markup=False, highlight=False, soft_wrap=True)
        return
    said, done = options.commit or commit(), list[SystemRow]()
    with ProcessPoolExecutor(options.processes) as pool:
        # All are compiled before the first is timed: compiling takes the cores of the host, and
        # comparing bits takes the GPU. The longest programs begin.
        ordered = sorted(cases, key=lambda case: -len(case.text(case.domain)))
        made = dict(zip(ordered, pool.map(prepared, ordered, [options.folder] * len(cases))))
    rows = [made[case] for case in cases]
    console.print(f"compiled and compared in {time.perf_counter() - began:.0f} s")
    gpu = device()
    with gpu.current():
        timer = Timer(gpu, options.folder)
        about = {
            "device": gpu.name,
            "driver": int(checked(gpu.cuda.cuDriverGetVersion())),
            "copy_tb_per_s": round(copy_bandwidth(gpu), 3),
            "commit": said,
            "command": "python benchmarks/systems.py",
        }
        for row, case in zip(rows, cases):
            paper, card = case.paper(gpu.name)
            own = replace(
                row, device=gpu.name, commit=said, paper_gcells_per_s=paper, paper_device=card
            )
            done.append(own)
            if not own.error and time.perf_counter() - began > options.seconds:
                own.error = "not begun in the given seconds"
            if not own.error:
                try:
                    timer.measure(own, case)
                except Exception as error:
                    own.error = described(error)
            console.print(json.dumps(asdict(own)), markup=False, highlight=False, soft_wrap=True)
            if options.out is not None:
                write_report(options.out, about, kept_rows(options.out, done))
        timer.fields.free()
    console.print(f"done in {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
