"""Operators of Devito measured by their first result alone: tilted, viscous, coupled."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from devito_operators import Model, drawn

dv: Any = import_module("devito")
"""Devito has no types."""


def grid_of(shape: tuple[int, ...]) -> Any:
    """A grid with 10 m between points."""
    return dv.Grid(shape=shape, extent=tuple(10.0 * (n - 1) for n in shape), dtype=np.float32)


def medium(grid: Any, name: str, order: int, low: float, high: float) -> Any:
    """A coefficient with cells between two bounds."""
    return drawn(dv.Function(name=name, grid=grid, space_order=order), low, high)


def tilted(shape: tuple[int, ...]) -> Model:
    """Waves of order 8 in a tilted transversely isotropic medium, two coupled fields."""
    grid = grid_of(shape)
    p, q = (
        drawn(dv.TimeFunction(name=n, grid=grid, time_order=2, space_order=8), -1, 1) for n in "pq"
    )
    m = medium(grid, "m", 8, 0.2, 0.4)
    epsilon, delta = (medium(grid, n, 8, 0.05, 0.1) for n in ("epsilon", "delta"))
    theta, phi = (medium(grid, n, 8, 0.1, 0.3) for n in ("theta", "phi"))
    x, y, z = grid.dimensions

    def along(u: Any) -> Any:
        """The second difference along the axis of symmetry."""
        across = dv.sin(theta) * (dv.cos(phi) * u.dx + dv.sin(phi) * u.dy)
        slope = across + dv.cos(theta) * u.dz
        return (
            (dv.sin(theta) * dv.cos(phi) * slope).dx(x0=x)
            + (dv.sin(theta) * dv.sin(phi) * slope).dy(x0=y)
            + (dv.cos(theta) * slope).dz(x0=z)
        )

    flat = p.laplace - along(p)
    upright = along(q)
    parts = [
        (p, (1 + 2 * epsilon) * flat + dv.sqrt(1 + 2 * delta) * upright),
        (q, dv.sqrt(1 + 2 * delta) * flat + upright),
    ]
    equations = [dv.Eq(u.forward, dv.solve(m * u.dt2 - drive, u.forward)) for u, drive in parts]
    return Model(equations, [p, q], 0.5, 10)


def viscous(shape: tuple[int, ...]) -> Model:
    """Viscoacoustic waves of order 8, a pressure and a memory of the losses (Kelvin and Voigt)."""
    grid = grid_of(shape)
    p = drawn(dv.TimeFunction(name="p", grid=grid, time_order=2, space_order=8), -1, 1)
    m, loss = medium(grid, "m", 8, 0.2, 0.4), medium(grid, "loss", 8, 0.01, 0.02)
    lossy = (p - p.backward) / grid.stepping_dim.spacing
    drive = p.laplace + loss * lossy.laplace
    return Model([dv.Eq(p.forward, dv.solve(m * p.dt2 - drive, p.forward))], [p], 0.5, 5)


def coupled(shape: tuple[int, ...]) -> Model:
    """A velocity and a pressure of order 8, with the divergence of a gradient times a field."""
    grid = grid_of(shape)
    v, p = (drawn(dv.TimeFunction(name=n, grid=grid, space_order=8), -1, 1) for n in "vp")
    m, s = medium(grid, "m", 8, 0.01, 0.02), grid.stepping_dim.spacing
    parts = [
        dv.Eq(v.forward, v - s * m * p.laplace),
        dv.Eq(p.forward, p - s * v.forward.dx + s * dv.div(m * dv.grad(p))),
    ]
    return Model(parts, [v, p], 0.5, 5)


MODELS = {"TTI so8": tilted, "viscoacoustic so8": viscous, "coupled so8": coupled}
"""The operators, by name."""
