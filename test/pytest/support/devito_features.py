"""
Operators of Devito with features of equations besides a stencil: subdomains, conditions, time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from support.devito_case import Case, Make, drawn, dv, grid_of, noted_in, sympy

FEATURES: dict[str, Make] = {}
"""Cases by name."""

case = noted_in(FEATURES)


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


class Pools(dv.SubDomainSet):
    """Two boxes of columns between others."""

    name = "pools"


@case
def a_set_of_subdomains_and_a_function_on_whole_rows() -> Case:
    grid = grid_of(14, 15)
    bounds = (np.array([1, 8]), np.array([9, 2]), 2, np.array([4, 1]))
    pools, last = Pools(N=2, bounds=bounds, grid=grid), Last(grid=grid)
    u = drawn(dv.TimeFunction(name="u", grid=grid, space_order=2))
    c = drawn(dv.Function(name="c", grid=last))
    parts = [
        dv.Eq(u.forward, u + 5 * u.laplace, subdomain=grid.interior),
        dv.Eq(u.forward, 0.5 * u.forward + 0.1, subdomain=pools),
        dv.Eq(c, 0.5 * c + 1, subdomain=last),
    ]
    return Case(parts, [u, c], {"time_M": 4})


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
    """
    Values computed from coefficients before a call must not come from placeholder coefficients.
    """
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
def conditions_on_time_and_computed_places() -> Case:
    grid = grid_of(14, 15)
    u = drawn(dv.TimeFunction(name="u", grid=grid, space_order=2))
    early = dv.ConditionalDimension(
        "early", parent=grid.time_dim, condition=dv.Lt(grid.time_dim, 4)
    )
    x, y = grid.dimensions
    steps = {x: 2, y: 3}
    coarse = tuple(dv.ConditionalDimension(f"{d}c", parent=d, factor=n) for d, n in steps.items())
    every = dv.Function(name="every", dimensions=coarse, shape=(7, 5))
    place = dv.Function(name="place", grid=grid, space_order=0, dtype=np.int32)
    place.data[:] = np.arange(15) % 7
    parts = [
        dv.Eq(u.forward, 1.5 * u),
        dv.Eq(u.forward, u.forward + 1, implicit_dims=early),
        dv.Eq(every, every + u.forward),
        dv.Eq(picked := dv.Function(name="picked", grid=grid), u[grid.stepping_dim, x, place]),
    ]
    return Case(parts, [u, every, picked], {"time_M": 6})


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


@case
def receivers_that_read_themselves() -> Case:
    """A sum over the cells around a point reads the receiver's old value for each of them."""
    grid = grid_of(11, 12)
    u = drawn(dv.TimeFunction(name="u", grid=grid, space_order=2))
    points = [[33.3, 41.0], [20.0, 77.7]]
    added, scaled = (
        dv.SparseTimeFunction(name=name, grid=grid, npoint=2, nt=5, coordinates=points)
        for name in ("added", "scaled")
    )
    added.data[:], scaled.data[:] = 5.0, 3.0
    reads = [added.interpolate(expr=added + u), scaled.interpolate(expr=scaled * u)]
    return Case([dv.Eq(u.forward, u + 1), *reads], [u, added, scaled], {"time_M": 3})


@case
def sums_into_a_number() -> Case:
    grid = grid_of(14, 15)
    u = drawn(dv.TimeFunction(name="u", grid=grid, space_order=2))
    all_steps = dv.Function(name="n", dimensions=(dv.Dimension("i"),), shape=(3,))
    parts = [
        dv.Eq(u.forward, u + 5 * u.laplace),
        dv.Inc(all_steps[1], dv.Abs(u.forward) ** 2, subdomain=grid.interior),
    ]
    return Case(parts, [u, all_steps], {"time_M": 5})


@case
def time_at_points() -> Case:
    grid = grid_of(11, 12)
    time = grid.time_dim
    u = drawn(dv.TimeFunction(name="u", grid=grid))
    src, rec = (
        dv.SparseTimeFunction(name=name, grid=grid, npoint=2, nt=5, coordinates=[[33.3, 41.0]] * 2)
        for name in ("src", "rec")
    )
    src.data[:] = 0.3
    inject = src.inject(field=u.forward, expr=src * sympy.sin(time * time.spacing))
    read = rec.interpolate(expr=u * time)
    call = {"time_M": 3, "dt": 0.4}
    return Case([dv.Eq(u.forward, 1.1 * u), inject, read], [u, rec], call)


@case
def one_row_for_all_cells() -> Case:
    grid = grid_of(9, 10)
    u = drawn(dv.TimeFunction(name="u", grid=grid, space_order=2))
    t, (x, y) = grid.stepping_dim, grid.dimensions
    parts = [dv.Eq(u.forward, 0.5 * u + u[t, 3, y + 1] - 0.2 * u[t, x - 1, 0])]
    return Case(parts, [u], {"time_M": 4})


@case
def layers_filled_from_the_rows_beside() -> Case:
    """As the padding of Devito's seismic models."""
    grid = grid_of(22, 23)
    f = drawn(dv.Function(name="f", grid=grid, space_order=2))
    parts: list[Any] = []
    for d in grid.dimensions:
        left = dv.SubDimension.left(name=f"l_{d.name}", parent=d, thickness=5)
        right = dv.SubDimension.right(name=f"r_{d.name}", parent=d, thickness=5)
        parts.append(dv.Eq(f.subs({d: left}), f.subs({d: d.symbolic_min + 5})))
        parts.append(dv.Eq(f.subs({d: right}), f.subs({d: d.symbolic_max - 5})))
    return Case(parts, [f], {})
