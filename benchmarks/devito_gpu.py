"""
Measure Devito's acoustic operators with a source and receivers on a GPU, beside the same operators
without points.

    python benchmarks/devito_gpu.py --out benchmarks/results/devito-gpu.json --commit COMMIT

Receivers lie in a line along the first axis, near the end of the last axis, as in Devito's own
examples. An operator has rows for its source alone, its receivers alone, and both. A row has the
milliseconds of a step of a run, without transfers; runs with and without points take turns, and the
best of each counts. Wave and receivers of a run of 100 steps on a small grid are compared with
those of the processor bit for bit.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from reports import write_report
from settings import wait_for_choices

import timetile.devito
from timetile.runtime.device.gpu import device

dv: Any = import_module("devito")
"""Devito has no types."""

FIRST, CHECKED, ROUNDS = 1, 100, 3


@dataclass(frozen=True)
class Survey:
    """An operator: space order, grid, damping, steps of a call, sources (at most 1), receivers."""

    order: int
    shape: tuple[int, ...]
    is_damped: bool
    steps: int
    sources: int = 1
    receivers: int = 512

    @property
    def name(self) -> str:
        """The operator in words."""
        damped = " damped" if self.is_damped else ""
        return f"acoustic so{self.order}{damped} {'x'.join(map(str, self.shape))}"


PLATE, VOLUME = (4096, 4096), (512, 512, 512)
SURVEYS = [
    Survey(order, shape, is_damped, steps)
    for shape, steps in ((PLATE, 4096), (VOLUME, 128))
    for order in (4, 8)
    for is_damped in (False, True)
]
PARTS = {"both": (1, 512), "source": (1, 0), "receivers": (0, 512), "none": (0, 0)}
"""Sources and receivers of an operator's variants."""


@dataclass(frozen=True)
class Row:
    """An operator with points, beside the operator without: milliseconds of a step."""

    operator: str
    device: str
    sources: int
    points: int
    steps: int
    ms_per_step: float
    ms_per_step_without: float
    ratio: float
    whole_call_ratio: float
    equal_bits: bool
    commit: str


class Wave:
    """An operator and its functions."""

    def __init__(self, survey: Survey, executor: str):
        timetile.devito.register(executor=executor)
        self.survey, shape = survey, survey.shape
        grid = dv.Grid(shape=shape, extent=tuple(10.0 * (n - 1) for n in shape))
        self.u = dv.TimeFunction(name="u", grid=grid, time_order=2, space_order=survey.order)
        m = dv.Function(name="m", grid=grid, space_order=survey.order)
        m.data_with_halo[:] = 0.3
        equation = m * self.u.dt2 - self.u.laplace
        if survey.is_damped:
            damp = dv.Function(name="damp", grid=grid, space_order=survey.order)
            damp.data_with_halo[:] = 0.01
            equation = equation + damp * self.u.dt
        equations = [dv.Eq(self.u.forward, dv.solve(equation, self.u.forward))]
        self.rec = None
        times = survey.steps + FIRST + 1
        if survey.sources:
            src = dv.SparseTimeFunction(name="src", grid=grid, npoint=1, nt=times)
            src.coordinates.data[:] = 0.5 * np.array(grid.extent)
            src.coordinates.data[0, -1] = 23.0
            src.data[:] = np.sin(0.2 * np.arange(times))[:, None]
            value = src * grid.stepping_dim.spacing**2 / m
            equations.append(src.inject(field=self.u.forward, expr=value))
        if survey.receivers:
            rec = dv.SparseTimeFunction(name="rec", grid=grid, npoint=survey.receivers, nt=times)
            rec.coordinates.data[:] = 0.5 * np.array(grid.extent)
            rec.coordinates.data[:, 0] = np.linspace(0.0, grid.extent[0], survey.receivers)
            rec.coordinates.data[:, -1] = 31.0
            equations.append(rec.interpolate(expr=self.u))
            self.rec = rec
        self.operator = dv.Operator(equations, language="timetile")

    def call(self, steps: int) -> tuple[float, float]:
        """How long a call runs on the GPU, and how long it takes in all, in seconds."""
        begin = time.perf_counter()
        summary = self.operator.apply(time_m=FIRST, time_M=FIRST + steps - 1, dt=1.0)
        whole = time.perf_counter() - begin
        assert str(summary.ran_on) == "timetile", summary.ran_on
        return sum(entry.time for entry in summary.values()), whole

    def result(self, steps: int) -> bytes:
        """The bits of receivers and wave after some steps."""
        self.u.data_with_halo[:] = 0
        if self.rec is None:
            self.u.data[:] = 1
        self.call(steps)
        made = b"" if self.rec is None else np.array(self.rec.data[: steps + FIRST]).tobytes()
        return made + np.array(self.u.data).tobytes()


