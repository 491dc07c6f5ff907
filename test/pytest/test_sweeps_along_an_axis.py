"""Sweeps along an axis: bits of the obvious loops, on every executor, and refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timetile
from support.refused_steps import refusal
from support.steps import noise, run
from support.swept import thomas, thomas_text
from timetile import Field, Scalar, coordinate, sweep, temporary, where
from timetile.runtime.program.compiled_program import Executor

EXECUTORS: list[Executor] = ["numpy", "cpu", "planes", "simt", "ptx"]

SHAPES = [(41,), (9, 67), (34, 5), (7, 6, 35), (5, 33, 2)]

WAYS = [(shape, axis) for shape in SHAPES for axis in range(len(shape))]


@pytest.mark.covering(times=2)
@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("element", ["f64", "f32"])
@pytest.mark.parametrize(("shape", "axis"), WAYS, ids=str)
def test_thomas_has_the_bits_of_the_loop(
    shape: tuple[int, ...], axis: int, element: str, executor: Executor
):
    kind = {"f64": np.float64, "f32": np.float32}[element]
    u, c, d = (noise(*shape).astype(kind) + k for k in range(3))
    wanted = thomas(u, c, d, kind(0.3), axis)
    program = timetile.compile(
        thomas_text(shape, axis, element), executor=executor, fp_contract="off", cache=False
    )
    program(u, c, d, 0.3)
    assert [a.tobytes() for a in (u, c, d)] == [a.tobytes() for a in wanted]


def test_thomas_solves_the_system():
    """Each column is a tridiagonal system, and NumPy solves the full matrix."""

    @timetile.stencil
    def solved(u: Field, x: Field, c: Field, d: Field, r: Scalar):
        c.next[0:1, :] = -r / (1 + 2 * r)
        d.next[0:1, :] = u[0, 0] / (1 + 2 * r)
        with sweep(axis=0):
            w = 1 / (1 + 2 * r + r * c.next[-1, 0])
            c.next = -r * w
            d.next = (u[0, 0] + r * d.next[-1, 0]) * w
        x.next[-1:, :] = d.next[0, 0]
        with sweep(axis=0, descending=True):
            x.next = d.next[0, 0] - c.next[0, 0] * x.next[1, 0]

    u, r = noise(40, 30), 0.7
    matrix = (1 + 2 * r) * np.eye(40) - r * np.eye(40, k=1) - r * np.eye(40, k=-1)
    state = {"u": u, "x": 0 * u, "c": 0 * u, "d": 0 * u}
    found = solved.on(executor="cpu", cache=False).advance(state, r=r)["x"]
    assert np.allclose(found, np.linalg.solve(matrix, u), atol=1e-13)


@pytest.mark.covering
@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_the_number_of_threads_changes_no_bit(threads: int, axis: int):
    shape = (61, 50, 70)
    u, c, d = (noise(*shape) + k for k in range(3))
    wanted = thomas(u, c, d, 0.3, axis)
    program = timetile.compile(
        thomas_text(shape, axis), executor="cpu", threads=threads, fp_contract="off", cache=False
    )
    program(u, c, d, 0.3)
    assert np.array_equal(u, wanted[0]) and np.array_equal(d, wanted[2])


def test_two_names_of_one_field_are_refused_before_any_change():
    text = thomas_text((9, 7), 0)
    program = timetile.compile(text, executor="cpu", cache=False)
    u = noise(9, 7)
    kept = u.copy()
    with pytest.raises((timetile.CompileError, ValueError), match=r"memory|one field"):
        program(u, u, noise(9, 7), 0.3)
    assert np.array_equal(u, kept)


# In Python.


@timetile.stencil
def diffused(t: Field, c: Field, d: Field, r: Scalar):
    """Implicit diffusion along axis 0, between fixed ends, and explicit advection along axis 1."""
    c.next[0:1, :] = 0.0
    d.next[0:1, :] = t[0, 0]
    with sweep(axis=0):
        w = 1 / (1 + 2 * r + r * c.next[-1, 0])
        c.next = -r * w
        d.next = (t[0, 0] + r * d.next[-1, 0]) * w
    with sweep(axis=0, descending=True):
        t.next = d.next[0, 0] - c.next[0, 0] * t.next[1, 0]
    t.next = t.next[0, 0] + 0.1 * (t.next[0, -1] - t.next[0, 0])


def diffused_in_numpy(t: Any, r: float, steps: int) -> Any:
    for _ in range(steps):
        c, d = np.zeros_like(t), np.zeros_like(t)
        d[0] = t[0]
        for k in range(1, len(t)):
            w = 1 / (1 + 2 * r + r * c[k - 1])
            c[k], d[k] = -r * w, (t[k] + r * d[k - 1]) * w
        new = t.copy()
        for k in range(len(t) - 2, -1, -1):
            new[k] = d[k] - c[k] * new[k + 1]
        t = new.copy()
        t[:, 1:] = new[:, 1:] + 0.1 * (new[:, :-1] - new[:, 1:])
    return t


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_step_has_sweeps_beside_other_updates(executor: Executor):
    t = noise(9, 21)
    state = {"t": t, "c": 0 * t, "d": 0 * t}
    found = run(diffused, executor, state, 3, r=0.4)
    assert np.array_equal(found["t"], diffused_in_numpy(t, 0.4, 3))


@pytest.mark.covering
@pytest.mark.parametrize("executor", ["numpy", "cpu", "simt"])
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("descending", [False, True])
def test_prefix_sums_along_each_axis(axis: int, descending: bool, executor: Executor):
    before = [0, 0, 0]
    before[axis] = 1 if descending else -1

    @timetile.stencil
    def summed(u: Field):
        with sweep(axis, descending=descending):
            u.next = u[0, 0, 0] + u.next[before[0], before[1], before[2]]

    u = noise(6, 7, 9)
    found = run(summed, executor, {"u": u}, 1)["u"]
    order = np.flip(u, axis) if descending else u
    wanted = np.cumsum(order, axis)
    assert np.array_equal(found, np.flip(wanted, axis) if descending else wanted)


def test_a_summed_area_table_is_two_sweeps():
    @timetile.stencil
    def table(u: Field):
        with sweep(0):
            u.next = u[0, 0] + u.next[-1, 0]
        with sweep(1):
            u.next = u.next[0, 0] + u.next[0, -1]

    u = noise(11, 13)
    assert np.array_equal(run(table, "cpu", {"u": u}, 1)["u"], u.cumsum(0).cumsum(1))


@pytest.mark.parametrize("executor", EXECUTORS)
def test_sweeps_read_temporaries_narrow_fields_coordinates_and_two_places_before(
    executor: Executor,
):
    @timetile.stencil(boundary={"w": "periodic"})
    def mixed(u: Field, w: Field, k: Field):
        slope = temporary(w[0, 1] - w[0, -1])
        with sweep(axis=0):
            far = 0.25 * u.next[-2, 0] + 0.5 * u.next[-1, 0]
            u.next = where(coordinate(0) % 3 == 0, u[0, 0], far + k[0, None] * slope[0, 0])
        w.next = w[0, 0] + 0.1 * u.next[0, 0]

    u, w, k = noise(12, 7), noise(12, 7) + 1, noise(12)
    state = run(mixed, executor, {"u": u, "w": w, "k": k}, 2)
    for _ in range(2):
        slope = np.roll(w, -1, 1) - np.roll(w, 1, 1)
        for i in range(2, 12):
            if i % 3:
                u[i] = (0.25 * u[i - 2] + 0.5 * u[i - 1]) + k[i] * slope[i]
        w = w + 0.1 * u
    assert np.array_equal(state["u"], u) and np.array_equal(state["w"], w)


def test_a_line_relaxation_reads_old_values_ahead():
    """Gauss and Seidel's order along axis 0, Jacobi's beside."""

    @timetile.stencil
    def relaxed(u: Field):
        with sweep(axis=0):
            u.next = 0.25 * (u.next[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1])

    u = noise(8, 9)
    found = run(relaxed, "cpu", {"u": u}, 2)["u"]
    for _ in range(2):
        new = u.copy()
        for i in range(1, 7):
            new[i, 1:-1] = 0.25 * (new[i - 1, 1:-1] + u[i + 1, 1:-1] + u[i, :-2] + u[i, 2:])
        u = new
    assert np.array_equal(found, u)


def test_a_region_bounds_a_sweep():
    @timetile.stencil
    def part(u: Field):
        with sweep(axis=0):
            u.next[3:6] = u[0] + u.next[-1]

    u = noise(9)
    wanted = u.copy()
    wanted[2:6] = np.cumsum(u[2:6])
    assert np.array_equal(run(part, "cpu", {"u": u}, 1)["u"], wanted)


def test_narrow_numbers_are_rounded_at_each_place():
    """A place reads what memory holds of the place before, and the cell's own value as stored."""

    @timetile.stencil
    def decayed(u: Field, v: Field):
        with sweep(axis=0):
            u.next = 0.7 * u.next[-1] + 0.1 * u[0]
            v.next = u.next[0] * 3 + v.next[-1]

    u, v = noise(30).astype(np.float16), noise(30).astype(np.float16)
    for executor in EXECUTORS:
        found = run(decayed, executor, {"u": u, "v": v}, 1)
        a, b = u.copy(), v.copy()
        for k in range(1, 30):
            f = np.float32
            a[k] = f(0.7) * f(a[k - 1]) + f(0.1) * f(u[k])
            b[k] = f(a[k]) * f(3) + f(b[k - 1])
        assert np.array_equal(found["u"], a) and np.array_equal(found["v"], b)


