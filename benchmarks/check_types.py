"""
Run steps on arrays of integers, truth values and mixed types on the GPU, and compare the cells with
NumPy's evaluation of the step, bit for bit.

    python benchmarks/check_types.py
    python benchmarks/check_types.py --steps 40 --size 1000 --executor ptx

Each step has an evaluation of its own on whole arrays. All cells of all written fields are
compared, for several depths of kernels.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import timetile
from timetile import Field

SIDES = ((-1, 0), (1, 0), (0, -1), (0, 1))


def moved(cells: Any, down: int, right: int) -> Any:
    """The neighbours of all cells of a periodic array."""
    return np.roll(cells, (-down, -right), (0, 1))


class Around:
    """A periodic array in the place of a field of a step."""

    def __init__(self, cells: Any):
        self.cells = cells

    def __getitem__(self, offsets: tuple[int, int]) -> Any:
        return moved(self.cells, *offsets)


def life(c: Any, where: Any) -> Any:
    """Conway's game of life."""
    n = sum(c[i, j] for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0))
    return where((n == 3) | ((n == 2) & (c[0, 0] == 1)), 1, 0)


def spins(c: Any, where: Any) -> Any:
    """Spins that follow their neighbours."""
    near = sum(c[side] for side in SIDES)
    return where(near > 0, 1, where(near < 0, -1, -c[0, 0]))


def mixing(c: Any, where: Any) -> Any:
    """Bits, products and remainders that leave the range of the type."""
    a, b = c[-1, 0] * 5 + c[0, 1], c[0, -1] ^ (c[1, 0] >> 1)
    return where(a > b, (a % 7) + (b // 3), (a & b) | (c[0, 0] << 1))


def grown(c: Any, where: Any) -> Any:
    """Truth values that spread, and end in crowds."""
    near = c[-1, 0] | c[1, 0]
    return (near ^ c[0, 1]) & ~(c[0, -1] & c[0, 0])


STEPS: list[tuple[str, Callable[[Any, Any], Any], tuple[str, ...]]] = [
    ("life", life, ("uint8", "int32", "int64")),
    ("spins", spins, ("int8", "int16")),
    ("mixing", mixing, ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")),
    ("grown", grown, ("bool",)),
]


def drawn(dtype: str, size: int) -> Any:
    """Random cells of the whole range of a type, small ones for life and spins."""
    rng = np.random.default_rng(size)
    if dtype == "bool":
        return rng.random((size, size + 3)) < 0.4
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, (size, size + 3), dtype, endpoint=True)


def compared(label: str, found: Any, expected: Any) -> bool:
    """Print whether cells are equal; True if so."""
    same = found.dtype == expected.dtype and np.array_equal(found, expected)
    print(f"{label}: {'equal' if same else 'DIFFERENT'}", flush=True)
    return bool(same)


def check_step(
    name: str, rule: Callable[[Any, Any], Any], dtype: str, given: argparse.Namespace
) -> bool:
    """Compare a step on arrays of a type."""

    @timetile.stencil(boundary="periodic")
    def step(c: Field):
        c.next = rule(c, timetile.where)

    cells = drawn(dtype, given.size)
    if name == "life":
        cells = (cells & 1).astype(dtype)
    if name == "spins":
        cells = np.where(cells > 0, 1, -1).astype(dtype)
    expected = cells
    with np.errstate(all="ignore"):
        for _ in range(given.steps):
            expected = rule(Around(expected), np.where).astype(dtype)
    good = True
    for depth in (None, 1, 4):
        chosen = step.on(executor=given.executor, depth=depth)
        found = chosen.advance({"c": cells}, given.steps)["c"]
        good &= compared(f"{name} {dtype} depth {depth}", found, expected)
    return good


def check_mixed(given: argparse.Namespace) -> bool:
    """A field of float64 beside a coefficient of float32 and a mask of uint8."""

    @timetile.stencil
    def heat(u: Field, k: Field, mask: Field):
        change = k[0, 0] * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u[0, 0])
        u.next = timetile.where(mask[0, 0] > 1, u[0, 0], u[0, 0] + change * mask[0, 0])

    rng = np.random.default_rng(7)
    shape = (given.size, given.size + 3)
    u, k = rng.random(shape), (0.2 * rng.random(shape)).astype(np.float32)
    mask = rng.integers(0, 3, shape, np.uint8)
    expected, inner = u.copy(), (slice(1, -1), slice(1, -1))
    for _ in range(given.steps):
        v, w = expected[inner], mask[inner]
        around = expected[:-2, 1:-1] + expected[2:, 1:-1] + expected[1:-1, :-2] + expected[1:-1, 2:]
        new = np.where(w > 1, v, v + k[inner] * (around - 4 * v) * w)
        expected = expected.copy()
        expected[inner] = new
    good = True
    for depth in (None, 1, 4):
        chosen = heat.on(executor=given.executor, depth=depth, fp_contract="off")
        found = chosen.advance({"u": u, "k": k, "mask": mask}, given.steps)["u"]
        good &= compared(f"mixed types depth {depth}", found, expected)
    return good


def main() -> int:
    """Check all steps; 1 if a cell differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=13)
    parser.add_argument("--size", type=int, default=509)
    parser.add_argument("--executor", default="gpu")
    given = parser.parse_args()
    checks = [check_step(n, rule, dtype, given) for n, rule, types in STEPS for dtype in types]
    return 0 if all([*checks, check_mixed(given)]) else 1


if __name__ == "__main__":
    sys.exit(main())
