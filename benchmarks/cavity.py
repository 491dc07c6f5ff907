"""
Measure the flow in a cavity with a moving lid, with 50 iterations of the pressure in each step, on
the processor, beside NumPy.

    python benchmarks/cavity.py --out benchmarks/results/cavity.json --commit COMMIT

Both run in one thread, in turns, and the best of each counts. Fields are compared bit for bit: the
step is compiled without contraction, and both sum in one order.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from reports import write_report
from settings import wait_for_choices

import timetile
from timetile import Field, Scalar, repeat, temporary
from timetile.runtime.machine.llvm import processor

wait_for_choices()

Fields = dict[str, np.ndarray[Any, Any]]
ITERATIONS, ROUNDS = 50, 5
STEPS = {41: 400, 257: 40}
"""The steps of a run, by the cells along each axis."""
DT, DX, VISCOSITY = 1e-3, 0.05, 0.1


@timetile.stencil
def cavity(u: Field, v: Field, p: Field, dt: Scalar, dx: Scalar, nu: Scalar):
    across = (u[0, 1] - u[0, -1]) / (2 * dx)
    along = (v[1, 0] - v[-1, 0]) / (2 * dx)
    sheared = (u[1, 0] - u[-1, 0]) / (2 * dx) * ((v[0, 1] - v[0, -1]) / (2 * dx))
    inner = (across + along) / dt - across * across - 2 * sheared - along * along
    source = temporary(dx * dx * inner)
    for _ in repeat(ITERATIONS):
        around = p.next[0, 1] + p.next[0, -1] + p.next[1, 0] + p.next[-1, 0]
        p.next = 0.25 * (around - source[0, 0])
    c, d = dt / dx, dt / (2 * dx)
    spread = nu * dt / (dx * dx)
    for name, side in ((u, (0, 1)), (v, (1, 0))):
        other = (-side[0], -side[1])
        moved = u[0, 0] * c * (name[0, 0] - name[0, -1]) + v[0, 0] * c * (name[0, 0] - name[-1, 0])
        pushed = d * (p.next[side] - p.next[other])
        smooth = name[0, 1] + name[0, -1] + name[1, 0] + name[-1, 0] - 4 * name[0, 0]
        name.next = name[0, 0] - moved - pushed + spread * smooth


def in_numpy(state: Fields, steps: int) -> Fields:
    """The fields after some steps."""
    u, v, p = (state[name].copy() for name in "uvp")
    c, d, spread = DT / DX, DT / (2 * DX), VISCOSITY * DT / (DX * DX)
    here, east, west = (
        (slice(1, -1),) * 2,
        (slice(1, -1), slice(2, None)),
        (slice(1, -1), slice(-2)),
    )
    north, south = (slice(2, None), slice(1, -1)), (slice(-2), slice(1, -1))
    for _ in range(steps):
        across, along = (u[east] - u[west]) / (2 * DX), (v[north] - v[south]) / (2 * DX)
        sheared = (u[north] - u[south]) / (2 * DX) * ((v[east] - v[west]) / (2 * DX))
        inner = (across + along) / DT - across * across - 2 * sheared - along * along
        source = DX * DX * inner
        for _ in range(ITERATIONS):
            p[here] = 0.25 * (p[east] + p[west] + p[north] + p[south] - source)
        new: list[np.ndarray[Any, Any]] = []
        for each, (ahead, behind) in ((u, (east, west)), (v, (north, south))):
            moved = u[here] * c * (each[here] - each[west]) + v[here] * c * (
                each[here] - each[south]
            )
            pushed = d * (p[ahead] - p[behind])
            smooth = each[east] + each[west] + each[north] + each[south] - 4 * each[here]
            new.append(each[here] - moved - pushed + spread * smooth)
        u[here], v[here] = new
    return {"u": u, "v": v, "p": p}


@dataclass(frozen=True)
class CavityRow:
    """One size, in milliseconds a step."""

    program: str
    domain: tuple[int, int]
    iterations: int
    threads: int
    ms_per_step: float
    numpy_ms_per_step: float
    times_numpy: float
    equal_bits: bool


def measured(size: int) -> CavityRow:
    """The row of a size."""
    model = cavity.on(executor="cpu", threads=1, fp_contract="off")
    start = {name: np.zeros((size, size)) for name in "uvp"}
    start["u"][-1] = 1.0
    steps = STEPS[size]
    best, found = [float("inf")] * 2, list[Fields]()
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        own = model.advance(start, steps, dt=DT, dx=DX, nu=VISCOSITY)
        between = time.perf_counter()
        theirs = in_numpy(start, steps)
        best = [
            min(best[0], between - begin),
            min(best[1], time.perf_counter() - between),
        ]
        found = [dict(own), theirs]
    equal = all(found[0][name].tobytes() == found[1][name].tobytes() for name in "uvp")
    own_ms, numpy_ms = (1e3 * seconds / steps for seconds in best)
    return CavityRow(
        "cavity", (size, size), ITERATIONS, 1, round(own_ms, 4), round(numpy_ms, 4),
        round(numpy_ms / own_ms, 2), equal,
    )  # fmt: skip


def main() -> None:
    """Measure, print and write the rows."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--commit", default="", help="the commit, for the file")
    options = parser.parse_args()
    rows = [measured(size) for size in STEPS]
    for row in rows:
        print(row)
    if options.out is not None:
        about = {
            "machine": processor().name,
            "numpy": np.__version__,
            "command": "python benchmarks/cavity.py",
            "commit": options.commit,
        }
        write_report(options.out, about, map(asdict, rows))


if __name__ == "__main__":
    main()
