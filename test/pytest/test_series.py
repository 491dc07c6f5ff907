"""Numbers that change from step to step: every executor takes them, kernels at any depth."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import timetile
from support.blocked import passes
from support.executors import kernel_executors
from support.steps import noise
from timetile import Field, Scalar, Series, repeat, step
from timetile.runtime.program.compiled_program import Executor

SHAPE = (13, 37)


@timetile.stencil(boundary="periodic")
def driven(u: Field, f: Series, k: Scalar):
    around = u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u[0, 0]
    u.next = u[0, 0] + k * around + f[0] + 0.001 * step()


FORCE = noise(40)


def expected(u: Any, steps: int, first: int = 0) -> Any:
    """The state after some steps."""
    for n in range(first, first + steps):
        beside = [np.roll(u, shift, axis) for axis in (0, 1) for shift in (1, -1)]
        around = beside[0] + beside[1] + beside[2] + beside[3] - 4 * u
        u = u + 0.1 * around + FORCE[n] + 0.001 * n
    return u


def on(executor: Executor, depth: int | None = None) -> timetile.Model:
    """The step on an executor."""
    return driven.on(executor=executor, depth=depth, fp_contract="off", cache=False)


@pytest.mark.parametrize("first", [0, 3])
@pytest.mark.parametrize("executor", ["numpy", "cpu"])
def test_each_step_takes_its_number(executor: Executor, first: int):
    """On the processor also in passes of three steps."""
    with passes(3, 2, 5):
        model = on(executor).on(threads=1)
        found = model.advance({"u": noise(*SHAPE)}, 23, first_step=first, f=FORCE, k=0.1)
    assert np.array_equal(found["u"], expected(noise(*SHAPE), 23, first))


@pytest.mark.covering
@pytest.mark.parametrize("depth", [1, 2, 3, 4])
@pytest.mark.parametrize("executor", (*kernel_executors(), "ptx"))
def test_each_level_of_a_kernel_takes_its_number(executor: Executor, depth: int):
    """Runs with repeated launches, and with launches before and after them."""
    model = on(executor, depth)
    steps = 5 * depth + 3
    found = model.advance({"u": noise(*SHAPE)}, steps, f=FORCE, k=0.1)["u"]
    assert max(fact.steps for fact in model.program(SHAPE).kernels.facts[0]) == depth
    assert np.array_equal(found, expected(noise(*SHAPE), steps))


def test_a_run_in_pieces_goes_on_with_the_numbers():
    model = on("planes", 2)
    for done, state in model.snapshots({"u": noise(*SHAPE)}, 20, 6, first_step=2, f=FORCE, k=0.1):
        assert np.array_equal(state["u"], expected(noise(*SHAPE), done, 2))


def test_a_compiled_program_counts_from_its_first_step():
    program = timetile.compile(driven.module(SHAPE), executor="planes", fp_contract="off")
    arrays = [noise(*SHAPE), noise(*SHAPE)]
    program(*arrays, 0.1, FORCE, np.arange(40), steps=7, first_step=5)
    assert np.array_equal(arrays[1], expected(noise(*SHAPE), 7, 5))


WRONG: list[tuple[Any, type[Exception], str]] = [
    (FORCE[:5], ValueError, "f has a number for each step, 9 for this run, and its shape is"),
    (FORCE[None], ValueError, "f has a number for each step, 9 for this run, and its shape is"),
    ("f", TypeError, "f has a number for each step, got 'f'; pass an array"),
]


@pytest.mark.parametrize(("series", "kind", "reason"), WRONG, ids=lambda each: str(each)[:20])
def test_a_wrong_series_is_refused(series: Any, kind: type[Exception], reason: str):
    with pytest.raises(kind, match=reason):
        on("cpu").advance({"u": noise(*SHAPE)}, 9, f=series, k=0.1)


def test_a_short_series_of_a_program_is_refused():
    program = timetile.compile(driven.module(SHAPE), executor="numpy")
    with pytest.raises(timetile.CompileError, match="a series has 3 numbers, and the run ends"):
        program(noise(*SHAPE), noise(*SHAPE), 0.1, FORCE[:3].copy(), np.arange(9), 5)
    with pytest.raises(TypeError, match="has elements of float32"):
        program(noise(*SHAPE), noise(*SHAPE), 0.1, FORCE.astype("f4"), np.arange(9), 5)
    with pytest.raises(ValueError, match="pass an array of one axis"):
        program(noise(*SHAPE), noise(*SHAPE), 0.1, FORCE[None], np.arange(9), 5)
    with pytest.raises(TypeError, match="pass a NumPy array"):
        program(noise(*SHAPE), noise(*SHAPE), 0.1, 1.0, np.arange(9), 5)


def test_another_step_of_a_series_is_refused():
    with pytest.raises(timetile.StencilError, match=r"f\[-1\] is the number of another step"):

        @timetile.stencil
        def late(u: Field, f: Series):
            u.next = u[0] + f[-1]


@pytest.mark.parametrize("executor", ["cpu", "numpy", "planes", "simt"])
def test_a_step_with_repeated_assignments_takes_its_number(executor: Executor):
    """The host reads the number of the step, before and in the turns, also in pieces of a run."""

    @timetile.stencil(boundary="periodic")
    def relaxed(u: Field, f: Series):
        u.next = u[0] + f[0]
        for _ in repeat(3):
            u.next = 0.5 * (u.next[-1] + u.next[1]) + f[0] * step()

    model = relaxed.on(executor=executor, fp_contract="off", cache=False)
    u = noise(17)
    found = model.advance({"u": u}, 3, f=FORCE)
    found = model.advance(found, 2, first_step=3, f=FORCE)["u"]
    for n in range(5):
        u = u + FORCE[n]
        for _ in range(3):
            u = 0.5 * (np.roll(u, 1) + np.roll(u, -1)) + FORCE[n] * n
    assert np.array_equal(found, u)
