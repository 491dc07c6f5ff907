"""
Measure sources and receivers inside kernels of several steps, beside the same step without points.

    python benchmarks/points.py --out benchmarks/results/points.json --commit COMMIT

A wave in a plate, with one source and 512 receivers in a row, on one GPU at the chosen schedule.
`ratio` is the speed with points over the speed without, at an equal depth and at the best depths.
Bits are compared on a small domain with the NumPy executor, and on the whole domain with kernels of
two steps. The sums of receivers are made on the host, after the timed runs.
"""

from __future__ import annotations

import argparse
import json
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from simulations import ShownField

import timetile
from timetile import Field, Model, Points, Scalar
from timetile.frontend.field_types import DType
from timetile.frontend.point_runs import PointTables, Rooms, rooms_of
from timetile.runtime.device.gpu import device
from timetile.runtime.machine.driver import checked

STEPS = 2000
"""Rows of the tables: the most steps of a timed run."""

REPEATS = 3
SMALL, LARGE = (301, 517), (8192, 8192)


@timetile.stencil
def plain(u: Field, c: Scalar):
    around = u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u[0, 0]
    u.next = 2 * u[0, 0] - u.prev[0, 0] + c * around


@timetile.stencil
def shot_only(u: Field, c: Scalar, shot: Points):
    around = u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u[0, 0]
    u.next = 2 * u[0, 0] - u.prev[0, 0] + c * around
    shot.add(u)


@timetile.stencil
def survey(u: Field, c: Scalar, shot: Points, traces: Points):
    around = u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u[0, 0]
    u.next = 2 * u[0, 0] - u.prev[0, 0] + c * around
    shot.add(u)
    traces.read(u)


MODELS = {"none": plain, "source": shot_only, "source and receivers": survey}


@dataclass(frozen=True)
class Row:
    """A step with points, beside the step without. Cells updated per second in 1e9."""

    points: str
    dtype: str
    domain: tuple[int, ...]
    device: str
    depth: int
    registers: int
    spilled_bytes: int
    gpts_per_s: float
    gpts_per_s_without: float
    ratio: float
    equal_bits: bool
    commit: str


def points_of(shape: tuple[int, ...]) -> dict[str, Points]:
    """One source in the upper part, and 512 receivers in a row, a cell below."""
    row = np.linspace(2.25, shape[1] - 3.25, 512)
    depth = shape[0] / 3
    return {
        "shot": Points([[depth, shape[1] / 2 + 0.3]], np.sin(0.1 * np.arange(STEPS))),
        "traces": Points(np.stack([np.full(512, depth + 1.5), row], axis=1)),
    }


def rooms(name: str, shape: tuple[int, ...]) -> Rooms:
    """The sizes of the lists of a model."""
    return rooms_of(MODELS[name].step, points_of(shape), STEPS)


def program_of(
    name: str, shape: tuple[int, ...], dtype: DType, depth: int | None
) -> timetile.CompiledProgram:
    """The compiled program of a model."""
    model: Model = MODELS[name].on(executor="gpu", depth=depth)
    return model.program(shape, dtype, rooms(name, shape))


def compiled_on_disk(case: tuple[str, DType, int | None]) -> tuple[str, DType, int | None, int]:
    """Compile a program into the cache."""
    name, dtype, depth = case
    kernels = program_of(name, LARGE, dtype, depth).kernels
    for fact in kernels.facts[0]:
        kernels.kernel(fact.name)
    return name, dtype, depth, max(fact.steps for fact in kernels.facts[0])


def has_equal_bits(name: str, dtype: DType, depth: int) -> bool:
    """The GPU has the bits of the NumPy executor on a small domain."""
    given: dict[str, Any] = {
        use.name: points_of(SMALL)[use.name] for use in MODELS[name].step.points
    }
    start = np.random.default_rng(3).uniform(-1, 1, SMALL).astype(dtype)
    found: list[bytes] = []
    for model in (MODELS[name].on(executor="gpu", depth=depth), MODELS[name].on(executor="numpy")):
        state = model.advance({"u": start}, 2 * depth + 3, c=0.2, **given)
        samples = b"".join(each.tobytes() for each in state.samples.values())
        found.append(state["u"].tobytes() + samples)
    return found[0] == found[1]


