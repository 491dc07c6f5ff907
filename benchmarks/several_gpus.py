"""
Weak and strong scaling on the GPUs of a host.

    python benchmarks/several_gpus.py --gpus 2 --out benchmarks/results/several-gpus.json
    python benchmarks/several_gpus.py --gpus 2 --only j3d7pt:f32 --sizes fill

A case is a program, a type and the domain of one GPU. N GPUs run a domain N times as long along the
first axis (weak), and the domain of two GPUs (strong). Processes compile all kernels meanwhile, and
a domain is measured when its kernels are there. `equal_bits`: all arrays of N GPUs and of a
single GPU have equal bits, on the measured domain, or on an odd small domain (weak, N > 2).
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from measure import commit
from real_steps import PROGRAMS
from rows import described, source
from storage_types import STEPS

import timetile
from timetile.runtime.device.gpu import device
from timetile.runtime.host.arrays import is_numpy_array
from timetile.runtime.program.compiled_program import CompiledProgram
from timetile.runtime.program.parted_program import PartedProgram
from timetile.runtime.ranks.peers import as_bytes

SECONDS = 0.15
"""The least time of a timed run, as predicted by a short one."""

SHORT_STEPS = 26
ODD_STEPS = 29
ODD = {2: (301, 517), 3: (67, 45, 70)}
"""Domains for comparing bits, by the number of axes."""

DOMAINS: dict[str, dict[str, tuple[int, ...]]] = {
    "j2d5pt": {"fill": (8192, 16384), "small": (1024, 2048)},
    "j3d7pt": {"fill": (512, 1024, 1024), "small": (128, 256, 256)},
    "star25": {"fill": (512, 768, 768), "small": (128, 256, 256)},
    "yee3": {"fill": (384, 512, 512), "small": (96, 192, 192)},
    "elastic_3d_so4": {"fill": (320, 384, 384), "small": (96, 192, 192)},
}
"""The domains of one GPU."""


@dataclass(frozen=True)
class Run:
    """A program on a domain and a number of GPUs."""

    program: str
    dtype: str
    domain: tuple[int, ...]
    gpus: int
    per_gpu: int = 1
    """Parts on each GPU."""

    @property
    def text(self) -> str:
        """The program."""
        if self.program.startswith("j"):
            return source(self.program, self.domain, self.dtype)[0]
        model = STEPS[self.program] if self.program in STEPS else PROGRAMS[self.program]
        kind: Any = {"f32": "float32", "f64": "float64"}[self.dtype]
        return str(model.module(self.domain, kind))

    def compiled(self) -> CompiledProgram:
        """The program, compiled."""
        parts = [part // self.per_gpu for part in range(self.gpus * self.per_gpu)]
        many: dict[str, Any] = {} if self.gpus == 1 else {"gpus": parts}
        return timetile.compile(self.text, executor="gpu", halos="common", **many)


def make_kernels(run: Run) -> str:
    """Make all kernels of a run for the cache, in a new process. Returns an error's text."""
    try:
        program = run.compiled()
        if isinstance(program, PartedProgram):
            all_kernels = program.parts.of_parts(common=False)
            make_pieces(program)
        else:
            all_kernels = [program.kernels]
        for kernels in dict.fromkeys(all_kernels):
            for facts in kernels.facts:
                for fact in facts:
                    kernels.kernel(fact.name)
    except Exception as error:
        return described(error)
    return ""


def make_pieces(program: PartedProgram) -> None:
    """Make the kernels of launches in pieces."""
    parts = program.parts
    for number in range(len(parts.schedules[False])):
        planned = next(each for each in parts.planned(number, common=False) if each is not None)
        name = planned[1][0].name
        for beside in parts.stored_beside(number, name, common=False) or ():
            beside.kernels.kernel(name)
        for split in parts.in_pieces(number, name, common=False) or ():
            for kernels in (split.inside, *split.rims):
                kernels.kernel(name)


