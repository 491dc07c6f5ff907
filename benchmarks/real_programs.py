"""
Measure real programs beside their naive kernels and a copy, in one call.

    python benchmarks/real_programs.py --naive benchmarks/naive/naive.cu \
        --out benchmarks/results/real-programs.json

Every program of `real_steps.py` and `coupled_programs.py` runs through the public interface at the
schedule that timetile chooses, in FP32 and FP64, from random cells and from a quiet start, on
arrays in GPU memory. Behind all timings, each chosen schedule runs on a small domain of odd
extents, where it must leave the bits of the unfused program. `copy_bound_one_step` is the speed of
a step that moves each field once; of a step in several kernels, each kernel's fields once.

`--ahead` compiles all kernels into the folder, runs the unfused programs, and times nothing. Later
calls with the folder and an equal `--arch` time 110 rows in two minutes: without, each process of a
call measures a copy, and other speeds are other targets, with kernels to be compiled again.

`--choose` writes the chosen schedules for an H200 to a file, on a machine without a GPU, and
`--chosen` times the schedules of such a file: a search takes longer than the timing.

Programs compile in processes and are timed as they come: the first named should be those that take
long to compile. nvcc builds the naive kernels beside, which run as soon as they are built, between
two programs. The file of results is written after each program.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field, replace
from importlib import import_module
from math import ceil, prod
from pathlib import Path
from typing import Any

from coupled_programs import SYSTEMS
from measure import commit
from naive_kernels import NaiveKernels
from real_rows import ORDERS, ProgramRow, assembled, checked, compiled, made_ahead, prepared
from real_steps import PROGRAMS, first_cells
from reports import write_report
from rows import described
from small_domains import DTYPES, domain_of, name_of
from timing import copy_bandwidth, events

from timetile.runtime.device.gpu import Device, device
from timetile.runtime.program.compiled_program import CompiledProgram

LEAST_STEPS = 8
"""Least steps of a run of a program whose layers have fields of their own (decision 74)."""

AHEAD = "h200"
"""The target of kernels compiled without a GPU, unless said otherwise."""

SECONDS = 0.1
"""The least time of a timed run, unless said otherwise."""

LONGER = 3
"""
How many times longer runs with several steps a launch are: runs end with up to seven single steps,
at most 3% of a run.
"""


def measured(
    row: ProgramRow, program: CompiledProgram, gpu: Device, copy: float, least: float
) -> None:
    """Time a program, the best of three runs of so many seconds or more."""
    cupy: Any = import_module("cupy")
    quiet, dtype = row.start == "quiet", DTYPES[row.dtype]
    arrays = [
        first_cells(name_of(p.name), p.shape, dtype, quiet=quiet, library=cupy)
        for p in program.parameters[:-1]
    ]

    def run(steps: int) -> None:
        program(*arrays, steps=steps)

    # A run of fewer steps of a program with layers compiles another program, with whole fields.
    steps = row.depth * ceil(LEAST_STEPS / row.depth)
    spent = min(events(gpu, lambda: run(steps), 1)) / steps
    least *= LONGER if row.depth > 1 else 1
    steps = row.depth * max(ceil(LEAST_STEPS / row.depth), int(least * 1e3 / spent / row.depth))
    best = min(events(gpu, lambda: run(steps), 3))
    row.gpts_per_s = round(prod(row.domain) * steps / best / 1e6, 1)
    row.copy_bound_one_step = round(copy * 1e3 / row.bytes_of_step, 1)
    row.share = round(row.gpts_per_s / row.copy_bound_one_step, 3)


def arguments() -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", nargs="*", help="names of programs; all unless given")
    parser.add_argument("--naive", type=Path, help="naive/naive.cu, built with nvcc")
    parser.add_argument("--elements", nargs="+", choices=tuple(DTYPES), default=tuple(DTYPES))
    parser.add_argument("--starts", nargs="+", default=("random", "quiet"))
    parser.add_argument("--out", type=Path)
    parser.add_argument("--commit", default=None)
    parser.add_argument(
        "--seconds",
        type=float,
        default=500,
        help="no program is timed later",
    )
    parser.add_argument("--bits", type=float, default=120, help="seconds for comparing bits")
    parser.add_argument("--least", type=float, default=SECONDS, help="seconds of a timed run")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--ahead", action="store_true", help="compile into the folder, without a GPU"
    )
    parser.add_argument(
        "--arch",
        help=f"the target; ahead {AHEAD} unless given, else the GPU's own",
    )
    parser.add_argument("--choose", type=Path, help="choose schedules for an H200, without a GPU")
    parser.add_argument("--chosen", type=Path, help="time the schedules of such a file")
    parser.add_argument("--folder", type=Path, default=Path("build/real-programs-cache"))
    return parser.parse_args()


@dataclass
class Run:
    """A call of the script: the GPU, a copy's TB/s, and the rows so far."""

    options: argparse.Namespace
    gpu: Device
    copy: float
    rows: list[ProgramRow]
    naive: NaiveKernels
    began: float = field(default_factory=time.perf_counter)

    @property
    def left(self) -> float:
        """Seconds left."""
        return self.options.seconds - (time.perf_counter() - self.began)

    def note(self, rows: Sequence[ProgramRow]) -> None:
        """Print rows of a program, and write all rows."""
        self.rows += [row for row in rows if row not in self.rows]
        for row in self.rows:
            row.naive_gpts_per_s = self.naive.speeds.get((row.program, row.dtype), 0.0)
        for row in rows:
            print(json.dumps(asdict(row)), flush=True)
        about = {
            "commit": self.options.commit or commit(),
            "device": self.gpu.name,
            "copy_tb_per_s": round(self.copy, 3),
            "command": "python benchmarks/real_programs.py --naive benchmarks/naive/naive.cu"
            + (f" --arch {self.options.arch}" if self.options.arch else ""),
        }
        if self.options.out is not None:
            write_report(self.options.out, about, [asdict(row) for row in self.rows])


