"""Steps with absorbing layers, as users write them: see `coupled_programs.py`.

Layers have memory variables, updated in the layers' cells alone; profiles of a layer are fields of
one axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

from coupled_steps import anisotropic, moved_slope, total
from real_steps import ORDER_8, ahead, along, behind, laplace, second

import timetile
from timetile import Field
from timetile.frontend.values import Value

Region = tuple[slice, ...]
Profiles = tuple[tuple[Field, ...], tuple[Field, ...]]
"""Of layers, by axis: the share of a memory that stays, and of a difference that enters."""

LAYER = 10
"""Cells of an absorbing layer."""

THICK = 16
"""Cells of the layers of a domain in seven regions."""


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


def by_planes(u: Field, weights: Sequence[float]) -> Value:
    """A sum of second differences along three axes, its terms in the order of planes."""
    here = (0, 0, 0)
    terms: dict[tuple[int, ...], float] = {here: 3 * weights[0]}
    for axis, distance in product(range(3), range(1, len(weights))):
        terms[along(3, axis, -distance)] = terms[along(3, axis, distance)] = weights[distance]
    return total(weight * u[at] for at, weight in sorted(terms.items()))


def in_seven_regions(u: Field, f: Field, m: Field, k: Field, around: Value) -> None:
    """A step of a wave with memory in six layers."""
    here = (0, 0, 0)
    inside, layers = seven_regions()
    u.next[inside] = 2 * u[here] - u.prev[here] + m[here] * around
    eta = k[here]
    for number, region in enumerate(layers):
        axis = number // 2
        one, other = along(3, axis, 1), along(3, axis, -1)
        kept = (2 - eta * eta + 2 * eta) * u[here] - u.prev[here]
        u.next[region] = (kept + m[here] * (around + f[here])) / (1 + 2 * eta)
        f.next[region] = f[here] - 0.5 * (k[one] - k[other]) * (u[one] - u[other])


def tilted_in_seven_regions(
    fields: tuple[Field, Field], memories: tuple[Field, Field], m: Field, k: Field,
    drives: tuple[Value, Value],
) -> None:  # fmt: skip
    """A step of two coupled waves with memories in six layers."""
    here = (0, 0, 0)
    inside, layers = seven_regions()
    (p, q), (f, g), (one, other) = fields, memories, drives
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


@timetile.stencil
def iso_regions_by_planes(u: Field, f: Field, m: Field, k: Field):
    in_seven_regions(u, f, m, k, by_planes(u, ORDER_8))


@timetile.stencil
def iso_regions(u: Field, f: Field, m: Field, k: Field):
    in_seven_regions(u, f, m, k, laplace(u, 3, ORDER_8))


@timetile.stencil
def tti_regions(
    p: Field, q: Field, m: Field, s: Field, e: Field, d: Field, k: Field, f: Field, g: Field
):
    drives = anisotropic(p, q, s, e, d)
    tilted_in_seven_regions((p, q), (f, g), m, k, drives)


@timetile.stencil
def tti_regions_by_planes(
    p: Field, q: Field, m: Field, s: Field, e: Field, d: Field, k: Field, f: Field, g: Field
):
    drives = anisotropic(p, q, s, e, d, by_planes=True)
    tilted_in_seven_regions((p, q), (f, g), m, k, drives)


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
