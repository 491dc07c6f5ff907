"""How fast the CPU executor is: beside NumPy written with slices, and the same loops compiled by gcc.

    python benchmarks/cpu.py --threads 1 2 --out benchmarks/results/cpu.json

The three take turns; of each the fastest repetition counts. Repetitions are short and many, so that on a
machine with other work each of the three has some that nothing interrupts; the load of the machine is in the rows. Results are compared first: NumPy and gcc round
differently, so up to some units in the last place. `peak_bytes` is what the process takes at most while a
program runs, less what it took before the run, plus its arrays. Needs gcc with OpenMP, and Linux.
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
from importlib.metadata import version
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from cpu_programs import PROGRAMS, Array, CpuProgram

import timetile

SOURCE = Path(__file__).parent / "cpu_loops.c"
FLAGS = ("-O3", "-march=native", "-fopenmp", "-shared", "-fPIC")
CELL_STEPS = 4e7
"""Cells that a repetition updates: some hundredths of a second."""

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


def our_runner(program: CpuProgram, threads: int) -> Runner:
    """A program compiled here."""
    compiled = timetile.compile(program.text(), executor="cpu", threads=threads)

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
            unit = np.finfo(program.kind).eps * float(np.abs(a).max())
            assert float(np.abs(a - b).max()) <= 64 * unit, program.name


def seconds(run: Runner, fields: list[Array], steps: int) -> float:
    """The time of a run."""
    start = time.perf_counter()
    run(fields, steps)
    return time.perf_counter() - start


def resident(name: str) -> int:
    """What the process takes of memory, now (VmRSS) or at most so far (VmHWM), in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))


def peak_bytes(program: CpuProgram, run: Runner) -> tuple[int, int]:
    """The most memory that a run takes, its arrays included, and that of its arrays alone."""
    fields = program.arrays()
    run(fields, 1)
    held = sum(field.nbytes for field in fields)
    # The most so far is what there is now, from here on.
    Path("/proc/self/clear_refs").write_text("5")
    before = resident("VmRSS")
    run(fields, 4)
    return held + max(0, resident("VmHWM") - before), held


def measured(
    program: CpuProgram, library: ctypes.CDLL, threads: int, repetitions: int
) -> dict[str, Any]:
    """One row."""
    ours = our_runner(program, threads)
    slices, gcc = numpy_runner(program), gcc_runner(program, library, threads)
    check(program, (ours, slices, gcc))
    peak, held = peak_bytes(program, ours)
    cells = prod(program.domain)
    steps = max(2, round(CELL_STEPS / cells))
    fields = program.arrays()
    best = {"ours": float("inf"), "numpy": float("inf"), "gcc": float("inf")}
    for _ in range(repetitions):
        for name, run in (("ours", ours), ("numpy", slices), ("gcc", gcc)):
            best[name] = min(best[name], seconds(run, fields, steps) / steps)
    speed = {name: round(cells / took / 1e6, 1) for name, took in best.items()}
    return {
        "program": program.name,
        "dtype": program.dtype,
        "domain": list(program.domain),
        "threads": threads,
        "mcells_per_s": speed["ours"],
        "numpy_mcells_per_s": speed["numpy"],
        "gcc_mcells_per_s": speed["gcc"],
        "peak_bytes": peak,
        "array_bytes": held,
        "load_average": round(os.getloadavg()[0], 1),
    }


def said(*command: str) -> str:
    """The first line that a command prints."""
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[0].strip()


def circumstances(options: argparse.Namespace) -> dict[str, Any]:
    """Where and with what it was measured."""
    names = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((n.split(":")[1].strip() for n in names if n.startswith("model name")), "")
    packages = ("xdsl", "llvmlite", "numpy")
    threads = " ".join(map(str, options.threads))
    return {
        "commit": said("git", "-C", str(SOURCE.parent), "rev-parse", "--short", "HEAD"),
        "machine": f"{model or platform.machine()}, {os.cpu_count()} cores",
        "versions": {name: version(name) for name in packages} | {"gcc": said("gcc", "--version")},
        "command": f"python benchmarks/cpu.py --threads {threads} --repetitions {options.repetitions}",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--repetitions", type=int, default=25)
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
            for threads in options.threads:
                row = measured(program, library, threads, options.repetitions)
                print(json.dumps(row), flush=True)
                rows.append(row | facts)
    if options.out is not None:
        options.out.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