def arrays_of(program: CompiledProgram, dtype: str) -> list[Any]:
    """The arguments of a run: fields with cells that differ, equal in buffers that take turns."""
    made: list[Any] = []
    names = [parameter.name or "" for parameter in program.parameters]
    for parameter in program.parameters:
        if parameter.is_steps:
            made.append(1)
            continue
        # Drawing as many numbers as cells would take longer than the run.
        array = np.empty(parameter.shape, {"f32": np.float32, "f64": np.float64}[dtype])
        base = (parameter.name or "").removesuffix("_next")
        # The buffers of programs as text take turns.
        seed = sum(map(ord, base)) if "_next" in "".join(names) else 1
        array[:] = np.random.default_rng(seed).random(parameter.shape[1:], np.float32)
        array *= 1 / 8
        array[::3] *= 0.75
        array[1::7] *= 1.25
        made.append(array)
    return made


@dataclass
class Timed:
    """The speed of a run, and a digest of its arrays."""

    gpts_per_s: float
    steps: int
    arrays: list[Any]


def measured(run: Run, steps: int | None = None) -> Timed:
    """The speed of a run of `steps` steps, or of as many as take the least time of a timed run."""
    with run.compiled() as program:
        arrays = arrays_of(program, run.dtype)
        cells = float(np.prod(run.domain))
        if steps is None:
            short = program(*arrays, steps=SHORT_STEPS).seconds
            if short < SECONDS / 3:
                # Kernels are loaded by the first run.
                short = program(*arrays, steps=SHORT_STEPS).seconds
            steps = max(2 * SHORT_STEPS, int(SECONDS / max(short, 1e-5) * SHORT_STEPS))
            arrays = arrays_of(program, run.dtype)
        # The first run of a number of steps plans, and loads kernels.
        program(*arrays, steps=steps)
        result = program(*arrays, steps=steps)
        return Timed(cells * steps / result.seconds / 1e9, steps, arrays)


ON_ONE_GPU: dict[Run, Timed] = {}
"""The runs of the present program on one GPU."""


def on_one_gpu(*runs: Run) -> list[Timed]:
    """Runs on one GPU, measured once for all layouts of a program."""
    if any(run not in ON_ONE_GPU for run in runs):
        ON_ONE_GPU.clear()
        ON_ONE_GPU.update({run: measured(run) for run in runs})
    return [ON_ONE_GPU[run] for run in runs]


def have_equal_bits(one: Sequence[Any], other: Sequence[Any]) -> bool:
    """Whether all arrays have equal bits."""
    fields = [(as_bytes(a), as_bytes(b)) for a, b in zip(one, other) if is_numpy_array(a)]
    return all(np.array_equal(a, b) for a, b in fields)


class Report:
    """The rows, written to a file as they come."""

    def __init__(self, path: Path, of: str):
        self.path = path
        self.rows: list[dict[str, Any]] = []
        if path.exists():
            self.rows = json.loads(path.read_text())["rows"]
        self.about = {"device": device(0).name, "commit": of}

    def add(self, run: Run, **found: Any) -> None:
        """Write a row, in place of an older row of equal kind."""
        row = {
            "program": run.program, "dtype": run.dtype, "domain": list(run.domain),
            "ranks": run.gpus, "parts_per_gpu": run.per_gpu, **self.about, **found,
        }  # fmt: skip
        kind = "strong_speedup" if "strong_speedup" in found else "weak_efficiency"

        def key(each: dict[str, Any]) -> tuple[Any, ...]:
            same = ("program", "dtype", "domain", "ranks", "parts_per_gpu")
            return *(str(each.get(name)) for name in same), kind in each

        self.rows = [each for each in self.rows if key(each) != key(row)] + [row]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps({"rows": self.rows}, indent=1) + "\n")
        print(json.dumps(row), flush=True)


