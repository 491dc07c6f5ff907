"""
Weak and strong scaling on the GPUs of a host.

    python benchmarks/several_gpus.py --gpus 2 4 --out benchmarks/results/several-gpus.json
    python benchmarks/several_gpus.py --gpus 2 --only j3d7pt:f32 --sizes fill

A case is a program, a type, a size and a number N of GPUs. N GPUs run a domain N times as long
along the first axis as the domain of one GPU (weak), and the domain of two GPUs (strong); rows with
`ranks` 1 are one GPU on its own domain. Runs of a case take turns, on fields placed once; the best
of `ROUNDS` counts, without transfers. `equal_bits`: after over `CHECKED_LAUNCHES` launches from
equal cells, the planes on both sides of each cut and others have equal bits on N GPUs and on one.

Processes compile all kernels, others prepare the cases, and one case at a time has the GPUs.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from measure import commit
from placed_runs import PlacedRun, Run, prepared
from rows import described

from timetile.runtime.device.gpu import device
from timetile.runtime.program.compiled_program import CompiledProgram
from timetile.runtime.ranks.part_kernels import deepest_of

SECONDS, ROUNDS = 0.06, 3
"""The least time of a timed run, as predicted by a short one, and the number of timed runs."""

SHORT_STEPS = 64

CHECKED_LAUNCHES, REST = 70, 5
"""A comparison of bits runs so many launches, as graphs, and some steps more."""

DOMAINS: dict[str, dict[str, tuple[int, ...]]] = {
    "j2d5pt": {"fill": (8192, 16384), "small": (1024, 2048)},
    "j3d7pt": {"fill": (512, 1024, 1024), "small": (128, 256, 256)},
    "star25": {"fill": (512, 768, 768), "small": (128, 256, 256)},
    "yee3": {"fill": (384, 512, 512), "small": (96, 192, 192)},
    "elastic_3d_so4": {"fill": (320, 384, 384), "small": (96, 192, 192)},
}
"""The domains of one GPU."""

Programs = dict[Run, CompiledProgram]

GATE: dict[str, Any] = {}
"""In a process with cases, the lock of the case that has the GPUs."""


def made_kernels(run: Run) -> str:
    """Make the kernels of a run, in a process. Returns an error's text."""
    try:
        prepared(run)
    except Exception as error:
        return described(error)
    return ""


def take_gate(gate: Any) -> None:
    """Keep the lock of the GPUs."""
    GATE["lock"] = gate


@dataclass(frozen=True)
class Case:
    """The runs of a program, a type, a size and a number of GPUs."""

    program: str
    dtype: str
    size: str
    gpus: int
    per_gpu: int = 1

    def run(self, parts: int, gpus: int) -> Run:
        """A run on the domain of `parts` GPUs."""
        first, *others = DOMAINS[self.program][self.size]
        per_gpu = self.per_gpu if gpus > 1 else 1
        return Run(self.program, self.dtype, (first * parts, *others), gpus, per_gpu)

    @property
    def runs(self) -> list[Run]:
        """One GPU on each domain, and N GPUs on the domains of two and of N."""
        ways = [(1, 1), (2, 1), (self.gpus, 1), (2, self.gpus), (self.gpus, self.gpus)]
        return [self.run(*way) for way in dict.fromkeys(ways)]

    def measure(self) -> list[dict[str, Any]]:
        """Prepare all runs, and measure them as soon as the GPUs are free. The rows."""
        programs = {run: prepared(run) for run in self.runs}
        with GATE["lock"]:
            start = time.monotonic()
            rows = list(self.rows(programs))
            seconds = time.monotonic() - start
        return [{**row, "seconds": round(seconds, 1)} for row in rows]

    def rows(self, programs: Programs) -> Iterator[dict[str, Any]]:
        """Measure strong and weak scaling."""
        one, many = self.run(2, 1), self.run(2, self.gpus)
        speed, base, same = pair(programs, one, many)
        yield self.row(many, speed, base, same, strong_speedup=speed / base)
        one, many, alone = self.run(self.gpus, 1), self.run(self.gpus, self.gpus), self.run(1, 1)
        speed, base, same = pair(programs, one, many, alone)
        yield self.row(many, speed, base, same, weak_efficiency=speed / base / self.gpus)
        yield self.row(alone, base, base, same, weak_efficiency=1.0)

    def row(
        self, run: Run, speed: float, base: float, same: bool, **share: float
    ) -> dict[str, Any]:
        """A row of a run."""
        rounded = {name: round(value, 4) for name, value in share.items()}
        return {
            "program": run.program, "dtype": run.dtype, "size": self.size,
            "domain": list(run.domain), "ranks": run.gpus, "parts_per_gpu": run.per_gpu,
            "device": device(0).name, "gpts_per_s": round(speed, 2),
            "one_gpts_per_s": round(base, 2), **rounded, "equal_bits": same,
        }  # fmt: skip


def pair(
    programs: Programs, one: Run, many: Run, base: Run | None = None
) -> tuple[float, float, bool]:
    """
    The speeds of many GPUs and of one GPU, on a domain of its own (`base`) if given, and whether
    one and many end with equal bits.
    """
    several, judge = PlacedRun(many, programs[many]), PlacedRun(one, programs[one])
    try:
        same = have_equal_bits(several, judge)
        if base is not None and base != one:
            judge.close()
            judge = PlacedRun(base, programs[base])
        speed, alone = in_turn([several, judge])
    finally:
        judge.close()
        several.close()
    return speed, alone, same


