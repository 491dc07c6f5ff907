"""
Random programs under random schedules end with the bits of an independent evaluation, in all
buffers, halos included; the executors take turns. `pytest --hypothesis-profile=nightly
test/pytest/test_properties.py` tries many programs, on all executors.
"""

from __future__ import annotations

from hypothesis import given, note, reject
from hypothesis import strategies as st

from support.compare import check_compiled
from support.description import Program
from support.executors import executors, kernel_executors
from support.generate import programs, schedules, travelling_sums
from support.programs import program_text
from support.schedules import Schedule
from support.sizes import taking_turns
from timetile.passes.diagnostics import CompileError


@given(program=programs(), depth=st.integers(1, 4), steps=st.integers(0, 9), common=st.booleans())
def test_drawn_programs_keep_their_bits_with_the_default_schedule(
    program: Program, depth: int, steps: int, common: bool
):
    note(program_text(program))
    for executor in taking_turns(executors(), steps):
        check_compiled(program, executor, depth, steps, common=common)


@given(data=st.data(), depth=st.integers(1, 4), steps=st.integers(0, 9), common=st.booleans())
def test_drawn_programs_keep_their_bits_with_any_schedule(
    data: st.DataObject, depth: int, steps: int, common: bool
):
    program = data.draw(programs())
    schedule: Schedule = data.draw(schedules(program.rank))
    note(program_text(program))
    for executor in taking_turns(kernel_executors(), steps):
        try:
            check_compiled(program, executor, depth, steps, schedule.passes(depth), common=common)
        except CompileError as error:
            # Small tiles may leave no room for the taps; nothing else may be refused.
            assert "taps reach further than the tile is wide" in str(error)
            reject()


@given(
    drawn=travelling_sums(), depth=st.integers(1, 3), steps=st.integers(1, 7), common=st.booleans()
)
def test_drawn_sums_from_lane_to_lane_keep_their_bits(
    drawn: tuple[Program, Schedule], depth: int, steps: int, common: bool
):
    program, schedule = drawn
    note(program_text(program))
    for executor in taking_turns(kernel_executors(), steps):
        try:
            found = check_compiled(
                program, executor, depth, steps, schedule.passes(depth), common=common
            )
        except CompileError as error:
            assert "taps reach further than the tile is wide" in str(error)
            reject()
        assert schedule.shown in str(found.kernels.tiled), "the sum did not travel"
