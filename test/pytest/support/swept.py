"""Programs with sweeps along an axis as text, and the obvious loops in NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def thomas_text(shape: Sequence[int], axis: int, element: str = "f64") -> str:
    """
    A program with Thomas' solver along an axis: of `-r x[k-1] + (1 + 2 r) x[k] - r x[k+1] = u[k]`,
    by a sweep up, of two fields, and a sweep down.
    """
    field = f"!stencil.field<{'x'.join(f'[0,{size}]' for size in shape)}x{element}>"

    def box(first: int, end: int) -> str:
        low, high = [0] * len(shape), list(shape)
        low[axis], high[axis] = first, high[axis] + end
        return f"in <{low}, {high}>"

    def at(offset: int) -> str:
        return str([offset if k == axis else 0 for k in range(len(shape))])

    return f"""
func.func private @up(%c: {element}, %d: {element}, %u: {element}, %r: {element})
    -> ({element}, {element}) {{
  %one = arith.constant 1.0 : {element}
  %two = arith.constant 2.0 : {element}
  %rr = arith.mulf %two, %r : {element}
  %b = arith.addf %one, %rr : {element}
  %rc = arith.mulf %r, %c : {element}
  %w = arith.addf %b, %rc : {element}
  %n = arith.negf %r : {element}
  %p = arith.divf %n, %w : {element}
  %rd = arith.mulf %r, %d : {element}
  %s = arith.addf %u, %rd : {element}
  %q = arith.divf %s, %w : {element}
  func.return %p, %q : {element}, {element}
}}
func.func private @down(%c: {element}, %d: {element}, %x: {element}) -> {element} {{
  %p = arith.mulf %c, %x : {element}
  %q = arith.subf %d, %p : {element}
  func.return %q : {element}
}}
func.func @solve(%u: {field}, %c: {field}, %d: {field}, %r: {element}) {{
  temporal.sweep %c, %d = @up(%c{at(-1)}, %d{at(-1)}, %u{at(0)}) scalars(%r)
    along {axis} ascending {box(1, 0)}
  temporal.sweep %u = @down(%c{at(0)}, %d{at(0)}, %u{at(1)})
    along {axis} descending {box(0, -1)}
  func.return
}}
"""


def thomas(u: Any, c: Any, d: Any, r: Any, axis: int) -> tuple[Any, Any, Any]:
    """The fields after `thomas_text`, without fused products and sums."""
    u, c, d = (np.moveaxis(a.copy(), axis, 0) for a in (u, c, d))
    one, two = u.dtype.type(1), u.dtype.type(2)
    for k in range(1, len(u)):
        w = (one + two * r) + r * c[k - 1]
        c[k], d[k] = -r / w, (u[k] + r * d[k - 1]) / w
    for k in range(len(u) - 2, -1, -1):
        u[k] = d[k] - c[k] * u[k + 1]
    found = tuple(np.ascontiguousarray(np.moveaxis(a, 0, axis)) for a in (u, c, d))
    return found[0], found[1], found[2]
