"""
Weak and strong scaling on the GPUs of a host.

    python benchmarks/several_gpus.py --gpus 2 4 --out benchmarks/results/several-gpus.json
    python benchmarks/several_gpus.py --gpus 2 --only j3d7pt:f32 --sizes fill --every 6
    python benchmarks/several_gpus.py --gpus 2 4 8 --strong 4 --budget 500 --out build/scaling.json
    python benchmarks/several_gpus.py --arch h200 --out build/compiled.json

A case is a program, a type and a size. N GPUs run a domain N times as long along the first axis as
the domain of one GPU (weak), and the domain of `--strong` GPUs (strong); rows with `ranks` 1 are
one GPU on its own domain. Both runs of a pair make equal steps, in whole launches, in turn, on
fields placed once, of `SECONDS` or more, without transfers. Clocks wander by some percent, and the
median of `ROUNDS` ratios of neighbouring runs counts; speeds are medians, too. GPUs differ by some
percent, and parts that meet run as the slowest: `slowest_gpts_per_s` is the slowest GPU alone on
the domain of one, and `weak_of_slowest` the efficiency against it. `equal_bits`: after some
launches from equal cells (on small domains as graphs), the planes on both sides of each cut and
others have equal bits on N GPUs and on one; for weak scaling on more than two GPUs, on the domain
of strong scaling.

Processes compile all kernels, others prepare the cases, and one case at a time has the GPUs. With
`--arch` all kernels are made for a part by name, with the seconds of each run, and nothing runs.
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
from math import lcm
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from measure import commit
from placed_runs import PlacedRun, Run, prepared
from rows import described

from timetile.runtime.device.gpu import device
from timetile.runtime.program.compiled_program import CompiledProgram
from timetile.runtime.program.parted_program import PartedProgram
from timetile.runtime.ranks.loop_schedules import deepest_of

ROUNDS = 5
"""The number of timed runs."""

SECONDS = {"fill": 0.2, "small": 0.08}
"""The least time of a timed run, unless given."""

SHORT_LAUNCHES = 8

CHECKED_LAUNCHES, REST = {"fill": 8, "small": 100}, 5
"""A comparison of bits runs so many launches, and some steps more."""

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


@dataclass(frozen=True)
class Case:
    """The runs of a program, a type and a size on some numbers of GPUs."""

    program: str
    dtype: str
    size: str
    gpus: tuple[int, ...]
    per_gpu: int = 1
    every: int | None = None
    """Steps between two exchanges; chosen unless given."""
    ring: bool = False
    """Whether the domain of several GPUs is periodic: each part has two neighbours."""
    strong: int = 2
    """The GPUs whose domain strong scaling divides."""
    seconds: float = 0.3
    """The least time of a timed run, as predicted by a short one."""

    def run(self, parts: int, gpus: int, first: int = 0) -> Run:
        """A run on the domain of `parts` GPUs, from GPU number `first` on."""
        planes, *others = DOMAINS[self.program][self.size]
        per_gpu, every = (self.per_gpu, self.every) if gpus > 1 else (1, None)
        domain = (planes * parts, *others)
        ring = self.ring and gpus > 1
        return Run(self.program, self.dtype, domain, gpus, per_gpu, first, every, ring)

    @property
    def runs(self) -> list[Run]:
        """Each GPU alone, one on each domain, and N GPUs on the domains of both ways."""
        ways = [(1, 1, 0), (self.strong, 1, 0)]
        for gpus in self.gpus:
            ways += [(self.strong, gpus, 0), (gpus, gpus, 0)]
        ways += [(1, 1, number) for number in range(1, max(self.gpus))]
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
        alone, speeds = self.run(1, 1), list[float]()
        others = [self.run(1, 1, number) for number in range(1, max(self.gpus))]
        slowest = min(
            (single(programs[other], other, self.seconds) for other in others), default=float("inf")
        )
        for gpus in self.gpus:
            one, many = self.run(self.strong, 1), self.run(self.strong, gpus)
            checked = CHECKED_LAUNCHES[self.size]
            speed, base, ratio, same = pair(programs, one, many, self.seconds, checked)
            found = exchange_of(programs[many])
            yield self.row(many, speed, base, same, strong_speedup=ratio) | found
            many = self.run(gpus, gpus)
            speed, base, ratio, _ = pair(programs, alone, many, self.seconds)
            least, found = min(base, slowest), exchange_of(programs[many])
            yield found | self.row(
                many, speed, base, same, weak_efficiency=ratio / gpus,
                slowest_gpts_per_s=least, weak_of_slowest=ratio * base / least / gpus,
            )  # fmt: skip
            speeds.append(base)
        yield self.row(alone, max(speeds), max(speeds), same=True, weak_efficiency=1.0)

    def row(
        self, run: Run, speed: float, base: float, same: bool, **share: float
    ) -> dict[str, Any]:
        """A row of a run."""
        rounded = {name: round(value, 4) for name, value in share.items()}
        return {
            "program": run.program, "dtype": run.dtype, "size": self.size,
            "domain": list(run.domain), "ranks": run.gpus, "parts_per_gpu": run.per_gpu,
            "device": device(0).name, "least_seconds": self.seconds, "gpts_per_s": round(speed, 2),
            "one_gpts_per_s": round(base, 2), **rounded, "equal_bits": same,
            **({} if run.every is None else {"exchange_every": run.every}),
        }  # fmt: skip


def exchange_of(program: CompiledProgram) -> dict[str, Any]:
    """The chosen exchange of a program in parts, as entries of a row."""
    if not isinstance(program, PartedProgram) or program.exchange is None:
        return {}
    chosen = program.exchange.chosen
    return {"launches_an_exchange": chosen.launches, "stores_rims": chosen.stores_beside}


def pair(
    programs: Programs, one: Run, many: Run, seconds: float, checked: int = 0
) -> tuple[float, float, float, bool]:
    """
    The speeds of many GPUs and of one GPU, the ratio of both, and whether both end with equal bits
    after `checked` launches.
    """
    several, judge = PlacedRun(many, programs[many]), PlacedRun(one, programs[one])
    try:
        steps = checked * depth_of(several) + REST
        same = checked > 0 and have_equal_bits(several, judge, steps)
        speed, alone, ratio = in_turn(several, judge, seconds)
    finally:
        judge.close()
        several.close()
    return speed, alone, ratio, same


def have_equal_bits(several: PlacedRun, judge: PlacedRun, steps: int) -> bool:
    """Whether planes around the cuts, and others, have equal bits after some steps."""
    assert several.parted is not None
    planes = several.program.parameters[0].shape[0]
    cuts = several.parted.decomposition.faces[0]
    near = {cut + far for cut in cuts for far in range(-2, 3)}
    numbers = [each for each in sorted(near | {*range(0, planes, planes // 4)}) if each >= 0]
    for run in (several, judge):
        run.run(steps)
    pairs = zip(several.planes(numbers), judge.planes(numbers), strict=True)
    return all(np.array_equal(one, other) for one, other in pairs)


def depth_of(run: PlacedRun) -> int:
    """The steps of the deepest launch."""
    if run.parted is None:
        return max(fact.steps for facts in run.program.kernels.facts for fact in facts)
    return deepest_of(run.parted.parts.schedules[False])


def enough_steps(runs: Sequence[PlacedRun], seconds: float) -> int:
    """Steps for some seconds of each run, in whole launches of all, and an even number of them."""
    unit = 2 * lcm(*map(depth_of, runs))
    few = -(-SHORT_LAUNCHES * max(map(depth_of, runs)) // unit) * unit
    steps = few
    for run in runs:
        run.run(few)
        short, _ = run.run(few)
        steps = max(steps, int(seconds / max(short, 1e-5) * few))
    return -(-steps // unit) * unit


def usual(run: PlacedRun, steps: int) -> float:
    """The median of the speeds of some runs."""
    run.run(steps)
    return median(run.gpts_per_s(steps, run.run(steps)[0]) for _ in range(ROUNDS))


def single(program: CompiledProgram, run: Run, seconds: float) -> float:
    """The speed of a run on a GPU alone."""
    placed = PlacedRun(run, program)
    try:
        return usual(placed, enough_steps([placed], seconds))
    finally:
        placed.close()


def in_turn(several: PlacedRun, judge: PlacedRun, seconds: float) -> tuple[float, float, float]:
    """The speeds of two runs of equal numbers of steps, in turn, and the ratio of both."""
    steps = enough_steps((several, judge), seconds)
    # The first run of a number of steps plans, and loads kernels.
    timed = [
        tuple(run.gpts_per_s(steps, run.run(steps)[0]) for run in (several, judge))
        for _ in range(ROUNDS + 1)
    ][1:]
    speeds, alone = zip(*timed)
    return median(speeds), median(alone), median(many / one for many, one in timed)


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
        self.known: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
        self.rows: list[dict[str, Any]] = self.known.get("rows", [])

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
            "program", "dtype", "size", "domain", "ranks", "parts_per_gpu", "exchange_every"
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
    parser.add_argument("--strong", type=int, default=2, help="GPUs whose domain is divided")
    parser.add_argument("--seconds", type=float, help="least time of a timed run")
    parser.add_argument("--arch", default="", help="compile for a part, and run nothing")
    parser.add_argument("--budget", type=float, default=190.0, help="no case is waited for longer")
    parser.add_argument("--compiling", type=int, default=max(2, (os.cpu_count() or 2) * 3 // 4))
    parser.add_argument("--preparing", type=int, default=12, help="processes with cases")
    parser.add_argument("--commit", default=commit(), help="the commit of the sources")
    parser.add_argument("--out", type=Path, required=True)
    return parser.parse_args()


def cases(given: argparse.Namespace) -> list[Case]:
    """The cases, cheap programs first."""
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
