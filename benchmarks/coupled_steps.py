"""Steps of coupled systems, wide stencils, and absorbing layers, as users write them.

`SYSTEMS` names each step with its domain and the step to compare with: the step without layers, for
steps with layers. Layers have memory variables, updated in the layers' cells alone; profiles of a
layer are fields of one axis.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from real_steps import ORDER_8, ahead, along, behind, laplace, second

import timetile
from timetile import Field
from timetile.frontend.model import Model
from timetile.frontend.values import Value

Region = tuple[slice, ...]
Profiles = tuple[tuple[Field, ...], tuple[Field, ...]]
"""Of layers, by axis: the share of a memory that stays, and of a difference that enters."""

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

LAYER = 10
"""Cells of an absorbing layer."""

THICK = 16
"""Cells of the layers of a domain in seven regions."""


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


def mixed(u: Field, one: int, other: int) -> Value:
    """A mixed second difference over the diagonals of a plane, to four cells away."""

    def corner(distance: int) -> Value:
        def at(a: int, b: int) -> Value:
            offset = [0, 0, 0]
            offset[one], offset[other] = a * distance, b * distance
            return u[tuple(offset)]

        return (at(-1, -1) + at(1, 1)) - (at(-1, 1) + at(1, -1))

    weights = (0.4, -0.05, 2 / 315, -1 / 2240)
    return total(w * corner(d) for d, w in enumerate(weights, start=1))


def tilted(u: Field, s: Field) -> tuple[Value, Value]:
    """
    Second differences of 73 points along the axis of symmetry, tilted by an angle of sine `s`, and
    in the plane across.
    """
    d = [second(u, 3, axis, ORDER_8) for axis in range(3)]
    squared = s[0, 0, 0] * s[0, 0, 0]
    rest = 1 - squared
    both = s[0, 0, 0] * np.sqrt(rest)
    deep = squared * 0.64 * d[2] + squared * 0.36 * d[1] + rest * d[0]
    deep = deep + squared * 0.96 * mixed(u, 1, 2)
    deep = deep + both * 1.6 * mixed(u, 0, 2) + both * 1.2 * mixed(u, 0, 1)
    return deep, d[0] + d[1] + d[2] - deep


def anisotropic(p: Field, q: Field, s: Field, e: Field, d: Field) -> tuple[Value, Value]:
    """What drives the two fields of a tilted transversely isotropic medium."""
    deep, _ = tilted(p, s)
    deep_q, across = tilted(q, s)
    one = (1 + 2 * d[0, 0, 0]) * across + deep
    other = 2 * (e[0, 0, 0] - d[0, 0, 0]) * across + deep_q
    return one, other


@timetile.stencil
def tti8(p: Field, q: Field, m: Field, s: Field, e: Field, d: Field):
    one, other = anisotropic(p, q, s, e, d)
    p.next = 2 * p[0, 0, 0] - p.prev[0, 0, 0] + m[0, 0, 0] * one
    q.next = 2 * q[0, 0, 0] - q.prev[0, 0, 0] + m[0, 0, 0] * other


def absorbed(u: Field, memory: Field, m: Field, around: Sequence[Field], drive: Value) -> None:
    """A step of a wave with memory and one of the memory, in a layer of damping in three fields."""
    here = (0, 0, 0)
    eta = total(each[here] for each in around)
    kept = (2 - eta * eta + 2 * eta) * u[here] - u.prev[here]
    following = (kept + m[here] * (drive + memory[here])) / (1 + 2 * eta)
    inflow = total(
        0.25
        * (each[along(3, axis, 1)] - each[along(3, axis, -1)])
        * (u[along(3, axis, 1)] - u[along(3, axis, -1)])
        for axis, each in enumerate(around)
    )
    stored = (memory[here] - inflow) / (1 + eta)
    u.next, memory.next = following, stored


@timetile.stencil
def tti13(
    p: Field, q: Field, m: Field, s: Field, e: Field, d: Field,
    kx: Field, ky: Field, kz: Field, f: Field, g: Field,
):  # fmt: skip
    one, other = anisotropic(p, q, s, e, d)
    absorbed(p, f, m, (kx, ky, kz), one)
    absorbed(q, g, m, (kx, ky, kz), other)


def seven_regions(reach: int = 4, thick: int = THICK) -> tuple[Region, tuple[Region, ...]]:
    """The cells inside all layers, and six layers that cover the others: slabs, beams, posts."""
    low, high = slice(reach, reach + thick), slice(-reach - thick, -reach)
    inside, whole = slice(reach + thick, -reach - thick), slice(reach, -reach)
    layers: list[Region] = []
    for axis in range(3):
        for side in (low, high):
            layers.append((*(inside,) * axis, side, *(whole,) * (2 - axis)))
    return (inside,) * 3, tuple(layers)


@timetile.stencil
def iso(u: Field, m: Field):
    u.next = 2 * u[0, 0, 0] - u.prev[0, 0, 0] + m[0, 0, 0] * laplace(u, 3, ORDER_8)


@timetile.stencil
def iso_regions(u: Field, f: Field, m: Field, k: Field):
    here = (0, 0, 0)
    inside, layers = seven_regions()
    around = laplace(u, 3, ORDER_8)
    u.next[inside] = 2 * u[here] - u.prev[here] + m[here] * around
    eta = k[here]
    for number, region in enumerate(layers):
        axis = number // 2
        one, other = along(3, axis, 1), along(3, axis, -1)
        kept = (2 - eta * eta + 2 * eta) * u[here] - u.prev[here]
        u.next[region] = (kept + m[here] * (around + f[here])) / (1 + 2 * eta)
        f.next[region] = f[here] - 0.5 * (k[one] - k[other]) * (u[one] - u[other])


@timetile.stencil
def tti_regions(
    p: Field, q: Field, m: Field, s: Field, e: Field, d: Field, k: Field, f: Field, g: Field
):
    here = (0, 0, 0)
    inside, layers = seven_regions()
    one, other = anisotropic(p, q, s, e, d)
    p.next[inside] = 2 * p[here] - p.prev[here] + m[here] * one
    q.next[inside] = 2 * q[here] - q.prev[here] + m[here] * other
    eta = k[here]
    for number, region in enumerate(layers):
        axis = number // 2
        ahead_of, before = along(3, axis, 1), along(3, axis, -1)
        for u, memory, drive in ((p, f, one), (q, g, other)):
            kept = (2 - eta * eta + 2 * eta) * u[here] - u.prev[here]
            u.next[region] = (kept + m[here] * (drive + memory[here])) / (1 + 2 * eta)
            slopes = (k[ahead_of] - k[before]) * (u[ahead_of] - u[before])
            memory.next[region] = memory[here] - 0.5 * slopes


def strips(axis: int, reach: int) -> tuple[Region, Region]:
    """The two layers at the ends of an axis, inside a rim of `reach` cells."""
    whole = slice(reach, -reach)
    ends = slice(reach, reach + LAYER), slice(-reach - LAYER, -reach)
    low, high = (tuple(end if k == axis else whole for k in range(3)) for end in ends)
    return low, high


def profile(values: Field, axis: int) -> Value:
    """The cell of a profile along an axis: a field of one axis."""
    return values[tuple(0 if k == axis else None for k in range(3))]


def stretch(
    memory: Field, axis: int, difference: Value, profiles: Profiles, reach: int,
    changed: Sequence[tuple[Field, float]],
) -> None:  # fmt: skip
    """
    The convolution of a difference in the layers of an axis, kept in a memory variable, and its
    part in the changed fields.
    """
    b, a = (profile(each[axis], axis) for each in profiles)
    for region in strips(axis, reach):
        memory.next[region] = b * memory[0, 0, 0] + a * difference
        for field, factor in changed:
            field.next[region] = field.next[0, 0, 0] + factor * memory.next[0, 0, 0]


@timetile.stencil
def yee3_cpml(
    ex: Field, ey: Field, ez: Field, hx: Field, hy: Field, hz: Field,
    exy: Field, exz: Field, eyx: Field, eyz: Field, ezx: Field, ezy: Field,
    hxy: Field, hxz: Field, hyx: Field, hyz: Field, hzx: Field, hzy: Field,
    bx: Field, by: Field, bz: Field, ax: Field, ay: Field, az: Field,
):  # fmt: skip
    e, h, profiles = (ex, ey, ez), (hx, hy, hz), ((bx, by, bz), (ax, ay, az))
    kept = {"e": ((exy, exz), (eyz, eyx), (ezx, ezy)), "h": ((hxy, hxz), (hyz, hyx), (hzx, hzy))}

    def curl(changed: Any, read: Any, memories: Any, first: int, sign: float) -> None:
        for k in range(3):
            one, other = (k + 1) % 3, (k + 2) % 3
            parts: list[tuple[int, Any, float]] = [
                (one, read[other], sign), (other, read[one], -sign),
            ]  # fmt: skip
            differences = [
                u[along(3, axis, first + 1)] - u[along(3, axis, first)] for axis, u, _ in parts
            ]
            step = parts[0][2] * differences[0] + parts[1][2] * differences[1]
            changed[k].next[(slice(1, -1),) * 3] = changed[k][0, 0, 0] + step
            for (axis, _, factor), difference, memory in zip(parts, differences, memories[k]):
                stretch(memory, axis, difference, profiles, 1, [(changed[k], factor)])

    curl(h, e, kept["h"], 0, -0.3)
    curl(e, [each.next for each in h], kept["e"], -1, 0.3)


@timetile.stencil
def acoustic_cpml(
    u: Field, m: Field, fx: Field, fy: Field, fz: Field, gx: Field, gy: Field, gz: Field,
    bx: Field, by: Field, bz: Field, ax: Field, ay: Field, az: Field,
):  # fmt: skip
    here = (0, 0, 0)
    u.next[(slice(8, -8),) * 3] = 2 * u[here] - u.prev[here] + m[here] * laplace(u, 3, ORDER_8)
    for axis, (f, g) in enumerate(((fx, gx), (fy, gy), (fz, gz))):
        bend = second(u, 3, axis, ORDER_8)
        kept, entering = profile((bx, by, bz)[axis], axis), profile((ax, ay, az)[axis], axis)
        for region in strips(axis, 8):
            f.next[region] = kept * f[here] + entering * moved_slope(u, axis)
        for region in strips(axis, 8):
            more = moved_slope(f.next, axis)
            g.next[region] = kept * g[here] + entering * (bend + more)
            u.next[region] = u.next[here] + m[here] * (more + g.next[here])


@timetile.stencil
def elastic_cpml(
    vx: Field, vy: Field, vz: Field,
    xx: Field, yy: Field, zz: Field, xy: Field, xz: Field, yz: Field,
    vxx: Field, vxy: Field, vxz: Field, vyx: Field, vyy: Field, vyz: Field,
    vzx: Field, vzy: Field, vzz: Field,
    sxx: Field, sxy: Field, sxz: Field, syx: Field, syy: Field, syz: Field,
    szx: Field, szy: Field, szz: Field,
    bx: Field, by: Field, bz: Field, ax: Field, ay: Field, az: Field,
):  # fmt: skip
    inner, here = (slice(2, -2),) * 3, (0, 0, 0)
    v = (vx, vy, vz)
    s = ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz))
    of_v = ((vxx, vxy, vxz), (vyx, vyy, vyz), (vzx, vzy, vzz))
    of_s = ((sxx, sxy, sxz), (syx, syy, syz), (szx, szy, szz))
    both, shear = ((bx, by, bz), (ax, ay, az)), ((0, 1), (0, 2), (1, 2))
    for k in range(3):
        slopes = [(ahead if k == axis else behind)(s[k][axis], axis) for axis in range(3)]
        v[k].next[inner] = v[k][here] + 0.1 * (slopes[0] + slopes[1] + slopes[2])
        for axis in range(3):
            stretch(of_s[k][axis], axis, slopes[axis], both, 2, [(v[k], 0.1)])
    stretched = [behind(v[k].next, k) for k in range(3)]
    pressure = 0.05 * (stretched[0] + stretched[1] + stretched[2])
    for k in range(3):
        s[k][k].next[inner] = s[k][k][here] + pressure + 0.1 * stretched[k]
    for k, axis in shear:
        turned = ahead(v[k].next, axis) + ahead(v[axis].next, k)
        s[k][axis].next[inner] = s[k][axis][here] + 0.05 * turned
    for k in range(3):
        parts = [(s[j][j], 0.15 if j == k else 0.05) for j in range(3)]
        stretch(of_v[k][k], k, stretched[k], both, 2, parts)
    for k, axis in shear:
        stretch(of_v[k][axis], axis, ahead(v[k].next, axis), both, 2, [(s[k][axis], 0.05)])
        stretch(of_v[axis][k], k, ahead(v[axis].next, k), both, 2, [(s[k][axis], 0.05)])


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


@dataclass(frozen=True)
class System:
    """A step with its domains in cells, by element, and the name of the step without layers."""

    step: Model
    domains: dict[str, tuple[int, ...]]
    without: str = ""


PLATE, CUBE = (8192, 8192), (512, 512, 512)
SIX, NINE = (600, 600, 600), (900, 900, 900)


def alike(step: Model, domain: tuple[int, ...], without: str = "") -> System:
    """A system with one domain for both elements."""
    return System(step, {"f32": domain, "f64": domain}, without)


SYSTEMS: dict[str, System] = {
    "lbm_d2q9": alike(lbm_d2q9, PLATE),
    "lbm_d3q19": alike(lbm_d3q19, CUBE),
    "vp_coupled_3d_so8": alike(vp_coupled_3d_so8, CUBE),
    "tti8": alike(tti8, CUBE),
    "tti13": alike(tti13, CUBE),
    "iso": alike(iso, SIX),
    "iso_regions": alike(iso_regions, SIX, "iso"),
    "tti_regions": System(tti_regions, {"f32": NINE, "f64": SIX}, "tti8"),
    "yee3_cpml": alike(yee3_cpml, CUBE, "yee3"),
    "acoustic_cpml": alike(acoustic_cpml, CUBE, "wave_3d_so8"),
    "elastic_cpml": alike(elastic_cpml, CUBE, "elastic_3d_so4"),
    "elastic_2d_so2": alike(timetile.stencil(elastic_2d(2)), PLATE),
    "elastic_2d_so4": alike(timetile.stencil(elastic_2d(4)), PLATE),
}
"""The systems, by name."""
