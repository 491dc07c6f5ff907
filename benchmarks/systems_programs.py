"""Programs of the papers with an operation that folding removes: AN5D's division by a constant."""

from __future__ import annotations

from collections.abc import Sequence

from stencils import Stencil, added, field_type, two_buffers

DIVISOR = 118.0
"""The divisor of AN5D's Jacobi stencils."""


def divided(stencil: Stencil, domain: Sequence[int], element: str) -> str:
    """
    A weighted sum, divided by 118 in every cell. Weights have the absolute sum 118, so that cells
    do not grow.
    """
    total = added(abs(c) for _, c in stencil.terms) / DIVISOR
    field = field_type(domain, stencil.radius, element)
    temp = f"!stencil.temp<{'?x' * stencil.rank}{element}>"
    lines: list[str] = []
    before = ""
    for n, (offset, coefficient) in enumerate(stencil.terms):
        at = ", ".join(map(str, offset))
        lines.append(f"%x{n} = stencil.access %x[{at}] : {temp}")
        lines.append(f"%c{n} = arith.constant {coefficient / total!r} : {element}")
        lines.append(f"%m{n} = arith.mulf %x{n}, %c{n} : {element}")
        if n:
            lines.append(f"%s{n} = arith.addf {before}, %m{n} : {element}")
        before = f"%s{n}" if n else f"%m{n}"
    lines.append(f"%by = arith.constant {DIVISOR!r} : {element}")
    lines.append(f"%o = arith.divf {before}, %by : {element}")
    return two_buffers(field, temp, lines, "%o", element, [0] * stencil.rank, list(domain))
