"""Steps of real programs in Python, with the formulas of `naive/naive.cu`.

`PROGRAMS` names each with its domain's axes. Fields begin with cells drawn from [0.2, 0.3), from
[1, 1.1) for `h`, `f0`, `f1` and so on, and from [0.05, 0.1) for coefficients; a quiet start has
zeros, a pulse in the middle, and the same coefficients.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

import timetile
from timetile import Field
from timetile.frontend.model import Model
from timetile.frontend.values import Value

Offset = tuple[int, ...]

ORDER_2 = (-2.0, 1.0)
ORDER_4 = (-2.5, 4 / 3, -1 / 12)
ORDER_8 = (-205 / 72, 1.6, -0.2, 8 / 315, -1 / 560)


def along(rank: int, axis: int, distance: int) -> Offset:
    """The offset of a cell at a distance along an axis."""
    return tuple(distance if k == axis else 0 for k in range(rank))


def second(u: Field, rank: int, axis: int, weights: Sequence[float]) -> Value:
    """A second difference: the weights of the cell, and of both cells at each distance."""
    total = weights[0] * u[along(rank, axis, 0)]
    for distance, weight in enumerate(weights[1:], start=1):
        both = u[along(rank, axis, -distance)] + u[along(rank, axis, distance)]
        total = total + weight * both
    return total


def laplace(u: Field, rank: int, weights: Sequence[float] = ORDER_2) -> Value:
    """The sum of the second differences along all axes."""
    total = second(u, rank, 0, weights)
    for axis in range(1, rank):
        total = total + second(u, rank, axis, weights)
    return total


def staggered(u: Any, axis: int, first: int) -> Value:
    """A difference of order 4 of a field in 3D, over the cells from `first` on."""
    far, low, high, beyond = (u[along(3, axis, first + k)] for k in range(4))
    return 1.125 * (high - low) - 0.0416667 * (beyond - far)


def ahead(u: Any, axis: int) -> Value:
    """The difference half a cell ahead."""
    return staggered(u, axis, -1)


def behind(u: Any, axis: int) -> Value:
    """The difference half a cell behind."""
    return staggered(u, axis, -2)


@timetile.stencil
def heat_2d(u: Field):
    u.next = u[0, 0] + 0.2 * laplace(u, 2)


@timetile.stencil
def heat_3d(u: Field):
    u.next = u[0, 0, 0] + 0.1 * laplace(u, 3)


@timetile.stencil
def flux_2d(u: Field, k: Field):
    down = (k[0, 0] + k[1, 0]) * (u[1, 0] - u[0, 0])
    up = (k[0, 0] + k[-1, 0]) * (u[0, 0] - u[-1, 0])
    right = (k[0, 0] + k[0, 1]) * (u[0, 1] - u[0, 0])
    left = (k[0, 0] + k[0, -1]) * (u[0, 0] - u[0, -1])
    u.next = u[0, 0] + 0.5 * (down - up + right - left)


@timetile.stencil
def vardiff_3d_so4(u: Field, k: Field):
    u.next = u[0, 0, 0] + k[0, 0, 0] * laplace(u, 3, ORDER_4)


def wave(weights: Sequence[float]) -> Callable[[Field, Field], None]:
    """A step of the wave equation in 3D with a coefficient."""

    def step(u: Field, m: Field) -> None:
        u.next = 2 * u[0, 0, 0] - u.prev[0, 0, 0] + m[0, 0, 0] * laplace(u, 3, weights)

    return step


def acoustic(rank: int, weights: Sequence[float]) -> Callable[[Field, Field, Field], None]:
    """A step of the damped wave equation with two coefficients."""
    here = (0,) * rank

    def step(u: Field, m: Field, d: Field) -> None:
        moved = 2 * u[here] - u.prev[here] + m[here] * laplace(u, rank, weights)
        u.next = moved - d[here] * (u[here] - u.prev[here])

    return step


@timetile.stencil
def grayscott3(u: Field, v: Field):
    reaction = u[0, 0, 0] * v[0, 0, 0] * v[0, 0, 0]
    u.next = u[0, 0, 0] + 0.16 * laplace(u, 3) - reaction + 0.035 * (1 - u[0, 0, 0])
    v.next = v[0, 0, 0] + 0.08 * laplace(v, 3) + reaction - 0.1 * v[0, 0, 0]


@timetile.stencil
def burgers3(u: Field, v: Field, w: Field):
    for q in (u, v, w):
        carried = u[0, 0, 0] * (q[1, 0, 0] - q[-1, 0, 0])
        carried = carried + v[0, 0, 0] * (q[0, 1, 0] - q[0, -1, 0])
        carried = carried + w[0, 0, 0] * (q[0, 0, 1] - q[0, 0, -1])
        q.next = q[0, 0, 0] - 0.05 * carried + 0.05 * laplace(q, 3)


@timetile.stencil
def swe(h: Field, p: Field, q: Field):
    def fluxes(i: int, j: int) -> tuple[tuple[Value, Value, Value], tuple[Value, Value, Value]]:
        u, v, lift = p[i, j] / h[i, j], q[i, j] / h[i, j], 4.9 * h[i, j] * h[i, j]
        down = (p[i, j], p[i, j] * u + lift, p[i, j] * v)
        return down, (q[i, j], q[i, j] * u, q[i, j] * v + lift)

    for k, field in enumerate((h, p, q)):
        mean = 0.25 * (field[-1, 0] + field[1, 0] + field[0, -1] + field[0, 1])
        across = fluxes(1, 0)[0][k] - fluxes(-1, 0)[0][k]
        beside = fluxes(0, 1)[1][k] - fluxes(0, -1)[1][k]
        field.next = mean - 0.05 * across - 0.05 * beside


@timetile.stencil
def elastic2(vx: Field, vy: Field, xx: Field, yy: Field, xy: Field, b: Field, k: Field, m: Field):
    vx.next = vx[0, 0] + b[0, 0] * 0.2 * (xx[1, 0] - xx[0, 0] + xy[0, 0] - xy[0, -1])
    vy.next = vy[0, 0] + b[0, 0] * 0.2 * (xy[0, 0] - xy[-1, 0] + yy[0, 1] - yy[0, 0])
    ex = vx.next[0, 0] - vx.next[-1, 0]
    ey = vy.next[0, 0] - vy.next[0, -1]
    both = k[0, 0] + 2 * m[0, 0]
    turned = vx.next[0, 1] - vx.next[0, 0] + vy.next[1, 0] - vy.next[0, 0]
    xx.next[1:-1, 1:-1] = xx[0, 0] + 0.2 * (both * ex + k[0, 0] * ey)
    yy.next[1:-1, 1:-1] = yy[0, 0] + 0.2 * (both * ey + k[0, 0] * ex)
    xy.next[1:-1, 1:-1] = xy[0, 0] + 0.2 * m[0, 0] * turned


@timetile.stencil
def yee3(ex: Field, ey: Field, ez: Field, hx: Field, hy: Field, hz: Field):
    hx.next = hx[0, 0, 0] - 0.3 * (ez[0, 1, 0] - ez[0, 0, 0]) + 0.3 * (ey[0, 0, 1] - ey[0, 0, 0])
    hy.next = hy[0, 0, 0] - 0.3 * (ex[0, 0, 1] - ex[0, 0, 0]) + 0.3 * (ez[1, 0, 0] - ez[0, 0, 0])
    hz.next = hz[0, 0, 0] - 0.3 * (ey[1, 0, 0] - ey[0, 0, 0]) + 0.3 * (ex[0, 1, 0] - ex[0, 0, 0])
    inner, (x, y, z) = (slice(1, -1),) * 3, (hx.next, hy.next, hz.next)
    ex.next[inner] = (
        ex[0, 0, 0] + 0.3 * (z[0, 0, 0] - z[0, -1, 0]) - 0.3 * (y[0, 0, 0] - y[0, 0, -1])
    )
    ey.next[inner] = (
        ey[0, 0, 0] + 0.3 * (x[0, 0, 0] - x[0, 0, -1]) - 0.3 * (z[0, 0, 0] - z[-1, 0, 0])
    )
    ez.next[inner] = (
        ez[0, 0, 0] + 0.3 * (y[0, 0, 0] - y[-1, 0, 0]) - 0.3 * (x[0, 0, 0] - x[0, -1, 0])
    )


@timetile.stencil
def elastic_3d_so4(
    vx: Field, vy: Field, vz: Field,
    xx: Field, yy: Field, zz: Field, xy: Field, xz: Field, yz: Field,
):  # fmt: skip
    vx.next = vx[0, 0, 0] + 0.1 * (ahead(xx, 0) + behind(xy, 1) + behind(xz, 2))
    vy.next = vy[0, 0, 0] + 0.1 * (behind(xy, 0) + ahead(yy, 1) + behind(yz, 2))
    vz.next = vz[0, 0, 0] + 0.1 * (behind(xz, 0) + behind(yz, 1) + ahead(zz, 2))
    x, y, z = behind(vx.next, 0), behind(vy.next, 1), behind(vz.next, 2)
    pressure = 0.05 * (x + y + z)
    xx.next = xx[0, 0, 0] + pressure + 0.1 * x
    yy.next = yy[0, 0, 0] + pressure + 0.1 * y
    zz.next = zz[0, 0, 0] + pressure + 0.1 * z
    xy.next = xy[0, 0, 0] + 0.05 * (ahead(vx.next, 1) + ahead(vy.next, 0))
    xz.next = xz[0, 0, 0] + 0.05 * (ahead(vx.next, 2) + ahead(vz.next, 0))
    yz.next = yz[0, 0, 0] + 0.05 * (ahead(vy.next, 2) + ahead(vz.next, 1))


PROGRAMS: dict[str, Model] = {
    "heat_2d": heat_2d,
    "flux_2d": flux_2d,
    "acoustic_2d_so4": timetile.stencil(acoustic(2, ORDER_4)),
    "swe": swe,
    "elastic2": elastic2,
    "heat_3d": heat_3d,
    "vardiff_3d_so4": vardiff_3d_so4,
    "wave_3d_so2": timetile.stencil(wave(ORDER_2)),
    "wave_3d_so4": timetile.stencil(wave(ORDER_4)),
    "wave_3d_so8": timetile.stencil(wave(ORDER_8)),
    "acoustic_3d_so4": timetile.stencil(acoustic(3, ORDER_4)),
    "acoustic_3d_so8": timetile.stencil(acoustic(3, ORDER_8)),
    "grayscott3": grayscott3,
    "burgers3": burgers3,
    "yee3": yee3,
    "elastic_3d_so4": elastic_3d_so4,
}
"""The programs, by name."""

COEFFICIENTS = ("k", "m", "d", "b", "s", "e", "kx", "ky", "kz", "bx", "by", "bz", "ax", "ay", "az")
"""Fields that no step writes."""


DRAWN = 1 << 22
"""Most numbers drawn for a field: larger fields repeat them."""


def first_cells(
    field: str, shape: tuple[int, ...], dtype: str, *, quiet: bool = False, library: Any = np
) -> Any:
    """
    A field to begin with, of NumPy or CuPy; the numbers are drawn by the field's name. Depths (`h`)
    and densities (`f0`, `f1`, ...) are divisors.
    """
    cells = library.random.default_rng(sum(map(ord, field))).random(
        min(prod(shape), DRAWN), dtype=np.float32
    )
    drawn = library.resize(cells, shape)
    if field in COEFFICIENTS:
        return (0.05 + 0.05 * drawn).astype(dtype)
    is_density = field == "h" or field.strip("0123456789") == "f" != field
    least = 1.0 if is_density else 0.2
    if not quiet:
        return (least + 0.1 * drawn).astype(dtype)
    cells = library.full(shape, 1.0 if is_density else 0.0, dtype)
    cells[tuple(slice(n // 2, n // 2 + 2) for n in shape)] += 0.5
    return cells
