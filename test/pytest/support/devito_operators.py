"""Operators of the kinds that Devito's examples and tutorials have, small, with what they are called with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import devito as dv
import numpy as np
import sympy

dv.configuration["log-level"] = "ERROR"


@dataclass
class Case:
    """An operator's equations, the functions that it changes, and the arguments of its call."""

    equations: list[Any]
    changed: list[Any]
    call: dict[str, Any]


CASES: dict[str, Callable[[], Case]] = {}


def case(make: Callable[[], Case]) -> Callable[[], Case]:
    """Note a case by its function's name."""
    CASES[make.__name__] = make
    return make


def grid_of(*shape: int, dtype: Any = np.float32, **options: Any) -> Any:
    """A grid of cells of 10 by 10."""
    extent = tuple(10.0 * (n - 1) for n in shape)
    return dv.Grid(shape=shape, extent=extent, dtype=dtype, **options)


def drawn(function: Any, low: float = 0.0, high: float = 1.0) -> Any:
    """The function with cells drawn between two bounds, halo included, by its name."""
    random = np.random.default_rng(sum(map(ord, function.name)))
    data = function.data_with_halo
    data[:] = (low + (high - low) * random.random(data.shape)).astype(function.dtype)
    return function


def all_of(*functions: Any) -> list[Any]:
    """The components of vectors and tensors, each once."""
    parts = [part for function in functions for part in function]
    return sorted(set(parts), key=lambda part: part.name)


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
def anisotropic_diffusion() -> Case:
    grid = grid_of(14, 15)
    u = drawn(dv.TimeFunction(name="u", grid=grid, space_order=4))
    k = drawn(dv.Function(name="k", grid=grid, space_order=4), 1, 2)
    flux = (k * u.dx).dx + (k * u.dy).dy + u.dx.dy
    return Case([dv.Eq(u.forward, u + 2 * flux)], [u], {"time_M": 4})


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
    parts = [
        dv.Eq(w.forward, dv.solve(dv.Eq(w.dt + u * w.dxl + v * w.dyl), w.forward), subdomain=grid.interior)
        for w in (u, v)
    ]  # fmt: skip
    return Case(parts, [u, v], {"time_M": 6, "dt": 1.0})


@case
def burgers() -> Case:
    grid = grid_of(19, 16)
    u, v = (drawn(dv.TimeFunction(name=n, grid=grid, space_order=2)) for n in "uv")
    nu = dv.Constant(name="nu", value=0.9)
    parts = []
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


def acoustic(order: int, *shape: int, dtype: Any = np.float32) -> Case:
    """Waves in a medium that is not the same everywhere."""
    grid = grid_of(*shape, dtype=dtype)
    u = drawn(dv.TimeFunction(name="u", grid=grid, time_order=2, space_order=order))
    m = drawn(dv.Function(name="m", grid=grid), 0.2, 0.4)
    step = dv.solve(m * u.dt2 - u.laplace, u.forward)
    return Case([dv.Eq(u.forward, step)], [u], {"time_m": 1, "time_M": 7, "dt": 1.5})


@case
def acoustic_1d_so2() -> Case:
    return acoustic(2, 40)


@case
def acoustic_1d_so8_in_double_precision() -> Case:
    return acoustic(8, 40, dtype=np.float64)


@case
def acoustic_2d_so4() -> Case:
    return acoustic(4, 18, 21)


@case
def acoustic_2d_so8() -> Case:
    return acoustic(8, 18, 21)


@case
def acoustic_3d_so2() -> Case:
    return acoustic(2, 11, 12, 13)


@case
def acoustic_3d_so8() -> Case:
    return acoustic(8, 11, 12, 13)


