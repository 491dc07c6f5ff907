"""
Check on a GPU what simulations need: edges, points, series, conditions, and reads at computed
places, each against the NumPy executor, bit for bit.

    python benchmarks/check_simulations.py
    compute-sanitizer --tool memcheck --error-exitcode 9 python benchmarks/check_simulations.py
    compute-sanitizer --tool racecheck --error-exitcode 9 python benchmarks/check_simulations.py

Arrays are small, and kernels of two and of three steps are made for each program.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import timetile
from timetile import Field, Model, Points, Series, value
from timetile.frontend.boundaries import Boundary

STEPS = 7
SHAPE = (61, 141)

BOUNDARIES: dict[str, Boundary] = {
    "keep": "keep",
    "periodic": "periodic",
    "mirror": "mirror",
    "value": value(0.5),
    "mixed": (("mirror", value(-1.0)), "reflect"),
}


def plate(boundary: Boundary) -> Model:
    """A step with an edge, a source, receivers and a series."""

    @timetile.stencil(boundary=boundary)
    def step(u: Field, f: Series, a: Points, b: Points):
        around = u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1]
        u.next = 0.5 * u[0, 0] + 0.125 * around + f[0]
        a.add(u)
        b.read(u)

    return step


@timetile.stencil(boundary="periodic")
def ring(u: Field, f: Series):
    around = u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1]
    u.next = 0.5 * u[0, 0] + 0.125 * around + f[0]


@timetile.stencil
def relaxed(u: Field):
    u.next = 0.25 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1])


def points() -> dict[str, Any]:
    """Sources in one cell, and beside the last inner cells; receivers in a line along each axis."""
    a = [[20.3, 70.4], [20.3, 70.4], [SHAPE[0] - 2.5, SHAPE[1] - 2.5]]
    along = [[row, 12.0] for row in range(1, SHAPE[0] - 1, 3)]
    across = [[33.5, column] for column in range(1, SHAPE[1] - 2, 5)]
    waves = np.random.default_rng(1).random((STEPS, 3))
    return {"a": Points(a, waves), "b": Points([*along, *across])}


def state_of(model: Model) -> bytes:
    """The bits of the plate and of its receivers after some steps."""
    u = np.random.default_rng(2).random(SHAPE)
    f = np.random.default_rng(3).random(STEPS)
    given = points() if model.step.points else {}
    state = model.advance({"u": u}, STEPS, f=f, **given)
    return state["u"].tobytes() + b"".join(sums.tobytes() for sums in state.samples.values())


def ended(model: Model) -> bytes:
    """The bits of a run that ends by a condition on numbers of all cells."""
    u = np.random.default_rng(4).random(SHAPE)

    def until(u: Field) -> object:
        change = timetile.maximum(abs(u.next[0, 0] - u[0, 0]))
        return change < 2e-3 or timetile.total(u.next[0, 0] * u.next[0, 0]) < 1.0

    state = model.advance({"u": u}, 400, every=8, until=until)
    return state["u"].tobytes() + bytes(str(state.steps), "ascii")


def checks() -> Iterator[tuple[str, Model, Callable[[Model], bytes], int | None]]:
    """What is checked: a name, a step, what a run leaves, and a depth."""
    for name, boundary in BOUNDARIES.items():
        for depth in (2, 3):
            yield f"{name}, {depth} steps a kernel", plate(boundary), state_of, depth
    yield "periodic without points, 3 steps a kernel", ring, state_of, 3
    yield "until", relaxed, ended, 4


def main() -> None:
    failed = False
    for name, model, run, depth in checks():
        on_gpu = run(model.on(executor="gpu", depth=depth))
        equal = on_gpu == run(model.on(executor="numpy"))
        failed |= not equal
        print(f"{name}: {'equal bits' if equal else 'OTHER BITS'}", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
