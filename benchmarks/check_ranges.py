"""
The ranges of timetile on a profiler's time line, on a GPU: around compiling, copies and launches.

    python benchmarks/check_ranges.py

Prints the ranges of a first and of a second run, each with its milliseconds, as told to a stand-in
for the package `nvtx`. Where Nsight Systems is installed, the script runs under its profiler, too,
and prints the profiler's own sum of ranges.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import numpy as np

import timetile
from timetile import Field

Mark = tuple[str, float]
"""A range: the name, and milliseconds."""

NSIGHT = ("nsys", "profile", "--trace=cuda,nvtx", "--stats=true", "--force-overwrite=true")


@timetile.stencil
def heat(u: Field):
    """A step of heat in a plate."""
    u.next = u[0, 0] + 0.2 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u[0, 0])


def stand_in(marks: list[Mark]) -> ModuleType:
    """A module in place of `nvtx` that notes the ranges of timetile."""

    @contextmanager
    def annotate(name: str, *, domain: str) -> Generator[None]:
        began = time.perf_counter()
        yield
        marks.append((f"{domain}: {name}", 1e3 * (time.perf_counter() - began)))

    module = ModuleType("nvtx")
    module.__dict__["annotate"] = annotate
    module.__spec__ = ModuleSpec("nvtx", None)
    return module


def runs() -> None:
    """Two runs of 100 steps on arrays of NumPy."""
    model = heat.on(executor="gpu", cache=False)
    state = {"u": np.random.default_rng(1).random((2048, 2048))}
    for _ in range(2):
        state = model.advance(state, steps=100)


def main() -> None:
    if sys.argv[1:] == ["runs"]:
        runs()
        return
    marks: list[Mark] = []
    sys.modules["nvtx"] = stand_in(marks)
    runs()
    for name, milliseconds in marks:
        print(f"{name}: {milliseconds:.2f} ms", flush=True)
    if shutil.which(NSIGHT[0]) is None:
        print("Nsight Systems is not installed")
        return
    with tempfile.TemporaryDirectory() as folder:
        out = f"--output={Path(folder) / 'ranges'}"
        subprocess.run([*NSIGHT, out, sys.executable, __file__, "runs"], check=True)


if __name__ == "__main__":
    main()
