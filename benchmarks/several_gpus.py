"""
Weak and strong scaling on the GPUs of a host.

    python benchmarks/several_gpus.py --gpus 2 4 --out benchmarks/results/several-gpus.json
    python benchmarks/several_gpus.py --gpus 2 --only j3d7pt:f32 --sizes fill --every 6
    python benchmarks/several_gpus.py --gpus 2 4 8 --strong 4 --budget 500 --out build/scaling.json
    python benchmarks/several_gpus.py --arch h200 --out build/compiled.json

A case is a program, a type and a size. N GPUs run a domain N times as long along the first axis as
the domain of one GPU (weak), and the domain of `--strong` GPUs (strong); rows with `ranks` 1 are
one GPU on its own domain. `scaling_cases.py` has the runs, the rounds and the meaning of all
entries. `equal_bits`: after some launches from equal cells (on small domains as graphs), the planes
on both sides of each cut and others have equal bits on N GPUs and on one; for weak scaling on more
than two GPUs, on the domain of strong scaling.

Processes compile all kernels, others prepare the cases, and one case at a time has the GPUs. With
`--arch` all kernels are made for a part by name, with the seconds of each run, and nothing runs.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

from measure import commit
from placed_runs import Run, prepared
from reports import versions
from rows import described
from scaling_cases import DOMAINS, ROUNDS, Case

from timetile.runtime.machine.driver import Unavailable, checked, driver

SECONDS = {"fill": 0.1, "small": 0.05}
"""The least time of a timed run, unless given."""

GATE: dict[str, Any] = {}
"""In a process with cases, the lock of the case that has the GPUs."""


def made_kernels(run: Run, arch: str = "") -> str:
    """Make the kernels of a run, in a process. Returns an error's text."""
    try:
        prepared(run, arch)
    except Exception as error:
        return described(error)
    return ""


def take_gate(gate: Any) -> None:
    """Keep the lock of the GPUs."""
    GATE["lock"] = gate


def rows_of(case: Case) -> list[dict[str, Any]]:
    """Prepare all runs, and measure them as soon as the GPUs are free. The rows."""
    programs = {run: prepared(run) for run in case.runs}
    with GATE["lock"]:
        start = time.monotonic()
        rows = list(case.rows(programs))
        seconds = time.monotonic() - start
    return [{**row, "seconds": round(seconds, 1)} for row in rows]


def measured(case: Case) -> list[dict[str, Any]]:
    """The rows of a case, in a process."""
    try:
        return rows_of(case)
    except Exception as error:
        return [{**asdict(case), "error": described(error)}]


def call_of() -> dict[str, Any]:
    """The command of this call, the driver, and the versions of packages."""
    cuda = driver()
    number = 0 if isinstance(cuda, Unavailable) else int(checked(cuda.cuDriverGetVersion()))
    command = " ".join(["python", *without_places(sys.argv)])
    return {"command": command, "driver": number, "versions": versions()}


def without_places(words: Sequence[str]) -> list[str]:
    """A command without the file and the commit, which differ from machine to machine."""
    named = ("--out", "--commit")
    pairs = zip(["", *words], words)
    return [word for before, word in pairs if word not in named and before not in named]


class Report:
    """
    The rows, written to a file as they come. `calls`: by commit, the commands that rows came from,
    with their versions.
    """

    def __init__(self, path: Path, of: str):
        self.path, self.commit = path, of
        self.known: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
        self.rows: list[dict[str, Any]] = self.known.get("rows", [])
        self.known.setdefault("calls", {}).setdefault(of, []).append(call_of())

    def add(self, row: dict[str, Any]) -> None:
        """Write a row, in place of an older row of equal kind."""
        row = {**row, "commit": self.commit}
        self.rows = [each for each in self.rows if self.key(each) != self.key(row)] + [row]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps(self.known | {"rows": self.rows}, indent=1) + "\n")
        print(json.dumps(row), flush=True)

    @staticmethod
    def key(row: dict[str, Any]) -> tuple[Any, ...]:
        """What a row is about."""
        same = (
            "program", "dtype", "size", "domain", "ranks", "parts_per_gpu", "exchange_every",
            "parts",
        )  # fmt: skip
        # A row of one GPU is the base of several rows.
        return (*(str(row.get(name)) for name in same), "strong_speedup" in row)