def test_integers_are_swept():
    @timetile.stencil
    def counted(n: Field, edge: Field):
        with sweep(axis=1):
            n.next = where(edge[0, 0] > 0, 0, n.next[0, -1] + 1)

    edge = (noise(5, 40) > 0.8).astype(np.int32)
    run_length = np.zeros_like(edge)
    for k in range(1, 40):
        run_length[:, k] = np.where(edge[:, k] > 0, 0, run_length[:, k - 1] + 1)
    for executor in EXECUTORS:
        found = run(counted, executor, {"n": np.zeros((5, 40), np.int32), "edge": edge}, 1)["n"]
        assert np.array_equal(found, run_length) and found.dtype == np.int32


def test_sweeps_go_into_batches_and_sequences():
    @timetile.stencil
    def summed(u: Field, r: Scalar):
        with sweep(axis=0):
            u.next = r * u[0] + u.next[-1]

    @timetile.stencil
    def back(u: Field, v: Field):
        with sweep(axis=0, descending=True):
            v.next = u[0] - 0.5 * v.next[1]

    u, r = noise(4, 19), np.array([0.1, 0.2, 0.3, 0.4])
    model = summed.on(executor="cpu", fp_contract="off", cache=False)
    batch = model.advance({"u": u}, 2, r=r, batch=True)["u"]
    for one, rate, found in zip(u, r, batch):
        assert np.array_equal(model.advance({"u": one}, 2, r=rate)["u"], found)

    both = timetile.sequence(summed, back)
    state = {"u": u[0], "v": u[1]}
    together = run(both, "cpu", state, 2, r=0.3)
    for _ in range(2):
        state |= run(summed, "cpu", {"u": state["u"]}, 1, r=0.3)
        state |= run(back, "cpu", state, 1)
    assert all(np.array_equal(together[name], state[name]) for name in state)


