"""
The stencil programs of the benchmarks, as text in xDSL's stencil dialect.

Coefficients are the papers' (AN5D, EBISU, SSAM), folded. The order of a cell's terms is: the far
plane, the in-plane terms row by row, the newest plane.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product

Offset = tuple[int, ...]


@dataclass(frozen=True)
class Stencil:
    """
    A weighted sum of neighbours: offsets (slowest axis first) and coefficients, in program order.
    """

    name: str
    terms: tuple[tuple[Offset, float], ...]

    @property
    def rank(self) -> int:
        return len(self.terms[0][0])

    @property
    def radius(self) -> int:
        return max(abs(d) for offset, _ in self.terms for d in offset)

    def scaled(self) -> Stencil:
        """The stencil with coefficients of absolute sum 1: cells do not grow."""
        total = added(abs(c) for _, c in self.terms)
        return Stencil(self.name, tuple((o, c / total) for o, c in self.terms))


def added(values: Iterable[float]) -> float:
    """A sum rounded after each number: `sum` of Python 3.12 and newer rounds otherwise."""
    return reduce(operator.add, values)


def ordered(terms: dict[Offset, float]) -> tuple[tuple[Offset, float], ...]:
    """Terms in the order of the benchmarks: plane by plane, row by row."""
    return tuple(sorted(terms.items()))


def star(name: str, rank: int, radius: int) -> Stencil:
    """A star with distinct coefficients of sum 1."""
    zero = (0,) * rank
    offsets: list[Offset] = [zero]
    for axis, distance, sign in product(range(rank), range(1, radius + 1), (-1, 1)):
        offsets.append(tuple(sign * distance if k == axis else 0 for k in range(rank)))
    raw = {o: 0.05 + 0.01 * n for n, o in enumerate(offsets)}
    total = added(raw.values())
    order = late_rows if rank == 3 else ordered
    return Stencil(name, order({o: c / total for o, c in raw.items()}))


def late_rows(terms: dict[Offset, float]) -> tuple[tuple[Offset, float], ...]:
    """
    Terms of a 3D star in the order of the benchmarks: far planes, the own row, the other rows of
    the plane, newer planes: cells from other warps come late.
    """

    def place(offset: Offset) -> tuple[int, bool, Offset]:
        return offset[0], offset[1] != 0, offset

    return tuple(sorted(terms.items(), key=lambda term: place(term[0])))


def box(name: str, rank: int, radius: int) -> Stencil:
    """A box with distinct coefficients of sum 1."""
    offsets = list(product(range(-radius, radius + 1), repeat=rank))
    raw = {o: 0.05 + 0.003 * n for n, o in enumerate(offsets)}
    total = added(raw.values())
    return Stencil(name, ordered({o: c / total for o, c in raw.items()}))


J2D5PT = Stencil(
    "j2d5pt",
    ordered(
        {
            (-1, 0): 5 / 118,
            (0, -1): 12 / 118,
            (0, 0): 15 / 118,
            (0, 1): 12 / 118,
            (1, 0): 5 / 118,
        }
    ),
)
J2D9PT = Stencil(
    "j2d9pt",
    ordered(
        {(0, 0): 15 / 118}
        | {(0, d): 12 / 118 for d in (-1, 1)}
        | {(0, d): 9 / 118 for d in (-2, 2)}
        | {(d, 0): 5 / 118 for d in (-1, 1)}
        | {(d, 0): 7 / 118 for d in (-2, 2)}
    ),
)


def rows_2d(name: str, rows: Sequence[Sequence[float]]) -> Stencil:
    """A 2D box from its rows, over 118."""
    radius = len(rows) // 2
    terms = {
        (y - radius, x - radius): c / 118 for y, row in enumerate(rows) for x, c in enumerate(row)
    }
    return Stencil(name, ordered(terms))


def centre_first(stencil: Stencil) -> Stencil:
    """A star in a user's order: the cell, then the axes in the order x, y, z."""

    def place(offset: Offset) -> tuple[bool, int, Offset]:
        # The last axis is x.
        axis = next((k for k, d in enumerate(reversed(offset)) if d), 0)
        return any(offset), axis, offset

    terms = tuple(sorted(stencil.terms, key=lambda term: place(term[0])))
    return Stencil(f"{stencil.name}-centre", terms)


