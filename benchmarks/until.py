"""
Measure runs that end by a condition: Jacobi's iteration with a check of the greatest change every
so many steps, beside a run of a fixed number of steps.

    python benchmarks/until.py --out benchmarks/results/until.json --commit COMMIT

The condition never holds, so both runs make equal steps on one GPU. Runs go in turns, to and fro,
as a GPU at work lowers its clock: `ratio` is the median time of runs without the condition over
that of runs with it, after a first round. States are compared bit for bit, and the numbers of a
run that ends by its condition with those of checks by the host.

Kernels for the steps between two checks are made at once; other runs wait for them to be worth it.
"""

from __future__ import annotations

import argparse
import json
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from itertools import product
from math import prod
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from simulated_programs import Domain

import timetile
from timetile import Field
from timetile.frontend import checked_pieces
from timetile.frontend.field_types import DType
from timetile.runtime.device.gpu import device
from timetile.runtime.machine.driver import checked

DOMAINS: tuple[Domain, ...] = ((4096, 4096), (8192, 8192))
DTYPES: tuple[DType, ...] = ("float64", "float32")
CHECKS = (100, 1000)
"""Steps between two checks."""
STEPS, ROUNDS = 20_000, 5


@timetile.stencil
def jacobi(u: Field):
    u.next = 0.25 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1])


checked_pieces.WORTH_SECONDS = 0.0


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
    spread: float
    """The longest time of a run with checks less the shortest, over the median."""
    equal_bits: bool
    commit: str
    command: str = "python benchmarks/until.py"


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


Compiled = tuple[Domain, DType, int, int | None, str | None]
"""A domain, a type, the steps between two checks, a depth, and a named architecture."""


def model_of(depth: int | None, arch: str | None) -> timetile.Model:
    """Jacobi's iteration on a GPU."""
    named: dict[str, Any] = {} if arch is None else {"arch": arch}
    return jacobi.on(executor="gpu", depth=depth, **named)


def compiled_on_disk(case: Compiled) -> bool:
    """
    Compile the programs of a run into the cache, by short runs. Returns whether checks see equal
    numbers, and runs end equally, with kernels of their own and with passes over the fields.
    """
    domain, dtype, every, depth, arch = case
    model = model_of(depth, arch)
    start = np.resize(np.random.default_rng(3).uniform(-1, 1, 1_000_003).astype(dtype), domain)

    def ended(limit: float, worth: float) -> tuple[bytes, int, list[float]]:
        seen: list[float] = []

        def ends(u: Field) -> bool:
            seen.append(timetile.maximum(abs(u.next[0, 0] - u[0, 0])))
            return seen[-1] < limit

        checked_pieces.WORTH_SECONDS, checked_pieces.PREPARED_SECONDS = worth, 0.0
        state = model.advance({"u": start}, 12 * every + 3, every=every, until=ends)
        return state["u"].tobytes(), state.steps, seen

    before = checked_pieces.PREPARED_SECONDS
    apart = ended(0.0, float("inf"))
    limit = float(apart[2][8])
    together = [ended(0.0, 0.0) == apart, ended(limit, 0.0) == ended(limit, float("inf"))]
    checked_pieces.WORTH_SECONDS, checked_pieces.PREPARED_SECONDS = 0.0, before
    return all(together)


def rows_of(
    domain: Domain, dtype: DType, options: argparse.Namespace, equal: bool
) -> list[UntilRow]:
    """The rows of a domain and a type, at the chosen depth unless given."""
    gpu, model = device(0), model_of(options.depth, options.arch)
    ways = [0, *options.checks]
    spent: dict[int, list[float]] = {every: [] for every in ways}
    bits: dict[int, bytes] = {}
    with gpu.current():
        random = np.random.default_rng(2).uniform(-1, 1, 1_000_003).astype(dtype)
        plate = DeviceArray(domain, np.dtype(dtype))
        gpu.upload(plate.pointer, np.resize(random, domain))
        for number in range(1 + ROUNDS):
            for every in ways if number % 2 else reversed(ways):
                asked: dict[str, Any] = {"every": every, "until": never} if every else {}
                checked(gpu.cuda.cuCtxSynchronize())
                begin = time.perf_counter()
                found = model.advance({"u": plate}, options.steps, **asked)
                checked(gpu.cuda.cuCtxSynchronize())
                if number:
                    spent[every].append(time.perf_counter() - begin)
                if number == ROUNDS:
                    bits[every] = found["u"].read()
                del found
    cells = prod(domain) * options.steps / 1e9
    spreads = {
        every: (max(seconds) - min(seconds)) / median(seconds) for every, seconds in spent.items()
    }
    speeds = {every: cells / median(seconds) for every, seconds in spent.items()}
    return [
        UntilRow(
            "j2d4pt", "until", dtype, domain, gpu.name, every, round(speeds[every], 1),
            round(speeds[0], 1), round(speeds[every] / speeds[0], 4), round(spreads[every], 4),
            bits[every] == bits[0] and equal, options.commit,
        )
        for every in options.checks
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--commit", required=True, help="the commit, for the file")
    parser.add_argument("--depth", type=int, help="time steps of a kernel")
    parser.add_argument("--sizes", type=int, nargs="*", default=[n for n, _ in DOMAINS])
    parser.add_argument("--dtypes", nargs="*", choices=DTYPES, default=list(DTYPES))
    parser.add_argument("--checks", type=int, nargs="*", default=list(CHECKS))
    parser.add_argument("--steps", type=int, default=STEPS, help="steps of a run")
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--apart", action="store_true", help="passes over the fields at checks")
    parser.add_argument("--arch", help="the architecture, as of kernels made ahead")
    options = parser.parse_args()
    rows: list[UntilRow] = []
    wanted = list(product(options.sizes, options.dtypes))
    cases = [
        ((n, n), dtype, checks, options.depth, options.arch)
        for n, dtype in wanted
        for checks in options.checks
    ]
    with ProcessPoolExecutor(options.workers) as pool:
        equal = dict(zip(cases, pool.map(compiled_on_disk, cases)))
    if options.apart:
        checked_pieces.WORTH_SECONDS = float("inf")
    for size, dtype in wanted:
        same = all(answer for case, answer in equal.items() if case[:2] == ((size, size), dtype))
        for row in rows_of((size, size), dtype, options, same):
            print(row, flush=True)
            rows.append(row)
            options.out.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")


if __name__ == "__main__":
    main()