def test_a_sequence_whose_sweep_reads_a_lost_value_is_refused():
    @timetile.stencil
    def first(u: Field):
        u.next = 2 * u[0]

    @timetile.stencil
    def second(u: Field):
        with sweep(axis=0):
            u.next = u.next[-1] + u[1]

    with pytest.raises(timetile.StencilError, match="lies ahead of the sweep"):
        timetile.sequence(first, second)


REFUSED = [
    ("c.next = c.next[1, 0]", "c.next[1, 0] lies ahead of the sweep; read the value at the"),
    ("c.next = c.next[-1, 1]", "c.next[-1, 1] is beside the line of the cell along axis 0"),
    ("c.next = c.next[0, -1]", "c.next[0, -1] is beside the line of the cell along axis 0"),
    ("c.next = c.next[0, 0]", "c.next is read before its assignment; assign first"),
    ("c.next = d.next[-1, 0]", "d.next is read before its assignment; assign first"),
    ("c.next = c[0, 0]; c.next = d[0, 0]", "c.next is assigned twice in a sweep"),
    ("c.next[1:, :] = c[0, 0]; d.next[2:, :] = c[0, 0]", "a sweep have different regions"),
    ("x = timetile.temporary(c[0, 0])", "a temporary is made in a sweep"),
    ("pass", "the sweep assigns nothing; assign new values"),
    (
        "c.next = p.next[-1, 0] + p[0, 0]; p.next = 0 * c[0, 0]",
        "p goes on beyond its array along axis 0, and a sweep begins at cells of the array",
    ),
    ("c.next = p[0, 1]", "p is read beyond its array in a sweep; read the value before the sweep"),
]