def compiled_on_disk(survey: Survey) -> bool:
    """
    Compile an operator into the cache, by a run on the GPU. Returns whether the GPU has the bits of
    the processor on a small grid.
    """
    wait_for_choices()
    dv.configuration["log-level"] = "ERROR"
    Wave(survey, "gpu").call(survey.steps)
    few = replace(survey, receivers=min(survey.receivers, 37))
    small = replace(few, shape=tuple(n // 8 - 11 for n in survey.shape))
    return Wave(small, "gpu").result(CHECKED) == Wave(small, "cpu").result(CHECKED)


def profile_of(wave: Wave, steps: int, path: Path) -> None:
    """Write where the host's time of a call goes."""
    profile = cProfile.Profile()
    profile.runcall(wave.call, steps)
    with path.open("w") as file:
        pstats.Stats(profile, stream=file).sort_stats("tottime").print_stats(30)


def rows_of_operator(
    surveys: Sequence[Survey], equal: dict[Survey, bool], mark: str, profiles: Path | None
) -> Iterator[Row]:
    """The rows of an operator's variants, the last of which has no points."""
    waves = [Wave(each, "gpu") for each in surveys]
    steps = surveys[0].steps
    for wave in waves:
        wave.call(steps)
    best = np.full((len(waves), 2), np.inf)
    for _ in range(ROUNDS):
        for each, wave in zip(best, waves):
            np.minimum(each, wave.call(steps), out=each)
    if profiles is not None:
        profile_of(waves[0], steps, profiles / f"{surveys[0].name.replace(' ', '-')}.txt")
    *rows, (bare, whole_bare) = best / steps * 1e3
    for survey, (run, whole) in zip(surveys, rows):
        yield Row(
            survey.name, device(0).name, survey.sources, survey.sources + survey.receivers, steps,
            round(run, 5), round(bare, 5), round(run / bare, 4), round(whole / whole_bare, 4),
            equal[survey], mark,
        )  # fmt: skip


def rows_of(
    surveys: list[Survey], parts: list[str], mark: str, workers: int, profiles: Path | None
) -> Iterator[Row]:
    """The rows of some operators with some of the points, compiled side by side."""
    numbers = [PARTS[part] for part in (*parts, "none")]
    variants = [[replace(each, sources=a, receivers=b) for a, b in numbers] for each in surveys]
    both = [survey for each in variants for survey in each]
    with ProcessPoolExecutor(workers) as pool:
        equal = dict(zip(both, pool.map(compiled_on_disk, both)))
    for each in variants:
        yield from rows_of_operator(each, equal, mark, profiles)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--commit", required=True, help="the commit, for the file")
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--only", nargs="*", default=[], help="words of the operators measured")
    parser.add_argument("--parts", nargs="+", choices=list(PARTS)[:-1], default=list(PARTS)[:-1])
    parser.add_argument("--profiles", type=Path, help="write profiles of the host to this folder")
    options = parser.parse_args()
    wait_for_choices()
    dv.configuration["log-level"] = "ERROR"
    surveys = [each for each in SURVEYS if all(word in each.name.split() for word in options.only)]
    rows: list[Row] = []
    for row in rows_of(surveys, options.parts, options.commit, options.workers, options.profiles):
        rows.append(row)
        print(row, flush=True)
        write_report(options.out, {"command": "python benchmarks/devito_gpu.py"}, map(asdict, rows))


if __name__ == "__main__":
    main()
