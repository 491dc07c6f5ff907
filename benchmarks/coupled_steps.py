"""Steps of coupled systems and wide stencils, as users write them: see `coupled_programs.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from real_steps import ORDER_8, along, second

import timetile
from timetile import Field
from timetile.frontend.values import Value

D2Q9 = ((0, 0), (0, 1), (1, 0), (0, -1), (-1, 0), (1, 1), (1, -1), (-1, -1), (-1, 1))
D3Q19 = (
    (0, 0, 0),
    *((1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1), (0, 0, -1)),
    *((1, 1, 0), (-1, -1, 0), (1, -1, 0), (-1, 1, 0), (1, 0, 1), (-1, 0, -1)),
    *((1, 0, -1), (-1, 0, 1), (0, 1, 1), (0, -1, -1), (0, 1, -1), (0, -1, 1)),
)
WEIGHTS = {2: (4 / 9, 1 / 9, 1 / 36), 3: (1 / 3, 1 / 18, 1 / 36)}
"""Weights of a lattice of so many axes: at rest, along an axis, along two axes."""

SLOPE_8 = (0.8, -0.2, 4 / 105, -1 / 280)
"""Weights of a first difference of order 8, of the cells at each distance."""


def total(terms: Iterable[Any]) -> Any:
    """The sum of terms, from the first on."""
    first, *others = terms
    for term in others:
        first = first + term
    return first


def signed(ways: Sequence[int], values: Sequence[Any]) -> Any:
    """The sum of the values with their signs; values of way 0 are left out."""
    (first, value), *others = [(w, v) for w, v in zip(ways, values, strict=True) if w]
    moved = value if first > 0 else -value
    for way, each in others:
        moved = moved + each if way > 0 else moved - each
    return moved


def lattice_boltzmann(fields: Sequence[Field], ways: Sequence[tuple[int, ...]]) -> None:
    """A collision of Bhatnagar, Gross and Krook of the arrivals from the neighbours."""
    rank = len(ways[0])
    arrived = [field[tuple(-k for k in way)] for field, way in zip(fields, ways, strict=True)]
    rho = total(arrived)
    axes = range(rank)
    speed = [signed([way[k] for way in ways], arrived) / rho for k in axes]
    still = 1 - 1.5 * total(v * v for v in speed)
    for field, way, here in zip(fields, ways, arrived, strict=True):
        weight = WEIGHTS[rank][sum(map(abs, way))]
        rest = weight * rho * still
        if any(way):
            along_way = 3 * signed(way, speed)
            rest = weight * rho * (still + along_way + 0.5 * along_way * along_way)
        field.next = here + 1.7 * (rest - here)


@timetile.stencil
def lbm_d2q9(
    f0: Field, f1: Field, f2: Field, f3: Field, f4: Field,
    f5: Field, f6: Field, f7: Field, f8: Field,
):  # fmt: skip
    lattice_boltzmann((f0, f1, f2, f3, f4, f5, f6, f7, f8), D2Q9)


@timetile.stencil
def lbm_d3q19(
    f0: Field, f1: Field, f2: Field, f3: Field, f4: Field, f5: Field, f6: Field,
    f7: Field, f8: Field, f9: Field, f10: Field, f11: Field, f12: Field, f13: Field,
    f14: Field, f15: Field, f16: Field, f17: Field, f18: Field,
):  # fmt: skip
    fields = (f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18)
    lattice_boltzmann(fields, D3Q19)


def slope(value: Callable[[int], Any], weights: Sequence[float] = SLOPE_8) -> Any:
    """A first difference: `value` gives the value at a distance."""
    return total(
        weight * (value(distance) - value(-distance))
        for distance, weight in enumerate(weights, start=1)
    )


def moved_slope(u: Any, axis: int, start: Sequence[int] = (0, 0, 0)) -> Any:
    """The first difference of order 8 of a field along an axis, at a distance from the cell."""

    def at(distance: int) -> Value:
        return u[tuple(s + a for s, a in zip(start, along(3, axis, distance), strict=True))]

    return slope(at)


@timetile.stencil
def vp_coupled_3d_so8(v: Field, p: Field, m: Field):
    """Devito's `v - m * p` and `p - v.forward.dx + div(m * grad(p))`: slopes of slopes."""
    v.next = v[0, 0, 0] - m[0, 0, 0] * p[0, 0, 0]

    def flux(axis: int) -> Callable[[int], Any]:
        return lambda distance: (
            m[along(3, axis, distance)] * moved_slope(p, axis, along(3, axis, distance))
        )

    spread = total(slope(flux(axis)) for axis in range(3))
    p.next = p[0, 0, 0] - 0.1 * moved_slope(v.next, 0) + 0.1 * spread


MIXED = (0.4, -0.05, 2 / 315, -1 / 2240)
"""Weights of a mixed second difference over the diagonals of a plane, at each distance."""


