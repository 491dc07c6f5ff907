"""
Runs programs on a GPU and on the CPU, and compares all fields, bit for bit (all NaNs count as
equal):

    python benchmarks/check_programs.py [PROGRAM.mlir ...] [--executor gpu] [--steps 1 2 5 12]

Without programs the script takes the examples of docs/programs.md, of examples/, and the compiled
kinds of test/programs. Arrays are random, equal on both sides; whole numbers are 1, other numbers
0.5. Exits with 1 if any run differs or fails.
"""

from __future__ import annotations

import argparse
import logging
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import timetile
from timetile.passes.diagnostics import CompileError
from timetile.runtime.arithmetic.cells import dtype_of
from timetile.runtime.program.compiled_program import Executor

ROOT = Path(__file__).parents[1]


def programs(files: list[Path]) -> dict[str, str]:
    """Texts of programs by name."""
    if files:
        return {file.name: file.read_text() for file in files}
    tests = sorted((ROOT / "test" / "programs").glob("*.mlir"))
    return stated_programs() | {file.name: file.read_text() for file in tests if runs(file)}


def stated_programs() -> dict[str, str]:
    """Texts of the programs of docs/programs.md and examples/, by name."""
    page = (ROOT / "docs" / "programs.md").read_text()
    examples = re.findall(r"## ([^\n]*)\n(?:(?!## ).)*?```mlir\n(.*?)```", page, re.DOTALL)
    return {
        **dict(examples),
        **{file.name: file.read_text() for file in sorted((ROOT / "examples").glob("*.mlir"))},
    }


def runs(file: Path) -> bool:
    """The compiler accepts the program."""
    try:
        timetile.compile(file, executor="cpu")
    except CompileError:
        return False
    return True


def values_of(program: timetile.CompiledProgram, seed: int) -> list[Any]:
    """A value for every argument."""
    values: list[Any] = []
    for p in program.parameters:
        if not p.is_read:
            values.append(None)
            continue
        dtype = dtype_of(p.kind)
        if p.bounds is None:
            values.append(dtype.type(0.5) if dtype.kind == "f" else dtype.type(1))
            continue
        shape = [high - low for low, high in zip(p.bounds.lb, p.bounds.ub)]
        cells = np.random.default_rng((seed, p.position)).random(shape)
        values.append((cells * (1 if dtype.kind == "f" else 100)).astype(dtype))
    return values


def difference(left: Sequence[Any], found: Sequence[Any]) -> str | None:
    """The first argument with other bits; None without any. All NaNs count as equal."""
    for k, (right, cells) in enumerate(zip(left, found, strict=True)):
        if not isinstance(right, np.ndarray):
            continue
        # The payload of a NaN depends on the machine.
        whole = f"u{right.itemsize}"
        same = (right.view(whole) == cells.view(whole)) | ((right != right) & (cells != cells))
        if not same.all():
            return f"argument {k} differs in {int((~same).sum())} of {right.size} cells"
    return None


def differs(text: str, executor: Executor, steps: int) -> str | None:
    """The fault of a run on the executor; None for a run with the CPU's results."""
    left: list[list[Any]] = []
    for which in ("cpu", executor):
        program = timetile.compile(text, executor=which)
        values = values_of(program, 3)
        program(*values, steps=steps)
        left.append(values)
    return difference(*left)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--executor", default="gpu")
    parser.add_argument("--steps", nargs="+", type=int, default=[1, 2, 5, 12])
    options = parser.parse_args()
    logging.getLogger("timetile").setLevel(logging.ERROR)
    wrong = 0
    for name, text in programs(options.files).items():
        for steps in options.steps:
            start = time.perf_counter()
            try:
                found = differs(text, options.executor, steps) or "same bits"
            except CompileError as error:
                found = f"refused: {error}"
            except Exception as error:
                found = f"{type(error).__name__}: {error}"
            wrong += found != "same bits"
            seconds = time.perf_counter() - start
            print(f"{name:44} {steps:4} steps {seconds:6.1f} s  {found}", flush=True)
    print(f"{wrong} runs differ or failed")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
