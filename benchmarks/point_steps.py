"""
Measure what a stream step with points costs: the time of a launch, for several weights of a step
with points in the cuts between chunks (`STEP_WITH_POINTS`, `runtime/arithmetic/points.py`).

    python benchmarks/point_steps.py --out build/point-steps.json --commit COMMIT

Times are of kernels: the difference of a long run and a short run, by launch. A launch ends with
its slowest chunk, so the source lies at several rows of the field for each weight.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np
from points import DTYPES, NAMES, WAVES, Case, Wave, compiled_on_disk

from timetile import Points
from timetile.frontend.field_types import DType
from timetile.runtime.arithmetic import points as lists
from timetile.runtime.device.gpu import device

WEIGHTS = (6.0, 8.7, 12.0, 16.0)
ROWS = (0.5, 0.367)
"""The source's place along the first axis, as a part of the field."""

LONG, SHORT, ROUNDS = 160, 40, 3
"""Launches of a long run and of a short run."""


@dataclass(frozen=True)
class MovedWave(Wave):
    """A wave with its source at another row."""

    part: float = 0.5

    def points(self, shape: tuple[int, ...]) -> dict[str, Points]:
        """The sources and receivers of arrays of a shape."""
        found = super().points(shape)
        place = found["shot"].cells.min(axis=0) + 0.3
        place[0] = self.part * shape[0] + 0.3
        return {**found, "shot": Points([place], np.sin(0.1 * np.arange(self.steps)))}


@dataclass(frozen=True)
class StepRow:
    """Microseconds of a launch."""

    wave: str
    points: str
    dtype: DType
    depth: int
    part: float
    weight: float
    us_per_launch: float
    us_without: float
    ratio: float
    commit: str


def us_per_launch(case: Case) -> float:
    """Microseconds of a launch, without the ends of a run."""
    best = [min(case.run(n * case.depth) for _ in range(ROUNDS)) for n in (LONG, SHORT)]
    return (best[0] - best[1]) / (LONG - SHORT) * 1e6


def rows_of(wave: str, dtype: DType, mark: str) -> Iterator[StepRow]:
    """The rows of a wave and a type."""
    bare = Case(WAVES[wave], NAMES[0], dtype, None)
    bare.run(bare.depth)
    without = us_per_launch(bare)
    bare.free()
    made = MovedWave(**vars(WAVES[wave]))
    for name in NAMES[1:]:
        case = Case(made, name, dtype, None)
        case.run(case.depth)
        for part, weight in product(ROWS, WEIGHTS):
            case.wave, lists.STEP_WITH_POINTS = replace(made, part=part), weight
            case.pack()
            found = us_per_launch(case)
            yield StepRow(
                wave, name, dtype, case.depth, part, weight, round(found, 2), round(without, 2),
                round(found / without, 4), mark,
            )  # fmt: skip
        case.free()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--commit", required=True, help="the commit, for the file")
    parser.add_argument("--workers", type=int, default=6)
    parser.add_argument("--waves", nargs="*", choices=WAVES, default=["acoustic"])
    parser.add_argument("--dtypes", nargs="*", choices=DTYPES, default=list(DTYPES))
    options = parser.parse_args()
    wanted = list(product(options.waves, options.dtypes))
    cases = [(wave, name, dtype, None) for wave, dtype in wanted for name in NAMES]
    with ProcessPoolExecutor(options.workers) as pool:
        print(list(pool.map(compiled_on_disk, cases)), flush=True)
    rows: list[StepRow] = []
    with device(0).current():
        for row in (row for each in wanted for row in rows_of(*each, options.commit)):
            rows.append(row)
            print(row, flush=True)
            options.out.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")


if __name__ == "__main__":
    main()
