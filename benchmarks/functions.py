"""
Measure cells with mathematical functions on one core of the processor, beside NumPy.

    python benchmarks/functions.py --out benchmarks/results/functions-cpu.json

`ms` is a step of timetile's, and `numpy_ms` a step of NumPy's on whole arrays, both from calls of
`STEPS` steps, in milliseconds of the thread on its core: on a busy machine, a clock on the wall
also counts the other processes, and more of them in longer calls. Each is the least of `--runs`
calls that take turns. `ratio` is NumPy's time over timetile's, and `largest_error` the largest
difference after a step over the largest number.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from measure import commit
from numpy.typing import NDArray
from reports import write_report

import timetile
from timetile import Field, Scalar
from timetile.frontend.model import Model

Array = NDArray[Any]
SHAPE, STEPS = (1024, 1024), 20
arctan2: Any = np.arctan2
"""NumPy's types have no arctan2 of two values of cells."""

INSIDE = (slice(1, -1), slice(1, -1))


@timetile.stencil
def ising(s: Field, drawn: Field, beta: Scalar):
    """Metropolis' rule for spins: `exp`."""
    energy = 2.0 * s[0, 0] * (s[-1, 0] + s[1, 0] + s[0, -1] + s[0, 1])
    s.next = timetile.where(drawn[0, 0] < np.exp(-beta * energy), -s[0, 0], s[0, 0])


def numpy_ising(arrays: dict[str, Array], beta: Any) -> Array:
    s, drawn = arrays["s"], arrays["drawn"]
    new, c = s.copy(), s[INSIDE]
    energy = 2 * c * (s[:-2, 1:-1] + s[2:, 1:-1] + s[1:-1, :-2] + s[1:-1, 2:])
    new[INSIDE] = np.where(drawn[INSIDE] < np.exp(-beta * energy), -c, c)
    return new


@timetile.stencil
def canny(u: Field, beta: Scalar):
    """Directions of edges in an image: `arctan2`, `floor` and `sqrt`."""
    gx = u[-1, 1] + 2 * u[0, 1] + u[1, 1] - u[-1, -1] - 2 * u[0, -1] - u[1, -1]
    gy = u[1, -1] + 2 * u[1, 0] + u[1, 1] - u[-1, -1] - 2 * u[-1, 0] - u[-1, 1]
    sector = np.floor(arctan2(gy, gx) * (4 / np.pi) + 0.5)
    u.next = u[0, 0] + beta * sector * np.sqrt(gx * gx + gy * gy)


def numpy_canny(arrays: dict[str, Array], beta: Any) -> Array:
    u = arrays["u"]
    new, above, below = u.copy(), u[:-2], u[2:]
    gx = above[:, 2:] + 2 * u[1:-1, 2:] + below[:, 2:]
    gx = gx - above[:, :-2] - 2 * u[1:-1, :-2] - below[:, :-2]
    gy = below[:, :-2] + 2 * below[:, 1:-1] + below[:, 2:]
    gy = gy - above[:, :-2] - 2 * above[:, 1:-1] - above[:, 2:]
    sector = np.floor(np.arctan2(gy, gx) * (4 / np.pi) + 0.5)
    new[INSIDE] = u[INSIDE] + beta * sector * np.sqrt(gx * gx + gy * gy)
    return new


@timetile.stencil
def sine_gordon(u: Field, beta: Scalar):
    """A wave with a restoring force: `sin`."""
    around = u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u[0, 0]
    u.next = u[0, 0] + beta * (around - np.sin(u[0, 0]))


def numpy_sine_gordon(arrays: dict[str, Array], beta: Any) -> Array:
    u = arrays["u"]
    new, c = u.copy(), u[INSIDE]
    around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * c
    new[INSIDE] = c + beta * (around - np.sin(c))
    return new


MODELS: dict[str, tuple[Model, Callable[[dict[str, Array], Any], Array], float]] = {
    "ising": (ising, numpy_ising, 0.4),
    "canny": (canny, numpy_canny, 1e-3),
    "sine_gordon": (sine_gordon, numpy_sine_gordon, 0.1),
}
"""Programs: the step, a step of NumPy, and the scalar."""


@dataclass(frozen=True)
class FunctionRow:
    """A program and a type, with what was measured."""

    program: str
    dtype: str
    shape: tuple[int, ...]
    ms: float
    numpy_ms: float
    ratio: float
    largest_error: float


def seconds_of(call: Callable[[], object]) -> float:
    """The time that this thread spends on its core for a step, in a call of `STEPS` steps."""
    began = time.thread_time()
    call()
    return (time.thread_time() - began) / STEPS


def measured(name: str, dtype: str, runs: int) -> FunctionRow:
    """The row of a program and a type."""
    model, in_numpy, number = MODELS[name]
    on_core, generator = model.on(executor="cpu", threads=1), np.random.default_rng(7)
    drawn = {field: generator.random(SHAPE).astype(dtype) for field in model.step.fields}
    if "s" in drawn:
        drawn["s"] = np.sign(drawn["s"] - 0.5)
    beta = np.dtype(dtype).type(number)
    first = next(iter(drawn))
    found, wanted = on_core.advance(drawn, 1, beta=number)[first], in_numpy(drawn, beta)
    error = float(np.abs(found - wanted).max() / np.abs(wanted).max())
    mine = other = float("inf")
    for _ in range(runs):
        mine = min(mine, seconds_of(lambda: on_core.advance(drawn, STEPS, beta=number)))
        other = min(other, seconds_of(lambda: [in_numpy(drawn, beta) for _ in range(STEPS)]))
    ratio = round(other / mine, 2)
    return FunctionRow(
        name, dtype, SHAPE, round(mine * 1e3, 3), round(other * 1e3, 3), ratio, error
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().partition("\n\n")[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--runs", type=int, default=7)
    options = parser.parse_args()
    rows: list[FunctionRow] = []
    for name in MODELS:
        for dtype in ("float64", "float32"):
            rows.append(measured(name, dtype, options.runs))
            print(json.dumps(asdict(rows[-1])), flush=True)
    if options.out is not None:
        about = {
            "device": f"{platform.machine()}, a thread's time on a core of a busy machine",
            "commit": commit(),
            "command": "python benchmarks/functions.py",
        }
        write_report(options.out, about, [asdict(row) for row in rows])


if __name__ == "__main__":
    main()
