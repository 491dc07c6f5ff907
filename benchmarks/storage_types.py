"""
Measure fields stored in 16 bits beside fields of FP32: the same steps, with arithmetic in FP32.

    python benchmarks/storage_types.py --out benchmarks/results/types.json

Every program runs at the schedule that timetile chooses for its types, from cells drawn at random,
and the time is that of the launches. `ratio_to_f32` is the speed over the speed with FP32 storage.
`largest_error` is the largest difference from FP32 storage after `ERROR_STEPS` steps of a smaller
domain, over the largest number of the field. `equal_bits`: on a small domain of odd extents the
GPU leaves the bits of the NumPy executor.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from math import prod
from pathlib import Path
from typing import Any, cast

import numpy as np
from measure import commit
from real_steps import DRAWN, ORDER_8, PROGRAMS, first_cells, laplace
from reports import write_report
from rows import described

import timetile
from timetile import Field
from timetile.dialects.cell_types import FIELD_DTYPES
from timetile.frontend.field_types import DType
from timetile.frontend.model import Model
from timetile.runtime.arithmetic.cells import dtype_of
from timetile.runtime.cache.store import Cache
from timetile.runtime.device.gpu import device
from timetile.runtime.program.compiled_program import CompiledProgram, Executor


def star25(u: Field):
    """A star of radius 4 in 3D."""
    u.next = u[0, 0, 0] + 0.05 * laplace(u, 3, ORDER_8)


STEPS: dict[str, Model] = {
    "star25": timetile.stencil(star25),
    **{name: PROGRAMS[name] for name in ("wave_3d_so8", "elastic_3d_so4", "heat_3d", "heat_2d")},
}
"""The measured programs."""

STORAGE: dict[str, DType] = {"f32": "float32", "f16": "float16", "bf16": "bfloat16"}

SMALL = {2: (67, 333), 3: (19, 37, 141)}
"""Odd domains for comparing bits, by the number of axes."""

MIDDLE = {2: (512, 512), 3: (96, 96, 128)}
"""Domains for errors, by the number of axes."""

CHECKED_STEPS, ERROR_STEPS = 5, 100

SECONDS, RUNS = 0.2, 4
"""The time of a timed run, and the number of runs with the first, which loads the kernels."""


@dataclass(frozen=True)
class Wanted:
    """
    What a row is compared with: the small arrays of the NumPy executor, and the arrays of each
    program with FP32 storage, first to be measured.
    """

    small: list[Any]
    single: dict[str, list[Any]]


@dataclass(frozen=True)
class TypeRow:
    """A program and a type of storage, with what was measured."""

    program: str
    storage: str
    domain: tuple[int, ...]
    arithmetic: str = "f32"
    device: str = ""
    depth: int = 0
    gpts_per_s: float = 0.0
    ratio_to_f32: float = 0.0
    largest_error: float = 0.0
    equal_bits: bool = False
    registers: int = 0
    spilled: int = 0
    commit: str = ""
    error: str = ""


def domain_of(program: str) -> tuple[int, ...]:
    """The domain of a program."""
    return (8192, 8192) if STEPS[program].step.rank == 2 else (512, 512, 512)


def compiled(
    row: TypeRow, domain: tuple[int, ...], executor: Executor, folder: Path
) -> CompiledProgram:
    """A row's program for a domain."""
    module = STEPS[row.program].module(domain, STORAGE[row.storage])
    return timetile.compile(module, executor=executor, halos="common", cache=Cache(folder))


def started(program: CompiledProgram, row: TypeRow, domain: tuple[int, ...]) -> list[Any]:
    """Arrays to begin with, by the names of the fields."""
    stored = dtype_of(FIELD_DTYPES[STORAGE[row.storage]])
    names = [(p.name or "").removesuffix("_next").removesuffix("_prev") for p in program.parameters]
    # Few cells are drawn, and repeated: they are converted before.
    drawn = (min(prod(domain), DRAWN),)
    cells = {name: first_cells(name, drawn, "float32").astype(stored) for name in set(names[:-1])}
    return [np.resize(cells[name], domain) for name in names[:-1]]


def left(
    row: TypeRow, domain: tuple[int, ...], executor: Executor, steps: int, folder: Path
) -> list[Any]:
    """The arrays after some steps of a small domain."""
    program = compiled(row, domain, executor, folder)
    arrays = started(program, row, domain)
    program(*arrays, steps=steps)
    return arrays


