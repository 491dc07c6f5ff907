"""
Measure coefficients of fewer axes: diffusion with a damping profile along some axes, read in place,
beside the program with equal numbers in a field of all axes.

    python benchmarks/profiles.py --out benchmarks/results/h200-profiles.json

The state lies in GPU memory, and `advance` is timed from the first launch to the end of the last.
Both programs leave equal bits, which is checked first. The bound is a device copy that reads and
writes the state once a step; several time steps a launch may beat it.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict, dataclass
from itertools import combinations
from math import prod
from pathlib import Path

import numpy as np
from check_python import ways
from python_examples import seconds
from reports import write_report
from rich.console import Console
from rich.table import Table
from timing import copy_bandwidth

import timetile
from timetile import Field
from timetile.frontend.model import Model
from timetile.runtime.device.gpu import Device, device

DOMAINS = {2: (8192, 8192), 3: (512, 512, 512)}


@dataclass
class Row:
    """
    Diffusion with a profile along `axes`: cells of the domain updated per second, in 1e9, with the
    profile read in place, with a field of all axes, and by copying the state.
    """

    dtype: str
    domain: tuple[int, ...]
    axes: tuple[int, ...]
    profile_gcells_per_s: float
    profile_steps_a_launch: int
    field_gcells_per_s: float
    field_steps_a_launch: int
    copy_gcells_per_s: float


def diffusion(rank: int, axes: tuple[int, ...]) -> Model:
    """Diffusion in a domain of `rank` axes, damped by a field with cells along some axes."""
    here = (0,) * rank
    own = tuple(0 if axis in axes else None for axis in range(rank))

    @timetile.stencil
    def damped(u: Field, w: Field):
        total = -2 * rank * u[here]
        for axis in range(rank):
            for side in (-1, 1):
                total = total + u[tuple(side if k == axis else 0 for k in range(rank))]
        u.next = u[here] + w[own] * total

    return damped


def measure(dtype: str, axes: tuple[int, ...], rank: int, on: Device, bandwidth: float) -> Row:
    """Time both programs. Ends the run if bits differ."""
    domain = DOMAINS[rank]
    rng = np.random.default_rng(7)
    narrow = rng.uniform(0.05, 0.15, [domain[axis] for axis in axes]).astype(dtype)
    spread = narrow[tuple(slice(None) if k in axes else None for k in range(rank))]
    start = rng.random(domain, np.float32).astype(dtype)
    to_gpu, from_gpu = next((way[1], way[2]) for way in ways() if way[0] != "NumPy")
    rates: list[float] = []
    depths: list[int] = []
    results: list[np.ndarray] = []
    for kept, w in ((axes, narrow), (tuple(range(rank)), np.ascontiguousarray(spread + 0 * start))):
        model = diffusion(rank, kept).on(executor="gpu")
        given = {"u": to_gpu(start), "w": to_gpu(w)}
        with on.current():
            results.append(from_gpu(model.advance(given, steps=37)["u"]))
            _, taken = seconds(
                lambda n, model=model, given=given: model.advance(given, steps=n),
                lambda: on.synchronize(0),
                0.3,
            )
        rates.append(prod(domain) / taken / 1e9)
        depths.append(model.explain().loops[0].depth)
    if results[0].tobytes() != results[1].tobytes():
        sys.exit(f"{dtype} {domain} {axes}: the programs leave other bits")
    copied = 2 * np.dtype(dtype).itemsize / (bandwidth * 1e12)
    return Row(
        dtype, domain, axes, rates[0], depths[0], rates[1], depths[1], 1 / copied / 1e9
    )  # fmt: skip


def main() -> None:
    """Measure, print a table, and write a file."""
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--out", type=Path)
    options.add_argument("--commit", default="")
    chosen = options.parse_args()
    gpu = device(0)
    with gpu.current():
        bandwidth = copy_bandwidth(gpu)
    table = Table("type", "domain", "axes", "profile", "field", "copy", title="1e9 cells a second")
    rows: list[Row] = []
    for rank in DOMAINS:
        for count in range(1, rank):
            for axes in combinations(range(rank), count):
                for dtype in ("float32", "float64"):
                    row = measure(dtype, axes, rank, gpu, bandwidth)
                    rows.append(row)
                    table.add_row(
                        dtype, " x ".join(map(str, row.domain)), str(axes),
                        f"{row.profile_gcells_per_s:.0f}", f"{row.field_gcells_per_s:.0f}",
                        f"{row.copy_gcells_per_s:.0f}",
                    )  # fmt: skip
    Console().print(table)
    if chosen.out:
        about = {
            "command": "python benchmarks/profiles.py",
            "device": gpu.name,
            "copy_tb_per_s": bandwidth,
            "commit": chosen.commit,
        }
        write_report(chosen.out, about, map(asdict, rows))


if __name__ == "__main__":
    main()
