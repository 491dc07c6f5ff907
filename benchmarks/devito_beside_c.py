"""
Measure Devito's operators on the processor beside Devito's own C, on one thread.

    OMP_NUM_THREADS=1 python benchmarks/devito_beside_c.py --out benchmarks/results/devito-cpu.json

Calls of both take turns, and the least time of each counts: seconds of the processor in the whole
call of `apply`, which other processes of a busy machine change least, and seconds of the kernels.
A row is measured after the changed functions of both agree.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from devito_operators import Model, acoustic, dv, elastic
from devito_waves import MODELS
from measure import commit
from reports import write_report

import timetile.devito
from timetile.runtime.machine.llvm import processor

OPERATORS: dict[str, Callable[[tuple[int, ...]], Model]] = {
    "acoustic so8": acoustic,
    "elastic so4": elastic,
    **MODELS,
}
"""The measured operators."""

LANGUAGES: tuple[str, ...] = ("C", "timetile")

CLOSE = 1e-5
"""The largest difference beside the largest number."""


@dataclass
class BesideC:
    """
    Millions of points a second of one thread: of the processor's seconds in whole calls, and of the
    kernels' seconds.
    """

    operator: str
    shape: tuple[int, ...]
    steps: int
    calls_c: float
    calls_timetile: float
    kernels_c: float
    kernels_timetile: float
    commit: str


def operators_of(model: Model) -> dict[str, Any]:
    """An operator for each language."""
    options = dv.configuration["opt"]
    stock = dv.Operator(model.equations, language="C", opt=options)
    with timetile.devito.backend(executor="cpu", threads=1):
        return {"C": stock, "timetile": dv.Operator(model.equations)}


def check_agreement(make: Callable[[tuple[int, ...]], Model]) -> None:
    """AssertionError unless both leave nearly equal cells on a small grid."""
    found: list[list[np.ndarray[Any, Any]]] = []
    for language in LANGUAGES:
        model = make((24, 26, 28))
        operators_of(model)[language].apply(time_m=1, time_M=6, dt=model.dt)
        found.append([np.array(each.data) for each in model.changed])
    for a, b in zip(*found, strict=True):
        assert np.abs(a - b).max() <= CLOSE * np.abs(a).max()


def measure(name: str, shape: tuple[int, ...], steps: int, repeats: int, at: str) -> BesideC:
    """The least times of some calls of both, in turn."""
    make = OPERATORS[name]
    check_agreement(make)
    model = make(shape)
    operators = operators_of(model)
    start = [np.array(each.data_with_halo) for each in model.changed]
    calls: dict[str, float] = dict.fromkeys(LANGUAGES, np.inf)
    kernels: dict[str, float] = dict.fromkeys(LANGUAGES, np.inf)
    for _ in range(repeats + 1):
        for language, operator in operators.items():
            for each, cells in zip(model.changed, start, strict=True):
                each.data_with_halo[:] = cells
            began = time.process_time()
            summary = operator.apply(time_m=1, time_M=steps, dt=model.dt)
            calls[language] = min(calls[language], time.process_time() - began)
            seconds = sum(section.time for section in summary.values())
            kernels[language] = min(kernels[language], seconds)
    points = prod(shape) * steps / 1e6

    def rate(times: dict[str, float], language: str) -> float:
        return round(points / times[language], 1)

    return BesideC(
        name, shape, steps, rate(calls, "C"), rate(calls, "timetile"), rate(kernels, "C"),
        rate(kernels, "timetile"), at,
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().partition("\n")[0])
    parser.add_argument("operators", nargs="*", default=list(OPERATORS))
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--repeats", type=int, default=8)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    dv.configuration["language"] = "C"
    rows: list[BesideC] = []
    for name in given.operators:
        shape = (given.size,) * 3
        rows.append(measure(name, shape, given.steps, given.repeats, commit()))
        print(rows[-1], flush=True)
        if given.out is not None:
            machine = {
                "command": "python benchmarks/devito_beside_c.py",
                "machine": processor().name,
            }
            write_report(given.out, machine, [asdict(row) for row in rows])


if __name__ == "__main__":
    main()
