"""Steps as users write them, for the benchmarks of the chosen schedule.

`MODELS` names each with the values of its scalars. Fields begin with cells in [0.2, 0.3), `h` in
[1, 1.1) and `k` in [0.1, 0.15): no program leaves the range of its type in a long run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

import timetile
from timetile import Field, Scalar
from timetile.frontend.model import Model
from timetile.frontend.values import Value


@dataclass(frozen=True)
class UserModel:
    """A step, with the values of its scalars."""

    step: Model
    numbers: Mapping[str, float] = field(default_factory=dict[str, float])


def around(u: Field) -> Value:
    """The sum of the four neighbours of a cell, less four times the cell."""
    return u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u[0, 0]


def around_in_3d(u: Field) -> Value:
    """The sum of the six neighbours of a cell, less six times the cell."""
    faces = u[-1, 0, 0] + u[1, 0, 0] + u[0, -1, 0] + u[0, 1, 0] + u[0, 0, -1] + u[0, 0, 1]
    return faces - 6 * u[0, 0, 0]


@timetile.stencil
def heat(u: Field, k: Scalar):
    u.next = u[0, 0] + k * around(u)


@timetile.stencil
def heat_constant(u: Field):
    u.next = u[0, 0] + 0.2 * around(u)


@timetile.stencil
def heat_by_rows(u: Field, k: Scalar):
    rows = u[-1, 0] + u[0, -1] - 4 * u[0, 0] + u[0, 1] + u[1, 0]
    u.next = u[0, 0] + k * rows


@timetile.stencil
def heat_weighted(u: Field, k: Scalar):
    u.next = (1 - 4 * k) * u[0, 0] + k * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1])


@timetile.stencil
def heat_spacing(u: Field, k: Scalar, h: Scalar):
    along_y = (u[-1, 0] - 2 * u[0, 0] + u[1, 0]) / (h * h)
    along_x = (u[0, -1] - 2 * u[0, 0] + u[0, 1]) / (h * h)
    u.next = u[0, 0] + k * (along_y + along_x)


@timetile.stencil
def jacobi(u: Field, f: Field):
    u.next = 0.25 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - f[0, 0])


@timetile.stencil
def mean(u: Field):
    total = 0.0
    for i in (-1, 0, 1):
        for j in (-1, 0, 1):
            total = total + u[i, j]
    u.next = total / 9


@timetile.stencil
def heat_coefficient(u: Field, k: Field):
    u.next = u[0, 0] + k[0, 0] * around(u)


@timetile.stencil
def heat_flux(u: Field, k: Field):
    down = (k[0, 0] + k[1, 0]) * (u[1, 0] - u[0, 0])
    up = (k[0, 0] + k[-1, 0]) * (u[0, 0] - u[-1, 0])
    right = (k[0, 0] + k[0, 1]) * (u[0, 1] - u[0, 0])
    left = (k[0, 0] + k[0, -1]) * (u[0, 0] - u[0, -1])
    u.next = u[0, 0] + 0.5 * (down - up + right - left)


@timetile.stencil
def heat_fourth(u: Field, k: Scalar):
    y = -u[-2, 0] + 16 * u[-1, 0] - 30 * u[0, 0] + 16 * u[1, 0] - u[2, 0]
    x = -u[0, -2] + 16 * u[0, -1] - 30 * u[0, 0] + 16 * u[0, 1] - u[0, 2]
    u.next = u[0, 0] + k * (y + x)


@timetile.stencil
def advection(u: Field, a: Scalar, b: Scalar):
    u.next = u[0, 0] - a * (u[0, 0] - u[-1, 0]) - b * (u[0, 0] - u[0, -1])


@timetile.stencil
def burgers2(u: Field, v: Field):
    for q in (u, v):
        drift = u[0, 0] * (q[1, 0] - q[-1, 0]) + v[0, 0] * (q[0, 1] - q[0, -1])
        q.next = q[0, 0] - 0.05 * drift + 0.05 * around(q)


@timetile.stencil
def wave2(p: Field, c: Scalar):
    p.next = 2 * p[0, 0] - p.prev[0, 0] + c * around(p)


@timetile.stencil
def wave2_coefficient(p: Field, m: Field):
    p.next = 2 * p[0, 0] - p.prev[0, 0] + m[0, 0] * around(p)


@timetile.stencil
def gray_scott2(u: Field, v: Field):
    reaction = u[0, 0] * v[0, 0] * v[0, 0]
    u.next = u[0, 0] + 0.16 * around(u) - reaction + 0.03 * (1 - u[0, 0])
    v.next = v[0, 0] + 0.08 * around(v) + reaction - 0.09 * v[0, 0]


@timetile.stencil
def shallow(h: Field, hu: Field, hv: Field):
    def fluxes(i: int, j: int):
        u, v, lift = hu[i, j] / h[i, j], hv[i, j] / h[i, j], 4.9 * h[i, j] * h[i, j]
        along_y = (hu[i, j], hu[i, j] * u + lift, hu[i, j] * v)
        along_x = (hv[i, j], hv[i, j] * u, hv[i, j] * v + lift)
        return along_y, along_x

    for k, q in enumerate((h, hu, hv)):
        mean_of_four = 0.25 * (q[-1, 0] + q[1, 0] + q[0, -1] + q[0, 1])
        across = fluxes(1, 0)[0][k] - fluxes(-1, 0)[0][k]
        along = fluxes(0, 1)[1][k] - fluxes(0, -1)[1][k]
        q.next = mean_of_four - 0.05 * across - 0.05 * along


@timetile.stencil
def insulated(u: Field, k: Scalar):
    u.next = u[0, 0] + k * around(u)
    u.next[:, 0:1] = u[0, 1]
    u.next[:, -1:] = u[0, -1]
    u.next[0:1, :] = u[1, 0]
    u.next[-1:, :] = u[-1, 0]


@timetile.stencil
def elastic2(vx: Field, vy: Field, sxx: Field, syy: Field, sxy: Field, b: Field, m: Field):
    vx.next = vx[0, 0] + b[0, 0] * 0.2 * (sxx[1, 0] - sxx[0, 0] + sxy[0, 0] - sxy[0, -1])
    vy.next = vy[0, 0] + b[0, 0] * 0.2 * (sxy[0, 0] - sxy[-1, 0] + syy[0, 1] - syy[0, 0])
    xx = vx.next[0, 0] - vx.next[-1, 0]
    yy = vy.next[0, 0] - vy.next[0, -1]
    sxx.next[1:-1, 1:-1] = sxx[0, 0] + 0.2 * m[0, 0] * (3 * xx + yy)
    syy.next[1:-1, 1:-1] = syy[0, 0] + 0.2 * m[0, 0] * (3 * yy + xx)
    turned = vx.next[0, 1] - vx.next[0, 0] + vy.next[1, 0] - vy.next[0, 0]
    sxy.next[1:-1, 1:-1] = sxy[0, 0] + 0.2 * m[0, 0] * turned


@timetile.stencil
def heat3(u: Field, k: Scalar):
    u.next = u[0, 0, 0] + k * around_in_3d(u)


@timetile.stencil
def heat3_coefficient(u: Field, k: Field):
    u.next = u[0, 0, 0] + k[0, 0, 0] * around_in_3d(u)


@timetile.stencil
def wave3(p: Field, m: Field):
    p.next = 2 * p[0, 0, 0] - p.prev[0, 0, 0] + m[0, 0, 0] * around_in_3d(p)


@timetile.stencil
def gray_scott3(u: Field, v: Field):
    reaction = u[0, 0, 0] * v[0, 0, 0] * v[0, 0, 0]
    u.next = u[0, 0, 0] + 0.1 * around_in_3d(u) - reaction + 0.03 * (1 - u[0, 0, 0])
    v.next = v[0, 0, 0] + 0.05 * around_in_3d(v) + reaction - 0.09 * v[0, 0, 0]


@timetile.stencil
def burgers3(u: Field, v: Field, w: Field):
    for q in (u, v, w):
        along = u[0, 0, 0] * (q[1, 0, 0] - q[-1, 0, 0])
        along = along + v[0, 0, 0] * (q[0, 1, 0] - q[0, -1, 0])
        along = along + w[0, 0, 0] * (q[0, 0, 1] - q[0, 0, -1])
        q.next = q[0, 0, 0] - 0.05 * along + 0.05 * around_in_3d(q)


@timetile.stencil
def yee3(ex: Field, ey: Field, ez: Field, hx: Field, hy: Field, hz: Field):
    hx.next = hx[0, 0, 0] - 0.3 * (ez[0, 1, 0] - ez[0, 0, 0]) + 0.3 * (ey[0, 0, 1] - ey[0, 0, 0])
    hy.next = hy[0, 0, 0] - 0.3 * (ex[0, 0, 1] - ex[0, 0, 0]) + 0.3 * (ez[1, 0, 0] - ez[0, 0, 0])
    hz.next = hz[0, 0, 0] - 0.3 * (ey[1, 0, 0] - ey[0, 0, 0]) + 0.3 * (ex[0, 1, 0] - ex[0, 0, 0])
    x, y, z = hx.next, hy.next, hz.next
    ex.next[1:-1, 1:-1, 1:-1] = (
        ex[0, 0, 0] + 0.3 * (z[0, 0, 0] - z[0, -1, 0]) - 0.3 * (y[0, 0, 0] - y[0, 0, -1])
    )
    ey.next[1:-1, 1:-1, 1:-1] = (
        ey[0, 0, 0] + 0.3 * (x[0, 0, 0] - x[0, 0, -1]) - 0.3 * (z[0, 0, 0] - z[-1, 0, 0])
    )
    ez.next[1:-1, 1:-1, 1:-1] = (
        ez[0, 0, 0] + 0.3 * (y[0, 0, 0] - y[-1, 0, 0]) - 0.3 * (x[0, 0, 0] - x[0, -1, 0])
    )


MODELS: dict[str, UserModel] = {
    "heat": UserModel(heat, {"k": 0.2}),
    "heat_constant": UserModel(heat_constant),
    "heat_by_rows": UserModel(heat_by_rows, {"k": 0.2}),
    "heat_weighted": UserModel(heat_weighted, {"k": 0.2}),
    "heat_spacing": UserModel(heat_spacing, {"k": 0.2, "h": 1.1}),
    "jacobi": UserModel(jacobi),
    "mean": UserModel(mean),
    "heat_coefficient": UserModel(heat_coefficient),
    "heat_flux": UserModel(heat_flux),
    "heat_fourth": UserModel(heat_fourth, {"k": 0.01}),
    "advection": UserModel(advection, {"a": 0.2, "b": 0.3}),
    "burgers2": UserModel(burgers2),
    "wave2": UserModel(wave2, {"c": 0.3}),
    "wave2_coefficient": UserModel(wave2_coefficient),
    "gray_scott2": UserModel(gray_scott2),
    "shallow": UserModel(shallow),
    "insulated": UserModel(insulated, {"k": 0.2}),
    "elastic2": UserModel(elastic2),
    "heat3": UserModel(heat3, {"k": 0.1}),
    "heat3_coefficient": UserModel(heat3_coefficient),
    "wave3": UserModel(wave3),
    "gray_scott3": UserModel(gray_scott3),
    "burgers3": UserModel(burgers3),
    "yee3": UserModel(yee3),
}
"""The steps, by name."""

LEAST_CELL = {"h": 1.0, "k": 0.1}
"""The least cell of a field in the beginning, unless 0.2."""


def start(name: str, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """A field to begin with, of numbers drawn by the field's name."""
    drawn = np.random.default_rng(sum(map(ord, name)))
    least = LEAST_CELL.get(name, 0.2)
    cells = drawn.random(shape, dtype=np.dtype(dtype).type)
    return (min(least, 0.2) / 2 * cells + least).astype(dtype)