@case
def damped_acoustic_with_source_and_receivers() -> Case:
    grid = grid_of(16, 18)
    u = dv.TimeFunction(name="u", grid=grid, time_order=2, space_order=4)
    m = drawn(dv.Function(name="m", grid=grid), 0.2, 0.4)
    damp = drawn(dv.Function(name="damp", grid=grid), 0, 0.1)
    src = dv.SparseTimeFunction(name="src", grid=grid, npoint=2, nt=12)
    src.coordinates.data[:] = [[33.3, 42.0], [150.0, 101.5]]
    src.data[:] = np.sin(np.arange(24.0)).reshape(12, 2)
    rec = dv.SparseTimeFunction(name="rec", grid=grid, npoint=4, nt=12)
    rec.coordinates.data[:] = [[13.3, 42.0], [40.0, 77.0], [150.0, 170.0], [0.0, 3.0]]
    step = dv.solve(m * u.dt2 - u.laplace + damp * u.dt, u.forward)
    inject = src.inject(field=u.forward, expr=src * grid.stepping_dim.spacing**2 / m)
    return Case(
        [dv.Eq(u.forward, step), inject, rec.interpolate(expr=u)],
        [u, rec],
        {"time_m": 1, "time_M": 10, "dt": 1.0},
    )


@case
def adjoint_that_injects_receivers() -> Case:
    grid = grid_of(16, 18)
    v = drawn(dv.TimeFunction(name="v", grid=grid, time_order=2, space_order=4))
    m = drawn(dv.Function(name="m", grid=grid), 0.2, 0.4)
    rec = dv.SparseTimeFunction(name="rec", grid=grid, npoint=3, nt=12)
    rec.coordinates.data[:] = [[13.3, 42.0], [40.0, 77.0], [111.0, 22.0]]
    rec.data[:] = np.cos(np.arange(36.0)).reshape(12, 3)
    step = dv.solve(m * v.dt2 - v.laplace, v.backward)
    inject = rec.inject(field=v.backward, expr=rec * grid.stepping_dim.spacing**2 / m)
    return Case([dv.Eq(v.backward, step), inject], [v], {"time_m": 2, "time_M": 10, "dt": 1.0})


@case
def acoustic_that_saves_all_steps() -> Case:
    grid = grid_of(12, 13)
    u = drawn(dv.TimeFunction(name="u", grid=grid, time_order=2, space_order=2, save=9))
    step = dv.solve(0.3 * u.dt2 - u.laplace, u.forward)
    return Case([dv.Eq(u.forward, step)], [u], {"dt": 1.0})


@case
def gradient_from_saved_steps() -> Case:
    grid = grid_of(12, 13)
    u = drawn(dv.TimeFunction(name="u", grid=grid, time_order=2, space_order=2, save=9))
    v = drawn(dv.TimeFunction(name="v", grid=grid, time_order=2, space_order=2))
    gradient = drawn(dv.Function(name="grad", grid=grid))
    step = dv.solve(0.3 * v.dt2 - v.laplace, v.backward)
    parts = [dv.Eq(v.backward, step), dv.Inc(gradient, -u.dt2 * v)]
    return Case(parts, [v, gradient], {"dt": 1.0})


@case
def snapshots() -> Case:
    grid = grid_of(12, 13)
    u = drawn(dv.TimeFunction(name="u", grid=grid, time_order=2, space_order=4))
    sub = dv.ConditionalDimension("sub", parent=grid.time_dim, factor=4)
    kept = dv.TimeFunction(name="kept", grid=grid, time_order=0, time_dim=sub, save=5)
    step = dv.solve(0.3 * u.dt2 - u.laplace, u.forward)
    parts = [dv.Eq(u.forward, step), dv.Eq(kept, u)]
    return Case(parts, [u, kept], {"time_m": 1, "time_M": 17, "dt": 1.0})


@case
def the_last_snapshots() -> Case:
    grid = grid_of(12, 13)
    u = drawn(dv.TimeFunction(name="u", grid=grid))
    sub = dv.ConditionalDimension("sub", parent=grid.time_dim, factor=3)
    kept = dv.TimeFunction(name="kept", grid=grid, time_dim=sub, save=dv.Buffer(2))
    return Case([dv.Eq(u.forward, 1.1 * u), dv.Eq(kept, u)], [u, kept], {"time_M": 5})


