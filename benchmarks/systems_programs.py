"""
The programs of the table of systems: AN5D's with their division, filters and stencils of SSAM, the
wave of the semi-stencil, and the sums of `stencils.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from coupled_steps import tti8_by_planes
from layered_steps import iso_regions_by_planes, tti_regions_by_planes
from stencils import (
    STENCILS,
    Offset,
    Stencil,
    added,
    box,
    by_columns,
    field_type,
    gradient,
    program,
    star,
    two_buffers,
)

from timetile import Model

DIVISOR = 118.0
"""The divisor of AN5D's Jacobi stencils."""

SSAM_STENCILS: dict[str, tuple[str, int]] = {
    "2d5pt": ("star", 1),
    "2ds9pt": ("star", 2),
    "2d13pt": ("star", 3),
    "2d17pt": ("star", 4),
    "2d21pt": ("star", 5),
    "2ds25pt": ("star", 6),
    "2d9pt": ("box", 3),
    "2d25pt": ("box", 5),
    "2d64pt": ("box", 8),
    "2d81pt": ("box", 9),
    "2d121pt": ("box", 11),
}
"""The stencils in two axes of SSAM's table 3: radii of stars, sides of boxes."""

SSAM_VOLUMES = {
    "3d7pt": "star3d1r",
    "3d13pt": "star3d2r",
    "3d27pt": "box3d1r",
    "3d125pt": "box3d2r",
    "poisson-columns": "poisson",
}
"""The stencils in three axes of SSAM's table 3, with the names of `stencils.py`."""

WAVES: dict[str, Model] = {
    "wave25pt-regions": iso_regions_by_planes,
    "tti73pt": tti8_by_planes,
    "tti73pt-regions": tti_regions_by_planes,
}
"""
The semi-stencil's waves in seven regions, and its anisotropic waves, with sums in the order of
planes.
"""

REACH = 4
"""Cells that a step of these waves reads beside a cell, along an axis."""

WAVE = (-205 / 72, 1.6, -0.2, 8 / 315, -1 / 560)
"""A second difference of order 8: the weights of the cell, and of both cells at each distance."""


def divided(stencil: Stencil, domain: Sequence[int], element: str) -> str:
    """
    A weighted sum, divided by 118 in every cell. Weights have the absolute sum 118, so that cells
    do not grow.
    """
    total = added(abs(c) for _, c in stencil.terms) / DIVISOR
    field = field_type(domain, stencil.radius, element)
    temp = f"!stencil.temp<{'?x' * stencil.rank}{element}>"
    lines = summed(tuple((o, c / total) for o, c in stencil.terms), temp, element)
    lines.append(f"%by = arith.constant {DIVISOR!r} : {element}")
    lines.append(f"%o = arith.divf %s{len(stencil.terms) - 1}, %by : {element}")
    return two_buffers(field, temp, lines, "%o", element, [0] * stencil.rank, list(domain))


def summed(terms: Sequence[tuple[Offset, float]], temp: str, element: str) -> list[str]:
    """The operations of a weighted sum of `%x`, whose last value is `%sN` for N + 1 terms."""
    lines: list[str] = []
    before = ""
    for n, (offset, coefficient) in enumerate(terms):
        at = ", ".join(map(str, offset))
        lines.append(f"%x{n} = stencil.access %x[{at}] : {temp}")
        lines.append(f"%c{n} = arith.constant {coefficient!r} : {element}")
        lines.append(f"%m{n} = arith.mulf %x{n}, %c{n} : {element}")
        if n:
            lines.append(f"%s{n} = arith.addf {before}, %m{n} : {element}")
        before = f"%s{n}" if n else f"%m{n}"
    return lines


