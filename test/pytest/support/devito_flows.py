"""Small operators of Devito for diffusion, flow and reaction, like in examples and tutorials."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from support.devito_case import Case, Make, drawn, dv, grid_of, noted_in, sympy

PARTS: Any = import_module("devito.finite_differences.differentiable")
"""Devito's functions of complex numbers."""

FLOWS: dict[str, Make] = {}
"""Cases by name."""

case = noted_in(FLOWS)


@case
def diffusion() -> Case:
    grid = grid_of(21, 22)
    u = drawn(dv.TimeFunction(name="u", grid=grid, space_order=2))
    a = dv.Constant(name="a", value=0.5)
    step = dv.solve(dv.Eq(u.dt, a * u.laplace), u.forward)
    return Case([dv.Eq(u.forward, step)], [u], {"time_M": 6, "dt": 5.0})


@case
def diffusion_in_double_precision() -> Case:
    grid = grid_of(13, 9, 11, dtype=np.float64)
    u = drawn(dv.TimeFunction(name="u", grid=grid, space_order=6))
    step = dv.solve(dv.Eq(u.dt, u.laplace), u.forward)
    return Case([dv.Eq(u.forward, step)], [u], {"time_m": 1, "time_M": 5, "dt": 5.0})


@case
def a_packet_of_complex_cells() -> Case:
    grid = grid_of(14, 15)
    u = drawn(dv.TimeFunction(name="u", grid=grid, space_order=4, dtype=np.complex64))
    k = drawn(dv.Function(name="k", grid=grid, space_order=4, dtype=np.complex64), 1, 2)
    size = drawn(dv.Function(name="size", grid=grid))
    u.data[:] *= 1j
    k.data[:] += 1j * k.data
    c = dv.Constant(name="c", dtype=np.complex64, value=0.3 - 0.2j)
    flux = 1j * c * ((k * u.dx).dx + u.dy.dy) / k + sympy.exp(c * k) * PARTS.Conj(u)
    parts = [
        dv.Eq(u.forward, u + 0.2 * flux),
        dv.Inc(u.forward, 0.1j * u.forward),
        dv.Eq(size, PARTS.Real(u) ** 2 + PARTS.Imag(u) ** 2),
    ]
    return Case(parts, [u, size], {"time_M": 4})


@case
def linear_convection() -> Case:
    grid = grid_of(17, 18)
    u = drawn(dv.TimeFunction(name="u", grid=grid))
    c = dv.Constant(name="c", value=1.5)
    step = dv.solve(dv.Eq(u.dt + c * u.dxl + c * u.dyl), u.forward)
    t, (x, y) = grid.stepping_dim, grid.dimensions
    edges = [dv.Eq(u[t + 1, 0, y], 1.0), dv.Eq(u[t + 1, x, 17], 1.0), dv.Eq(u[t + 1, x, 0], 1.0)]
    update = dv.Eq(u.forward, step, subdomain=grid.interior)
    return Case([update, *edges], [u], {"time_M": 7, "dt": 1.0})


@case
def nonlinear_convection() -> Case:
    grid = grid_of(17, 18)
    u, v = (drawn(dv.TimeFunction(name=n, grid=grid)) for n in "uv")
    parts: list[Any] = []
    for w in (u, v):
        pde = dv.Eq(w.dt + u * w.dxl + v * w.dyl)
        parts.append(dv.Eq(w.forward, dv.solve(pde, w.forward), subdomain=grid.interior))
    return Case(parts, [u, v], {"time_M": 6, "dt": 1.0})


@case
def burgers() -> Case:
    grid = grid_of(19, 16)
    u, v = (drawn(dv.TimeFunction(name=n, grid=grid, space_order=2)) for n in "uv")
    nu = dv.Constant(name="nu", value=0.9)
    parts: list[Any] = []
    for w in (u, v):
        pde = dv.Eq(w.dt + u * w.dxl + v * w.dyl, nu * w.laplace)
        parts.append(dv.Eq(w.forward, dv.solve(pde, w.forward), subdomain=grid.interior))
    t, (x, y) = grid.stepping_dim, grid.dimensions
    edges = [dv.Eq(w[t + 1, 0, y], 1.0) for w in (u, v)]
    edges += [dv.Eq(w[t + 1, x, 15], 1.0) for w in (u, v)]
    return Case([*parts, *edges], [u, v], {"time_M": 6, "dt": 2.0})


@case
def laplace_in_pseudo_time() -> Case:
    grid = grid_of(15, 13)
    p = drawn(dv.TimeFunction(name="p", grid=grid, space_order=2))
    _, k = grid.spacing_symbols
    t, (x, y) = grid.stepping_dim, grid.dimensions
    mean = dv.solve(dv.Eq(p.laplace, 0), p)
    update = dv.Eq(p.forward, mean, subdomain=grid.interior)
    edges = [
        dv.Eq(p[t + 1, 0, y], 0.0),
        dv.Eq(p[t + 1, 14, y], y * k / 120),
        dv.Eq(p[t + 1, x, 0], p[t + 1, x, 1]),
        dv.Eq(p[t + 1, x, 12], p[t + 1, x, 11]),
    ]
    return Case([update, *edges], [p], {"time_M": 9})


@case
def poisson() -> Case:
    grid = grid_of(15, 13)
    p = drawn(dv.TimeFunction(name="p", grid=grid, space_order=2))
    b = drawn(dv.Function(name="b", grid=grid), -1, 1)
    update = dv.Eq(p.forward, dv.solve(dv.Eq(p.laplace, b), p), subdomain=grid.interior)
    return Case([update], [p], {"time_M": 9})


@case
def shallow_water() -> Case:
    grid = grid_of(14, 15)
    eta, m, n = (
        drawn(dv.TimeFunction(name=a, grid=grid, space_order=2)) for a in ("eta", "m", "n")
    )
    h = drawn(dv.Function(name="h", grid=grid), 20, 30)
    d = drawn(dv.Function(name="d", grid=grid, space_order=2), 20, 30)
    g, alpha = 9.81, 0.025
    friction = g * alpha**2 * dv.sqrt(m**2 + n**2) / d ** (7.0 / 3.0)
    pde_eta = dv.Eq(eta.dt + m.dxc + n.dyc)
    pde_m = dv.Eq(m.dt + (m**2 / d).dxc + (m * n / d).dyc + g * d * eta.forward.dxc + friction * m)
    pde_n = dv.Eq(n.dt + (n**2 / d).dyc + (m * n / d).dxc + g * d * eta.forward.dyc + friction * n)
    inner = grid.interior
    parts = [
        dv.Eq(eta.forward, dv.solve(pde_eta, eta.forward), subdomain=inner),
        dv.Eq(m.forward, dv.solve(pde_m, m.forward), subdomain=inner),
        dv.Eq(n.forward, dv.solve(pde_n, n.forward), subdomain=inner),
        dv.Eq(d, eta.forward + h),
    ]
    return Case(parts, [eta, m, n, d], {"time_M": 4, "dt": 0.05})


@case
def gray_scott() -> Case:
    grid = grid_of(14, 15)
    u, v = (drawn(dv.TimeFunction(name=a, grid=grid, space_order=2)) for a in "uv")
    f, k = dv.Constant(name="f", value=0.035), dv.Constant(name="k", value=0.06)
    parts = [
        dv.Eq(u.forward, u + 5 * u.laplace - u * v**2 + f * (1 - u)),
        dv.Eq(v.forward, v + 2 * v.laplace + u * v**2 - (f + k) * v),
    ]
    return Case(parts, [u, v], {"time_M": 6})
