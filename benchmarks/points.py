"""
Measure sources and receivers inside kernels of several steps, beside the same step without points.

    python benchmarks/points.py --out benchmarks/results/points.json --commit COMMIT

Waves in plates and in a volume (25 cells of a star), with one source and 512 receivers, each alone
and both, on one GPU at the chosen schedule: receivers in a row, or (`acoustic`) in a line along the
first axis, as in Devito's examples; of `lattice`, a million sources and receivers each. `ratio` is
the speed with points over the speed without.
Bits are compared on a small domain with the NumPy executor, and on the whole domain with kernels of
two steps. The sums of receivers are made on the host, after the timed runs.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from simulations import ShownField

import timetile
from timetile import Field, Model, Points, Scalar
from timetile.frontend.field_types import DType
from timetile.frontend.point_runs import Rooms, rooms_of, tables_of
from timetile.runtime.device.gpu import device
from timetile.runtime.machine.driver import checked

REPEATS = 3
DTYPES: tuple[DType, ...] = ("float32", "float64")


@timetile.stencil
def plate(u: Field, c: Scalar):
    around = u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u[0, 0]
    u.next = 2 * u[0, 0] - u.prev[0, 0] + c * around


@timetile.stencil
def plate_shot(u: Field, c: Scalar, shot: Points):
    around = u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u[0, 0]
    u.next = 2 * u[0, 0] - u.prev[0, 0] + c * around
    shot.add(u)


@timetile.stencil
def plate_traces(u: Field, c: Scalar, traces: Points):
    around = u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u[0, 0]
    u.next = 2 * u[0, 0] - u.prev[0, 0] + c * around
    traces.read(u)


@timetile.stencil
def plate_survey(u: Field, c: Scalar, shot: Points, traces: Points):
    around = u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u[0, 0]
    u.next = 2 * u[0, 0] - u.prev[0, 0] + c * around
    shot.add(u)
    traces.read(u)


SLOPES = (-5 / 2, 4 / 3, -1 / 12)
"""Weights of the second derivative by five cells."""


def curvature(u: Any) -> Any:
    """The sum of the second derivatives along two axes, by five cells each."""
    total = 2 * SLOPES[0] * u[0, 0]
    for d, weight in enumerate(SLOPES[1:], 1):
        total = total + weight * (u[-d, 0] + u[d, 0] + u[0, -d] + u[0, d])
    return total


@timetile.stencil
def acoustic(u: Field, c: Scalar):
    u.next = 2 * u[0, 0] - u.prev[0, 0] + c * curvature(u)


@timetile.stencil
def acoustic_shot(u: Field, c: Scalar, shot: Points):
    u.next = 2 * u[0, 0] - u.prev[0, 0] + c * curvature(u)
    shot.add(u)


@timetile.stencil
def acoustic_traces(u: Field, c: Scalar, traces: Points):
    u.next = 2 * u[0, 0] - u.prev[0, 0] + c * curvature(u)
    traces.read(u)


@timetile.stencil
def acoustic_survey(u: Field, c: Scalar, shot: Points, traces: Points):
    u.next = 2 * u[0, 0] - u.prev[0, 0] + c * curvature(u)
    shot.add(u)
    traces.read(u)


WEIGHTS = (-205 / 72, 8 / 5, -1 / 5, 8 / 315, -1 / 560)
"""Weights of the second derivative by nine cells."""


def laplacian(u: Any) -> Any:
    """The sum of the second derivatives along three axes, by nine cells each."""
    total = 3 * WEIGHTS[0] * u[0, 0, 0]
    for d, weight in enumerate(WEIGHTS[1:], 1):
        along = u[-d, 0, 0] + u[d, 0, 0] + u[0, -d, 0] + u[0, d, 0] + u[0, 0, -d] + u[0, 0, d]
        total = total + weight * along
    return total


@timetile.stencil
def volume(u: Field, c: Scalar):
    u.next = 2 * u[0, 0, 0] - u.prev[0, 0, 0] + c * laplacian(u)


@timetile.stencil
def volume_shot(u: Field, c: Scalar, shot: Points):
    u.next = 2 * u[0, 0, 0] - u.prev[0, 0, 0] + c * laplacian(u)
    shot.add(u)


@timetile.stencil
def volume_traces(u: Field, c: Scalar, traces: Points):
    u.next = 2 * u[0, 0, 0] - u.prev[0, 0, 0] + c * laplacian(u)
    traces.read(u)


@timetile.stencil
def volume_survey(u: Field, c: Scalar, shot: Points, traces: Points):
    u.next = 2 * u[0, 0, 0] - u.prev[0, 0, 0] + c * laplacian(u)
    shot.add(u)
    traces.read(u)


@dataclass(frozen=True)
class Wave:
    """A wave equation: steps without points, with a source, with receivers, and with both."""

    models: dict[str, Model]
    small: tuple[int, ...]
    large: tuple[int, ...]
    steps: int
    """Rows of the tables: the most steps of a timed run."""
    c: float
    receivers: str = "in a row"

    def points(self, shape: tuple[int, ...]) -> dict[str, Points]:
        """The sources and receivers of arrays of a shape."""
        values = np.sin(0.1 * np.arange(self.steps))
        match self.receivers:
            case "along the stream":
                far = np.full(512, 5.1)
                line = np.stack([np.linspace(2.0, shape[0] - 3.0, 512), far], axis=1)
                return {"shot": Points([[shape[0] / 2, 4.3]], values), "traces": Points(line)}
            case "lattice":
                axes = [np.linspace(8, size - 10, min(100, size // 2)).round() for size in shape]
                places = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
                return {"shot": Points(places, values), "traces": Points(places + 1)}
            case _:
                return self.points_in_row(shape, values)

    def points_in_row(self, shape: tuple[int, ...], values: Any) -> dict[str, Points]:
        """One source in the upper part, and 512 receivers in a row, a cell below."""
        row = np.linspace(4.25, shape[-1] - 5.75, 512)
        depth = shape[0] / 3
        source = [depth, *(size / 2 + 0.3 for size in shape[1:])]
        beside = [np.full(512, size / 2 + 0.4) for size in shape[1:-1]]
        places = np.stack([np.full(512, depth + 1.5), *beside, row], axis=1)
        return {"shot": Points([source], values), "traces": Points(places)}

    def rooms(self, name: str, shape: tuple[int, ...]) -> Rooms:
        """The sizes of the lists of a model."""
        return rooms_of(self.models[name].step, self.points(shape), self.steps)

    def program(
        self, name: str, shape: tuple[int, ...], dtype: DType, depth: int | None
    ) -> timetile.CompiledProgram:
        """The compiled program of a model."""
        model = self.models[name].on(executor="gpu", depth=depth)
        return model.program(shape, dtype, self.rooms(name, shape))


NAMES = ("none", "source", "receivers", "source and receivers")
PLATES = (plate, plate_shot, plate_traces, plate_survey)
ACOUSTICS = (acoustic, acoustic_shot, acoustic_traces, acoustic_survey)
VOLUMES = (volume, volume_shot, volume_traces, volume_survey)
WAVES = {
    "wave2d": Wave(
        dict(zip(NAMES, PLATES)), (301, 517), (8192, 8192), 2000, 0.2
    ),
    "star25": Wave(
        dict(zip(NAMES, VOLUMES)), (61, 53, 97), (512, 512, 512), 240,
        0.05,
    ),
    "acoustic": Wave(
        dict(zip(NAMES, ACOUSTICS)), (301, 517), (4100, 4100),
        4000, 0.2, "along the stream",
    ),
    "lattice": Wave(
        dict(zip(NAMES, VOLUMES)), (61, 53, 97), (256, 512, 512), 15,
        0.05, "lattice",
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Row:
    """A step with points, beside the step without. Cells updated per second in 1e9."""

    wave: str
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


Compiled = tuple[str, str, DType, int | None]
"""A wave, its points, a type and a depth."""


def compiled_on_disk(case: Compiled) -> tuple[Compiled, int]:
    """Compile a program into the cache."""
    wave, name, dtype, depth = case
    kernels = WAVES[wave].program(name, WAVES[wave].large, dtype, depth).kernels
    for fact in kernels.facts[0]:
        kernels.kernel(fact.name)
    return case, max(fact.steps for fact in kernels.facts[0])


def has_equal_bits(wave: Wave, name: str, dtype: DType, depth: int) -> bool:
    """The GPU has the bits of the NumPy executor on a small domain."""
    model, points = wave.models[name], wave.points(wave.small)
    given: dict[str, Any] = {use.name: points[use.name] for use in model.step.points}
    start = np.random.default_rng(3).uniform(-1, 1, wave.small).astype(dtype)
    found: list[bytes] = []
    for each in (model.on(executor="gpu", depth=depth), model.on(executor="numpy")):
        state = each.advance({"u": start}, 2 * depth + 3, c=wave.c, **given)
        samples = b"".join(sums.tobytes() for sums in state.samples.values())
        found.append(state["u"].tobytes() + samples)
    return found[0] == found[1]


class Case:
    """A program and its arrays in GPU memory."""

    def __init__(self, wave: Wave, name: str, dtype: DType, depth: int | None):
        self.wave, self.name, self.gpu = wave, name, device(0)
        self.program, self.dtype = wave.program(name, wave.large, dtype, depth), dtype
        self.depth = max(fact.steps for fact in self.program.kernels.facts[0])
        u = np.resize(np.random.default_rng(5).uniform(-1, 1, 1_000_003).astype(dtype), wave.large)
        self.fields, self.lists = [u, u, u], self.packed_lists()
        arrays = (*self.fields, *self.lists)
        self.pointers = [self.gpu.allocate(array.nbytes) for array in arrays]
        self.shown = [ShownField(p, a) for p, a in zip(self.pointers, arrays)]
        self.fill()

    def packed_lists(self) -> list[Any]:
        """The arrays of all lists."""
        step, shape = self.wave.models[self.name].step, self.wave.large
        rooms = self.wave.rooms(self.name, shape)
        tables = tables_of(step, self.wave.points(shape), rooms, shape, {"u": self.dtype}, 0)
        for made in tables:
            made.begin(0, self.wave.steps)
        return [a for made in tables for a in (made.places, made.weights, made.table)]

    def pack(self) -> None:
        """Make the lists anew, and upload them."""
        self.lists = self.packed_lists()
        for pointer, array in zip(self.pointers[len(self.fields) :], self.lists):
            self.gpu.upload(pointer, array)

    def fill(self) -> None:
        """The fields, as at the start."""
        for pointer, array in zip(self.pointers, (*self.fields, *self.lists)):
            self.gpu.upload(pointer, array)

    def run(self, steps: int) -> float:
        """Seconds of some steps."""
        numbers: list[Any] = [self.wave.c]
        if self.lists:
            numbers.append(np.arange(steps))
        checked(self.gpu.cuda.cuCtxSynchronize())
        start = time.perf_counter()
        self.program(*self.shown[:3], *numbers, *self.shown[3:], steps)
        checked(self.gpu.cuda.cuCtxSynchronize())
        return time.perf_counter() - start

    def state(self, steps: int) -> bytes:
        """
        The bits of all fields, weights and tables after some steps from the start. In lists kernels
        keep cells for a while.
        """
        self.fill()
        self.run(steps)
        found: list[bytes] = []
        for pointer, array in zip(self.pointers, (*self.fields, *self.lists)):
            if array.dtype == np.int32:
                continue
            cells = np.empty_like(array)
            self.gpu.download(cells, pointer)
            found.append(cells.tobytes())
        return b"".join(found)

    def speed(self) -> float:
        """Cells updated per second, in 1e9: the best of some runs of equal launches."""
        steps = self.wave.steps // self.depth * self.depth - self.depth + 2
        self.run(steps)
        return prod(self.wave.large) * steps / min(self.run(steps) for _ in range(REPEATS)) / 1e9

    def free(self) -> None:
        """Give the memory back."""
        for pointer in self.pointers:
            self.gpu.free(pointer)


def rows_of(wave: str, dtype: DType, depth: int | None, mark: str) -> Iterator[Row]:
    """The rows of a wave, a type and a depth."""
    made, without, gpu = WAVES[wave], 0.0, device(0)
    with gpu.current():
        for name in made.models:
            case = Case(made, name, dtype, depth)
            kernels = [case.program.kernels.kernel(f.name) for f in case.program.kernels.facts[0]]
            speed, state = case.speed(), case.state(case.depth + 3)
            case.free()
            other = Case(made, name, dtype, 2 if case.depth != 2 else 1)
            equal = other.state(case.depth + 3) == state
            other.free()
            without = without or speed
            yield Row(
                wave, name, dtype, made.large, gpu.name, case.depth,
                max(kernel.registers for kernel in kernels),
                max(kernel.spill_bytes for kernel in kernels), round(speed, 1), round(without, 1),
                round(speed / without, 4),
                equal and has_equal_bits(made, name, dtype, min(case.depth, 6)), mark,
            )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--commit", required=True, help="the commit, for the file")
    parser.add_argument("--workers", type=int, default=14)
    parser.add_argument("--depths", type=int, nargs="*", default=[], help="besides the chosen one")
    parser.add_argument("--waves", nargs="*", choices=WAVES, default=list(WAVES))
    parser.add_argument("--dtypes", nargs="*", choices=DTYPES, default=list(DTYPES))
    options = parser.parse_args()
    depths: tuple[int | None, ...] = (None, *options.depths)
    waves = [name for name in WAVES if name in options.waves]
    dtypes: list[DType] = [dtype for dtype in DTYPES if dtype in options.dtypes]
    wanted = list(product(waves, dtypes, depths))
    cases = [
        (wave, name, dtype, depth)
        for wave, dtype, own in wanted
        for depth in (own, 2)
        for name in NAMES
    ]
    with ProcessPoolExecutor(options.workers) as pool:
        print(list(pool.map(compiled_on_disk, dict.fromkeys(cases))), flush=True)
    rows: list[Row] = []
    for made in wanted:
        for row in rows_of(*made, options.commit):
            rows.append(row)
            print(row, flush=True)
            options.out.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")


if __name__ == "__main__":
    main()
