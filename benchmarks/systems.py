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

SECONDS = 0.08
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
        return SystemRow(case.system, case.program, case.dtype, case.domain, case.pipeline)


def compiled(case: SystemCase, folder: Path, *, named: bool) -> CompiledProgram:
    """The program of a case with the pipeline by name, or with the default passes."""
    return timetile.compile(
        case.text(case.domain),
        executor="gpu",
        halos="common",
        passes=case.pipeline if named else None,
        depth=None if named else case.default_depth,
        cache=Cache(folder),
    )


def depth_of(program: CompiledProgram) -> int:
    """Steps of the deepest launch."""
    return max(fact.steps for fact in program.kernels.facts[0])


def has_equal_bits(case: SystemCase) -> bool:
    """Whether the pipeline leaves the unfused program's bits on a small domain of odd extents."""
    text = case.text(SMALL[len(case.domain)])
    ends: list[list[bytes]] = []
    for named in (True, False):
        program = timetile.compile(
            text,
            executor="gpu" if named else "numpy",
            halos="common",
            passes=case.pipeline if named else None,
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
    """Two fields of equal random cells in GPU memory, halos included."""

    def __init__(self, gpu: Device, program: CompiledProgram, dtype: str):
        self.gpu = gpu
        spans = next(p.bounds for p in program.parameters if p.bounds is not None)
        shape = tuple(high - low for low, high in zip(spans.lb, spans.ub))
        kind = np.dtype(ELEMENTS[dtype])
        size = prod(shape)
        drawn = np.random.default_rng(7).random(min(CHUNK, size), dtype=kind.type)
        self.pointers: list[int] = []
        for _ in range(2):
            pointer = gpu.allocate(size * kind.itemsize)
            self.pointers.append(pointer)
            for start in range(0, size, drawn.size):
                part = drawn[: min(drawn.size, size - start)]
                gpu.upload(pointer + start * kind.itemsize, part)
        like = np.lib.stride_tricks.as_strided(np.empty(1, kind), shape, (0,) * len(shape))
        self.views = [View(pointer, like) for pointer in self.pointers]

    def free(self) -> None:
        """Give the memory back."""
        for pointer in self.pointers:
            self.gpu.free(pointer)


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


def measured(row: SystemRow, case: SystemCase, folder: Path, gpu: Device) -> None:
    """Time the pipeline and the default of a row."""
    named = compiled(case, folder, named=True)
    fields = DeviceFields(gpu, named, case.dtype)
    try:
        row.gcells_per_s = speed_of(named, fields, case.domain)
        named.close()
        default = compiled(case, folder, named=False)
        row.default_gcells_per_s = speed_of(default, fields, case.domain)
        default.close()
    finally:
        fields.free()
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
    return (*(row[n] for n in ("system", "program", "dtype", "pipeline")), tuple(row["domain"]))


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
        # comparing bits takes the GPU.
        rows = list(pool.map(prepared, cases, [options.folder] * len(cases)))
    console.print(f"compiled and compared in {time.perf_counter() - began:.0f} s")
    gpu = device()
    with gpu.current():
        copy = copy_bandwidth(gpu)
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
                    measured(own, case, options.folder, gpu)
                except Exception as error:
                    own.error = described(error)
            console.print(json.dumps(asdict(own)), markup=False, highlight=False, soft_wrap=True)
            if options.out is not None:
                about = {
                    "device": gpu.name,
                    "driver": int(checked(gpu.cuda.cuDriverGetVersion())),
                    "copy_tb_per_s": round(copy, 3),
                    "commit": said,
                    "command": "python benchmarks/systems.py",
                }
                write_report(options.out, about, kept_rows(options.out, done))
    console.print(f"done in {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