def elastic(order: int, *shape: int) -> Case:
    """Velocities and stresses on staggered grids."""
    grid = grid_of(*shape)
    v = dv.VectorTimeFunction(name="v", grid=grid, space_order=order)
    tau = dv.TensorTimeFunction(name="tau", grid=grid, space_order=order)
    changed = [drawn(f, -1, 1) for f in all_of(v, tau)]
    lam, mu = (
        drawn(dv.Function(name=n, grid=grid, space_order=order), 1, 2) for n in ("lam", "mu")
    )
    b = drawn(dv.Function(name="b", grid=grid, space_order=order), 0.3, 0.6)
    damp = drawn(dv.Function(name="damp", grid=grid), 0.9, 1)
    s = grid.stepping_dim.spacing
    strain = dv.grad(v.forward) + dv.grad(v.forward).transpose(inner=False)
    parts = [
        dv.Eq(v.forward, damp * (v + s * b * dv.div(tau))),
        dv.Eq(tau.forward, damp * (tau + s * (lam * dv.diag(dv.div(v.forward)) + mu * strain))),
    ]
    return Case(parts, changed, {"time_M": 4, "dt": 2.0})


@case
def elastic_2d_so4() -> Case:
    return elastic(4, 15, 14)


@case
def elastic_3d_so4() -> Case:
    return elastic(4, 9, 10, 11)


@case
def acoustic_of_first_order() -> Case:
    grid = grid_of(15, 14)
    p = drawn(dv.TimeFunction(name="p", grid=grid, space_order=4, staggered=dv.NODE))
    v = dv.VectorTimeFunction(name="v", grid=grid, space_order=4)
    changed = [p, *(drawn(f) for f in all_of(v))]
    s = grid.stepping_dim.spacing
    parts = [
        dv.Eq(v.forward, v + s * dv.grad(p)),
        dv.Eq(p.forward, p + s * 0.7 * dv.div(v.forward)),
    ]
    return Case(parts, changed, {"time_M": 5, "dt": 2.0})


@case
def maxwell() -> Case:
    grid = grid_of(15, 14)
    x, y = grid.dimensions
    ez = drawn(dv.TimeFunction(name="ez", grid=grid, space_order=2, staggered=dv.NODE))
    hx = drawn(dv.TimeFunction(name="hx", grid=grid, space_order=2, staggered=y))
    hy = drawn(dv.TimeFunction(name="hy", grid=grid, space_order=2, staggered=x))
    s = grid.stepping_dim.spacing
    parts = [
        dv.Eq(hx.forward, hx - s * ez.dy),
        dv.Eq(hy.forward, hy + s * ez.dx),
        dv.Eq(ez.forward, ez + s * (hy.forward.dx - hx.forward.dy)),
    ]
    return Case(parts, [ez, hx, hy], {"time_M": 5, "dt": 2.0})


@case
def acoustic_with_two_fields_of_anisotropy() -> Case:
    grid = grid_of(10, 11, 12)
    p, r = (
        drawn(dv.TimeFunction(name=n, grid=grid, time_order=2, space_order=4)) for n in ("p", "r")
    )
    m, e = (drawn(dv.Function(name=n, grid=grid), 0.5, 0.9) for n in ("m", "e"))
    flat = p.dx2 + p.dy2
    first = dv.solve(m * p.dt2 - (1 + 2 * e) * flat - sympy.sqrt(1 + e) * r.dz2, p.forward)
    second = dv.solve(m * r.dt2 - dv.sqrt(1 + e) * flat - r.dz2, r.forward)
    parts = [dv.Eq(p.forward, first), dv.Eq(r.forward, second)]
    return Case(parts, [p, r], {"time_m": 1, "time_M": 5, "dt": 1.5})


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


class Corner(dv.SubDomain):
    """The first rows, and all columns but some at the sides."""

    name = "corner"

    def define(self, dimensions: Any) -> Any:
        x, y = dimensions
        return {x: ("left", 3), y: ("middle", 2, 3)}


class Last(dv.SubDomain):
    """The last columns."""

    name = "last"

    def define(self, dimensions: Any) -> Any:
        x, y = dimensions
        return {x: x, y: ("right", 4)}


@case
def subdomains() -> Case:
    corner, last = Corner(), Last()
    grid = grid_of(14, 15, subdomains=(corner, last))
    u = drawn(dv.TimeFunction(name="u", grid=grid, space_order=4))
    parts = [
        dv.Eq(u.forward, u + 5 * u.laplace, subdomain=grid.interior),
        dv.Eq(u.forward, 0.5 * u, subdomain=grid.subdomains["corner"]),
        dv.Eq(u.forward, u.forward + 1, subdomain=grid.subdomains["last"]),
    ]
    return Case(parts, [u], {"time_M": 6})


