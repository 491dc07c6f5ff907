"""
Measure the published systems by name, beside the default and the authors' own code.

    python benchmarks/systems.py --out benchmarks/results/systems.json
    python benchmarks/systems.py --only ebisu,an5d:star2d --budget 100 --out systems.json
    python benchmarks/systems.py --compile-for h100-sxm

A row runs a program of a paper on the paper's domain through the public interface, once with the
pipeline by name and once with the default, on equal cells in GPU memory: the best of three long
runs. Both must leave the same bits in all cells. `ratio` is the pipeline's speed over the authors'.
`ceiling` is the speed of the default's kernel if its busiest resource, `ceiling_by`, never waited
(`ceilings.py`).

Programs are compiled by processes, each once; a row is timed as soon as its programs are compiled,
and written at once: an ended run keeps its rows. `--only` names the beginnings of rows
(`system:program:dtype`); rows in the output that are not measured anew stay. `--compile-for` needs
no GPU: all programs are compiled for a target, and the seconds and registers of each are printed; a
later run with the same `--target` and `--folder` compiles none of them again.
`--resume` leaves out the rows that the output has at the commit. `--trial` gives a row of the table
another pipeline, and may be repeated; trials are printed, and not written:

    python benchmarks/systems.py --trial 'an5d:star2d1r:f32:16384x16384:an5d{warps=8}'
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any, cast

from measure import commit
from reports import write_report
from rich.console import Console
from rows import described
from system_compiling import Compilations, compile_alone, jobs_of
from system_rows import SystemCase, system_cases
from system_timing import Timer
from timing import copy_bandwidth

from timetile.runtime.cache.store import Cache
from timetile.runtime.device.gpu import device
from timetile.runtime.machine.driver import checked
from timetile.runtime.program.compile import target_text


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
    default_registers: int = 0
    default_spilled_bytes: int = 0
    default_schedule: str = ""
    ceiling: float = 0.0
    ceiling_by: str = ""
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

    def measure(self, case: SystemCase, compiled: Compilations, timer: Timer) -> None:
        """Describe the pipeline's kernel, and time both programs of the row's case."""
        named, default = map(compiled.made, jobs_of(case))
        self.error = named.error or default.error
        self.depth, self.default_depth = named.depth, default.depth
        self.registers, self.schedule = named.registers, named.schedule
        self.spilled_bytes, self.shared_bytes = named.spilled_bytes, named.shared_bytes
        self.default_registers, self.default_schedule = default.registers, default.schedule
        self.default_spilled_bytes = default.spilled_bytes
        self.ceiling, self.ceiling_by = default.ceiling, default.ceiling_by
        if default.error:
            return
        try:
            if named.error:
                self.default_gcells_per_s = timer.measure_default(case)
                return
            speeds = timer.measure(case)
        except Exception as error:
            self.error = described(error)
            return
        self.gcells_per_s, self.default_gcells_per_s, self.equal_bits = speeds
        if self.paper_gcells_per_s:
            self.ratio = round(self.gcells_per_s / self.paper_gcells_per_s, 3)
            self.default_ratio = round(self.default_gcells_per_s / self.paper_gcells_per_s, 3)


def chosen(cases: Sequence[SystemCase], only: str | None, *, everything: bool) -> list[SystemCase]:
    """
    The cases that an option names, in the order of the names, or the main ones, or all: cases with
    an authors' figure first.
    """
    if only is not None:
        named = (case for name in only.split(",") for case in cases if case.key.startswith(name))
        return list(dict.fromkeys(named))
    asked = [case for case in cases if everything or case.is_main]
    return sorted(asked, key=lambda case: not case.papers)


def trial(text: str) -> SystemCase:
    """The row of the table with a beginning, and another pipeline. Raises ValueError for no row."""
    beginning, _, last = text.partition("{")
    *names, pipeline = beginning.split(":")
    fast = last.endswith("}:fast")
    for case in system_cases():
        if case.key.startswith(":".join(names) + ":") and (case.fp_division == "fast") == fast:
            options = last.removesuffix(":fast")
            return replace(case, pipeline=f"{pipeline}{{{options}", technique="trial")
    raise ValueError(f"no row of the table begins as {text!r}")


def kept_rows(path: Path | None, rows: Iterable[SystemRow]) -> list[dict[str, Any]]:
    """
    The rows of an earlier output, with the rows measured now in their places: in the order of the
    table, and rows that left the table at the end.
    """
    known: dict[tuple[Any, ...], dict[str, Any]] = {}
    if path is not None and path.is_file():
        before = cast(list[dict[str, Any]], json.loads(path.read_text())["rows"])
        known = {row_key(row): row for row in before}
    known |= {row_key(asdict(row)): asdict(row) for row in rows}
    table = (row_key(asdict(SystemRow.of(case))) for case in system_cases())
    ordered = [row for key in table if (row := known.pop(key, None)) is not None]
    return [*ordered, *known.values()]


def without_measured(cases: Sequence[SystemCase], path: Path, commit: str) -> list[SystemCase]:
    """The cases without a row of a commit in an output."""
    rows = cast(list[dict[str, Any]], json.loads(path.read_text())["rows"])
    measured = {row_key(row) for row in rows if row["commit"] == commit and not row["error"]}
    return [case for case in cases if row_key(asdict(SystemRow.of(case))) not in measured]


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
    parser.add_argument("--compile-for", metavar="TARGET", help="compile alone, without a GPU")
    parser.add_argument("--target", help="a target by name, not the facts of the GPU")
    parser.add_argument("--trial", action="append", default=[], help="a row's other pipeline")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--commit", default=None)
    parser.add_argument("--resume", action="store_true", help="rows not in the output alone")
    parser.add_argument("--budget", type=float, default=500, help="seconds; no row begins later")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--folder", type=Path, default=Path("build/systems-cache"))
    return parser.parse_args()


def print_compiled(compiled: Compilations, console: Console) -> None:
    """Print what each program took to compile, and its deepest kernel."""
    total = 0.0
    for case in compiled.as_done():
        for name, job in zip(("named", "default"), jobs_of(case)):
            made = compiled.made(job)
            total += made.seconds
            line = json.dumps({"row": case.key, "program": name, **asdict(made)})
            console.print(line, markup=False, highlight=False, soft_wrap=True)
    console.print(f"{total:.0f} s of compiling, of which the rows of one default count each")


def measure_all(
    compiled: Compilations, timer: Timer, options: argparse.Namespace, console: Console
) -> None:
    """Time the rows as they are compiled, and write each, until the given seconds are over."""
    gpu, began, said = device(), options.began, options.commit or commit()
    about: dict[str, Any] = {
        "device": gpu.name,
        "driver": int(checked(gpu.cuda.cuDriverGetVersion())),
        "copy_tb_per_s": round(copy_bandwidth(gpu), 3),
        "commit": said,
        "command": "python benchmarks/systems.py",
    }
    for case in compiled.as_done():
        if time.perf_counter() - began > options.budget:
            console.print(f"ended after {options.budget:.0f} s")
            return
        row = SystemRow.of(case)
        row.device, row.commit = gpu.name, said
        row.paper_gcells_per_s, row.paper_device = case.paper(gpu.name)
        row.measure(case, compiled, timer)
        line = json.dumps(asdict(row))
        console.print(line, markup=False, highlight=False, soft_wrap=True)
        if options.out is not None and case.technique != "trial":
            write_report(options.out, about, kept_rows(options.out, [row]))


def main() -> None:
    options = arguments()
    options.began = time.perf_counter()
    console = Console(width=200)
    trials = [trial(text) for text in options.trial]
    cases = chosen(system_cases(), options.only, everything=options.all)
    if trials:
        cases = [*trials, *cases] if options.only or options.all else trials
    if options.resume:
        cases = without_measured(cases, options.out, options.commit or commit())
    if options.list:
        for case in cases:
            console.print(case.key, markup=False, highlight=False, soft_wrap=True)
        return
    folder: Path = options.folder
    # The facts of the GPU are read once: processes that measure them side by side disagree.
    arch = options.compile_for or options.target or target_text(None, Cache(folder), 0)
    with ProcessPoolExecutor(options.processes, get_context("spawn"), compile_alone) as pool:
        compiled = Compilations(pool, cases, arch, folder)
        if options.compile_for:
            print_compiled(compiled, console)
            return
        gpu = device()
        with gpu.current():
            timer = Timer(gpu, arch, folder)
            measure_all(compiled, timer, options, console)
            timer.pairs.free()
        pool.shutdown(wait=True, cancel_futures=True)
    console.print(f"done in {time.perf_counter() - options.began:.0f} s")


if __name__ == "__main__":
    main()
