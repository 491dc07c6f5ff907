"""Repeated bodies of a step: bits of the obvious NumPy program, and refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timetile
from support.refused_steps import refusal
from support.steps import noise, run
from timetile import Field, Scalar, repeat, temporary
from timetile.lowering.cpu.nest_rules import turns_of
from timetile.runtime.program.compiled_program import Executor

pytestmark = pytest.mark.usefixtures("chosen_among_few")


INNER = np.s_[1:-1, 1:-1]


def around(u: Any) -> Any:
    """The sum of the neighbours of inner cells."""
    return u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]


@pytest.mark.covering
@pytest.mark.parametrize("executor", ["cpu", "numpy", "planes", "simt"])
@pytest.mark.parametrize("turns", [1, 2, 5])
def test_a_pressure_is_relaxed_in_each_step(executor: Executor, turns: int):
    """The right-hand side is made before the turns; the velocity reads the last pressure."""

    @timetile.stencil
    def projected(p: Field, u: Field, k: Scalar):
        source = temporary(k * (u[1, 0] - u[-1, 0]))
        for _ in repeat(turns):
            near = p.next[-1, 0] + p.next[1, 0] + p.next[0, -1] + p.next[0, 1]
            p.next = 0.25 * (near - source[0, 0]) + 0.01 * p[0, 0]
        u.next = u[0, 0] - k * (p.next[1, 0] - p.next[-1, 0])

    p, u = noise(11, 14), noise(11, 14) + 1
    found = run(projected, executor, {"p": p, "u": u}, 3, k=0.1)
    for _ in range(3):
        source = 0.1 * (u[2:, 1:-1] - u[:-2, 1:-1])
        old = p
        for _ in range(turns):
            new = p.copy()
            new[INNER] = 0.25 * (around(p) - source) + 0.01 * old[INNER]
            p = new
        v = u.copy()
        v[1:-1] = u[1:-1] - 0.1 * (p[2:] - p[:-2])
        u = v
    assert np.array_equal(found["p"], p)
    assert np.array_equal(found["u"], u)


@pytest.mark.parametrize("executor", ["cpu", "numpy", "planes"])
def test_bodies_lie_in_bodies(executor: Executor):
    """Two fields, a temporary of each turn, a boundary, and a body in the body."""

    @timetile.stencil(boundary="periodic")
    def nested(u: Field, v: Field):
        u.next = u[0] + 1.0
        for _ in repeat(2):
            slope = temporary(u.next[1] - u.next[0])
            for _ in repeat(3):
                v.next = 0.5 * (v.next[-1] + v.next[1]) + slope[0]
            u.next = u.next[0] + 0.1 * (slope[0] - slope[-1]) * v.next[0]
        v.next = v.next[0] - u.next[-1]

    u, v = noise(23), noise(23)
    found = run(nested, executor, {"u": u, "v": v}, 2)
    for _ in range(2):
        u = u + 1.0
        for _ in range(2):
            slope = np.roll(u, -1) - u
            for _ in range(3):
                v = 0.5 * (np.roll(v, 1) + np.roll(v, -1)) + slope
            u = u + 0.1 * (slope - np.roll(slope, 1)) * v
        v = v - np.roll(u, 1)
    assert np.array_equal(found["u"], u)
    assert np.array_equal(found["v"], v)


def test_a_value_from_before_the_turns_is_read_after_them():
    @timetile.stencil
    def corrected(u: Field):
        u.next = 2.0 * u[0]
        first = u.next[0]
        for _ in repeat(3):
            u.next = 0.5 * (u.next[-1] + u.next[1])
        u.next = u.next[0] - first

    u = noise(17)
    found = run(corrected, "cpu", {"u": u}, 2)["u"]
    for _ in range(2):
        first = w = 2.0 * u
        for _ in range(3):
            new = w.copy()
            new[1:-1] = 0.5 * (w[:-2] + w[2:])
            w = new
        u = w - first
    assert np.array_equal(found, u)


REFUSED = [
    (
        "for _ in repeat(0): u.next = u[0]",
        "repeat takes a number of turns of 1 or more, known at tracing, got 0; write repeat(10)",
    ),
    (
        "for _ in repeat(3): u[0]",
        "the repeated body assigns nothing; assign new values",
    ),
    (
        "for _ in repeat(3):\n        u.next = u[0]\n        break",
        "the repeated body is left before its end; repeat a constant number of turns, without "
        "break or return",
    ),
    (
        "u.next = u[0]; old = u.next[0]\n    for _ in repeat(3): u.next = u.next[1] + old",
        "the value of u.next is kept from before the repeat, which assigns u.next; keep the value "
        "as timetile.temporary(u.next[...])",
    ),
    (
        "for _ in repeat(3): v.next = u.next[1]",
        "u.next is read, and assigned neither before nor in the repeat; read the value at the "
        "beginning of the step, u[...]",
    ),
    (
        "for _ in repeat(3): u.next = 0.5 * (u.next[-1] + u[1]) + v[0]",
        "u.next on one side of the cell and u on the other are Gauss-Seidel order, and a step "
        "computes all cells at once; assign red cells, then black cells, by the parity of their "
        "coordinates, or read u.next on all sides",
    ),
    (
        "for _ in repeat(3):\n        t = temporary(v[0]); u.next = t[0]\n    v.next = t[0]",
        "the temporary is made in a repeat, and read outside; make a field of the value, or the "
        "temporary after the repeat",
    ),
]

HEAD = """\
from timetile import Field, repeat, stencil, temporary

@stencil
def step(u: Field, v: Field):
"""


@pytest.mark.parametrize(("body", "reason"), REFUSED, ids=[text for text, _ in REFUSED])
def test_a_body_without_a_meaning_is_refused(tmp_path: Path, body: str, reason: str):
    assert refusal(tmp_path, f"{HEAD}    {body}\n").reason == reason


def test_names_of_a_step_are_called_in_a_step():
    with pytest.raises(timetile.StencilError, match="temporary is called outside of a step"):
        temporary(1.0)


def test_inner_sweeps_run_in_the_machine_code_of_the_time_loop():
    """A thread runs all steps in one call; `steps=` of a run counts time steps alone."""

    @timetile.stencil
    def relaxed(p: Field, b: Field):
        for _ in repeat(7):
            p.next = 0.5 * (p.next[-1] + p.next[1]) - b[0]
        b.next = b[0] + 0.1 * p.next[0]

    model = relaxed.on(executor="cpu", fp_contract="off", cache=False, threads=1)
    p, b = noise(21), 0.1 * noise(21)
    (nest,) = model.program((21,)).native.nests.values()
    assert [turns_of(sweep) for sweep in nest.nest.sweeps] == [1, 7, 1]
    judge = relaxed.on(executor="numpy", fp_contract="off", cache=False)
    for each in (model, judge):
        arrays = [p.copy(), p.copy(), b.copy(), b.copy()]
        result = each.program((21,))(*arrays, steps=3)
        found = [result.buffers[k] for k in (0, 2)]
        q, c = p, b
        for _ in range(3):
            for _ in range(7):
                new = q.copy()
                new[1:-1] = 0.5 * (q[:-2] + q[2:]) - c[1:-1]
                q = new
            c = c + 0.1 * q
        assert np.array_equal(found[0], q) and np.array_equal(found[1], c)
        assert result.steps == (3,) and result.cells == 3 * (19 + 7 * 19 + 21)