@pytest.mark.parametrize(("line", "said"), REFUSED)
def test_a_sweep_is_refused_with_a_way_out(tmp_path: Path, line: str, said: str):
    text = f"""\
import timetile
from timetile import Field, sweep

@timetile.stencil(boundary={{"p": "periodic"}})
def step(c: Field, d: Field, p: Field, q: Field):
    with sweep(axis=0):
        {line}
    q.next = c[0, 0] + d[0, 0] + p[0, 0]
"""
    assert said in refusal(tmp_path, text).reason


OTHERS = [
    ("with sweep(axis=2):\n        c.next = d[0, 0]", "goes along axis 2, and the last axis"),
    ("with sweep(axis=-1):\n        c.next = c[0, 0]", "along an axis, counted from 0, got -1"),
    ("with sweep(0):\n        with sweep(1):\n            c.next = c[0, 0]", "begun in a sweep"),
    (
        "with sweep(0):\n        for _ in repeat(2):\n            c.next = c[0, 0]",
        "a repeat is in a sweep, which computes a place once",
    ),
    (
        "for _ in repeat(2):\n        with sweep(0):\n            c.next = c[0, 0]",
        "a sweep is in a repeat; write the loop in Python, for _ in range(10)",
    ),
    (
        "with sweep(0):\n        w = c.next[-1, 0]\n        c.next = w + c[0, 0]\n    d.next = w",
        "a value of a sweep, with c.next of the place before, is used outside the sweep",
    ),
    (
        "c.next = c[0, 0]\n    old = c.next[0, 0]\n    c.next = 2 * c.next[0, 0]\n"
        "    with sweep(0):\n        d.next = old + d.next[-1, 0]",
        "the value of c.next is kept from before a later assignment",
    ),
    ("c.next = c[0, 0] + c.next[-1, 0] + d[0, 0]", "in a sweep along an axis"),
]


@pytest.mark.parametrize(("body", "said"), OTHERS)
def test_steps_around_sweeps_are_refused_with_a_way_out(tmp_path: Path, body: str, said: str):
    head = "import timetile\nfrom timetile import Field, repeat, sweep\n@timetile.stencil\n"
    text = f"{head}def step(c: Field, d: Field):\n    {body}\n"
    assert said in refusal(tmp_path, text).reason


def test_a_failed_step_leaves_no_sweep_behind():
    with pytest.raises(ZeroDivisionError):

        @timetile.stencil
        def broken(u: Field):
            with sweep(axis=0):
                u.next = u[0] * (1 / 0)

    @timetile.stencil
    def plain(u: Field):
        u.next = u[0] + 1

    assert np.array_equal(run(plain, "cpu", {"u": np.zeros(3)}, 1)["u"], np.ones(3))
