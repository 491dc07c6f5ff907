"""
Operators of Devito on a GPU, or without one on the processor, against Devito's own C (needs gcc):
complex cells, every nth cell of an axis, averages of moduli, tilted waves, Fourier integrals, and
complex functions.

    python benchmarks/check_devito.py [frequencies logarithms]

Prints a line for each operator: where the calls ran, and the largest difference beside the largest
number.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from devito_operators import drawn, dv
from devito_waves import grid_of, tilted

import timetile.devito
from timetile.frontend.devito.library import sympy
from timetile.runtime.machine.driver import gpu_is_available

CLOSE = 1e-5
"""The largest difference beside the largest number."""


@dataclass
class Asked:
    """Equations, the changed functions, and the time step."""

    equations: list[Any]
    changed: list[Any]
    dt: float


def packet() -> Asked:
    """A complex field of order 4, multiplied by complex numbers and functions."""
    u = dv.TimeFunction(name="u", grid=grid_of((40, 44)), space_order=4, dtype=np.complex64)
    k = dv.Function(name="k", grid=u.grid, space_order=4, dtype=np.complex64)
    random = np.random.default_rng(1)
    for each in (u, k):
        shape = each.data_with_halo.shape
        each.data_with_halo[:] = 1 + random.random(shape) + 1j * random.random(shape)
    c = dv.Constant(name="c", dtype=np.complex64, value=0.3 - 0.2j)
    return Asked([dv.Eq(u.forward, u + 1j * c * (k * u.laplace) / k)], [u], 1.0)


def coarse() -> Asked:
    """Heat, and a coarse copy of every second and third cell."""
    grid = grid_of((40, 44))
    u = drawn(dv.TimeFunction(name="u", grid=grid, space_order=2), 0, 1)
    steps = zip(grid.dimensions, (2, 4), strict=True)
    places = tuple(dv.ConditionalDimension(f"{d}c", parent=d, factor=n) for d, n in steps)
    copy = dv.Function(name="copy", dimensions=places, shape=(20, 11))
    return Asked([dv.Eq(u.forward, u + 10 * u.laplace), dv.Eq(copy, u.forward)], [u, copy], 1.0)


def moduli() -> Asked:
    """Elastic waves with harmonic averages of a modulus that is 0 in a fluid."""
    grid = grid_of((40, 44))
    v = dv.VectorTimeFunction(name="v", grid=grid, space_order=4)
    tau = dv.TensorTimeFunction(name="tau", grid=grid, space_order=4)
    changed = sorted({*v, *tau}, key=lambda each: str(each.name))
    for each in changed:
        drawn(each, -1, 1)
    mu = dv.Function(name="mu", grid=grid, space_order=4, avg_mode="safe_harmonic")
    drawn(mu, 1, 2).data_with_halo[:9] = 0
    s = grid.stepping_dim.spacing
    strain = dv.grad(v.forward) + dv.grad(v.forward).transpose(inner=False)
    parts = [
        dv.Eq(v.forward, v + 0.5 * s * dv.div(tau)),
        dv.Eq(tau.forward, tau + s * (dv.diag(dv.div(v.forward)) + mu * strain)),
    ]
    return Asked(parts, changed, 0.5)


def waves() -> Asked:
    """Tilted waves of order 8."""
    made = tilted((24, 26, 28))
    return Asked(made.equations, made.changed, made.dt)


def frequencies() -> Asked:
    """A wave and its Fourier integral at four frequencies: complex functions of four dimensions."""
    u = dv.TimeFunction(name="u", grid=grid_of((24, 26, 28)), space_order=4)
    drawn(u, 0, 1)
    f = dv.DefaultDimension(name="f", default_value=4)
    dimensions = (f, *u.grid.dimensions)
    shape = (4, *u.grid.shape)
    modes = dv.Function(
        name="modes", grid=u.grid, dimensions=dimensions, shape=shape, dtype=np.complex64
    )
    rates = dv.Function(name="rates", grid=u.grid, dimensions=(f,), shape=(4,))
    rates.data[:] = (0.1, 0.2, 0.3, 0.4)
    angle = rates * u.grid.time_dim
    wave = dv.cos(angle) - 1j * dv.sin(angle)
    return Asked([dv.Eq(u.forward, u + 10 * u.laplace), dv.Inc(modes, wave * u)], [u, modes], 1.0)


def logarithms() -> Asked:
    """Logarithms and sines of complex cells."""
    u = dv.TimeFunction(name="u", grid=grid_of((40, 44)), space_order=2, dtype=np.complex64)
    shape = u.data_with_halo.shape
    random = np.random.default_rng(1)
    u.data_with_halo[:] = 1 + random.random(shape) + 1j * random.random(shape)
    return Asked([dv.Eq(u.forward, sympy.log(u) + 0.5 * sympy.sin(u) + 2)], [u], 1.0)


ASKED: tuple[Callable[[], Asked], ...] = (
    packet, coarse, moduli, waves, frequencies, logarithms,
)  # fmt: skip


def main() -> int:
    executor = "gpu" if gpu_is_available() else "cpu"
    failed = 0
    chosen = [make for make in ASKED if not sys.argv[1:] or make.__name__ in sys.argv[1:]]
    for make in chosen:
        expected, asked = make(), make()
        call = {"time_m": 1, "time_M": 12}
        dv.Operator(expected.equations, opt="noop", language="C").apply(dt=expected.dt, **call)
        with timetile.devito.backend(executor=executor):
            operator = dv.Operator(asked.equations)
        summary = operator.apply(dt=asked.dt, **call)
        worst = 0.0
        for a, b in zip(asked.changed, expected.changed, strict=True):
            x, y = np.asarray(a.data), np.asarray(b.data)
            worst = max(worst, float(np.abs(x - y).max() / np.abs(y).max()))
        is_right = summary.ran_on.is_timetile and worst < CLOSE
        failed += not is_right
        print(f"{make.__name__}: {summary.ran_on} ({executor}), {worst:.1e}", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