def mixed(u: Field, one: int, other: int) -> Value:
    """A mixed second difference over the diagonals of a plane, to four cells away."""

    def corner(distance: int) -> Value:
        def at(a: int, b: int) -> Value:
            offset = [0, 0, 0]
            offset[one], offset[other] = a * distance, b * distance
            return u[tuple(offset)]

        return (at(-1, -1) + at(1, 1)) - (at(-1, 1) + at(1, -1))

    return total(w * corner(d) for d, w in enumerate(MIXED, start=1))


def second_by_planes(u: Field, axis: int) -> Value:
    """A second difference of order 8, the cells of an axis from the first to the last."""
    terms = range(1 - len(ORDER_8), len(ORDER_8))
    return total(ORDER_8[abs(k)] * u[along(3, axis, k)] for k in terms)


def mixed_by_planes(u: Field, one: int, other: int) -> Value:
    """A mixed second difference, the cells along an axis from the first to the last."""

    def term(k: int) -> Value:
        offsets = [[0, 0, 0], [0, 0, 0]]
        for offset, way in zip(offsets, (1, -1)):
            offset[one], offset[other] = k, way * k
        low, high = (u[tuple(offset)] for offset in offsets)
        return MIXED[abs(k) - 1] * (low - high)

    return total(term(k) for k in range(-len(MIXED), len(MIXED) + 1) if k)


def tilted(u: Field, s: Field, *, by_planes: bool = False) -> tuple[Value, Value]:
    """
    Second differences of 73 points along the axis of symmetry, tilted by an angle of sine `s`, and
    in the plane across; sums in the order of planes, or by distance.
    """
    if by_planes:
        d = [second_by_planes(u, axis) for axis in range(3)]
        return turned(u, s, d, mixed_by_planes)
    return turned(u, s, [second(u, 3, axis, ORDER_8) for axis in range(3)], mixed)


def turned(
    u: Field, s: Field, d: Sequence[Value], mixed: Callable[[Field, int, int], Value]
) -> tuple[Value, Value]:
    """The second differences `d` along the axes, turned by an angle of sine `s`."""
    squared = s[0, 0, 0] * s[0, 0, 0]
    rest = 1 - squared
    both = s[0, 0, 0] * np.sqrt(rest)
    deep = squared * 0.64 * d[2] + squared * 0.36 * d[1] + rest * d[0]
    deep = deep + squared * 0.96 * mixed(u, 1, 2)
    deep = deep + both * 1.6 * mixed(u, 0, 2) + both * 1.2 * mixed(u, 0, 1)
    return deep, d[0] + d[1] + d[2] - deep


def anisotropic(
    p: Field, q: Field, s: Field, e: Field, d: Field, *, by_planes: bool = False
) -> tuple[Value, Value]:
    """What drives the two fields of a tilted transversely isotropic medium."""
    deep, _ = tilted(p, s, by_planes=by_planes)
    deep_q, across = tilted(q, s, by_planes=by_planes)
    one = (1 + 2 * d[0, 0, 0]) * across + deep
    other = 2 * (e[0, 0, 0] - d[0, 0, 0]) * across + deep_q
    return one, other


@timetile.stencil
def tti8(p: Field, q: Field, m: Field, s: Field, e: Field, d: Field):
    one, other = anisotropic(p, q, s, e, d)
    p.next = 2 * p[0, 0, 0] - p.prev[0, 0, 0] + m[0, 0, 0] * one
    q.next = 2 * q[0, 0, 0] - q.prev[0, 0, 0] + m[0, 0, 0] * other


@timetile.stencil
def tti8_by_planes(p: Field, q: Field, m: Field, s: Field, e: Field, d: Field):
    one, other = anisotropic(p, q, s, e, d, by_planes=True)
    p.next = 2 * p[0, 0, 0] - p.prev[0, 0, 0] + m[0, 0, 0] * one
    q.next = 2 * q[0, 0, 0] - q.prev[0, 0, 0] + m[0, 0, 0] * other


def elastic_2d(order: int) -> Callable[..., None]:
    """A step of velocities and stresses in a staggered grid in 2D, with three coefficients."""

    def difference(u: Any, axis: int, first: int) -> Value:
        if order == 2:
            return u[along(2, axis, first + 1)] - u[along(2, axis, first)]
        far, low, high, beyond = (u[along(2, axis, first + k)] for k in (-1, 0, 1, 2))
        return 1.125 * (high - low) - 0.0416667 * (beyond - far)

    def step(
        vx: Field, vy: Field, xx: Field, yy: Field, xy: Field, b: Field, k: Field, m: Field
    ) -> None:
        here = (0, 0)
        up, down = 0, -1
        vx.next = vx[here] + 0.2 * b[here] * (difference(xx, 0, up) + difference(xy, 1, down))
        vy.next = vy[here] + 0.2 * b[here] * (difference(xy, 0, down) + difference(yy, 1, up))
        ex, ey = difference(vx.next, 0, down), difference(vy.next, 1, down)
        spread, turned = (
            k[here] * (ex + ey),
            difference(vx.next, 1, up) + difference(vy.next, 0, up),
        )
        xx.next = xx[here] + 0.2 * (spread + 2 * m[here] * ex)
        yy.next = yy[here] + 0.2 * (spread + 2 * m[here] * ey)
        xy.next = xy[here] + 0.2 * m[here] * turned

    return step