def options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Weak and strong scaling on GPUs.")
    parser.add_argument("--gpus", type=int, nargs="+", default=[2])
    parser.add_argument("--only", nargs="*", default=[], metavar="PROGRAM[:TYPE]")
    parser.add_argument("--sizes", nargs="*", default=["fill", "small"])
    parser.add_argument("--per-gpu", type=int, nargs="*", default=[1], help="parts on each GPU")
    parser.add_argument("--every", type=int, nargs="*", default=[], help="steps between exchanges")
    parser.add_argument("--parts", help="of one number of GPUs along each axis, as 2x2x1")
    parser.add_argument("--strong", type=int, default=2, help="GPUs whose domain is divided")
    parser.add_argument("--seconds", type=float, help="least time of a timed run")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--arch", default="", help="compile for a part, and run nothing")
    parser.add_argument("--budget", type=float, default=190.0, help="no case is waited for longer")
    parser.add_argument("--compiling", type=int, default=max(2, (os.cpu_count() or 2) * 3 // 4))
    parser.add_argument("--preparing", type=int, default=12, help="processes with cases")
    parser.add_argument("--commit", default=commit(), help="the commit of the sources")
    parser.add_argument("--out", type=Path, required=True)
    return parser.parse_args()


def cases(given: argparse.Namespace) -> list[Case]:
    """The cases, cheap programs first."""
    parts = tuple(map(int, given.parts.split("x"))) if given.parts else None
    return [
        Case(
            program,
            dtype,
            size,
            tuple(given.gpus),
            per_gpu,
            every,
            strong=given.strong,
            seconds=given.seconds or SECONDS[size],
            rounds=given.rounds,
            parts=parts,
        )
        for size in given.sizes
        for dtype in ("f32", "f64")
        for program in DOMAINS
        for per_gpu in (given.per_gpu if size == "fill" else [1])
        for every in given.every or [None]
        if not given.only or program in given.only or f"{program}:{dtype}" in given.only
    ]


def compiled_only(wanted: Sequence[Case], arch: str, processes: int) -> None:
    """Make the kernels of all runs for a part, in processes, and print the seconds of each."""
    spawn = multiprocessing.get_context("spawn")
    start, runs = time.monotonic(), dict.fromkeys(run for case in wanted for run in case.runs)
    with ProcessPoolExecutor(processes, mp_context=spawn) as pool:
        found = {run: pool.submit(timed_kernels, run, arch) for run in runs}
        for run, future in found.items():
            problem, seconds = future.result()
            print(json.dumps({**asdict(run), "seconds": seconds, "error": problem}), flush=True)
    print(f"{len(runs)} runs compiled in {time.monotonic() - start:.0f} s", flush=True)


def timed_kernels(run: Run, arch: str) -> tuple[str, float]:
    """An error's text, and the seconds that all kernels of a run took."""
    start = time.monotonic()
    problem = made_kernels(run, arch)
    return problem, round(time.monotonic() - start, 1)


def main() -> None:
    """Compile in processes, and measure each case once its kernels are there."""
    given, start = options(), time.monotonic()
    wanted = cases(given)
    if given.arch:
        compiled_only(wanted, given.arch, given.compiling)
        return
    report = Report(given.out, given.commit)
    spawn = multiprocessing.get_context("spawn")
    gate = spawn.Lock()
    making = ProcessPoolExecutor(given.compiling, mp_context=spawn)
    measuring = ProcessPoolExecutor(given.preparing, spawn, take_gate, (gate,))
    runs = list(dict.fromkeys(run for case in wanted for run in case.runs))
    made = {run: making.submit(made_kernels, run) for run in runs}
    waiting, started = list(wanted), dict[Case, Future[list[dict[str, Any]]]]()
    while (waiting or started) and time.monotonic() - start < given.budget:
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
        report.add({**asdict(case), "error": f"not measured in {given.budget:g} s"})
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
