"""Explain tells the cost of an unlucky order of terms, and prints the sorted order."""

from __future__ import annotations

from typing import Any

import timetile
from timetile import Field, Model
from timetile.passes.analysis.cells.sums import FpReassoc
from timetile.passes.scheduling.candidates import candidates
from timetile.passes.targets.target import target_named
from timetile.runtime.explain.term_order import SortedOrder, faster_order
from timetile.runtime.kernels.loops import loops_of
from timetile.runtime.kernels.of_program import raise_program
from timetile.runtime.kernels.options import Options

RADIUS = range(-2, 3)


def box_by_columns(u: Field) -> Any:
    """Twenty-five cells, with the columns one after the other."""
    total: Any = None
    for column in RADIUS:
        for row in RADIUS:
            term = (0.03 + 0.001 * row + 0.0001 * column) * u[row, column]
            total = term if total is None else total + term
    return total


@timetile.stencil
def by_columns(u: Field):
    u.next = box_by_columns(u)


@timetile.stencil
def star_by_planes(u: Field):
    u.next = 0.1 * u[-1, 0] + 0.2 * u[0, -1] + 0.3 * u[0, 0] + 0.2 * u[0, 1] + 0.1 * u[1, 0]


def order_of(
    model: Model, fp_reassoc: FpReassoc, depth: int = 2, running: float = 0.0
) -> SortedOrder | None:
    """The faster order of a step on a large domain, in kernels of a depth."""
    options = Options(depth=depth, fp_reassoc=fp_reassoc, halos="common")
    module = raise_program(model.module((8192, 8192), "float32"), options)
    (loop,) = loops_of(module)
    target = target_named("sm_90")
    found = candidates(loop, module, target, depth)
    return faster_order(loop, module, target, depth, found, running)


def test_the_sorted_order_of_a_box_of_columns_is_told():
    found = order_of(by_columns, "flags")
    assert found is not None
    assert found.gcells_per_second > 1.05 * found.own_gcells_per_second
    assert str(found).startswith(
        "--fp-reassoc on, or terms in the order 0.0278 * %u[-2, -2] + 0.0279 * %u[-2, -1] + "
        "0.028 * %u[-2, 0] + 0.0281 * %u[-2, 1] + 0.0282 * %u[-2, 2] + ... + 0.0322 * %u[2, 2]: "
    )
    assert str(found).endswith(
        f"{found.gcells_per_second:.0f} GCells/s predicted in place of "
        f"{found.own_gcells_per_second:.0f}, with other last bits"
    )


def test_no_order_is_told_for_sorted_sums_and_for_kernels_predicted_to_be_faster():
    assert order_of(by_columns, "on") is None
    assert order_of(by_columns, "flags", running=1e6) is None
    assert order_of(star_by_planes, "flags") is None


@timetile.stencil
def separable(u: Field):
    total: Any = None
    for row in range(-3, 4):
        for column in range(-3, 4):
            term = 0.02 * (4 - abs(row)) * (4 - abs(column)) / 5.12 * u[row, column]
            total = term if total is None else total + term
    u.next = total


def test_sums_along_axes_are_told():
    found = order_of(separable, "flags", 3)
    assert found is not None
    assert str(found).startswith("--fp-reassoc on, by sums along one axis after the other: ")
    assert order_of(separable, "on", 3) is None
