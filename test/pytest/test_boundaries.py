"""
Boundaries of updates: on every executor, the cells outside the box equal NumPy's `pad` of the cells
inside.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import timetile
from support.executors import kernel_executors
from support.padded import PADDED
from timetile.dialects.temporal.boundary import BoundaryAttr, Kind, Side
from timetile.runtime.program.compiled_program import Executor

pytestmark = pytest.mark.usefixtures("chosen_among_few")

Array = np.ndarray[Any, Any]

HALO = 2


def program(shape: tuple[int, ...], boundary: BoundaryAttr) -> str:
    """A step with reads at every corner of a cell, two cells away along the first axis."""
    rank = len(shape)
    kind = "!stencil.field<" + "x".join(f"[{-HALO},{n + HALO}]" for n in shape) + "xf64>"
    offsets = [(2 * first, *rest) for first, *rest in product((-1, 1), repeat=rank)]
    names = [f"%x{k}" for k in range(len(offsets))]
    lines = [f"  %s0 = arith.mulf {names[0]}, %w : f64"]
    for k, name in enumerate(names[1:], 1):
        lines += [
            f"  %p{k} = arith.mulf {name}, %w : f64",
            f"  %s{k} = arith.addf %s{k - 1}, %p{k} : f64",
        ]
    body, weight = "\n".join(lines), 0.9 / len(offsets)
    taps = ", ".join(f"%a{list(offset)}" for offset in offsets)
    return f"""
func.func private @cell({", ".join(f"{name}: f64" for name in names)}) -> f64 {{
  %w = arith.constant {weight} : f64
{body}
  func.return %s{len(offsets) - 1} : f64
}}
func.func @run(%n: index, %A: {kind}, %B: {kind}) {{
  %r:2 = temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {{
    temporal.update %b = @cell({taps}) in <{[0] * rank}, {list(shape)}> outside {boundary}
  }} : {kind}, {kind}
  func.return
}}
"""


def padded(inner: Array, before: Array, boundary: BoundaryAttr) -> Array:
    """The buffer of the previous level, with new cells inside."""
    result = before.copy()
    result[tuple(slice(HALO, -HALO) for _ in inner.shape)] = inner
    done = [slice(HALO, -HALO) for _ in inner.shape]
    for axis in range(inner.ndim):
        for number, (kind, edge) in enumerate(
            zip(boundary.of_axis(axis), (slice(None, HALO), slice(-HALO, None)))
        ):
            if kind is Kind.KEEP:
                continue
            own = [*done]
            own[axis] = slice(HALO, -HALO)
            widths = [(HALO, HALO) if k == axis else (0, 0) for k in range(inner.ndim)]
            if isinstance(kind, Kind):
                around = np.pad(result[tuple(own)], widths, PADDED[kind])
            else:
                around = np.pad(result[tuple(own)], widths, "constant", constant_values=kind)
            own[axis] = edge
            result[tuple(own)] = around[
                tuple(edge if k == axis else slice(None) for k in range(inner.ndim))
            ]
            start, stop = done[axis].start, done[axis].stop
            done[axis] = slice(None, stop) if number == 0 else slice(start, None)
    return result


def expected(arrays: list[Array], boundary: BoundaryAttr, steps: int) -> list[Array]:
    """The contents of the program's two arrays after a run."""
    a, b = (array.copy() for array in arrays)
    rank = a.ndim
    offsets = [(2 * first, *rest) for first, *rest in product((-1, 1), repeat=rank)]
    weight = 0.9 / len(offsets)
    for _ in range(steps):
        total = None
        for offset in offsets:
            at = tuple(slice(HALO + d, n - HALO + d) for d, n in zip(offset, a.shape))
            term = a[at] * weight
            total = term if total is None else total + term
        assert total is not None
        a, b = padded(total, b, boundary), a
    return [a, b] if steps % 2 == 0 else [b, a]


SHAPES = {1: (70,), 2: (7, 40), 3: (5, 6, 37)}

SIDES: list[tuple[Side, ...]] = [
    (Kind.PERIODIC,),
    (Kind.MIRROR,),
    (Kind.REFLECT,),
    (0.25,),
    (Kind.KEEP, Kind.CLAMP),
    (Kind.MIRROR, Kind.KEEP, Kind.PERIODIC, Kind.PERIODIC),
    (Kind.KEEP, 0.5, Kind.REFLECT, Kind.MIRROR),
    (Kind.REFLECT, Kind.MIRROR, 0.5, Kind.KEEP, Kind.KEEP, Kind.MIRROR),
]


def cases() -> list[tuple[int, tuple[Side, ...]]]:
    """
    Ranks and sides: a single kind in two axes, several kinds in as many axes as the kinds need.
    """
    return [(len(sides) // 2 if len(sides) > 1 else 2, sides) for sides in SIDES]


@pytest.mark.covering
@pytest.mark.parametrize("executor", ["numpy", "cpu"])
@pytest.mark.parametrize("rank, sides", cases(), ids=str)
def test_cells_outside_are_those_of_the_boundary(
    rank: int, sides: tuple[Side, ...], executor: Executor
):
    check(rank, sides, executor, None)


@pytest.mark.covering
@pytest.mark.parametrize("executor", kernel_executors())
@pytest.mark.parametrize("sides", [(Kind.MIRROR, 0.5), (Kind.PERIODIC,)], ids=str)
def test_kernels_make_the_cells_outside(sides: tuple[Side, ...], executor: Executor):
    """
    Kernels of two steps make the cells outside at either level; kernels of a periodic axis advance
    one step.
    """
    check(1, sides, executor, 1 if sides == (Kind.PERIODIC,) else 2)


def test_kernels_of_planes_make_the_corners():
    check(2, (Kind.KEEP, 0.5, Kind.REFLECT, Kind.MIRROR), "planes", 2)


def check(rank: int, sides: tuple[Side, ...], executor: Executor, depth: int | None) -> None:
    """Runs of some steps end like the model, bit for bit."""
    shape, boundary = SHAPES[rank], BoundaryAttr(*sides)
    compiled = timetile.compile(
        program(shape, boundary), executor=executor, depth=depth, fp_contract="off", cache=False
    )
    if depth is not None:
        assert max(fact.steps for fact in compiled.kernels.facts[0]) == depth
    random = np.random.default_rng(rank)
    start = [random.uniform(-1, 1, [n + 2 * HALO for n in shape]) for _ in "ab"]
    for steps in (1, 5):
        arrays = [array.copy() for array in start]
        compiled(steps, *arrays)
        for one, other in zip(arrays, expected(start, boundary, steps)):
            assert (one.view("u8") == other.view("u8")).all()
