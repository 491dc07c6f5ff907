"""
Measure sums in an unlucky order of terms, with and without permission for another order.

    python benchmarks/order_of_terms.py --out benchmarks/results/order-of-terms-h100.json
    python benchmarks/order_of_terms.py box9:f64 heat:f32

Each step runs at the schedule chosen for it, on fields in GPU memory with equal halos: in the order
of the program, and with `fp_reassoc="on"`. Kernels are compiled in parallel first. A run takes
about 0.1 s; the best of three counts.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from itertools import product
from math import exp, prod
from pathlib import Path
from typing import Any

import numpy as np
from choice_models import MODELS, start
from fields import View
from measure import commit, predicted
from reports import write_report
from rich.console import Console
from rows import described
from timing import copy_bandwidth, events

import timetile
from timetile import Field, Model, Value
from timetile.frontend.field_types import DType
from timetile.passes.analysis.cells.sums import FpReassoc
from timetile.runtime.cache.store import Cache
from timetile.runtime.device.gpu import Device, device
from timetile.runtime.program.compiled_program import CompiledProgram

DTYPES: dict[str, DType] = {"f32": "float32", "f64": "float64"}

ORDERS: tuple[FpReassoc, ...] = ("off", "on")
"""The program's order of terms, and the sorted order."""

SECONDS = 0.1
"""The least time of a timed run."""

Offset = tuple[int, ...]


def axis_by_axis(rank: int, radius: int) -> list[Offset]:
    """A star as formulas have it: the farthest pair of each axis first, and the own cell last."""
    found = [
        tuple(sign * far if axis == other else 0 for other in range(rank))
        for axis, far, sign in product(range(rank), range(radius, 0, -1), (1, -1))
    ]
    return [*found, (0,) * rank]


def by_columns(rank: int, radius: int) -> list[Offset]:
    """A box with the last axis outermost."""
    return [place[::-1] for place in product(range(-radius, radius + 1), repeat=rank)]


def weighted(offsets: Sequence[Offset]) -> Model:
    """The step of a sum with a different weight for each cell; all weights together are 1."""
    weights = np.random.default_rng(len(offsets)).uniform(0.5, 1.5, len(offsets))
    weights /= weights.sum()

    def step(u: Field) -> None:
        total: Value = float(weights[0]) * u[offsets[0]]
        for weight, offset in zip(weights[1:], offsets[1:], strict=True):
            total = total + float(weight) * u[offset]
        u.next = total

    return timetile.stencil(step)


