"""
Measure edges, time and points on one thread of a processor, beside the program without.

    python benchmarks/edges_cpu.py --out build/edges-cpu.json --commit COMMIT

Programs are those of `simulations.py`, and a wave of a volume with a million sources and receivers
each, from `points.py`. Runs take turns, and the best of each counts, by the time of the process:
other work on the machine counts little. Bits are compared with NumPy on a small domain.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from points import NAMES, WAVES, Wave
from simulated_programs import BESIDE, PROGRAMS, Domain
from simulations import arrays_of, numbers_of, updated_cells

from timetile.frontend.field_types import DType
from timetile.runtime.machine.llvm import processor

ROUNDS = 3
RUNS: list[tuple[str, Domain, DType, int, tuple[str, ...]]] = [
    ("j2d5pt", (2048, 2048), "float64", 480, ("keep", "periodic", "mirror", "value", "constant",
                                             "series")),
    ("j2d5pt", (2048, 2048), "float32", 640, ("keep", "periodic", "mirror", "value")),
    ("j3d7pt", (192, 192, 192), "float64", 240, ("keep", "periodic")),
]  # fmt: skip


@dataclass(frozen=True)
class CpuRow:
    """A program with a feature, beside the program without. Cells updated per second in 1e9."""

    program: str
    feature: str
    dtype: str
    domain: Domain
    device: str
    threads: int
    gpts_per_s: float
    gpts_per_s_without: float
    ratio: float
    equal_bits: bool
    commit: str
    command: str = "python benchmarks/edges_cpu.py"


def best_seconds(runs: dict[str, Callable[[], object]]) -> dict[str, float]:
    """The least time of the process of each run."""
    best = dict.fromkeys(runs, float("inf"))
    for _ in range(ROUNDS):
        for name, run in runs.items():
            begin = time.process_time()
            run()
            best[name] = min(best[name], time.process_time() - begin)
    return best


def has_equal_bits(program: str, feature: str, dtype: DType, steps: int) -> bool:
    """One thread has the bits of the NumPy executor on a small domain."""
    make, domain = PROGRAMS[program]
    model, found = make(feature, domain), list[bytes]()
    for each in (model.on(executor="cpu", threads=1), model.on(executor="numpy")):
        arrays = [array.copy() for array in arrays_of(program, domain, dtype)]
        each.program(domain, dtype)(*arrays, *numbers_of(feature, dtype, steps), steps)
        found.append(b"".join(array.tobytes() for array in arrays))
    return found[0] == found[1]


def edge_rows(
    program: str, domain: Domain, dtype: DType, steps: int, features: tuple[str, ...], mark: str
) -> list[CpuRow]:
    """The rows of a program, a domain and a type."""
    runs: dict[str, Callable[[], object]] = {}
    for feature in features:
        model = PROGRAMS[program][0](feature, domain).on(executor="cpu", threads=1)
        made = model.program(domain, dtype)
        arrays = [array.copy() for array in arrays_of(program, domain, dtype)]
        numbers = numbers_of(feature, dtype, steps)
        runs[feature] = lambda made=made, given=(*arrays, *numbers, steps): made(*given)
    best = best_seconds(runs)
    speeds = {
        name: updated_cells(program, name, domain) * steps / seconds / 1e9
        for name, seconds in best.items()
    }
    return [
        CpuRow(
            program, name, dtype, domain, processor().name, 1, round(speed, 3),
            round(speeds[BESIDE.get(name, "keep")], 3),
            round(speed / speeds[BESIDE.get(name, "keep")], 4),
            has_equal_bits(program, name, dtype, 35), mark,
        )
        for name, speed in speeds.items()
    ]  # fmt: skip


def state_of(wave: Wave, name: str, shape: Domain, steps: int, executor: Any) -> Any:
    """The state of a wave after some steps."""
    model, points = wave.models[name].on(executor=executor, threads=1), wave.points(shape)
    given: dict[str, Any] = {use.name: points[use.name] for use in wave.models[name].step.points}
    start = np.resize(np.random.default_rng(5).uniform(-1, 1, 1_000_003), shape).astype("float32")
    return lambda: model.advance({"u": start}, steps, c=wave.c, **given)


def point_rows(mark: str, shape: Domain, steps: int) -> list[CpuRow]:
    """The rows of a wave of a volume with a million sources and receivers."""
    wave, small = replace(WAVES["lattice"], steps=steps), (31, 37, 45)
    runs = {name: state_of(wave, name, shape, steps, "cpu") for name in NAMES}
    best = best_seconds(runs)
    rows: list[CpuRow] = []
    for name, seconds in best.items():
        ends = [state_of(wave, name, small, steps, executor)() for executor in ("cpu", "numpy")]
        none = np.zeros(0)
        same = [end["u"].tobytes() + end.samples.get("traces", none).tobytes() for end in ends]
        rows.append(
            CpuRow(
                "lattice", f"a million points: {name}", "float32", shape, processor().name, 1,
                round(prod(shape) * steps / seconds / 1e9, 4),
                round(prod(shape) * steps / best["none"] / 1e9, 4),
                round(best["none"] / seconds, 4), same[0] == same[1], mark,
            )
        )  # fmt: skip
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--commit", required=True, help="the commit, for the file")
    parser.add_argument("--points-only", action="store_true")
    options = parser.parse_args()
    rows: list[CpuRow] = []
    for run in () if options.points_only else RUNS:
        rows += edge_rows(*run, options.commit)
        options.out.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
    rows += point_rows(options.commit, (256, 256, 256), 6)
    options.out.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
    print("\n".join(map(str, rows)))


if __name__ == "__main__":
    main()