@dataclass(frozen=True)
class Case:
    """The runs of a program, a type and a size."""

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
        """All runs: on the domain of a GPU, of two GPUs and of N GPUs."""
        found = [self.run(1, 1), self.run(2, 1), self.run(2, self.gpus)]
        found += self.on_odd_domain if self.gpus > 2 else []
        return list(dict.fromkeys([*found, self.run(self.gpus, self.gpus)]))

    @property
    def on_odd_domain(self) -> list[Run]:
        """The runs on one and on N GPUs whose bits stand for the weak run's."""
        odd = ODD[len(DOMAINS[self.program]["fill"])]
        many = Run(self.program, self.dtype, odd, self.gpus, self.per_gpu)
        return [Run(self.program, self.dtype, odd, 1), many]

    def measure(self, report: Report) -> None:
        """Measure all runs, and write two rows."""
        alone, one = on_one_gpu(self.run(1, 1), self.run(2, 1))
        two = measured(self.run(2, self.gpus), one.steps)
        same = have_equal_bits(one.arrays, two.arrays)
        del two.arrays[:]
        report.add(
            self.run(2, self.gpus), size=self.size, gpts_per_s=two.gpts_per_s,
            strong_speedup=two.gpts_per_s / one.gpts_per_s, one_gpts_per_s=one.gpts_per_s,
            equal_bits=same,
        )  # fmt: skip
        weak, bits = two, same
        if self.gpus > 2:
            few, many = (measured(run, ODD_STEPS) for run in self.on_odd_domain)
            bits = have_equal_bits(few.arrays, many.arrays)
            weak = measured(self.run(self.gpus, self.gpus), alone.steps)
        report.add(
            self.run(self.gpus, self.gpus), size=self.size, gpts_per_s=weak.gpts_per_s,
            weak_efficiency=weak.gpts_per_s / alone.gpts_per_s / self.gpus,
            one_gpts_per_s=alone.gpts_per_s, equal_bits=bits,
        )  # fmt: skip


def options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Weak and strong scaling on GPUs.")
    parser.add_argument("--gpus", type=int, default=2)
    parser.add_argument("--only", nargs="*", default=[], metavar="PROGRAM[:TYPE]")
    parser.add_argument("--sizes", nargs="*", default=["fill", "small"])
    parser.add_argument("--per-gpu", type=int, nargs="*", default=[1], help="parts on each GPU")
    parser.add_argument("--seconds", type=float, default=190.0, help="no case starts later")
    parser.add_argument("--commit", default=commit(), help="the commit of the sources")
    parser.add_argument("--out", type=Path, required=True)
    return parser.parse_args()


def cases(given: argparse.Namespace) -> list[Case]:
    """The cases, cheap programs first."""
    return [
        Case(program, dtype, size, given.gpus, per_gpu)
        for size in given.sizes
        for program in DOMAINS
        for dtype in ("f32", "f64")
        for per_gpu in (given.per_gpu if size == "fill" else [1])
        if not given.only or program in given.only or f"{program}:{dtype}" in given.only
    ]


def main() -> None:
    """Compile in processes, and measure what is compiled."""
    given, start = options(), time.monotonic()
    report, wanted = Report(given.out, given.commit), cases(given)
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(14, os.cpu_count() or 1), mp_context=spawn) as pool:
        runs = list(dict.fromkeys(run for case in wanted for run in case.runs))
        made = {run: pool.submit(make_kernels, run) for run in runs}
        for case in wanted:
            left = given.seconds - (time.monotonic() - start)
            try:
                problems = [made[run].result(timeout=max(left, 0.1)) for run in case.runs]
                if problem := next(filter(None, problems), None):
                    raise RuntimeError(problem)
                case.measure(report)
            except Exception as error:
                report.add(case.run(1, given.gpus), size=case.size, error=described(error))
            print(asdict(case), f"{time.monotonic() - start:.0f} s", flush=True)
        known: dict[int, Any] = getattr(pool, "_processes", None) or {}
        processes = list(known.values())
        pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.kill()


if __name__ == "__main__":
    main()
