"""The meaning of Python steps: each is compared with NumPy, bit for bit, on several executors."""

from __future__ import annotations

import numpy as np
import pytest

import timetile
from support.steps import noise, run
from timetile import Field, Scalar, coordinate, extent, where
from timetile.runtime.program.compiled_program import Executor

pytestmark = pytest.mark.usefixtures("chosen_among_few")


EXECUTORS: tuple[Executor, ...] = ("cpu", "numpy", "planes", "simt")


on_every_executor = pytest.mark.parametrize("executor", EXECUTORS)


@on_every_executor
def test_one_axis_keeps_the_cells_with_reads_outside(executor: Executor):
    @timetile.stencil
    def upwind(u: Field, c: Scalar):
        u.next = u[0] - c * (u[0] - u[-1])

    u = noise(23)
    found = run(upwind, executor, {"u": u}, 4, c=0.5)["u"]
    for _ in range(4):
        u = np.concatenate([u[:1], u[1:] - 0.5 * (u[1:] - u[:-1])])
    assert np.array_equal(found, u)


@on_every_executor
def test_a_step_of_three_axes_leaves_a_rim_as_wide_as_its_reads(executor: Executor):
    @timetile.stencil
    def heat(u: Field):
        u.next = u[0, 0, 0] + 0.1 * (u[-1, 0, 0] + u[0, 0, 2] - 2 * u[0, 1, 0])

    u = noise(9, 11, 13)
    found = run(heat, executor, {"u": u}, 3)["u"]
    for _ in range(3):
        new = u.copy()
        sums = u[:-1, :-1, :-2] + u[1:, :-1, 2:] - 2 * u[1:, 1:, :-2]
        new[1:, :-1, :-2] = u[1:, :-1, :-2] + 0.1 * sums
        u = new
    assert np.array_equal(found, u)


@on_every_executor
def test_regions_are_assigned_in_order(executor: Executor):
    """
    The last assignment to a cell counts, and all read the values at the beginning of the step.
    """

    @timetile.stencil
    def walls(u: Field):
        u.next = 0.5 * (u[-1, 0] + u[1, 0])
        u.next[0:1, :] = u[1, 0]
        u.next[-1:, :] = 0.25 * u[-1, 0]
        u.next[3:7, 2:-2] = u[0, 0] + 1
        u.next[5:6, 4:5] = 9.0

    u = noise(12, 17)
    found = run(walls, executor, {"u": u}, 5)["u"]
    for _ in range(5):
        new = u.copy()
        new[1:-1] = 0.5 * (u[:-2] + u[2:])
        new[0] = u[1]
        new[-1] = 0.25 * u[-2]
        new[3:7, 2:-2] = u[3:7, 2:-2] + 1
        new[5, 4] = 9.0
        u = new
    assert np.array_equal(found, u)


@on_every_executor
def test_cells_outside_all_regions_keep_their_values(executor: Executor):
    @timetile.stencil
    def part(u: Field):
        u.next[2:5] = u[0] + 1
        u.next[8:] = u[-1]

    u = noise(13)
    found = run(part, executor, {"u": u}, 3)["u"]
    for _ in range(3):
        new = u.copy()
        new[2:5] += 1
        new[8:] = u[7:-1]
        u = new
    assert np.array_equal(found, u)


@on_every_executor
def test_new_values_are_read_where_the_step_says_so(executor: Executor):
    """`v` reads the new `u`, kept cells included, and `w` the old `u`."""

    @timetile.stencil
    def chain(u: Field, v: Field, w: Field):
        u.next = 0.5 * (u[-1, 0] + u[1, 0])
        v.next = u.next[-1, 0] + u.next[0, 1]
        w.next = v.next[0, 0] - u[0, 0] + w[0, -1]

    u, v, w = noise(10, 14), noise(10, 14) + 1, noise(10, 14) + 2
    found = run(chain, executor, {"u": u, "v": v, "w": w}, 4)
    for _ in range(4):
        a, b, c = u.copy(), v.copy(), w.copy()
        a[1:-1] = 0.5 * (u[:-2] + u[2:])
        b[1:, :-1] = a[:-1, :-1] + a[1:, 1:]
        c[:, 1:] = b[:, 1:] - u[:, 1:] + w[:, :-1]
        u, v, w = a, b, c
    assert np.array_equal(found["u"], u)
    assert np.array_equal(found["v"], v)
    assert np.array_equal(found["w"], w)