class Case:
    """A program and its arrays in GPU memory."""

    def __init__(self, name: str, dtype: DType, depth: int | None):
        self.name, self.gpu = name, device(0)
        self.program = program_of(name, LARGE, dtype, depth)
        self.depth = max(fact.steps for fact in self.program.kernels.facts[0])
        step, points = MODELS[name].step, points_of(LARGE)
        sizes = dict(rooms(name, LARGE))
        tables = [
            PointTables(step, use, points[use.name], sizes[use.name], LARGE, dtype, 0)
            for use in step.points
        ]
        for made in tables:
            made.begin(0, STEPS)
        u = np.resize(np.random.default_rng(5).uniform(-1, 1, 1_000_003).astype(dtype), LARGE)
        self.fields = [u, u, u]
        self.lists = [a for made in tables for a in (made.places, made.weights, made.table)]
        arrays = (*self.fields, *self.lists)
        self.pointers = [self.gpu.allocate(array.nbytes) for array in arrays]
        self.shown = [ShownField(p, a) for p, a in zip(self.pointers, arrays)]
        self.fill()

    def fill(self) -> None:
        """The fields, as at the start."""
        for pointer, array in zip(self.pointers, (*self.fields, *self.lists)):
            self.gpu.upload(pointer, array)

    def run(self, steps: int) -> float:
        """Seconds of some steps."""
        numbers: list[Any] = [0.2]
        if self.lists:
            numbers.append(np.arange(steps))
        checked(self.gpu.cuda.cuCtxSynchronize())
        start = time.perf_counter()
        self.program(*self.shown[:3], *numbers, *self.shown[3:], steps)
        checked(self.gpu.cuda.cuCtxSynchronize())
        return time.perf_counter() - start

    def state(self, steps: int) -> bytes:
        """The bits of all fields and tables after some steps from the start."""
        self.fill()
        self.run(steps)
        found: list[bytes] = []
        for pointer, array in zip(self.pointers, (*self.fields, *self.lists)):
            cells = np.empty_like(array)
            self.gpu.download(cells, pointer)
            found.append(cells.tobytes())
        return b"".join(found)

    def speed(self) -> float:
        """Cells updated per second, in 1e9: the best of some runs of equal launches."""
        steps = STEPS // self.depth * self.depth - self.depth + 2
        self.run(steps)
        return LARGE[0] * LARGE[1] * steps / min(self.run(steps) for _ in range(REPEATS)) / 1e9

    def free(self) -> None:
        """Give the memory back."""
        for pointer in self.pointers:
            self.gpu.free(pointer)


def rows_of(dtype: DType, depth: int | None, mark: str) -> list[Row]:
    """The rows of a type and a depth."""
    rows: list[Row] = []
    gpu = device(0)
    with gpu.current():
        for name in MODELS:
            case = Case(name, dtype, depth)
            kernels = [case.program.kernels.kernel(f.name) for f in case.program.kernels.facts[0]]
            speed, state = case.speed(), case.state(case.depth + 3)
            case.free()
            other = Case(name, dtype, 2)
            equal = other.state(case.depth + 3) == state
            other.free()
            without = rows[0].gpts_per_s if rows else round(speed, 1)
            rows.append(
                Row(
                    name, dtype, LARGE, gpu.name, case.depth,
                    max(kernel.registers for kernel in kernels),
                    max(kernel.spill_bytes for kernel in kernels), round(speed, 1), without,
                    round(speed / without, 4),
                    equal and has_equal_bits(name, dtype, min(case.depth, 6)), mark,
                )
            )  # fmt: skip
            print(rows[-1], flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--commit", required=True, help="the commit, for the file")
    parser.add_argument("--workers", type=int, default=14)
    parser.add_argument("--depths", type=int, nargs="*", default=[])
    options = parser.parse_args()
    dtypes: tuple[DType, ...] = ("float32",)
    depths = (None, *options.depths)
    cases = [(n, t, d) for d in (*depths, 2) for t in dtypes for n in MODELS]
    with ProcessPoolExecutor(options.workers) as pool:
        print(list(pool.map(compiled_on_disk, cases)), flush=True)
    rows: list[Row] = []
    for dtype in dtypes:
        for depth in depths:
            rows += rows_of(dtype, depth, options.commit)
            options.out.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")


if __name__ == "__main__":
    main()
