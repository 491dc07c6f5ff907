"""
Every program of the table ends with the bits of an independent evaluation in every buffer, halos
included: for any number of steps, on odd and prime sizes, down to a single interior cell. The SIMT
executor also checks each kernel for races, wild accesses and unset values. Two executors run a
program on a domain, and the other executors on the program's next domain; in `make nightly`, all
executors run on all domains.
"""

from __future__ import annotations

import pytest

import timetile
from support import reference
from support.catalogue import CATALOGUE, Domain, Entry, entry
from support.compare import assert_close, assert_same_bits
from support.description import Inputs, Program, random_inputs
from support.executors import executors, kernel_executors
from support.programs import program_text
from timetile import RunResult
from timetile.runtime.program.compiled_program import Executor

pytestmark = pytest.mark.usefixtures("chosen_by_model")

CASES = [
    pytest.param((e, domain), id=f"{e.name}-{'x'.join(map(str, domain))}")
    for e in CATALOGUE
    for domain in e.domains
]


def latest_of(program: Program, names: dict[str, str]) -> set[int]:
    """The arguments with the last step's results, by the meaning of the carried names."""
    stored = {store.buffer for update in program.updates for store in update.stores}
    positions = {b.name: k for k, b in enumerate(program.buffers)}
    latest = {positions[name] for name in stored if name not in program.carried}
    for name, source in zip(program.carried, program.rotation, strict=True):
        if program.carried[source] in stored:
            latest.add(positions[names[name]])
    return latest


def check_result(program: Program, result: RunResult, steps: int, names: dict[str, str]) -> None:
    """The result says how many steps were run and where the last time level is."""
    (latest,) = result.latest
    assert set(latest) == latest_of(program, names)
    assert len(latest) == len(set(latest))
    assert result.steps == (steps,)


def runs(depth: int, executor: Executor) -> list[int]:
    """
    Steps: none, fewer than in a launch, every remainder, two deep launches. Interpreters, which
    take long, do one run of each kind: every kernel once, alone and after other kernels; planes
    also two deep launches.
    """
    few = {"simt": {0, 1, depth, 2 * depth - 1}, "planes": {0, 1, depth, 2 * depth + 2}}
    every = range(2 * depth + 3)
    return [steps for steps in every if steps in few.get(executor, every)]


@pytest.mark.covering(every=2)
@pytest.mark.parametrize("executor", executors())
@pytest.mark.parametrize("placed", CASES)
def test_every_buffer_is_what_the_unfused_program_leaves(
    placed: tuple[Entry, Domain], executor: Executor
):
    case, domain = placed
    program = case.make(domain)
    compiled = timetile.compile(
        program_text(program), executor=executor, depth=case.depth, fp_contract="off", cache=False
    )
    for steps in runs(case.depth, executor):
        expected = random_inputs(program, seed=steps)
        found = expected.copy()
        names = reference.run(program, expected, steps)
        result = compiled(*found.arguments(program, steps))
        assert_same_bits(program, expected, found, f"{steps} steps")
        check_result(program, result, steps, names)


# `test_the_executor_of_ptx_leaves_the_bits_of_the_program` runs the other half of the programs.
# A third of the programs; the test above and the test of the executor of PTX run the others.
@pytest.mark.covering(every=3)
@pytest.mark.parametrize("executor", kernel_executors())
@pytest.mark.parametrize("case", CATALOGUE, ids=lambda e: e.name)
def test_contraction_is_decided_before_any_executor(case: Entry, executor: Executor):
    """
    With contraction, the default, executors still agree bit for bit, and closely with the plain
    sums.
    """
    program = case.make(case.domains[0])
    text, steps = program_text(program), case.depth + 1
    inputs = random_inputs(program, seed=1)
    plain = inputs.copy()
    reference.run(program, plain, steps)
    contracted = inputs.copy()
    timetile.compile(text, executor="cpu", cache=False)(*contracted.arguments(program, steps))
    assert_close(program, plain, contracted, 64, "contracted")
    found = inputs.copy()
    compiled = timetile.compile(text, executor=executor, depth=case.depth, cache=False)
    compiled(*found.arguments(program, steps))
    assert_same_bits(program, contracted, found, executor)


@pytest.mark.parametrize("executor", executors())
def test_many_steps_repeat_launches(executor: Executor):
    """The plan of a long run holds a loop of launches."""
    case = entry("multistep-1d")
    program = case.make((29,))
    expected = random_inputs(program, seed=3)
    found: Inputs = expected.copy()
    reference.run(program, expected, 101)
    compiled = timetile.compile(
        program_text(program), executor=executor, depth=4, fp_contract="off", cache=False
    )
    compiled(*found.arguments(program, 0), steps=101)
    assert_same_bits(program, expected, found, "101 steps")


@pytest.mark.parametrize("executor", executors())
def test_steps_replace_the_trip_count(executor: Executor):
    program = entry("heat-1d").make((13,))
    expected = random_inputs(program, seed=4)
    found = expected.copy()
    reference.run(program, expected, 3)
    compiled = timetile.compile(
        program_text(program), executor=executor, depth=2, fp_contract="off", cache=False
    )
    result = compiled(*found.arguments(program, 50), steps=3)
    assert_same_bits(program, expected, found, "3 steps in place of 50")
    assert result.steps == (3,)
    assert result.cells == 3 * 13