def timed(row: ProgramRow, starts: Sequence[str], folder: Path, run: Run) -> list[ProgramRow]:
    """The rows of all starts of a program, timed."""
    rows = [replace(row, start=start) for start in starts]
    try:
        program = compiled(row, folder, run.options.arch)
        for own in rows:
            measured(own, program, run.gpu, run.copy, run.options.least)
            import_module("cupy").get_default_memory_pool().free_all_blocks()
        program.close()
    except Exception as error:
        for own in rows:
            own.error = own.error or described(error)
    return rows


def note_bits(rows: Sequence[ProgramRow], equal: Future[bool]) -> None:
    """Note in the rows of a program whether bits are equal, or why they were not compared."""
    for row in rows:
        try:
            row.equal_bits = equal.result()
        except Exception as error:
            row.error = f"bits not compared: {described(error)}"


def compare(run: Run, pool: ProcessPoolExecutor, done: Sequence[list[ProgramRow]]) -> None:
    """Compare the bits of timed programs, in processes, as long as there is time."""
    equal: dict[Future[bool], list[ProgramRow]] = {
        pool.submit(checked, rows[0], run.options.folder, run.options.arch): rows for rows in done
    }
    try:
        for each in as_completed(equal, run.options.bits):
            note_bits(equal[each], each)
            run.note(equal[each])
    except TimeoutError:
        print("no time for more comparisons of bits", flush=True)


def rows_of(options: argparse.Namespace) -> list[ProgramRow]:
    """The rows of the programs named, with schedules of a file, where the file has one."""
    rows = [
        ProgramRow(name, element, domain_of(name, element), "random", order)
        for name in options.programs or (*PROGRAMS, *SYSTEMS)
        for order in ORDERS.get(name, ("flags",))
        for element in options.elements
    ]
    if options.chosen is None:
        return rows
    known = {
        (each["program"], each["dtype"], each["fp_reassoc"]): each
        for each in json.loads(options.chosen.read_text())["rows"]
    }
    for row in rows:
        if each := known.get((row.program, row.dtype, row.fp_reassoc)):
            row.schedule, row.inside, row.depth = each["schedule"], each["inside"], each["depth"]
            row.given = True
    return rows


def choose(options: argparse.Namespace, rows: list[ProgramRow]) -> None:
    """Choose schedules for an H200, and write the file of rows after each."""
    done: list[dict[str, Any]] = []
    about = {"commit": options.commit or commit(), "device": "none, for an H200"}
    with ProcessPoolExecutor(min(options.processes, len(rows))) as pool:
        for each in as_completed(
            pool.submit(prepared, row, options.folder, options.arch or AHEAD) for row in rows
        ):
            done.append(asdict(each.result()))
            write_report(options.choose, about, done)


def go_ahead(options: argparse.Namespace, rows: Sequence[ProgramRow]) -> None:
    """Compile the programs, then small programs for comparing bits."""
    naive = NaiveKernels(options.naive, (), options.folder / "naive")
    with ProcessPoolExecutor(min(options.processes, len(rows))) as pool:
        for each in as_completed(
            pool.submit(prepared, row, options.folder, options.arch or AHEAD) for row in rows
        ):
            row = each.result()
            print(row.program, row.dtype, row.error or row.schedule, flush=True)
            if not row.error:
                pool.submit(made_ahead, row, options.folder, options.arch or AHEAD)
    naive.wait()


def in_time(compiling: Sequence[Future[ProgramRow]], run: Run) -> Iterator[ProgramRow]:
    """The rows of programs as they are compiled, as long as there is time."""
    try:
        for each in as_completed(compiling, max(run.left, 0.0)):
            if run.left > 0:
                yield each.result()
    except TimeoutError:
        print("no time for more programs", flush=True)
    for each in compiling:
        each.cancel()


def main() -> None:
    options = arguments()
    rows = rows_of(options)
    programs = list(dict.fromkeys(row.program for row in rows))
    if options.choose is not None:
        choose(options, rows)
        return
    if options.ahead:
        go_ahead(options, rows)
        return
    # All processes begin here: a process that begins behind the GPU has no GPU.
    with ProcessPoolExecutor(min(options.processes, len(rows))) as pool:
        compiling = [pool.submit(prepared, row, options.folder, options.arch) for row in rows]
        naive = NaiveKernels(options.naive, programs, options.folder / "naive")
        run, done = Run(options, device(), 0.0, [], naive), list[list[ProgramRow]]()
        with run.gpu.current():
            run.copy = copy_bandwidth(run.gpu)
            for row in in_time(compiling, run):
                if naive.is_built:
                    naive.time()
                if row.error:
                    run.note([row])
                    continue
                pool.submit(assembled, row, options.folder, options.arch)
                found = timed(row, options.starts, options.folder, run)
                run.note(found)
                done += [found] if found[0].gpts_per_s else []
            naive.time()
            run.note([])
        # Comparisons use the GPU, and come behind all timings.
        compare(run, pool, done)
        pool.shutdown(wait=False, cancel_futures=True)


if __name__ == "__main__":
    main()
