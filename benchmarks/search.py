"""
The quality of the compiler's choice: every compared schedule, measured.

    python benchmarks/search.py --out benchmarks/results/h200-search.json j2d5pt:f64:8352x8352 ...

The schedules of a row are the cost model's candidates, at every depth; of many candidates, the ones
of the highest prediction, the choice first. Several processes assemble the kernels ahead of the
measurements.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from measure import Bench, commit
from rich.console import Console
from rich.table import Table
from rows import parse_row, source
from timing import launch_times
from xdsl.dialects.builtin import ModuleOp

import timetile
from timetile.dialects.tile.schedule import Schedule, ScheduleAttr
from timetile.passes.scheduling.candidates import Trials
from timetile.passes.scheduling.schedule_space import schedules
from timetile.passes.targets.target import NAMES, target_named
from timetile.runtime.device.gpu import device
from timetile.runtime.kernels.loops import loops_of
from timetile.runtime.kernels.of_program import raise_program
from timetile.runtime.kernels.options import Options
from timetile.runtime.loading.modules import load
from timetile.runtime.program.compiled_program import CompiledProgram, Executor

MOST = 300
"""Schedules of a row: in three dimensions several hundred are compared."""

Trial = tuple[int, Schedule]
"""A depth and a schedule."""


@dataclass(frozen=True)
class Case:
    """A program of the benchmarks."""

    name: str
    element: str
    domain: tuple[int, ...]
    target: str
    """The architecture or the part of the compared schedules."""

    @cached_property
    def text(self) -> str:
        return source(self.name, self.domain, self.element)[0]

    def raised(self) -> ModuleOp:
        return raise_program(load(self.text), Options(halos="common"))

    def trials(self, most: int, *, spilled: bool) -> list[tuple[Trial, float]]:
        """
        At most a given number of the compiler's candidates, with predictions (GCells/s), the choice
        first. `spilled`: with the schedules left out because of registers.
        """
        module = self.raised()
        (loop,) = loops_of(module)
        trials = Trials(loop, module, target_named(self.target))
        considered = list(schedules(loop, trials.target))
        found = trials.compared(None, considered).found
        if spilled:
            known = {(c.depth, c.schedule) for c in found}
            more = trials.spilling().compared(None, considered).found
            found += [c for c in more if (c.depth, c.schedule) not in known]
        chosen, *others = [((c.depth, c.schedule), c.cost.gcells_per_second) for c in found]
        others.sort(key=lambda trial: -trial[1])
        return [chosen, *others[: most - 1]]

    def compiled(self, trial: Trial, executor: Executor) -> CompiledProgram:
        """The program with a schedule of our own."""
        depth, schedule = trial
        module = self.raised()
        loops_of(module)[0].schedule = ScheduleAttr(schedule)
        return timetile.compile(
            module, executor=executor, depth=depth, arch=self.target, halos="common"
        )


def assemble(case: Case, trial: Trial) -> None:
    """Put the deepest kernel of a schedule into the cache."""
    program = case.compiled(trial, "simt")
    program.kernels.kernel(program.kernels.facts[0][0].name)


def search(bench: Bench, case: Case, trials: Sequence[tuple[Trial, float]]) -> Any:
    """All schedules of a row, measured."""
    fields = bench.prepare(case.name, case.element, case.domain)
    rows: list[dict[str, Any]] = []
    for trial, predicted in trials:
        program = case.compiled(trial, "gpu")
        deepest = program.kernels.facts[0][0]
        times = launch_times(program, deepest, fields, 7)
        cells = int(np.prod(case.domain)) * deepest.steps
        kernel = program.kernels.kernel(deepest.name)
        rows.append(
            {
                "depth": trial[0],
                "schedule": str(ScheduleAttr(trial[1])),
                "predicted": round(predicted, 1),
                "gcells_per_s": round(cells / float(np.median(times)) / 1e6, 1),
                "registers": kernel.registers,
                "spill_bytes": kernel.spill_bytes,
            }
        )
        program.runner(0).close()
    best = max(rows, key=lambda row: row["gcells_per_s"])
    return {
        "stencil": case.name,
        "dtype": case.element,
        "domain": list(case.domain),
        "schedules": len(rows),
        "chosen": rows[0],
        "best": best,
        "share_of_best": round(rows[0]["gcells_per_s"] / best["gcells_per_s"], 3),
        "all": rows,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", nargs="+", help="stencil:dtype:domain")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--commit", default=None)
    parser.add_argument("--target", choices=NAMES, default="h200", help="the GPU that measures")
    parser.add_argument("--processes", type=int, default=14)
    parser.add_argument("--most", type=int, default=MOST, help="schedules of a row")
    parser.add_argument(
        "--spilled", action="store_true", help="also schedules that may not fit the registers"
    )
    options = parser.parse_args()
    cases = [Case(*parse_row(text)[:3], options.target) for text in options.rows]
    trials = {case: case.trials(options.most, spilled=options.spilled) for case in cases}
    with ProcessPoolExecutor(options.processes) as pool:
        jobs = [pool.submit(assemble, c, trial) for c in cases for trial, _ in trials[c]]
        for job in jobs:
            job.result()
    gpu = device()
    bench = Bench(gpu)
    rows: list[Any] = []
    table = Table(
        "stencil", "dtype", "schedules", "chosen", "GCells/s", "best", "GCells/s", "share"
    )
    with gpu.current():
        for case in cases:
            row = search(bench, case, trials[case])
            rows.append(row)
            chosen, best = row["chosen"], row["best"]
            table.add_row(
                case.name, case.element, str(row["schedules"]), f"T{chosen['depth']}",
                f"{chosen['gcells_per_s']:.0f}", f"T{best['depth']}", f"{best['gcells_per_s']:.0f}",
                f"{row['share_of_best']:.2f}",
            )  # fmt: skip
            report = {"device": gpu.name, "commit": options.commit or commit(), "rows": rows}
            options.out.write_text(json.dumps(report, indent=1) + "\n")
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