def convolution(columns: int, rows: int) -> Stencil:
    """A filter of distinct coefficients of sum 1, its terms one column after the other."""
    places = [
        (y, x)
        for x, y in product(
            range(-(columns // 2), columns - columns // 2), range(-(rows // 2), rows - rows // 2)
        )
    ]
    raw = [0.05 + 0.003 * n for n in range(len(places))]
    total = sum(raw)
    terms = tuple((at, value / total) for at, value in zip(places, raw))
    return Stencil(f"conv{columns}x{rows}", terms)


def stencil_of(name: str) -> Stencil:
    """A stencil by name: of the benchmarks, in the order of columns, of SSAM, or a convolution."""
    if name.startswith("conv"):
        columns, rows = map(int, name.removeprefix("conv").split("x"))
        return convolution(columns, rows)
    if name in SSAM_STENCILS:
        kind, size = SSAM_STENCILS[name]
        if kind == "box":
            return convolution(size, size)
        return by_columns(star(name, 2, size)).scaled()
    if name in SSAM_VOLUMES:
        return by_columns(STENCILS[SSAM_VOLUMES[name]]).scaled()
    if name.endswith("-columns") and name not in STENCILS:
        return by_columns(STENCILS[name.removesuffix("-columns")]).scaled()
    if name in ("box3d3r", "box3d4r"):
        return box(name, 3, int(name[-2]))
    return STENCILS[name].scaled()


def wave(domain: Sequence[int], element: str) -> str:
    """
    A step of the wave equation of order 2 in time and 8 in space, `2 u - before + m (sum)`, with a
    coefficient field m. The terms of the sum are in the order of planes.
    """
    radius, zero = len(WAVE) - 1, (0, 0, 0)
    terms: dict[Offset, float] = {zero: 3 * WAVE[0]}
    for axis, distance, sign in product(range(3), range(1, radius + 1), (-1, 1)):
        at = tuple(sign * distance if k == axis else 0 for k in range(3))
        terms[at] = WAVE[distance]
    field = field_type(domain, radius, element)
    temp = f"!stencil.temp<?x?x?x{element}>"
    lines = summed(tuple(sorted(terms.items())), temp, element)
    here = "[0, 0, 0]"
    lines += [
        f"%now = stencil.access %x{here} : {temp}",
        f"%old = stencil.access %y{here} : {temp}",
        f"%m = stencil.access %k{here} : {temp}",
        f"%small = arith.constant 0.1 : {element}",
        f"%speed = arith.mulf %m, %small : {element}",
        f"%moved = arith.mulf %speed, %s{len(terms) - 1} : {element}",
        f"%twice = arith.addf %now, %now : {element}",
        f"%kept = arith.subf %twice, %old : {element}",
        f"%o = arith.addf %kept, %moved : {element}",
    ]
    body = "\n      ".join(lines)
    bounds = f"<{list(zero)}, {list(domain)}>"
    return f"""func.func @run(%a: {field}, %b: {field}, %c: {field}, %steps: index) {{
  %lb = arith.constant 0 : index
  %st = arith.constant 1 : index
  %ra, %rb = scf.for %t = %lb to %steps step %st iter_args(%u = %a, %v = %b)
      -> ({field}, {field}) {{
    %in = stencil.load %u : {field} -> {temp}
    %before = stencil.load %v : {field} -> {temp}
    %speeds = stencil.load %c : {field} -> {temp}
    %out = stencil.apply(%x = %in : {temp}, %y = %before : {temp}, %k = %speeds : {temp})
        -> ({temp}) {{
      {body}
      stencil.return %o : {element}
    }}
    stencil.store %out to %v({bounds}) : {temp} to {field}
    scf.yield %v, %u : {field}, {field}
  }}
  func.return
}}
"""


def text_of(name: str, dtype: str, domain: Sequence[int]) -> str:
    """
    The text of a program: AN5D's with its division, a wave, a step of waves with or without
    layers, or a sum of products.
    """
    if name in WAVES:
        shape = tuple(size + 2 * REACH for size in domain)
        return str(WAVES[name].module(shape, "float32" if dtype == "f32" else "float64"))
    if name == "wave25pt":
        return wave(domain, dtype)
    if name == "gradient2d":
        return gradient(tuple(domain), dtype)
    if name.endswith("-divided"):
        return divided(STENCILS[name.removesuffix("-divided")], domain, dtype)
    return program(stencil_of(name), domain, dtype)