@on_every_executor
def test_new_values_of_regions_are_read(executor: Executor):
    @timetile.stencil
    def mirrored(u: Field, v: Field):
        u.next = u[-1] + u[1]
        u.next[:1] = u[1]
        u.next[-1:] = u[-1]
        v.next = u.next[-1] - u.next[1]

    u, v = noise(15), noise(15)
    found = run(mirrored, executor, {"u": u, "v": v}, 4)
    for _ in range(4):
        a, b = u.copy(), v.copy()
        a[1:-1] = u[:-2] + u[2:]
        a[0], a[-1] = u[1], u[-2]
        b[1:-1] = a[:-2] - a[2:]
        u, v = a, b
    assert np.array_equal(found["u"], u)
    assert np.array_equal(found["v"], v)


@on_every_executor
def test_a_field_may_be_read_as_it_was_a_step_earlier(executor: Executor):
    """
    Without an array for the step before, the field was equal a step earlier; a separate rim is left
    out.
    """

    @timetile.stencil
    def wave(p: Field):
        p.next = 2 * p[0] - p.prev[0] + 0.2 * (p[-1] - 2 * p[0] + p[1]) + 0.01 * p.prev[-1]

    now, before = noise(19), noise(19) - 0.5
    for given in ({"p": now}, {"p": now, "p.prev": before}):
        found = run(wave, executor, given, 5)
        p, old = now, now.copy()
        if len(given) == 2:
            old[1:-1] = before[1:-1]
        for _ in range(5):
            new = p.copy()
            new[1:-1] = (
                2 * p[1:-1] - old[1:-1] + 0.2 * (p[:-2] - 2 * p[1:-1] + p[2:]) + 0.01 * old[:-2]
            )
            p, old = new, p
        assert np.array_equal(found["p"], p)
        assert np.array_equal(found["p.prev"], old)


@on_every_executor
def test_a_field_may_have_fewer_axes_than_the_step(executor: Executor):
    @timetile.stencil
    def damped(u: Field, rows: Field, columns: Field):
        u.next = u[0, 1] * rows[0, None] + columns[None, -1]

    u, rows, columns = noise(8, 11), noise(8), noise(11)
    found = run(damped, executor, {"u": u, "rows": rows, "columns": columns}, 3)
    for _ in range(3):
        new = u.copy()
        new[:, 1:-1] = u[:, 2:] * rows[:, None] + columns[None, :-2]
        u = new
    assert np.array_equal(found["u"], u)
    assert found["rows"] is rows


@on_every_executor
def test_coordinates_and_extents_are_those_of_the_arrays(executor: Executor):
    @timetile.stencil
    def places(u: Field):
        i, j = coordinate(0), coordinate(1)
        odd = ((i + j) % 2 == 1) & (i < extent(0) - 2) | ~(j > 3)
        u.next = where(odd, u[0, 0] + i / extent(1), u[0, 0] - j // 3)

    u = noise(9, 12)
    found = run(places, executor, {"u": u}, 3)["u"]
    i, j = np.indices(u.shape)
    odd = ((i + j) % 2 == 1) & (i < 7) | ~(j > 3)
    for _ in range(3):
        u = np.where(odd, u + i / 12, u - j // 3)
    assert np.array_equal(found, u)


def test_a_declared_reach_is_the_width_of_the_rim():
    @timetile.stencil(reach=2)
    def shifted(u: Field):
        u.next = u[-1]

    u = noise(12)
    found = run(shifted, "cpu", {"u": u}, 1)["u"]
    assert np.array_equal(found, np.concatenate([u[:2], u[1:-3], u[-2:]]))


def test_names_are_letters_of_any_language():
    @timetile.stencil
    def größe(λ: Field, now: Scalar, scalar: Field):
        λ.next = now * λ[-1] + scalar[0]

    state = {"λ": np.ones(5), "scalar": np.zeros(5)}
    found = run(größe, "simt", state, 1, now=2.0)
    assert np.array_equal(found["λ"], [1, 2, 2, 2, 2])


def test_an_array_may_be_given_as_two_fields():
    """An array may be given twice; zero steps leave the state unchanged."""

    @timetile.stencil
    def swapped(u: Field, v: Field, k: Field, m: Field):
        u.next = v[0] * k[0]
        v.next = u[0] * m[0]

    a, b = noise(9), noise(9) + 1
    state = {"u": a, "v": a, "k": b, "m": b}
    found = run(swapped, "cpu", state, 1)
    assert np.array_equal(found["u"], a * b) and np.array_equal(found["v"], a * b)
    still = run(swapped, "cpu", state, 0)
    assert all(np.array_equal(still[name], state[name]) for name in state)
