"""
Loops with reads of written buffers, or with updates of separate boxes: on every executor, every
buffer ends with the bits of an independent evaluation, halos included.
"""

from __future__ import annotations

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import timetile
from support.compare import assert_as_unfused
from support.description import Box, Buffer, Program, Store, Update, random_inputs
from support.executors import executors
from support.expressions import Tap
from support.generate_roles import programs_of_any_roles
from support.programs import program_text
from support.sizes import taking_turns
from timetile.runtime.program.compiled_program import Executor

pytestmark = pytest.mark.covering

WHOLE = Box((0,), (12,))
HEAD, TAIL = Box((0,), (5,)), Box((8,), (12,))


def in_turn(count: int) -> tuple[int, ...]:
    """Each buffer takes the name of the buffer before."""
    return tuple((k + 1) % count for k in range(count))


def program(count: int, *updates: tuple[int, int, int, Box]) -> Program:
    """Rotating buffers, and updates: the target, the source, the offset, and the box."""
    names = tuple(f"b{k}" for k in range(count))
    bounds = WHOLE.grown((1,), (1,))
    return Program(
        "f64",
        tuple(Buffer(name, bounds, "f64") for name in names),
        names,
        in_turn(count),
        tuple(
            Update((Tap(names[source], (offset,)) * 0.75,), (Store(0, names[target], box),))
            for target, source, offset, box in updates
        ),
    )


PROGRAMS = {
    # One end of the first buffer, then all of the next buffer from the first.
    "end-then-next-of-two": program(2, (0, 1, 0, TAIL), (1, 0, 0, WHOLE)),
    "end-then-next-of-four": program(4, (0, 3, 0, TAIL), (1, 0, 0, WHOLE)),
    # b = f(a), a = g(b), and the buffers change names.
    "each-from-the-other": program(2, (1, 0, -1, WHOLE), (0, 1, 1, WHOLE)),
    # The second update is in place.
    "in-place-of-three": program(3, (1, 0, -1, WHOLE), (0, 0, 0, WHOLE)),
    "in-place-alone": program(1, (0, 0, 0, WHOLE)),
    "in-place-of-five": program(5, (2, 2, 0, WHOLE), (4, 2, 1, HEAD), (0, 4, -1, TAIL)),
    # Both ends of one buffer, without the middle.
    "two-ends": program(2, (1, 0, 1, HEAD), (1, 0, -1, TAIL)),
    "ends-of-two-buffers": program(3, (1, 0, 1, HEAD), (2, 0, -1, TAIL)),
}


@pytest.mark.parametrize("executor", executors())
@pytest.mark.parametrize("name", PROGRAMS)
def test_buffers_end_as_the_unfused_program_leaves_them(name: str, executor: Executor):
    case = PROGRAMS[name]
    for depth in (1, 3):
        compiled = timetile.compile(
            program_text(case), executor=executor, depth=depth, fp_contract="off", cache=False
        )
        for steps in range(8):
            assert_as_unfused(compiled, case, random_inputs(case, seed=steps), steps, name)


@given(drawn=programs_of_any_roles(), depth=st.integers(1, 3), steps=st.integers(0, 9))
def test_buffers_in_any_drawn_role_end_as_the_unfused_program_leaves_them(
    drawn: Program, depth: int, steps: int
):
    note(program_text(drawn))
    for executor in taking_turns(executors(), steps):
        compiled = timetile.compile(
            program_text(drawn), executor=executor, depth=depth, fp_contract="off", cache=False
        )
        assert_as_unfused(compiled, drawn, random_inputs(drawn, seed=steps), steps, executor)
