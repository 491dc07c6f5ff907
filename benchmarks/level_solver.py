"""A vertical solver as frontends print it, level by level."""

from __future__ import annotations

LEVELS = 80
FIELD = "!stencil.field<[0,64]x[0,64]x[0,81]xf64>"
TEMP = "!stencil.temp<?x?x?xf64>"


def level(field: str, other: str, k: int, beside: int, number: int) -> str:
    """A level: a cell less half the product of the cell beside and a cell of the other field."""
    return f"""  %a{number} = stencil.load %{field} : {FIELD} -> {TEMP}
  %b{number} = stencil.load %{other} : {FIELD} -> {TEMP}
  %r{number} = stencil.apply(%x = %a{number} : {TEMP}, %y = %b{number} : {TEMP}) -> ({TEMP}) {{
    %0 = stencil.access %x[0, 0, 0] : {TEMP}
    %1 = stencil.access %x[0, 0, {beside}] : {TEMP}
    %2 = stencil.access %y[0, 0, 0] : {TEMP}
    %half = arith.constant 0.5 : f64
    %3 = arith.mulf %1, %half : f64
    %4 = arith.mulf %3, %2 : f64
    %5 = arith.subf %0, %4 : f64
    stencil.return %5 : f64
  }}
  stencil.store %r{number} to %{field}(<[0, 0, {k}], [64, 64, {k + 1}]>) : {TEMP} to {FIELD}
"""


def solver_text() -> str:
    """80 levels upwards and 79 downwards, on 64 x 64 columns."""
    up = [level("c", "d", k, -1, k) for k in range(1, LEVELS + 1)]
    down = [level("d", "c", k, 1, 2 * LEVELS + 1 - k) for k in range(LEVELS - 1, 0, -1)]
    return f"func.func @solve(%c: {FIELD}, %d: {FIELD}) {{\n{''.join([*up, *down])}  return\n}}\n"