def by_columns(stencil: Stencil) -> Stencil:
    """A box by columns, in the order of columns for sums from lane to lane."""
    terms = tuple(sorted(stencil.terms, key=lambda term: term[0][::-1]))
    return Stencil(f"{stencil.name}-columns", terms)


J2D9PT_GOL = rows_2d("j2d9pt-gol", [[7, 5, 9], [12, 15, 12], [9, 5, 7]])
J2D25PT = rows_2d(
    "j2d25pt",
    [
        [1, 2, 3, 4, 5],
        [7, 7, 5, 7, 6],
        [8, 12, 15, 12, 12],
        [9, 9, 5, 7, 15],
        [10, 11, 12, 13, 14],
    ],
)
J3D7PT = Stencil(
    "j3d7pt",
    (
        ((-1, 0, 0), 0.166),
        ((0, 0, -1), 0.162),
        ((0, 0, 0), -1.67),
        ((0, 0, 1), 0.161),
        ((0, -1, 0), 0.164),
        ((0, 1, 0), 0.163),
        ((1, 0, 0), 0.165),
    ),
)
J3D13PT = Stencil(
    "j3d13pt",
    late_rows(
        {(0, 0, 0): -0.996}
        | {
            tuple(d if k == axis else 0 for k in range(3)): 0.083
            for axis in range(3)
            for d in (-2, -1, 1, 2)
        }
    ),
)
PLANE_9 = [[0.51, 0.71, 0.91], [1.21, 1.51, 1.21], [0.91, 0.71, 0.51]]


def plane_terms(z: int, rows: Sequence[Sequence[float]]) -> dict[Offset, float]:
    """The terms of a plane of 3 x 3 cells, over 159."""
    return {
        (z, y - 1, x - 1): c / 159 for y, row in enumerate(rows) for x, c in enumerate(row) if c
    }


def corners(coefficient: float) -> list[list[float]]:
    """A plane with weights at the corners only."""
    return [[coefficient, 0, coefficient], [0, 0, 0], [coefficient, 0, coefficient]]


J3D17PT = Stencil(
    "j3d17pt",
    ordered(
        plane_terms(-1, corners(0.5)) | plane_terms(0, PLANE_9) | plane_terms(1, corners(0.52))
    ),
)
J3D27PT = Stencil(
    "j3d27pt",
    ordered(
        plane_terms(-1, [[0.5, 0.7, 0.9], [1.2, 1.5, 1.2], [0.9, 0.7, 0.5]])
        | plane_terms(0, PLANE_9)
        | plane_terms(1, [[0.52, 0.72, 0.92], [1.22, 1.52, 1.22], [0.92, 0.72, 0.52]])
    ),
)
POISSON = Stencil(
    "poisson",
    ordered(
        {
            offset: (2.666, -0.166, -0.0833)[sum(map(abs, offset))]
            for offset in product((-1, 0, 1), repeat=3)
            if sum(map(abs, offset)) < 3
        }
    ),
)
J1D3PT = Stencil("j1d3pt", ordered({(-1,): 0.3, (0,): 0.4, (1,): 0.3}))
LAYERS = Stencil(
    "layers",
    tuple(((0, *offset), 0.2) for offset in ((-1, 0), (0, -1), (0, 0), (0, 1), (1, 0))),
)
"""Independent layers: blocks along the layers have nothing to exchange."""

