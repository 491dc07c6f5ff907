"""Runs with stops between steps end with the bits of one run, or are refused before the start."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import timetile
from support.command_line import HEAT, K, fields
from support.stops import NO_LOOP, PROGRAMS, arguments_of, copied
from timetile import CompileError, Field, Scalar
from timetile.runtime.program.compiled_program import Executor

pytestmark = pytest.mark.usefixtures("cache_of_file")


IN_PIECES = (
    "heat", "chained", "regions", "in_place", "damped", "buffers", "driven", "driven_at_a_point",
    "filtered",
)  # fmt: skip
"""
Time loops of kernels and of the host: with sources, with conditions, with the number of the step.
"""


# Programs.


@pytest.mark.covering
@pytest.mark.parametrize("executor", ["cpu", "planes"])
@pytest.mark.parametrize("name", IN_PIECES)
def test_stops_leave_the_bits_of_one_run(name: str, executor: Executor):
    program = timetile.compile(PROGRAMS[name], executor=executor, cache=False, depth=2)
    given = arguments_of(program)
    once, parts = copied(given), copied(given)
    expected = program.advance(once, 7)
    found: Sequence[Any] = ()
    steps: list[int] = []
    for step, found in program.snapshots(parts, steps=7, every=3):
        steps.append(step)
        so_far = copied(given)
        for left, right in zip(program.advance(so_far, step), found, strict=True):
            assert np.array_equal(left, right)
    assert steps == [3, 6, 7]
    assert all(map(np.array_equal, once, parts))
    assert all(map(np.array_equal, expected, found))


def test_going_on_by_hand_needs_the_number_of_the_step():
    program = timetile.compile(PROGRAMS["driven_at_a_point"], executor="cpu", cache=False)
    given = arguments_of(program)
    once, parts, wrong = copied(given), copied(given), copied(given)
    program.advance(once, 7)
    program.advance(program.advance(parts, 4), 3, first_step=4)
    program.advance(program.advance(wrong, 4), 3)
    assert all(map(np.array_equal, once, parts))
    assert not all(map(np.array_equal, once, wrong))


TWO_LOOPS = (
    HEAT.replace(
        "  func.return",
        HEAT[HEAT.index("  %r:2") : HEAT.index("  func.return")]
        .replace("%r", "%s")
        .replace("%t ", "%i ")
        + "  func.return",
    )
    .replace("%s1", "%sum1")
    .replace("%s2", "%sum2")
)


IN_A_LOOP = (
    PROGRAMS["driven"]
    .replace("%n: index)", "%n: index, %shots: index)")
    .replace("  %r:2 =", "  scf.for %shot = %c0 to %shots step %c1 {\n  %r:2 =")
    .replace("  return\n", "  }\n  return\n")
)


CARRIES_A_NUMBER = (
    PROGRAMS["driven"]
    .replace(
        "%r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A, %b = %B) -> (!field, !field) {",
        "%w0 = arith.constant 0.0 : f64\n"
        "%r:3 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A, %b = %B, %now = %w0) -> "
        "(!field, !field, f64) {",
    )
    .replace(
        "    %ti = arith.index_cast %t : index to i64\n    %now = arith.sitofp %ti : i64 to f64\n",
        "",
    )
    .replace(
        "scf.yield %b, %a : !field, !field",
        "%h = arith.constant 0.5 : f64\n%next = arith.addf %now, %h : f64\n"
        "scf.yield %b, %a, %next : !field, !field, f64",
    )
)


@pytest.mark.parametrize(
    ("text", "operation", "reason"),
    [
        (PROGRAMS["copied"], "func.func", NO_LOOP),
        (PROGRAMS["upwind"], "func.func", NO_LOOP),
        (
            PROGRAMS["prepared"],
            "temporal.loop",
            "the operation is outside the time loop, and would run again in each piece of the "
            "run; move the operation to another function",
        ),
        (
            IN_A_LOOP,
            "scf.for",
            "the loop is inside another operation, and would start again in each piece of the "
            "run; write a function of the time loop alone",
        ),
        (
            TWO_LOOPS,
            "temporal.loop",
            "the loop is the second time loop of the function, and a run stops between the steps "
            "of a single loop; write a function for each loop",
        ),
        (
            CARRIES_A_NUMBER,
            "scf.for",
            "the loop carries a value of type f64 from step to step, lost at a run's stops; keep "
            "the value in a memref that is an argument",
        ),
    ],
)
def test_runs_that_cannot_stop_are_refused(text: str, operation: str, reason: str):
    program = timetile.compile(text, executor="cpu", cache=False)
    given = [np.ones(1)]
    with pytest.raises(CompileError) as caught:
        program.snapshots(given, 4, 2)
    assert (caught.value.reason, caught.value.operation) == (reason, operation)


def test_numbers_of_steps_that_are_none_are_refused():
    program = timetile.compile(HEAT, executor="cpu", cache=False)
    given = (*fields(), K, 0)
    with pytest.raises(ValueError, match=r"^the number of steps is not negative, got -1$"):
        program.snapshots(given, -1, 2)
    with pytest.raises(
        ValueError, match=r"^a run stops after every so many steps, 1 or more, got 0$"
    ):
        program.snapshots(given, 4, 0)
    with pytest.raises(ValueError, match=r"^the first step has a number of 0 or more, got -1$"):
        program(*given, steps=1, first_step=-1)
    with pytest.raises(TypeError, match=r"^the number of the first step is an int, got True$"):
        program(*given, steps=1, first_step=True)
    with pytest.raises(TypeError, match=r"^a stream is a handle or an object with .*, got '0'$"):
        program(*given, steps=1, stream="0")
    text = "^a run from first_step on needs a number of steps; give steps=, too$"
    with pytest.raises(ValueError, match=text):
        program(*given, first_step=2)


# Models.


def test_snapshots_of_a_model_equal_the_states_of_one_run():
    @timetile.stencil
    def wave(p: Field, m: Field, k: Scalar):
        p.next = 2 * p[0] - p.prev[0] + k * m[0] * (p[-1] - 2 * p[0] + p[1])

    model = wave.on(executor="cpu", cache=False)
    start = {"p": np.sin(np.arange(20.0)), "m": np.full(20, 0.5)}
    found = list(model.snapshots(start, steps=11, every=4, k=0.5))
    assert [step for step, _ in found] == [4, 8, 11]
    for step, state in found:
        expected = model.advance(start, step, k=0.5)
        assert expected.keys() == state.keys()
        assert all(np.array_equal(expected[name], state[name]) for name in expected)
    # Each snapshot has separate arrays.
    assert len({id(state["p"]) for _, state in found}) == 3
    assert list(model.snapshots(start, steps=0, every=4, k=0.5)) == []
    wrong: Any = start["p"]
    with pytest.raises(TypeError, match="a state has an array for each field"):
        model.snapshots(wrong, 4, 2)
    with pytest.raises(ValueError, match="a run stops after every so many steps"):
        model.snapshots(start, 4, 0)