@case
def before_the_loop_and_after_it() -> Case:
    grid = grid_of(14, 15)
    u = drawn(dv.TimeFunction(name="u", grid=grid, space_order=2))
    c, e = (drawn(dv.Function(name=n, grid=grid, space_order=2)) for n in "ce")
    x, _ = grid.dimensions
    parts = [dv.Eq(c, 0.3 * e**2), dv.Eq(u.forward, u + c * u.laplace + x / 10), dv.Eq(e, c.dx)]
    return Case(parts, [u, c, e], {"time_M": 5})


@case
def a_coefficient_that_the_operator_makes() -> Case:
    """What is computed of coefficients before a call must not be of those."""
    grid = grid_of(14, 15)
    u = drawn(dv.TimeFunction(name="u", grid=grid, space_order=2))
    c, e = (drawn(dv.Function(name=n, grid=grid)) for n in "ce")
    src = dv.SparseTimeFunction(name="src", grid=grid, npoint=1, nt=7, coordinates=[[33.3, 42.0]])
    src.data[:] = 0.7
    inject = src.inject(field=u.forward, expr=src / c)
    parts = [dv.Eq(c, 1 + e**2), dv.Eq(u.forward, u + u.laplace / c), inject]
    return Case(parts, [u, c], {"time_M": 5})


@case
def cells_that_a_condition_chooses() -> Case:
    grid = grid_of(14, 15)
    u = drawn(dv.TimeFunction(name="u", grid=grid, space_order=2))
    c = drawn(dv.Function(name="c", grid=grid))
    chosen = dv.ConditionalDimension(
        "chosen", parent=grid.dimensions[-1], condition=sympy.And(dv.Lt(c, 0.7), dv.Gt(c, 0.2))
    )
    return Case([dv.Eq(u.forward, u + 1, implicit_dims=chosen)], [u], {"time_M": 5})


@case
def a_condition_on_time() -> Case:
    grid = grid_of(14, 15)
    u = drawn(dv.TimeFunction(name="u", grid=grid, space_order=2))
    early = dv.ConditionalDimension(
        "early", parent=grid.time_dim, condition=dv.Lt(grid.time_dim, 4)
    )
    parts = [dv.Eq(u.forward, 1.5 * u), dv.Eq(u.forward, u.forward + 1, implicit_dims=early)]
    return Case(parts, [u], {"time_M": 6})


@case
def a_term_that_depends_on_time() -> Case:
    grid = grid_of(14, 15)
    u = drawn(dv.TimeFunction(name="u", grid=grid, space_order=2))
    now = grid.time_dim * grid.time_dim.spacing
    return Case([dv.Eq(u.forward, u + sympy.sin(now))], [u], {"time_m": 1, "time_M": 6, "dt": 0.3})


@case
def functions_of_cells() -> Case:
    grid = grid_of(14, 15)
    x, _ = grid.dimensions
    u = drawn(dv.TimeFunction(name="u", grid=grid, space_order=2))
    row = drawn(dv.Function(name="row", dimensions=(x,), shape=(14,)))
    value = u * row + dv.exp(-u) + dv.sqrt(u) + dv.Max(u, 0.5) + dv.Abs(u) + u**2.5 + (1 + u) ** -2
    return Case([dv.Eq(u.forward, 0.1 * value)], [u], {"time_M": 4})


@case
def sinc_interpolation() -> Case:
    grid = grid_of(16, 17)
    u = drawn(dv.TimeFunction(name="u", grid=grid, space_order=8))
    rec = dv.SparseTimeFunction(name="rec", grid=grid, npoint=2, nt=5, interpolation="sinc", r=4)
    rec.coordinates.data[:] = [[73.0, 80.0], [33.3, 22.0]]
    read = rec.interpolate(expr=u.forward + 1, increment=True)
    return Case([dv.Eq(u.forward, 1.1 * u), read], [u, rec], {"time_M": 3})
