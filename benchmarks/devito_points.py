"""
Measure Devito's operators with sources and receivers on the processor: the whole call of `apply`,
beside Devito's own C.

    python benchmarks/devito_points.py --out benchmarks/results/devito-points.json

Each row is a wave of order 2 in time on one grid, with sources injected and receivers sampled in
every step. Calls of both take turns, and the best of each counts. A row is measured after the
receivers, or the field, of both agree.
"""

from __future__ import annotations

import argparse
import os
import time
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from reports import write_report
from rich.console import Console
from rich.table import Table

import timetile.devito
from timetile.runtime.machine.llvm import processor

dv: Any = import_module("devito")
"""Devito has no types."""

dv.configuration["log-level"] = "ERROR"

FIRST = 1
"""The first step of a call: a wave of order 2 reads two steps back."""

CHECKED, CLOSE = 100, 1e-4
"""
The steps of the compared run, and the largest difference from Devito's own C beside the largest
number.
"""


@dataclass(frozen=True)
class Shot:
    """An operator: space order, grid, sources, receivers, and steps of a call."""

    order: int
    shape: tuple[int, ...]
    sources: int
    receivers: int
    steps: int

    @property
    def name(self) -> str:
        """The operator in words."""
        return f"acoustic so{self.order} {'x'.join(map(str, self.shape))}"


SHOTS = (
    Shot(8, (121, 121), 0, 0, 2000),
    Shot(8, (121, 121), 1, 1, 2000),
    Shot(8, (121, 121), 1, 10, 2000),
    Shot(8, (121, 121), 1, 101, 2000),
    Shot(8, (121, 121), 100, 101, 2000),
    Shot(4, (301, 301), 1, 301, 400),
    Shot(8, (48, 48, 48), 1, 100, 200),
)


@dataclass
class PointsRow:
    """One measurement, in milliseconds of the whole call a step."""

    operator: str
    sources: int
    points: int
    threads: int
    steps: int
    ms_per_step: float
    devito_ms_per_step: float
    ratio: float
    difference: float


@dataclass
class Wave:
    """An operator, and its functions: the wave, and the receivers if any."""

    operator: Any
    shot: Shot
    u: Any
    rec: Any

    def call(self, steps: int) -> float:
        """The seconds of a call of some steps from equal fields."""
        self.u.data_with_halo[:] = 0
        if not self.shot.sources:
            low = tuple(slice(n // 3, n // 2) for n in self.shot.shape)
            self.u.data[(slice(None), *low)] = 1
        begin = time.perf_counter()
        self.operator.apply(time_m=FIRST, time_M=FIRST + steps - 1, dt=1.0)
        return time.perf_counter() - begin

    def result(self) -> Any:
        """The receivers, or the wave."""
        return np.array((self.u if self.rec is None else self.rec).data)


def wave_of(shot: Shot, language: str) -> Wave:
    """The operator of a shot, with points drawn once."""
    grid = dv.Grid(shape=shot.shape, extent=tuple(10.0 * (n - 1) for n in shot.shape))
    u = dv.TimeFunction(name="u", grid=grid, time_order=2, space_order=shot.order)
    m = dv.Function(name="m", grid=grid, space_order=shot.order)
    m.data_with_halo[:] = 0.3
    equations = [dv.Eq(u.forward, dv.solve(m * u.dt2 - u.laplace, u.forward))]
    random = np.random.default_rng(1)
    rec = None
    times = shot.steps + FIRST + 1
    if shot.sources:
        src = dv.SparseTimeFunction(name="src", grid=grid, npoint=shot.sources, nt=times)
        src.coordinates.data[:] = random.random((shot.sources, grid.dim)) * grid.extent
        src.data[:] = np.sin(0.2 * np.arange(times))[:, None]
        value = src * grid.stepping_dim.spacing**2 / m
        equations.append(src.inject(field=u.forward, expr=value))
    if shot.receivers:
        rec = dv.SparseTimeFunction(name="rec", grid=grid, npoint=shot.receivers, nt=times)
        rec.coordinates.data[:] = random.random((shot.receivers, grid.dim)) * grid.extent
        equations.append(rec.interpolate(expr=u))
    return Wave(dv.Operator(equations, language=language), shot, u, rec)


def measure_shot(shot: Shot, rounds: int, threads: int) -> PointsRow:
    """A row: the best of some calls of each, in turns, after a first call for compilation."""
    own, stock = wave_of(shot, "timetile"), wave_of(shot, "C")
    for wave in (own, stock):
        wave.call(CHECKED)
    a, b = own.result(), stock.result()
    difference = float(np.abs(a - b).max() / np.abs(b).max())
    assert difference < CLOSE, f"{shot.name}: {difference:.1e} from Devito's own C"
    best = [float("inf"), float("inf")]
    for _ in range(rounds):
        for k, wave in enumerate((own, stock)):
            best[k] = min(best[k], wave.call(shot.steps))
    mine, theirs = (1e3 * seconds / shot.steps for seconds in best)
    return PointsRow(
        shot.name,
        shot.sources,
        shot.sources + shot.receivers,
        threads,
        shot.steps,
        mine,
        theirs,
        mine / theirs,
        difference,
    )


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--out", type=Path, help="write the figures to this file, as JSON")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--commit", default="", help="the commit, for the file")
    options = parser.parse_args()
    console = Console()
    timetile.devito.register(executor="cpu", threads=options.threads)
    table = Table("operator", "points", "ms a step", "Devito's C", "ratio", "difference")
    rows = [measure_shot(shot, options.rounds, options.threads) for shot in SHOTS]
    for row in rows:
        figures = (row.ms_per_step, row.devito_ms_per_step, row.ratio)
        table.add_row(
            row.operator,
            str(row.points),
            *(f"{figure:.4f}" for figure in figures),
            f"{row.difference:.0e}",
        )
    console.print(table)
    if options.out is not None:
        about = {
            "machine": f"{processor().name}, {os.cpu_count()} cores",
            "load_average": round(os.getloadavg()[0], 1),
            "devito": version("devito"),
            "timetile": timetile.__version__,
            "command": "python benchmarks/devito_points.py",
            "commit": options.commit,
        }
        write_report(options.out, about, map(asdict, rows))


if __name__ == "__main__":
    main()
