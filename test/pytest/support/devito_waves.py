"""
Operators of Devito for waves: acoustic, elastic and electromagnetic, with sources and snapshots.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from support.devito_case import Case, Make, all_of, drawn, dv, grid_of, noted_in, sympy

WAVES: dict[str, Make] = {}
"""Cases by name."""

case = noted_in(WAVES)


def acoustic(order: int, *shape: int, dtype: Any = np.float32) -> Case:
    """Waves in an inhomogeneous medium."""
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


def receivers_in_their_own_sum(increment: bool, power: int) -> Case:
    """Receivers in the first cell, near each other, and outside, whose sum reads the receivers."""
    grid = grid_of(9, 10)
    u = drawn(dv.TimeFunction(name="u", grid=grid, space_order=2))
    rec = dv.SparseTimeFunction(name="rec", grid=grid, npoint=4, nt=5)
    rec.coordinates.data[:] = [[13.3, 42.0], [14.0, 42.5], [0.0, 3.0], [80.0, 33.0]]
    rec.data[:] = np.cos(np.arange(20.0)).reshape(5, 4)
    read = rec.interpolate(expr=rec + u.forward * rec**power, increment=increment)
    return Case([dv.Eq(u.forward, 1.1 * u), read], [u, rec], {"time_M": 4})


@case
def receivers_that_read_themselves() -> Case:
    return receivers_in_their_own_sum(False, 0)


@case
def receivers_multiplied_by_themselves() -> Case:
    return receivers_in_their_own_sum(False, 1)


@case
def receivers_that_read_themselves_and_add() -> Case:
    return receivers_in_their_own_sum(True, 1)


@case
def receivers_that_read_the_step_before() -> Case:
    grid = grid_of(9, 10)
    u = drawn(dv.TimeFunction(name="u", grid=grid))
    rec = dv.SparseTimeFunction(name="rec", grid=grid, npoint=2, nt=6)
    rec.coordinates.data[:] = [[13.3, 42.0], [40.0, 77.0]]
    rec.data[:] = 0.5
    before = rec.subs({grid.time_dim: grid.time_dim - 1})
    read = rec.interpolate(expr=u + 0.5 * before)
    return Case([dv.Eq(u.forward, 1.1 * u), read], [u, rec], {"time_m": 1, "time_M": 5})


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


def elastic(order: int, *shape: int, **average: str) -> Case:
    """Velocities and stresses on staggered grids; `average` says how Devito averages moduli."""
    grid = grid_of(*shape)
    v = dv.VectorTimeFunction(name="v", grid=grid, space_order=order)
    tau = dv.TensorTimeFunction(name="tau", grid=grid, space_order=order)
    changed = [drawn(f, -1, 1) for f in all_of(v, tau)]
    lam, mu = (
        drawn(dv.Function(name=n, grid=grid, space_order=order, **average), 1, 2)
        for n in ("lam", "mu")
    )
    if average:
        mu.data_with_halo[:4] = 0  # a fluid: reciprocals are 0 there
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
    return elastic(4, 15, 14, avg_mode="safe_harmonic")


@case
def elastic_3d_so2() -> Case:
    return elastic(2, 7, 8, 9)


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