STENCILS = {
    s.name: s
    for s in (
        J1D3PT,
        J2D5PT,
        J2D9PT,
        J2D9PT_GOL,
        J2D25PT,
        J3D7PT,
        J3D13PT,
        J3D17PT,
        J3D27PT,
        POISSON,
        LAYERS,
        centre_first(J2D5PT),
        centre_first(J3D7PT),
        by_columns(J2D9PT_GOL),
        by_columns(J2D25PT),
        *(star(f"star2d{r}r", 2, r) for r in range(1, 5)),
        *(box(f"box2d{r}r", 2, r) for r in range(1, 5)),
        *(star(f"star3d{r}r", 3, r) for r in range(1, 5)),
        *(box(f"box3d{r}r", 3, r) for r in range(1, 3)),
    )
}


def field_type(domain: Sequence[int], halo: int, element: str) -> str:
    """A field over a domain with a halo on all sides."""
    spans = "x".join(f"[{-halo},{n + halo}]" for n in domain)
    return f"!stencil.field<{spans}x{element}>"


def program(stencil: Stencil, domain: Sequence[int], element: str = "f64") -> str:
    """A program of two rotating buffers: `@run(%a, %b, %steps)`."""
    field = field_type(domain, stencil.radius, element)
    temp = f"!stencil.temp<{'?x' * stencil.rank}{element}>"
    low, high = [0] * stencil.rank, list(domain)
    lines: list[str] = []
    total = ""
    for n, (offset, coefficient) in enumerate(stencil.terms):
        lines.append(f"%x{n} = stencil.access %x[{', '.join(map(str, offset))}] : {temp}")
        lines.append(f"%c{n} = arith.constant {float(coefficient)!r} : {element}")
        lines.append(f"%m{n} = arith.mulf %x{n}, %c{n} : {element}")
        if n:
            lines.append(f"%s{n} = arith.addf {total}, %m{n} : {element}")
        total = f"%s{n}" if n else f"%m{n}"
    return two_buffers(field, temp, lines, total, element, low, high)


def two_buffers(
    field: str,
    temp: str,
    lines: Sequence[str],
    result: str,
    element: str,
    low: Sequence[int],
    high: Sequence[int],
) -> str:
    """A time loop over two buffers with a step that computes `result` from accesses to `%x`."""
    body = "\n      ".join(lines)
    return f"""func.func @run(%a: {field}, %b: {field}, %steps: index) {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %ra, %rb = scf.for %t = %zero to %steps step %one
      iter_args(%u = %a, %v = %b) -> ({field}, {field}) {{
    %in = stencil.load %u : {field} -> {temp}
    %out = stencil.apply(%x = %in : {temp}) -> ({temp}) {{
      {body}
      stencil.return {result} : {element}
    }}
    stencil.store %out to %v(<{low}, {high}>) : {temp} to {field}
    scf.yield %v, %u : {field}, {field}
  }}
  func.return
}}
"""


def gradient(domain: Sequence[int], element: str = "f64", *, fast: bool = False) -> str:
    """
    The gradient of AN5D's collection: a cell plus the inverse root of the squared differences to
    the four neighbours, `0.25 f + 1 / sqrt(1.0001 + sum (f - f_n)^2)`, rounded at every operation;
    with `fast`, the root and the quotient may be approximate, like a whole program with fast
    arithmetic.
    """
    flags = " fastmath<afn>" if fast else ""
    field = field_type(domain, 1, element)
    temp = f"!stencil.temp<{'?x' * len(domain)}{element}>"
    low, high = [0] * len(domain), list(domain)
    lines = [f"%f = stencil.access %x[0, 0] : {temp}", f"%s0 = arith.constant 1.0001 : {element}"]
    for n, (y, x) in enumerate([(-1, 0), (0, -1), (0, 1), (1, 0)], start=1):
        lines += [
            f"%x{n} = stencil.access %x[{y}, {x}] : {temp}",
            f"%d{n} = arith.subf %f, %x{n} : {element}",
            f"%q{n} = arith.mulf %d{n}, %d{n} : {element}",
            f"%s{n} = arith.addf %s{n - 1}, %q{n} : {element}",
        ]
    lines += [
        f"%r = math.sqrt %s4{flags} : {element}",
        f"%unit = arith.constant 1.0 : {element}",
        f"%i = arith.divf %unit, %r{flags} : {element}",
        f"%quarter = arith.constant 0.25 : {element}",
        f"%p = arith.mulf %f, %quarter : {element}",
        f"%o = arith.addf %p, %i : {element}",
    ]
    return two_buffers(field, temp, lines, "%o", element, low, high)


