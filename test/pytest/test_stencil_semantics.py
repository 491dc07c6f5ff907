"""What steps written in Python mean: each is compared with NumPy, bit for bit, on several executors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import timetile
from timetile import Field, Model, Scalar, coordinate, extent, where
from timetile.runtime.program.compiled_program import Executor

numpy: Any = np
"""NumPy without types: its stubs know no value of a cell as an argument of where and others."""

EXECUTORS: tuple[Executor, ...] = ("cpu", "numpy", "planes", "simt")

on_every_executor = pytest.mark.parametrize("executor", EXECUTORS)


def run(model: Model, executor: Executor, state: dict[str, Any], steps: int, **numbers: float):
    return model.on(executor=executor, fp_contract="off", cache=False).advance(
        state, steps=steps, **numbers
    )


def noise(*shape: int) -> np.ndarray:
    return np.random.default_rng(7).random(shape)


@on_every_executor
def test_one_axis_leaves_what_its_reads_need(executor: Executor):
    @timetile.stencil
    def upwind(u: Field, c: Scalar):
        u.next = u[0] - c * (u[0] - u[-1])

    u = noise(23)
    found = run(upwind, executor, {"u": u}, 4, c=0.5)["u"]
    for _ in range(4):
        u = np.concatenate([u[:1], u[1:] - 0.5 * (u[1:] - u[:-1])])
    assert np.array_equal(found, u)


@on_every_executor
def test_three_axes(executor: Executor):
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
    """The last assignment to a cell counts, and all read the values at the beginning of the step."""

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
def test_cells_that_no_region_has_keep_their_values(executor: Executor):
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
    """`v` reads the new `u`, kept cells included, and `w` the old one."""

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
def test_the_previous_step(executor: Executor):
    """Without an array for it, the field was the same a step earlier; a rim of its own is left out."""

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
def test_a_field_of_fewer_axes(executor: Executor):
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
def test_coordinates_and_extents(executor: Executor):
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


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_what_a_coordinate_becomes_by_division_with_remainder(dtype: str):
    """Negative numbers are rounded down, as Python does."""

    @timetile.stencil
    def places(u: Field, v: Field):
        k = 3 - coordinate(0)
        u.next = (k % 4) + 0.0 * u[0]
        v.next = (k // 4) + 0.0 * v[0]

    state = {"u": np.ones(12, dtype), "v": np.ones(12, dtype)}
    found = run(places, "cpu", state, 1)
    k = 3 - np.arange(12)
    assert np.array_equal(found["u"], (k % 4).astype(dtype))
    assert np.array_equal(found["v"], (k // 4).astype(dtype))


FUNCTIONS = [
    "sqrt",
    "cbrt",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "sin",
    "cos",
    "tan",
    "arcsin",
    "arccos",
    "arctan",
    "sinh",
    "cosh",
    "tanh",
    "arcsinh",
    "arctanh",
    "floor",
    "ceil",
    "trunc",
    "rint",
    "absolute",
    "fabs",
    "negative",
    "square",
]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_numpy(name: str):
    function: Any = getattr(np, name)

    @timetile.stencil
    def applied(u: Field):
        u.next = function(u[0])

    u = 0.1 + 0.8 * noise(50)
    found = run(applied, "cpu", {"u": u}, 1)["u"]
    np.testing.assert_allclose(found, function(u), rtol=1e-15)


@pytest.mark.parametrize(
    "name",
    [
        "add",
        "subtract",
        "multiply",
        "divide",
        "maximum",
        "minimum",
        "fmax",
        "fmin",
        "copysign",
        "arctan2",
        "power",
    ],
)
def test_functions_of_two_numbers(name: str):
    function: Any = getattr(np, name)

    @timetile.stencil
    def applied(u: Field, v: Field):
        u.next = function(u[0], v[0]) + function(0.5, u[0]) - function(v[0], 2.5)

    u, v = 0.1 + noise(50), noise(50)[::-1].copy()
    found = run(applied, "cpu", {"u": u, "v": v}, 1)["u"]
    expected = function(u, v) + function(0.5, u) - function(v, 2.5)
    np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_operators():
    """Numbers on either side, comparisons, and choices of NumPy."""

    @timetile.stencil
    def applied(u: Field, v: Field):
        a, b = u[0], v[0]
        low = (a <= 0.3) | (b >= 0.9) & (a != b)
        first = numpy.where(low ^ (a == 0.5), 2 - a, 1 / b)
        second = numpy.where(numpy.logical_or(a < b, a > 0.8), abs(a - b), -a)
        u.next = first + second + a**2 - b**3 + a**0.5 + 2**b + np.float64(3) * (+a)

    u, v = 0.1 + noise(60), 0.1 + noise(60)[::-1]
    found = run(applied, "cpu", {"u": u, "v": v}, 1)["u"]
    low = (u <= 0.3) | (v >= 0.9) & (u != v)
    expected = np.where(low, 2 - u, 1 / v)
    expected = expected + np.where((u < v) | (u > 0.8), abs(u - v), -u)
    expected = expected + u**2 - v * v**2 + np.sqrt(u) + 2**v + 3 * u
    np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_loops_and_functions_of_python_unroll():
    weights = {-2: -1 / 12, -1: 4 / 3, 0: -5 / 2, 1: 4 / 3, 2: -1 / 12}

    @timetile.stencil
    def fourth(u: Field):
        total = 0.0
        for k, weight in weights.items():
            total = total + weight * u[k]
        u.next = u[0] + 0.1 * total

    u = noise(40)
    found = run(fourth, "cpu", {"u": u}, 1)["u"]
    total: Any = 0.0
    for k, weight in weights.items():
        total = total + weight * u[2 + k : 38 + k]
    assert np.array_equal(found[2:-2], u[2:-2] + 0.1 * total)
    assert np.array_equal(found[[0, 1, -2, -1]], u[[0, 1, -2, -1]])


def test_a_declared_reach_is_the_width_of_the_rim():
    @timetile.stencil(reach=2)
    def shifted(u: Field):
        u.next = u[-1]

    u = noise(12)
    found = run(shifted, "cpu", {"u": u}, 1)["u"]
    assert np.array_equal(found, np.concatenate([u[:2], u[1:-3], u[-2:]]))


def test_conditions_and_whole_numbers_are_assigned_as_floats():
    @timetile.stencil
    def marked(u: Field, v: Field, w: Field):
        u.next = u[0] > 0.5
        v.next = coordinate(0)
        w.next = 3

    u = noise(9)
    found = run(marked, "cpu", {"u": u, "v": u, "w": u}, 1)
    assert np.array_equal(found["u"], (u > 0.5).astype(float))
    assert np.array_equal(found["v"], np.arange(9.0))
    assert np.array_equal(found["w"], np.full(9, 3.0))


def test_names_are_letters_of_any_language():
    @timetile.stencil
    def größe(λ: Field, now: Scalar, scalar: Field):
        λ.next = now * λ[-1] + scalar[0]

    state = {"λ": np.ones(5), "scalar": np.zeros(5)}
    found = run(größe, "simt", state, 1, now=2.0)
    assert np.array_equal(found["λ"], [1, 2, 2, 2, 2])


@pytest.mark.filterwarnings("ignore:.* NaN or infinite:RuntimeWarning")
def test_numbers_that_are_not_finite():
    @timetile.stencil
    def marked(u: Field, v: Field):
        u.next = where(u[0] > 0.5, np.nan, u[0])
        v.next = where(v[0] > 0.5, np.inf, -np.inf)

    u = noise(9)
    found = run(marked, "cpu", {"u": u, "v": u}, 1)
    assert np.array_equal(found["u"], np.where(u > 0.5, np.nan, u), equal_nan=True)
    assert np.array_equal(found["v"], np.where(u > 0.5, np.inf, -np.inf))


@pytest.mark.filterwarnings("ignore:.* NaN or infinite:RuntimeWarning")
def test_numbers_beyond_a_type_are_rounded_as_numpy_does():
    @timetile.stencil
    def scaled(u: Field, v: Field, w: Field):
        u.next = u[0] * 1e300
        v.next = v[0] * (1 / 3) - 1e-60
        w.next = where(coordinate(0) > -(2**63), w[0], 2**63 - 1)

    ones = np.ones(4, "float32")
    found = run(scaled, "cpu", {"u": ones, "v": ones, "w": ones}, 1)
    assert np.array_equal(found["u"], np.full(4, np.inf))
    assert np.array_equal(found["v"], np.full(4, np.float32(1 / 3)))
    assert np.array_equal(found["w"], ones)


def test_negative_zero_is_another_number():
    @timetile.stencil
    def zeros(u: Field, v: Field):
        u.next = numpy.copysign(u[0], 0.0)
        v.next = numpy.copysign(v[0], -0.0)

    found = run(zeros, "cpu", {"u": np.ones(5), "v": np.ones(5)}, 1)
    assert np.array_equal(found["u"], np.ones(5)) and np.array_equal(found["v"], -np.ones(5))


def test_fields_of_one_array_and_no_steps():
    """An array may be given twice; no step leaves the state as it is."""

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