def gaussian(cells: int) -> Model:
    """A filter of cells x cells weights, a product of two Gaussians."""
    places = range(-(cells // 2), cells - cells // 2)
    line = [exp(-((place / (cells / 4)) ** 2)) for place in places]
    line = [weight / sum(line) for weight in line]

    def step(u: Field) -> None:
        pairs = [(a, b) for a in range(cells) for b in range(cells)]
        total: Value = line[0] * line[0] * u[places[0], places[0]]
        for a, b in pairs[1:]:
            total = total + line[a] * line[b] * u[places[a], places[b]]
        u.next = total

    return timetile.stencil(step)


SUMS: dict[str, Model] = {
    "star13": weighted(axis_by_axis(2, 3)),
    "box9": weighted(by_columns(2, 1)),
    "box25": weighted(by_columns(2, 2)),
    "star13_3d": weighted(axis_by_axis(3, 2)),
    "star25_3d": weighted(axis_by_axis(3, 4)),
    "box27_3d": weighted(by_columns(3, 1)),
    "gaussian9": gaussian(9),
    "gaussian20": gaussian(20),
}
"""Weighted sums in an unlucky order, and filters with weights that are products."""

USERS = ("heat", "heat_constant", "jacobi", "heat_fourth", "heat3", "wave3", "burgers3")
"""Steps of `choice_models.py` in the order that people write."""


@dataclass
class OrderRow:
    """A step in one element type, with what was measured for both orders."""

    program: str
    dtype: str
    domain: tuple[int, ...]
    gpts_per_s: float = 0.0
    sorted_gpts_per_s: float = 0.0
    ratio: float = 0.0
    predicted: float = 0.0
    sorted_predicted: float = 0.0
    depth: int = 0
    sorted_depth: int = 0
    error: str = ""


def model_of(name: str) -> Model:
    """The step of a name."""
    return SUMS[name] if name in SUMS else MODELS[name].step


def domain_of(name: str) -> tuple[int, ...]:
    """The domain of a step."""
    return (8192, 8192) if model_of(name).step.rank == 2 else (512, 512, 512)


def compiled(row: OrderRow, order: FpReassoc, folder: Path) -> CompiledProgram:
    """The program of a row under an order."""
    module = model_of(row.program).module(row.domain, DTYPES[row.dtype])
    return timetile.compile(
        module, executor="gpu", halos="common", fp_reassoc=order, cache=Cache(folder)
    )


def prepared(row: OrderRow, order: FpReassoc, folder: Path) -> str:
    """Put the kernels of a row into the cache. Returns the error, empty without one."""
    try:
        program = compiled(row, order, folder)
        for known in program.kernels.facts[0]:
            program.kernels.kernel(known.name)
    except Exception as error:
        return described(error)
    return ""


def rate(program: CompiledProgram, row: OrderRow, gpu: Device) -> float:
    """The best of three runs, in 1e9 cell updates per second."""
    drawn: dict[str, np.ndarray[Any, Any]] = {}
    pointers: list[int] = []
    values: list[Any] = []
    numbers: Mapping[str, float] = MODELS[row.program].numbers if row.program in MODELS else {}
    for parameter in program.parameters[:-1]:
        name = (parameter.name or "").removesuffix("_next").removesuffix("_prev")
        if name in numbers:
            values.append(numbers[name])
            continue
        if name not in drawn:
            drawn[name] = start(name, row.domain, DTYPES[row.dtype])
        pointers.append(gpu.allocate(drawn[name].nbytes))
        gpu.upload(pointers[-1], drawn[name])
        values.append(View(pointers[-1], drawn[name]))
    depth = program.kernels.facts[0][0].steps

    def run(steps: int) -> Callable[[], object]:
        return lambda: program(*values, steps=steps)

    spent = min(events(gpu, run(2 * depth), 2))
    steps = depth * max(2, int(SECONDS * 2e3 / max(spent, 1e-3)))
    best = min(events(gpu, run(steps), 3))
    program.close()
    for pointer in pointers:
        gpu.free(pointer)
    return round(prod(row.domain) * steps / best / 1e6, 1)


def measured(row: OrderRow, gpu: Device, folder: Path) -> None:
    """Measure both orders of a row."""
    for order in ORDERS:
        program = compiled(row, order, folder)
        deepest = program.kernels.facts[0][0]
        guess = round(predicted(program, deepest.name).gcells_per_second, 1)
        speed = rate(program, row, gpu)
        if order == "off":
            row.gpts_per_s, row.predicted, row.depth = speed, guess, deepest.steps
        else:
            row.sorted_gpts_per_s, row.sorted_predicted = speed, guess
            row.sorted_depth = deepest.steps
    row.ratio = round(row.sorted_gpts_per_s / row.gpts_per_s, 3)


def arguments() -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", nargs="*", help="name[:element]")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--commit", default=None)
    parser.add_argument("--seconds", type=float, default=150, help="no program begins later")
    parser.add_argument("--folder", type=Path, default=Path("build/order-of-terms-cache"))
    return parser.parse_args()


def main() -> None:
    options, began = arguments(), time.perf_counter()
    console = Console(width=200)
    rows: list[OrderRow] = []
    for text in options.programs or [*USERS, *SUMS]:
        name, _, element = text.partition(":")
        for dtype in (element,) if element else DTYPES:
            rows.append(OrderRow(name, dtype, domain_of(name)))
    pairs = list(product(rows, ORDERS))
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        errors = pool.map(prepared, *zip(*pairs, strict=True), [options.folder] * len(pairs))
        for (row, _), error in zip(pairs, errors, strict=True):
            row.error = row.error or error
    console.print(f"compiled in {time.perf_counter() - began:.0f} s")
    gpu = device()
    with gpu.current():
        bandwidth = copy_bandwidth(gpu)
        for row in rows:
            if not row.error and time.perf_counter() - began < options.seconds:
                try:
                    measured(row, gpu, options.folder)
                except Exception as error:
                    row.error = described(error)
            console.print(asdict(row), soft_wrap=True)
    about = {
        "commit": options.commit or commit(),
        "device": gpu.name,
        "copy_tb_per_s": round(bandwidth, 3),
        "command": "python benchmarks/order_of_terms.py",
    }
    if options.out is not None:
        write_report(options.out, about, [asdict(row) for row in rows])


if __name__ == "__main__":
    main()
