"""Temporaries and several assignments of a field: bits of the obvious NumPy program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import timetile
from support.steps import noise, run
from timetile import Field, Scalar, coordinate, temporary, where
from timetile.runtime.program.compiled_program import Executor

pytestmark = pytest.mark.usefixtures("chosen_among_few")

EXECUTORS: tuple[Executor, ...] = ("cpu", "numpy", "planes", "simt")

on_every_executor = pytest.mark.parametrize("executor", EXECUTORS)


def kept(u: Any, inside: Any) -> Any:
    """The field with new values in all cells but the first and the last."""
    new = u.copy()
    new[1:-1] = inside
    return new


@on_every_executor
def test_a_cell_keeps_its_value_where_a_temporary_reads_outside(executor: Executor):
    @timetile.stencil
    def diffused(u: Field, k: Field):
        flux = temporary(k[0] * (u[1] - u[0]))
        curved = temporary(flux[0] - flux[-1])
        u.next = u[0] + 0.1 * (curved[1] - curved[-1])

    u, k = noise(31), noise(31)
    found = run(diffused, executor, {"u": u, "k": k}, 4)["u"]
    for _ in range(4):
        flux = k[:-1] * (u[1:] - u[:-1])
        curved = flux[1:] - flux[:-1]  # of the cells 1, 2, ...
        new = u.copy()
        new[2:-2] = u[2:-2] + 0.1 * (curved[2:] - curved[:-2])
        u = new
    assert np.array_equal(found, u)


BEYOND: dict[str, Callable[[Any], Any]] = {
    "periodic": lambda u: np.pad(u, 4, "wrap"),
    "mirror": lambda u: np.pad(u, 4, "symmetric"),
    "reflect": lambda u: np.pad(u, 4, "reflect"),
}


def padded_step(p: Any, wall: float) -> Any:
    """The step below on fields with a rim of four cells."""
    f = p[1:, :-1] * p[:-1, 1:] - wall * p[:-1, :-1]
    g = f[1:, :] - f[:-1, :]  # at row 1 and so on
    return p[4:-4, 4:-4] + g[3:-3, 5:-2] - 0.1 * g[3:-3, 4:-3]


@pytest.mark.covering
@pytest.mark.parametrize("executor", ["cpu", "numpy", "planes"])
@pytest.mark.parametrize("kind", [*BEYOND, "wall"])
def test_the_boundary_continues_the_fields_behind_a_temporary(executor: Executor, kind: str):
    @timetile.stencil(boundary=timetile.value("wall") if kind == "wall" else kind)
    def step(u: Field, wall: Scalar):
        f = temporary(u[1, 0] * u[0, 1] - wall * u[0, 0])
        g = temporary(f[0, 0] - f[-1, 0])
        u.next = u[0, 0] + g[0, 1] - 0.1 * g[0, 0]

    u = 0.5 * noise(13, 17)
    found = run(step, executor, {"u": u}, 3, wall=0.3)["u"]
    beyond = BEYOND.get(kind, lambda u: np.pad(u, 4, constant_values=0.3))
    for _ in range(3):
        u = padded_step(beyond(u), 0.3)
    assert np.array_equal(found, u)


@on_every_executor
def test_assignments_of_a_field_are_updates_in_order(executor: Executor):
    """A value of the cell from before a later assignment stays what it was."""

    @timetile.stencil
    def stages(u: Field, v: Field):
        u.next = u[0] + 0.1 * (u[-1] - 2 * u[0] + u[1])
        first = u.next[0]
        u.next = 0.5 * (u.next[-1] + u.next[1])
        v.next = u.next[0] - first
        u.next = u.next[1] * u[-1] + v.next[0]

    u, v = noise(29), noise(29)
    found = run(stages, executor, {"u": u, "v": v}, 3)
    for _ in range(3):
        a = kept(u, u[1:-1] + 0.1 * (u[:-2] - 2 * u[1:-1] + u[2:]))
        b = kept(a, 0.5 * (a[:-2] + a[2:]))
        v = b - a
        u = kept(b, b[2:] * u[:-2] + v[1:-1])
    assert np.array_equal(found["u"], u)
    assert np.array_equal(found["v"], v)


@on_every_executor
def test_a_cell_assigned_later_has_its_old_value_before(executor: Executor):
    """The second assignment reads, beside its cells, cells that only the third assigns."""

    @timetile.stencil
    def parts(u: Field):
        u.next[4:9] = 2.0 * u[0]
        u.next[2:12] = u.next[-1] + u.next[1]
        u.next[0:3] = u.next[0] + 1.0

    u = noise(14)
    found = run(parts, executor, {"u": u}, 4)["u"]
    for _ in range(4):
        new = u.copy()
        new[4:9] = 2.0 * u[4:9]
        new[2:12] = new[1:11] + new[3:13]
        new[0:3] = new[0:3] + 1.0
        u = new
    assert np.array_equal(found, u)


@on_every_executor
def test_red_cells_and_black_cells_take_turns(executor: Executor):
    @timetile.stencil
    def red_black(u: Field, f: Field):
        red = (coordinate(0) + coordinate(1)) % 2 == 0
        around = u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1]
        u.next = where(red, 0.25 * (around - f[0, 0]), u[0, 0])
        around = u.next[-1, 0] + u.next[1, 0] + u.next[0, -1] + u.next[0, 1]
        u.next = where(red, u.next[0, 0], 0.25 * (around - f[0, 0]))

    u, f = noise(12, 15), noise(12, 15)
    found = run(red_black, executor, {"u": u, "f": f}, 3)["u"]
    inner = np.s_[1:-1, 1:-1]
    red = (np.indices(u.shape).sum(axis=0) % 2 == 0)[inner]
    for _ in range(3):
        for turn in (red, ~red):
            around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
            u = u.copy()
            u[inner] = np.where(turn, 0.25 * (around - f[inner]), u[inner])
    assert np.array_equal(found, u)


def test_a_declared_reach_counts_the_reads_behind_a_temporary():
    with pytest.raises(timetile.StencilError, match="reads 2 cells away through a temporary"):

        @timetile.stencil(reach=1)
        def far(u: Field):
            flux = temporary(u[1] - u[0])
            u.next = flux[1]


def test_assignments_in_order_are_no_recurrence(caplog: pytest.LogCaptureFixture):
    """A program in the stencil dialect has a remark for such updates, as a warning."""

    @timetile.stencil
    def twice(u: Field):
        u.next = u[0] + 1.0
        u.next = u.next[-1] + u.next[1]

    run(twice, "cpu", {"u": noise(9)}, 1)
    assert "recurrence" not in caplog.text