def have_equal_bits(several: PlacedRun, judge: PlacedRun) -> bool:
    """Whether planes around the cuts, and others, have equal bits after some steps."""
    assert several.parted is not None
    planes = several.program.parameters[0].shape[0]
    cuts = several.parted.decomposition.faces[0]
    near = {cut + far for cut in cuts for far in range(-4, 5)}
    numbers = [each for each in sorted(near | {*range(0, planes, planes // 9)}) if each >= 0]
    depth = deepest_of(several.parted.parts.schedules[False])
    for run in (several, judge):
        run.run(CHECKED_LAUNCHES * depth + REST)
    pairs = zip(several.planes(numbers), judge.planes(numbers), strict=True)
    return all(np.array_equal(one, other) for one, other in pairs)


def in_turn(runs: Sequence[PlacedRun]) -> list[float]:
    """The speeds of runs that take turns."""
    steps: list[int] = []
    for run in runs:
        run.run(SHORT_STEPS)
        short, _ = run.run(SHORT_STEPS)
        steps.append(max(SHORT_STEPS, int(SECONDS / max(short, 1e-5) * SHORT_STEPS)))
        # The first run of a number of steps plans, and loads kernels.
        run.run(steps[-1])
    best = [float("inf")] * len(runs)
    for _ in range(ROUNDS):
        for number, run in enumerate(runs):
            best[number] = min(best[number], run.run(steps[number])[0])
    return [run.gpts_per_s(n, seconds) for run, n, seconds in zip(runs, steps, best)]


def measured(case: Case) -> list[dict[str, Any]]:
    """The rows of a case, in a process."""
    try:
        return case.measure()
    except Exception as error:
        return [{**asdict(case), "error": described(error)}]


class Report:
    """The rows, written to a file as they come."""

    def __init__(self, path: Path, of: str):
        self.path, self.commit = path, of
        self.rows: list[dict[str, Any]] = []
        if path.exists():
            self.rows = json.loads(path.read_text())["rows"]

    def add(self, row: dict[str, Any]) -> None:
        """Write a row, in place of an older row of equal kind."""
        row = {**row, "commit": self.commit}
        self.rows = [each for each in self.rows if self.key(each) != self.key(row)] + [row]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps({"rows": self.rows}, indent=1) + "\n")
        print(json.dumps(row), flush=True)

    @staticmethod
    def key(row: dict[str, Any]) -> tuple[Any, ...]:
        """What a row is about."""
        same = ("program", "dtype", "size", "ranks", "parts_per_gpu")
        # A row of one GPU is the base of several rows.
        return *(str(row.get(name)) for name in same), "strong_speedup" in row


def options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Weak and strong scaling on GPUs.")
    parser.add_argument("--gpus", type=int, nargs="+", default=[2])
    parser.add_argument("--only", nargs="*", default=[], metavar="PROGRAM[:TYPE]")
    parser.add_argument("--sizes", nargs="*", default=["fill", "small"])
    parser.add_argument("--per-gpu", type=int, nargs="*", default=[1], help="parts on each GPU")
    parser.add_argument("--seconds", type=float, default=190.0, help="no case is waited for longer")
    parser.add_argument("--compiling", type=int, default=max(2, (os.cpu_count() or 2) * 2 // 3))
    parser.add_argument("--commit", default=commit(), help="the commit of the sources")
    parser.add_argument("--out", type=Path, required=True)
    return parser.parse_args()


def cases(given: argparse.Namespace) -> list[Case]:
    """The cases, cheap programs first."""
    return [
        Case(program, dtype, size, gpus, per_gpu)
        for gpus in given.gpus
        for size in given.sizes
        for program in DOMAINS
        for dtype in ("f32", "f64")
        for per_gpu in (given.per_gpu if size == "fill" else [1])
        if not given.only or program in given.only or f"{program}:{dtype}" in given.only
    ]


def main() -> None:
    """Compile in processes, and measure each case once its kernels are there."""
    given, start = options(), time.monotonic()
    report, wanted = Report(given.out, given.commit), cases(given)
    spawn = multiprocessing.get_context("spawn")
    gate = spawn.Lock()
    making = ProcessPoolExecutor(given.compiling, mp_context=spawn)
    measuring = ProcessPoolExecutor(6, spawn, take_gate, (gate,))
    runs = list(dict.fromkeys(run for case in wanted for run in case.runs))
    made = {run: making.submit(made_kernels, run) for run in runs}
    waiting, started = list(wanted), dict[Case, Future[list[dict[str, Any]]]]()
    while (waiting or started) and time.monotonic() - start < given.seconds:
        for case in [each for each in waiting if all(made[run].done() for run in each.runs)]:
            waiting.remove(case)
            problems = [text for run in case.runs if (text := made[run].result())]
            if problems:
                report.add({**asdict(case), "error": problems[0]})
            else:
                started[case] = measuring.submit(measured, case)
        for case in [each for each, future in started.items() if future.done()]:
            for row in started.pop(case).result():
                report.add(row)
            print(asdict(case), f"{time.monotonic() - start:.0f} s", flush=True)
        time.sleep(0.05)
    for case in (*waiting, *started):
        report.add({**asdict(case), "error": f"not measured in {given.seconds:g} s"})
    end(making, measuring)


def end(*pools: ProcessPoolExecutor) -> None:
    """End the processes of pools, whatever they do."""
    for pool in pools:
        known: dict[int, Any] = getattr(pool, "_processes", None) or {}
        processes = list(known.values())
        pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.kill()


if __name__ == "__main__":
    main()
