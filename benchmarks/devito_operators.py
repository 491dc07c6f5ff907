"""
Measure operators of Devito on a GPU: points per second of `apply`, beside the bound of a copy.

    python benchmarks/devito_operators.py --out benchmarks/results/h200-devito.json

Each operator is first compared with Devito's own C (which needs gcc) on a small grid. Times are
times of the kernels, without the transfer of Devito's arrays to the GPU and back, shown beside. The
bound is the time of a device copy with one read and one write of each array a step.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.metadata import version
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
from reports import write_report
from rich.console import Console
from rich.table import Table
from timing import copy_bandwidth

import timetile.devito
from timetile.runtime.device.gpu import device

dv: Any = import_module("devito")
"""Devito has no types."""

dv.configuration["log-level"] = "ERROR"


@dataclass
class Model:
    """
    Equations, the changed functions, the time step, and the arrays read and written by a step.
    """

    equations: list[Any]
    changed: list[Any]
    dt: float
    arrays: int


@dataclass
class Row:
    """
    One measurement: steps, GPoints/s, the bound of copying, the reached part of the bound, and
    seconds.
    """

    operator: str
    shape: tuple[int, ...]
    steps: int
    gpoints: float
    bound: float
    part: float
    kernels_s: float
    apply_s: float


def drawn(function: Any, low: float, high: float) -> Any:
    """
    The function with cells between two bounds, halo included; one plane is drawn and repeated.
    """
    data: Any = function.data_with_halo
    shape: tuple[int, ...] = data.shape[-2:]
    random = np.random.default_rng(sum(map(ord, function.name)))
    plane = low + (high - low) * random.random(shape, dtype=np.float32)
    data[:] = plane
    return function


def acoustic(shape: tuple[int, ...]) -> Model:
    """Waves of order 8 in space: u twice back and the squared slowness are read, u is written."""
    grid = dv.Grid(shape=shape, extent=tuple(10.0 * (n - 1) for n in shape), dtype=np.float32)
    u = drawn(dv.TimeFunction(name="u", grid=grid, time_order=2, space_order=8), -1, 1)
    m = drawn(dv.Function(name="m", grid=grid, space_order=8), 0.2, 0.4)
    step = dv.solve(m * u.dt2 - u.laplace, u.forward)
    return Model([dv.Eq(u.forward, step)], [u], 1.5, 4)


def elastic(shape: tuple[int, ...]) -> Model:
    """
    Velocities and stresses of order 4: nine fields and three coefficients are read, nine fields
    written.
    """
    grid = dv.Grid(shape=shape, extent=tuple(10.0 * (n - 1) for n in shape), dtype=np.float32)
    v = dv.VectorTimeFunction(name="v", grid=grid, space_order=4)
    tau = dv.TensorTimeFunction(name="tau", grid=grid, space_order=4)
    changed: list[Any] = sorted({*v, *tau}, key=attrgetter("name"))
    for part in changed:
        drawn(part, -1, 1)
    lam, mu = (drawn(dv.Function(name=n, grid=grid, space_order=4), 1, 2) for n in ("lam", "mu"))
    b = drawn(dv.Function(name="b", grid=grid, space_order=4), 0.3, 0.6)
    s = grid.stepping_dim.spacing
    strain = dv.grad(v.forward) + dv.grad(v.forward).transpose(inner=False)
    parts = [
        dv.Eq(v.forward, v + s * b * dv.div(tau)),
        dv.Eq(tau.forward, tau + s * (lam * dv.diag(dv.div(v.forward)) + mu * strain)),
    ]
    return Model(parts, changed, 0.5, 21)


MODELS: dict[str, tuple[Callable[[tuple[int, ...]], Model], tuple[tuple[int, ...], ...]]] = {
    "acoustic so8": (acoustic, ((512, 512, 512), (768, 768, 768))),
    "elastic so4": (elastic, ((256, 256, 256), (384, 384, 384))),
}
"""Operators, and the measured grids."""


def operator_of(model: Model, executor: str) -> Any:
    """The operator on timetile."""
    with timetile.devito.backend(executor=executor):
        return dv.Operator(model.equations)


def check(make: Callable[[tuple[int, ...]], Model], executor: str) -> float:
    """The largest difference from Devito's own C on a small grid, beside the largest number."""
    shape, call = (40, 44, 48), {"time_m": 1, "time_M": 6}
    expected, model = make(shape), make(shape)
    dv.Operator(expected.equations, opt="noop", language="C").apply(dt=expected.dt, **call)
    operator_of(model, executor).apply(dt=model.dt, **call)
    worst = 0.0
    for a, b in zip(model.changed, expected.changed, strict=True):
        x, y = np.asarray(a.data_with_halo), np.asarray(b.data_with_halo)
        worst = max(worst, float(np.abs(x - y).max() / np.abs(y).max()))
    assert worst < 3e-6, f"{worst:.1e} from Devito's own C"
    return worst


def measure(
    name: str, model: Model, shape: tuple[int, ...], steps: int, bandwidth: float, executor: str
) -> Row:
    """The best of three calls after a first call for compilation."""
    operator = operator_of(model, executor)
    best, whole = float("inf"), float("inf")
    for attempt in range(4):
        start = time.perf_counter()
        summary = operator.apply(time_m=1, time_M=steps, dt=model.dt)
        if attempt:
            whole = min(whole, time.perf_counter() - start)
            best = min(best, sum(entry.time for entry in summary.values()))
    points = float(np.prod(shape)) * steps
    bound = bandwidth * 1e3 / (model.arrays * 4)
    gpoints = points / best / 1e9
    return Row(name, shape, steps, gpoints, bound, gpoints / bound, best, whole)


def main() -> None:
    """Check, measure, and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, help="write the figures to this file, as JSON")
    parser.add_argument("--steps", type=int, default=96)
    parser.add_argument("--small", action="store_true", help="check only")
    parser.add_argument("--grids", type=int, default=2, help="how many grids of each operator")
    parser.add_argument("--commit", default="", help="the commit, for the file")
    parser.add_argument("--executor", default="gpu")
    options = parser.parse_args()
    console = Console()
    for name, (make, _) in MODELS.items():
        worst = check(make, options.executor)
        console.print(f"{name}: {worst:.1e} from Devito's own C")
    if options.small:
        return
    gpu = device()
    with gpu.current():
        bandwidth = copy_bandwidth(gpu)
    console.print(f"device copy: {bandwidth:.2f} TB/s")
    table = Table("operator", "shape", "GPoints/s", "copy bound", "part", "kernels s", "apply s")
    rows: list[Row] = []
    for name, (make, shapes) in MODELS.items():
        for shape in shapes[: options.grids]:
            rows.append(
                measure(name, make(shape), shape, options.steps, bandwidth, options.executor)
            )
            row = rows[-1]
            numbers = (row.gpoints, row.bound, row.part, row.kernels_s, row.apply_s)
            table.add_row(name, "x".join(map(str, shape)), *(f"{n:.2f}" for n in numbers))
    console.print(table)
    if options.out is not None:
        about = {
            "device": gpu.name,
            "copy_tb_s": bandwidth,
            "devito": version("devito"),
            "timetile": timetile.__version__,
            "command": "python benchmarks/devito_operators.py",
            "commit": options.commit,
        }
        write_report(options.out, about, map(asdict, rows))


if __name__ == "__main__":
    main()
