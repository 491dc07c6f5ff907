"""
Measure runs that end by a condition: Jacobi's iteration with a check of the greatest change every
so many steps, beside a run of a fixed number of steps.

    python benchmarks/until.py --out benchmarks/results/until.json --commit COMMIT

The condition never holds, so both runs make equal steps on one GPU, in turns. `ratio` is the speed
with the condition over the speed without. States are compared bit for bit.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict, dataclass
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from simulations import Domain

import timetile
from timetile import Field
from timetile.frontend.field_types import DType
from timetile.runtime.device.gpu import device
from timetile.runtime.machine.driver import checked

DOMAINS: tuple[Domain, ...] = ((4096, 4096), (8192, 8192))
DTYPES: tuple[DType, ...] = ("float64", "float32")
CHECKS = (100, 1000)
"""Steps between two checks."""
STEPS, ROUNDS = 20_000, 3


@timetile.stencil
def jacobi(u: Field):
    u.next = 0.25 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1])


def never(u: Field) -> object:
    """A condition on the greatest change that does not hold."""
    return timetile.maximum(abs(u.next[0, 0] - u[0, 0])) < 0.0


@dataclass(frozen=True)
class UntilRow:
    """A run with checks, beside a run of equal steps. Cells updated per second in 1e9."""

    program: str
    feature: str
    dtype: str
    domain: Domain
    device: str
    every: int
    gpts_per_s: float
    gpts_per_s_without: float
    ratio: float
    equal_bits: bool
    commit: str


class DeviceArray:
    """An array in GPU memory, in the notation of other libraries."""

    def __init__(self, shape: Domain, dtype: np.dtype[Any]):
        self.gpu, self.shape, self.dtype = device(0), shape, dtype
        self.bytes = prod(shape) * dtype.itemsize
        self.pointer = self.gpu.allocate(self.bytes)
        self.__cuda_array_interface__ = {
            "shape": shape,
            "typestr": dtype.str,
            "data": (self.pointer, False),
            "version": 3,
        }

    def copy(self) -> DeviceArray:
        """Another array with equal cells."""
        made = DeviceArray(self.shape, self.dtype)
        checked(self.gpu.cuda.cuMemcpyDtoD(made.pointer, self.pointer, self.bytes))
        return made

    def read(self) -> bytes:
        """The cells."""
        cells = np.empty(self.shape, self.dtype)
        self.gpu.download(cells, self.pointer)
        return cells.tobytes()

    def __del__(self) -> None:
        with self.gpu.current():
            self.gpu.free(self.pointer)


def rows_of(domain: Domain, dtype: DType, mark: str, depth: int | None = None) -> list[UntilRow]:
    """The rows of a domain and a type, at the chosen depth unless given."""
    gpu, model = device(0), jacobi.on(executor="gpu", depth=depth)
    best = dict.fromkeys((0, *CHECKS), float("inf"))
    bits: dict[int, bytes] = {}
    with gpu.current():
        random = np.random.default_rng(2).uniform(-1, 1, 1_000_003).astype(dtype)
        plate = DeviceArray(domain, np.dtype(dtype))
        gpu.upload(plate.pointer, np.resize(random, domain))
        for _, every in product(range(ROUNDS), best):
            asked: dict[str, Any] = {"every": every, "until": never} if every else {}
            checked(gpu.cuda.cuCtxSynchronize())
            begin = time.perf_counter()
            found = model.advance({"u": plate}, STEPS, **asked)
            checked(gpu.cuda.cuCtxSynchronize())
            best[every] = min(best[every], time.perf_counter() - begin)
            bits[every] = found["u"].read()
            del found
    speeds = {every: prod(domain) * STEPS / seconds / 1e9 for every, seconds in best.items()}
    return [
        UntilRow(
            "j2d4pt", "until", dtype, domain, gpu.name, every, round(speeds[every], 1),
            round(speeds[0], 1), round(speeds[every] / speeds[0], 4), bits[every] == bits[0], mark,
        )
        for every in CHECKS
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--commit", required=True, help="the commit, for the file")
    parser.add_argument("--depth", type=int, help="time steps of a kernel")
    parser.add_argument("--sizes", type=int, nargs="*", default=[n for n, _ in DOMAINS])
    parser.add_argument("--dtypes", nargs="*", choices=DTYPES, default=list(DTYPES))
    options = parser.parse_args()
    rows: list[UntilRow] = []
    for size, dtype in product(options.sizes, options.dtypes):
        for row in rows_of((size, size), dtype, options.commit, options.depth):
            print(row, flush=True)
            rows.append(row)
            options.out.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")


if __name__ == "__main__":
    main()
