"""
Calls of a compiled program: by position and by name, the state left for the next call, and the
program's own description.
"""

from __future__ import annotations

import pydoc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import timetile
from support.catalogue import CATALOGUE, Entry, entry
from support.description import random_inputs
from support.programs import program_text
from timetile.runtime.program.compiled_program import Executor

pytestmark = [pytest.mark.covering, pytest.mark.usefixtures("chosen_among_few")]

DOMAIN = (5, 7)


def heat(executor: Executor = "cpu", **options: Any) -> timetile.CompiledProgram:
    text = program_text(entry("heat-2d").make(DOMAIN))
    return timetile.compile(text, executor=executor, depth=2, cache=False, **options)


def fields() -> list[Any]:
    return [np.random.default_rng(k).random((7, 9)) for k in range(2)]


# Continuing.


def arguments(program: timetile.CompiledProgram, made: Any) -> list[Any]:
    """Arrays, 0.25 for every scalar, and nothing for the number of steps."""
    arrays = iter(made.arrays.values())
    given = [next(arrays) if p.bounds else 0.25 for p in program.parameters if not p.is_steps]
    return given


@pytest.mark.covering(every=2)
@pytest.mark.parametrize("executor", ["cpu", "planes"])
@pytest.mark.parametrize("case", CATALOGUE, ids=lambda case: case.name)
def test_successive_calls_are_one_call(case: Entry, executor: Executor):
    """For any rotation, and any numbers of steps: every array has the same bits, halos included."""
    made = case.make(case.domains[len(case.domains) // 2])
    text = program_text(made)
    program = timetile.compile(text, executor=executor, depth=2, cache=False)
    inputs = random_inputs(made, seed=1)
    once = arguments(program, inputs.copy())
    program(*once, steps=9)
    for parts in ((4, 5), (1, 1, 7), (9, 0), (0, 3, 3, 3)):
        first = arguments(program, inputs.copy())
        given: Any = first
        for steps in parts:
            result = program(*given, steps=steps)
            given = result.buffers[: len(given)]
        for a, b in zip(once, first, strict=True):
            assert np.array_equal(a, b), parts


def test_a_call_goes_on_with_the_callers_own_objects():
    program, (u, v) = heat(), fields()
    for steps, order in ((0, (u, v)), (1, (v, u)), (2, (u, v)), (5, (v, u))):
        result = program(u, v, steps=steps)
        assert [id(each) for each in result.buffers[:2]] == [id(each) for each in order]
        assert result.buffers[2] == steps
    shown = {name for name in dir(program) if not name.startswith("_")}
    assert "advance" in shown and not shown & {"run_host", "runners", "kernels"}


def test_advance_returns_the_arguments_of_the_next_call():
    program, once = heat(), fields()
    program(*once, 9)
    first = fields()
    state: Any = first
    for steps in (2, 3, 4):
        state = program.advance(state, steps)
        assert len(state) == 2
    assert all(np.array_equal(a, b) for a, b in zip(once, first, strict=True))
    whole = program.advance((*fields(), 7), 3)
    assert len(whole) == 3 and whole[2] == 7


TWO_LOOPS = """
!field = !stencil.field<[-1,9]xf64>
!temp = !stencil.temp<?xf64>
func.func @twice(%u: !field, %v: !field, %m: index, %n: index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r:2 = scf.for %t = %zero to %m step %one iter_args(%a = %u, %b = %v) -> (!field, !field) {
    %in = stencil.load %a : !field -> !temp
    %out = stencil.apply(%x = %in : !temp) -> (!temp) {
      %l = stencil.access %x[-1] : !temp
      stencil.return %l : f64
    }
    stencil.store %out to %b(<[0], [8]>) : !temp to !field
    scf.yield %b, %a : !field, !field
  }
  %s:2 = scf.for %t = %zero to %n step %one iter_args(%a = FIRST, %b = SECOND) -> (!field, !field) {
    %in = stencil.load %a : !field -> !temp
    %out = stencil.apply(%x = %in : !temp) -> (!temp) {
      %l = stencil.access %x[1] : !temp
      stencil.return %l : f64
    }
    stencil.store %out to %b(<[0], [8]>) : !temp to !field
    scf.yield %b, %a : !field, !field
  }
  func.return
}
"""


@pytest.mark.parametrize(
    ("names", "steps", "swapped"),
    [
        (("%r#0", "%r#1"), (1, 0), True),
        (("%r#0", "%r#1"), (1, 1), False),
        (("%r#0", "%r#1"), (2, 1), True),
        (("%r#1", "%r#0"), (2, 1), True),
        (("%r#1", "%r#0"), (1, 1), False),
        (("%u", "%v"), (1, 1), True),
        (("%u", "%v"), (1, 2), False),
        (("%v", "%u"), (0, 1), True),
    ],
)
def test_buffers_go_on_from_the_last_loop(
    names: tuple[str, str], steps: tuple[int, int], swapped: bool
):
    """Results come back in the roles of the arguments."""
    text = TWO_LOOPS.replace("FIRST", names[0]).replace("SECOND", names[1])
    program = timetile.compile(text, executor="cpu", cache=False)
    u, v = np.arange(10.0), np.arange(10.0)
    result = program(u, v, *steps)
    assert (result.buffers[0] is v) is swapped and (result.buffers[1] is u) is swapped


# By name.


@pytest.mark.parametrize("executor", ["cpu", "planes", "simt"])
def test_arguments_may_be_given_by_the_programs_own_names(executor: Executor):
    program, expected = heat(executor), fields()
    program(*expected, 3)
    calls: tuple[Callable[[Any, Any], timetile.RunResult], ...] = (
        lambda u, v: program(u=u, v=v, steps=3),
        lambda u, v: program(u, v=v, steps=3),
        lambda u, v: program(v=v, u=u, steps=3),
        lambda u, v: program(u, v, 7, steps=3),
    )
    for call in calls:
        u, v = fields()
        assert call(u, v).steps == (3,)
        assert np.array_equal(u, expected[0]) and np.array_equal(v, expected[1])


Call = Callable[[timetile.CompiledProgram, Any, Any], object]

WRONG: tuple[tuple[Call, str], ...] = (
    (
        lambda p, u, v: p(u, v, 3, w=1),
        "w= names no argument of @run, which are u, v, steps; give other arguments by position",
    ),
    (
        lambda p, u, v: p(u, v, 3, u=u),
        "argument 0 (%u) of @run is given twice; give the argument once",
    ),
    (
        lambda p, u, v: p(u=u, steps=3),
        "@run takes 3 arguments, and got 2; there is none for 1 (%v)",
    ),
    (lambda p, u, v: p(u, v), "@run takes 3 arguments, and got 2"),
    (lambda p, u, v: p(u, v, 3, 4, steps=3), "@run takes 3 arguments, and got 4"),
)


@pytest.mark.parametrize(("call", "message"), WRONG)
def test_a_call_whose_arguments_do_not_fit_is_refused(call: Call, message: str):
    with pytest.raises(TypeError) as caught:
        call(heat(), *fields())
    assert str(caught.value) == message


def test_arguments_with_one_name_are_numbered_and_each_is_given_by_name():
    from timetile.runtime.loading.modules import load

    module = load(program_text(entry("heat-2d").make(DOMAIN)))
    function = next(op for op in module.ops if op.name == "func.func")
    function.regions[0].block.args[1].name_hint = "u"
    program = timetile.compile(module, executor="cpu", cache=False)
    u, v = fields()
    with pytest.raises(TypeError, match="v= names no argument of @run, which are u, u_1, steps"):
        program(u=u, v=v, steps=3)
    by_position = u.copy(), v.copy()
    program(*by_position, steps=3)
    program(u=u, u_1=v, steps=3)
    assert u.tobytes() == by_position[0].tobytes() and v.tobytes() == by_position[1].tobytes()


@pytest.mark.parametrize("executor", ["cpu", "planes", "simt"])
def test_a_number_of_steps_is_not_negative_by_position(executor: Executor):
    given = fields()
    before = [each.copy() for each in given]
    with pytest.raises(ValueError) as caught:
        heat(executor)(*given, -5)
    assert str(caught.value) == (
        "argument 2 (%steps) is the number of steps, which is not negative, got -5"
    )
    assert all(np.array_equal(a, b) for a, b in zip(given, before, strict=True))


# The description.


def test_a_program_lists_its_arguments():
    assert repr(heat()) == (
        "<timetile program @run(%u: f64 [-1, 6) x [-1, 8), %v: f64 [-1, 6) x [-1, 8), %steps: "
        "index) for cpu>"
    )


def test_a_result_says_what_was_done():
    result = heat()(*fields(), 3)
    assert repr(result).startswith("RunResult(latest=((1,),), steps=(3,), cells=105, seconds=")


def test_the_package_lists_its_public_names():
    names = ("compile", "pipeline", "CompiledProgram", "CompileError", "RunResult")
    assert set(names) <= set(dir(timetile))
    public = {name for name in dir(timetile) if not name.startswith("_")}
    assert public == {*timetile.__all__} - {"__version__"}
    text = pydoc.plain(pydoc.render_doc(timetile))
    for name in names:
        assert name in text
    assert "Compile a stencil program" in text and "timetile.compile(" in text
    package: Any = timetile
    with pytest.raises(AttributeError, match="module 'timetile' has no attribute 'nothing'"):
        _ = package.nothing
