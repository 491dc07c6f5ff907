"""
The speed of the CPU executor, beside NumPy with slices, and equal loops compiled by gcc.

    python benchmarks/cpu.py --threads 1 2 --out benchmarks/results/cpu.json

NumPy, and for each number of threads gcc, the executor and the executor without blocking, take
turns; the fastest repetition of each counts. Repetitions are short and many: on a machine with
other work, some repetitions run without interruption; the load of the machine is in the rows. Each
repetition begins with equal numbers: numbers near zero take longer. Results are compared first, up
to some units in the last place, as NumPy and gcc round differently. `peak_bytes` is the largest
memory of the process during a run, less the memory before the run, plus the arrays. Needs gcc with
OpenMP, and Linux. Two thread counts take three minutes on an idle machine.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import platform
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from cpu_programs import PROGRAMS, Array, CpuProgram

import timetile

SOURCE = Path(__file__).parent / "cpu_loops.c"
FLAGS = ("-O3", "-march=native", "-fopenmp", "-shared", "-fPIC")
CELL_STEPS = 1e8
"""Least number of cells updated by a repetition of compiled code: some hundredths of a second."""

STEPS = 32
"""Steps of a repetition of compiled code, at least: as many as two passes of the deepest kind."""

NUMPY_CELL_STEPS = 2e7
"""Least number of cells updated by a repetition of NumPy: as many tenths of a second."""

Runner = Callable[[list[Array], int], None]
"""Runs steps on fields, in place."""


def compiled_by_gcc(folder: Path) -> ctypes.CDLL:
    """The loops as a library."""
    library = folder / "loops.so"
    subprocess.run(["gcc", *FLAGS, str(SOURCE), "-o", str(library)], check=True)
    return ctypes.CDLL(str(library))


def gcc_runner(program: CpuProgram, library: ctypes.CDLL, threads: int) -> Runner:
    """The loops of a program, compiled by gcc."""
    function = getattr(library, program.name)
    function.restype = None
    real = ctypes.c_double if program.dtype == "f64" else ctypes.c_float

    def run(fields: list[Array], steps: int) -> None:
        pointers = [ctypes.c_void_p(field.ctypes.data) for field in fields]
        scalars = [real(value) for value in program.scalars]
        function(*pointers, *scalars, ctypes.c_long(steps), ctypes.c_int(threads))

    return run


def numpy_runner(program: CpuProgram) -> Runner:
    """A program as NumPy's slices."""

    def run(fields: list[Array], steps: int) -> None:
        for _ in range(steps):
            fields = program.step(fields, program.scalars)

    return run


def our_runner(program: CpuProgram, threads: int, *, blocked: bool = True) -> Runner:
    """A program compiled here. Without blocking each step passes over whole fields."""
    compiled = timetile.compile(program.text(), executor="cpu", threads=threads, halos="apart")
    if not blocked:
        for loop in compiled.native.loops.values():
            loop.rule.cache = 0

    def run(fields: list[Array], steps: int) -> None:
        compiled(*fields, *program.scalars, steps)

    return run


def check(program: CpuProgram, runners: Sequence[Runner]) -> None:
    """AssertionError unless all leave about the same after some steps."""
    left: list[list[Array]] = []
    for run in runners:
        fields = program.arrays()
        run(fields, 4)
        left.append(fields)
    for others in left[1:]:
        for a, b in zip(left[0], others, strict=True):
            unit = float(np.finfo(program.kind).eps) * float(np.abs(a).max())
            assert float(np.abs(a - b).max()) <= 64 * unit, program.name


@dataclass
class Contestant:
    """
    A timed program: steps of a repetition, and the time of the fastest step so far, in seconds.
    """

    run: Runner
    steps: int
    best: float = float("inf")

    def repeat(self, fields: list[Array], start: list[Array]) -> None:
        """One repetition, from equal numbers."""
        for field, first in zip(fields, start, strict=True):
            np.copyto(field, first)
        begin = time.perf_counter()
        self.run(fields, self.steps)
        self.best = min(self.best, (time.perf_counter() - begin) / self.steps)


def resident(name: str) -> int:
    """The memory of the process, now (VmRSS) or at most so far (VmHWM), in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))


def peak_bytes(program: CpuProgram, run: Runner) -> tuple[int, int]:
    """The largest memory of a run, arrays included, and the memory of the arrays alone."""
    fields = program.arrays()
    run(fields, 1)
    held = sum(field.nbytes for field in fields)
    # From here on, the largest memory begins at the present memory.
    Path("/proc/self/clear_refs").write_text("5")
    before = resident("VmRSS")
    run(fields, 4)
    return held + max(0, resident("VmHWM") - before), held


def measured(
    program: CpuProgram, library: ctypes.CDLL, threads: Sequence[int], repetitions: int
) -> list[dict[str, Any]]:
    """The rows of a program, one for each number of threads."""
    cells = prod(program.domain)
    steps = max(STEPS, round(CELL_STEPS / cells))
    slices = Contestant(numpy_runner(program), max(1, round(NUMPY_CELL_STEPS / cells)))
    ours = {n: Contestant(our_runner(program, n), steps) for n in threads}
    single = {n: Contestant(our_runner(program, n, blocked=False), steps) for n in threads}
    gcc = {n: Contestant(gcc_runner(program, library, n), steps) for n in threads}
    contestants = [slices, *ours.values(), *single.values(), *gcc.values()]
    check(program, [contestant.run for contestant in contestants])
    peaks = {n: peak_bytes(program, ours[n].run) for n in threads}
    start, fields = program.arrays(), program.arrays()
    for _ in range(repetitions):
        for contestant in contestants:
            contestant.repeat(fields, start)

    def speed(contestant: Contestant) -> float:
        return round(cells / contestant.best / 1e6, 1)

    return [
        {
            "program": program.name,
            "dtype": program.dtype,
            "domain": list(program.domain),
            "threads": n,
            "mcells_per_s": speed(ours[n]),
            "single_steps_mcells_per_s": speed(single[n]),
            "numpy_mcells_per_s": speed(slices),
            "gcc_mcells_per_s": speed(gcc[n]),
            "peak_bytes": peaks[n][0],
            "array_bytes": peaks[n][1],
            "load_average": round(os.getloadavg()[0], 1),
        }
        for n in threads
    ]


def said(*command: str) -> str:
    """The first line of a command's output."""
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[0].strip()


def circumstances(options: argparse.Namespace) -> dict[str, Any]:
    """The machine and the versions of a measurement."""
    names = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((n.split(":")[1].strip() for n in names if n.startswith("model name")), "")
    packages = ("xdsl", "llvmlite", "numpy")
    threads = " ".join(map(str, options.threads))
    return {
        "commit": said("git", "-C", str(SOURCE.parent), "rev-parse", "--short", "HEAD"),
        "machine": f"{model or platform.machine()}, {os.cpu_count()} cores",
        "versions": {name: version(name) for name in packages} | {"gcc": said("gcc", "--version")},
        "command": f"python benchmarks/cpu.py --threads {threads} --repetitions "
        f"{options.repetitions}",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--repetitions", type=int, default=12)
    parser.add_argument("--only", nargs="+", metavar="PROGRAM")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    facts = circumstances(options)
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        library = compiled_by_gcc(Path(folder))
        for program in PROGRAMS:
            if options.only and program.name not in options.only:
                continue
            for row in measured(program, library, options.threads, options.repetitions):
                print(json.dumps(row), flush=True)
                rows.append(row | facts)
    if options.out is not None:
        options.out.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