def checked(row: TypeRow, executor: Executor, folder: Path, wanted: Wanted) -> TypeRow:
    """Compare bits with the NumPy executor's, and numbers with storage in FP32."""
    small = left(row, SMALL[STEPS[row.program].step.rank], executor, CHECKED_STEPS, folder)
    equal = all(a.tobytes() == b.tobytes() for a, b in zip(small, wanted.small, strict=True))
    found = left(row, MIDDLE[STEPS[row.program].step.rank], executor, ERROR_STEPS, folder)
    if row.storage == "f32":
        wanted.single[row.program] = found
    error = 0.0
    for a, b in zip(found, wanted.single[row.program], strict=True):
        far = np.abs(a.astype(np.float64) - b).max() / np.abs(b).max()
        error = max(error, float(far))
    return replace(row, equal_bits=equal, largest_error=float(f"{error:.3g}"))


def measured(row: TypeRow, executor: Executor, folder: Path) -> TypeRow:
    """
    A row's kernels, and the speed of its launches: the best of some runs, each as long as the one
    before tells.
    """
    program = compiled(row, row.domain, executor, folder)
    arrays = started(program, row, row.domain)
    depth = max(fact.steps for fact in program.kernels.facts[0])
    steps, best = 4 * depth, float("inf")
    for _ in range(RUNS):
        of_a_step = program(*arrays, steps=steps).seconds / steps
        best = min(best, of_a_step)
        steps = 4 * depth * max(1, int(SECONDS / max(of_a_step, 1e-9) / (4 * depth)))
    kernels = [program.kernels.kernel(fact.name) for fact in program.kernels.facts[0]]
    program.close()
    return replace(
        row,
        depth=depth,
        gpts_per_s=round(prod(row.domain) / best / 1e9, 1),
        registers=max(kernel.registers for kernel in kernels),
        spilled=max(kernel.spill_bytes for kernel in kernels),
    )


def prepare(row: TypeRow, folder: Path) -> list[Any]:
    """
    Compile a row's kernels into the cache; the arrays that the NumPy executor leaves after some
    steps of the small domain.
    """
    rank = STEPS[row.program].step.rank
    for domain in (row.domain, SMALL[rank], MIDDLE[rank]):
        program = compiled(row, domain, "planes", folder)
        for facts in program.kernels.facts:
            for fact in facts:
                program.kernels.kernel(fact.name)
    return left(row, SMALL[rank], "numpy", CHECKED_STEPS, folder)


def arguments() -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().partition("\n")[0])
    parser.add_argument("programs", nargs="*", help="names of programs; all unless given")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--commit", default=None)
    parser.add_argument("--executor", default="gpu", help="cpu, to try the script without a GPU")
    parser.add_argument("--domain", type=int, nargs="+", help="another domain")
    parser.add_argument("--seconds", type=float, default=500, help="no program begins later")
    parser.add_argument("--folder", type=Path, default=Path("build/types-cache"))
    return parser.parse_args()


def main() -> None:
    options, began = arguments(), time.perf_counter()
    executor = cast(Executor, options.executor)
    name_of_device = device().name if executor == "gpu" else str(executor)
    about = {"commit": options.commit or commit(), "device": name_of_device}
    first = TypeRow("", "", (), device=about["device"], commit=about["commit"])
    rows = [
        replace(
            first, program=name, storage=storage, domain=tuple(options.domain or domain_of(name))
        )
        for name in options.programs or STEPS
        for storage in STORAGE
    ]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        jobs = [pool.submit(prepare, row, options.folder) for row in rows]
    single: dict[str, list[Any]] = {}
    done: list[TypeRow] = []
    for row, job in zip(rows, jobs, strict=True):
        if time.perf_counter() - began > options.seconds:
            break
        try:
            made = checked(row, executor, options.folder, Wanted(job.result(), single))
            made = measured(made, executor, options.folder)
            plain = (
                made
                if row.storage == "f32"
                else next(
                    (each for each in done if (each.program, each.storage) == (row.program, "f32")),
                    made,
                )
            )
            ratio = made.gpts_per_s / plain.gpts_per_s if plain.gpts_per_s else 0.0
            done.append(replace(made, ratio_to_f32=round(ratio, 2)))
        except Exception as error:
            done.append(replace(row, error=described(error)))
        print(json.dumps(asdict(done[-1])), flush=True)
        if options.out is not None:
            command = "python benchmarks/storage_types.py"
            write_report(options.out, {**about, "command": command}, [asdict(row) for row in done])


if __name__ == "__main__":
    main()
