"""
Loops with a constant number of steps: only kernels of depths needed by the launches exist. A run of
more steps makes further kernels on demand.
"""

from __future__ import annotations

import pytest

import timetile
from support.catalogue import entry
from support.compare import assert_as_unfused
from support.description import Program, random_inputs
from support.executors import executors
from support.programs import program_text
from timetile.passes.analysis.launches.launch_planning import deepest_launch, plan
from timetile.passes.analysis.launches.rotation import Rotation
from timetile.passes.analysis.launches.trip_counts import constant_steps
from timetile.runtime.kernels.loops import loops_of
from timetile.runtime.program.compiled_program import Executor

HEAT = Rotation((1, 0), (True, False), (False, True))
WAVE = Rotation((1, 2, 0), (True, False, True), (False, True, False))
IN_PLACE = Rotation((0,), (True,), (True,))


def counted(program: Program, bounds: str) -> str:
    """The program's text with constants for the loop's bounds and step, as `2 to 10 step 3`."""
    low, _, high, _, step = bounds.split()
    text = program_text(program)
    names = {"low": low, "high": high, "stride": step}
    lines = [f"  %{name} = arith.constant {value} : index" for name, value in names.items()]
    first = "  %zero = arith.constant 0 : index\n"
    text = text.replace(first, first + "\n".join(lines) + "\n")
    return text.replace("%zero to %steps step %one", "%low to %high step %stride")


@pytest.mark.parametrize(
    ("bounds", "steps"),
    [("0 to 1 step 1", 1), ("2 to 10 step 3", 3), ("1 to 13 step 1", 12), ("5 to 2 step 1", 0)],
)
def test_a_loop_with_constant_bounds_states_its_number_of_steps(bounds: str, steps: int):
    program = entry("heat-1d").make((13,))
    compiled = timetile.compile(counted(program, bounds), executor="cpu", cache=False)
    assert constant_steps(loops_of(compiled.module)[0]) == steps


@pytest.mark.parametrize(
    ("rotation", "steps", "deepest"),
    [
        # One step is left, for the buffer without a live version at the end.
        (HEAT, 1, 1),
        (HEAT, 2, 1),
        (HEAT, 9, 8),
        (WAVE, 9, 8),
        (IN_PLACE, 9, 9),
        (IN_PLACE, 0, 1),
    ],
)
def test_the_deepest_launch_leaves_the_last_steps_to_single_launches(
    rotation: Rotation, steps: int, deepest: int
):
    assert deepest_launch(rotation, steps) == deepest
    for depth in range(deepest + 1, steps + 1):
        launches = plan(rotation, (depth, 1), steps).launches
        assert all(launch.steps == 1 for launch in launches)


def depths_of(compiled: timetile.CompiledProgram) -> list[int]:
    """The steps advanced by each kernel of the program's loop."""
    (facts,) = compiled.kernels.facts
    return [kernel.steps for kernel in facts]


@pytest.mark.parametrize("depth", [None, 8])
@pytest.mark.parametrize(("steps", "depths"), [(1, [1]), (2, [1])])
def test_few_steps_have_no_deeper_kernels(steps: int, depths: list[int], depth: int | None):
    program = entry("heat-1d").make((13,))
    text = counted(program, f"0 to {steps} step 1")
    compiled = timetile.compile(text, executor="planes", depth=depth, cache=False)
    assert depths_of(compiled) == depths


@pytest.mark.parametrize("steps", range(1, 14))
def test_every_kernel_of_a_constant_trip_count_is_launched(steps: int):
    """All kernels but the kernel of a single step, which every loop has."""
    program = entry("heat-1d").make((13,))
    text = counted(program, f"0 to {steps} step 1")
    compiled = timetile.compile(text, executor="planes", depth=8, cache=False)
    depths = depths_of(compiled)
    taken = {launch.steps for launch in plan(HEAT, depths, steps).launches}
    assert set(depths) == taken | {1}


@pytest.mark.covering
@pytest.mark.parametrize("executor", executors())
@pytest.mark.parametrize("steps", [1, 5])
def test_other_numbers_of_steps_may_be_asked_for(executor: Executor, steps: int):
    program = entry("heat-1d").make((13,))
    compiled = timetile.compile(
        counted(program, f"0 to {steps} step 1"),
        executor=executor,
        depth=4,
        fp_contract="off",
        cache=False,
    )
    for asked in (0, 1, 4, 5, 6, 23):
        inputs = random_inputs(program, seed=asked)
        found = inputs.copy()
        result = compiled(*found.arguments(program, 0), steps=asked)
        assert result.steps == (asked,)

        def run_so_many(*values: object, asked: int = asked) -> None:
            compiled(*values, steps=asked)

        assert_as_unfused(run_so_many, program, inputs, asked, executor)


def test_more_steps_than_the_program_states_take_deeper_kernels():
    program = entry("heat-1d").make((13,))
    text = counted(program, "0 to 1 step 1")
    compiled = timetile.compile(text, executor="planes", depth=4, cache=False)
    (loop,) = loops_of(compiled.module)
    kernels, own = compiled.kernels.for_steps(loop, 100)
    assert max(kernel.steps for kernel in kernels.facts_of(own)) == 4
    assert compiled.kernels.for_steps(loop, 1) == (compiled.kernels, loop)
    # A loop with kernels as deep as the model's choice has no further kernels.
    long = timetile.compile(
        counted(program, "0 to 50 step 1"), executor="planes", depth=4, cache=False
    )
    (loop,) = loops_of(long.module)
    assert long.kernels.for_steps(loop, 100) == (long.kernels, loop)
