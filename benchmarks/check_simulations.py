"""
Check on a GPU what simulations need: edges, points, series, conditions, and reads at computed
places, each against the NumPy executor, bit for bit.

    python benchmarks/check_simulations.py
    compute-sanitizer --tool memcheck --error-exitcode 9 python benchmarks/check_simulations.py
    compute-sanitizer --tool racecheck --error-exitcode 9 python benchmarks/check_simulations.py

Arrays are small, and kernels of two and of three steps are made for each program.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from layered_steps import iso_regions

import timetile
from timetile import Field, Model, Points, Series, value
from timetile.frontend import unattended
from timetile.frontend.boundaries import Boundary
from timetile.runtime.program.graph_loop import GraphLoop

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


@timetile.stencil
def filtered(u: Field):
    u.next = 0.25 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1])
    with timetile.sweep(axis=0):
        u.next = 0.3 * u.next[-1, 0] + 0.7 * u.next[0, 0]
    with timetile.sweep(axis=1, descending=True):
        u.next = 0.3 * u.next[0, 1] + 0.7 * u.next[0, 0]


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


class CountedLoops(GraphLoop):
    """Loops of the GPU, counted."""

    made = 0

    def launch(self, most: int) -> None:
        """Give a launch to the GPU."""
        CountedLoops.made += 1
        super().launch(most)


def layers_ended(model: Model) -> bytes:
    """The bits of a volume with layers, ended by a condition."""
    shape, random = (57, 61, 70), np.random.default_rng(5)
    state = {name: random.uniform(-1, 1, shape) for name in "ufmk"}
    state["m"], state["k"] = 0.01 + 0.01 * state["m"] ** 2, 0.1 * state["k"] ** 2

    def until(u: Field) -> object:
        return timetile.maximum(abs(u[0, 0, 0])) > 2.5

    # Buffers of a wave take turns: after multiples of six steps each is where it was.
    found = model.advance(state, 400, every=24, until=until)
    return found["u"].tobytes() + found["f"].tobytes() + bytes(str(found.steps), "ascii")


def checks() -> Iterator[tuple[str, Model, Callable[[Model], bytes], int | None]]:
    """What is checked: a name, a step, what a run leaves, and a depth."""
    for name, boundary in BOUNDARIES.items():
        for depth in (2, 3):
            yield f"{name}, {depth} steps a kernel", plate(boundary), state_of, depth
    yield "periodic without points, 3 steps a kernel", ring, state_of, 3
    yield "until", relaxed, ended, 4
    yield "until, sweeps inside", filtered, ended, None
    yield "until, a volume with layers", iso_regions, layers_ended, None


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--only", default="", help="the beginning of the names checked")
    options = parser.parse_args()
    failed = False
    unattended.GraphLoop = CountedLoops
    for name, model, run, depth in checks():
        if not name.startswith(options.only):
            continue
        before = CountedLoops.made
        on_gpu = run(model.on(executor="gpu", depth=depth))
        equal = on_gpu == run(model.on(executor="numpy"))
        failed |= not equal
        loops = f", {CountedLoops.made - before} launches of a loop" if "until" in name else ""
        print(f"{name}: {'equal bits' if equal else 'OTHER BITS'}{loops}", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