def laplacian(rank: int, weights: Sequence[float], temp: str, element: str) -> list[str]:
    """
    The sum `%s<n>` of the weighted second differences of `%p` along every axis. `weights` are the
    weights of a cell and of neighbours, by distance.
    """
    zero = [0] * rank
    lines = [
        f"%x = stencil.access %p[{', '.join(map(str, zero))}] : {temp}",
        f"%k = arith.constant {weights[0] * rank!r} : {element}",
        f"%s0 = arith.mulf %x, %k : {element}",
    ]
    neighbours = product(range(rank), enumerate(weights[1:], 1))
    for n, (axis, (distance, weight)) in enumerate(neighbours, 1):
        low_offset, high_offset = list(zero), list(zero)
        low_offset[axis], high_offset[axis] = -distance, distance
        lines += [
            f"%l{n} = stencil.access %p[{', '.join(map(str, low_offset))}] : {temp}",
            f"%h{n} = stencil.access %p[{', '.join(map(str, high_offset))}] : {temp}",
            f"%z{n} = arith.addf %l{n}, %h{n} : {element}",
            f"%w{n} = arith.constant {weight!r} : {element}",
            f"%m{n} = arith.mulf %z{n}, %w{n} : {element}",
            f"%s{n} = arith.addf %s{n - 1}, %m{n} : {element}",
        ]
    return lines


def wave(domain: Sequence[int], radius: int, element: str = "f32") -> str:
    """
    The acoustic wave equation, second order in time, of radius `radius` in space:
    `@run(%a, %b, %c, %velocity, %steps)`, with the velocity squared times dt squared as a field.
    """
    rank = len(domain)
    weights = {
        1: [-2.0, 1.0],
        2: [-5 / 2, 4 / 3, -1 / 12],
        4: [-205 / 72, 8 / 5, -1 / 5, 8 / 315, -1 / 560],
    }[radius]
    field = field_type(domain, radius, element)
    temp = f"!stencil.temp<{'?x' * rank}{element}>"
    low, high = [0] * rank, list(domain)
    zero = [0] * rank
    lines = laplacian(rank, weights, temp, element)
    lines += [
        f"%v = stencil.access %q[{', '.join(map(str, zero))}] : {temp}",
        f"%o = stencil.access %r[{', '.join(map(str, zero))}] : {temp}",
        f"%two = arith.constant 2.0 : {element}",
        f"%d = arith.mulf %x, %two : {element}",
        f"%e = arith.subf %d, %o : {element}",
        f"%f = arith.mulf %s{rank * radius}, %v : {element}",
        f"%g = arith.addf %e, %f : {element}",
    ]
    body = "\n      ".join(lines)
    return f"""func.func @run(
    %a: {field}, %b: {field}, %c: {field}, %velocity: {field}, %steps: index) {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %ra, %rb, %rc = scf.for %t = %zero to %steps step %one
      iter_args(%t0 = %a, %t1 = %b, %t2 = %c) -> ({field}, {field}, {field}) {{
    %in = stencil.load %t0 : {field} -> {temp}
    %old = stencil.load %t2 : {field} -> {temp}
    %vel = stencil.load %velocity : {field} -> {temp}
    %out = stencil.apply(%p = %in : {temp}, %q = %vel : {temp}, %r = %old : {temp}) -> ({temp}) {{
      {body}
      stencil.return %g : {element}
    }}
    stencil.store %out to %t1(<{low}, {high}>) : {temp} to {field}
    scf.yield %t1, %t2, %t0 : {field}, {field}, {field}
  }}
  func.return
}}
"""
