"""
Runs that begin before their schedule is chosen: bits, the moment of going over, and who waits.
"""

from __future__ import annotations

import functools
import os
import pickle
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import timetile
from support.recorder import Recorder
from timetile import Field, Scalar, Series
from timetile.dialects.series import is_series
from timetile.passes.scheduling.candidates import Trials
from timetile.runtime.cache.store import Cache
from timetile.runtime.device.cells import DeviceBuffer
from timetile.runtime.device.gpu_runner import GpuRunner
from timetile.runtime.executors.early_steps import FEW_STEPS, FIRST_STEPS, PIECE_SECONDS, next_piece
from timetile.runtime.executors.homes import MarkedCells
from timetile.runtime.executors.runners import PlanesRunner
from timetile.runtime.kernels import beside, choosing_process, making
from timetile.runtime.kernels.choosing import made_choice
from timetile.runtime.kernels.choosing_process import (
    ChoiceJob,
    ChoosingProcess,
    MadeChoice,
    Turns,
    wait_for_schedules,
)
from timetile.runtime.kernels.kernel import decode_facts
from timetile.runtime.kernels.loops import loops_of
from timetile.runtime.kernels.of_program import ProgramKernels
from timetile.runtime.kernels.options import Halos
from timetile.runtime.program.compiled_program import CompiledProgram, Executor
from timetile.runtime.program.pieces import Span

pytestmark = pytest.mark.usefixtures("chosen_among_few")

CELLS = (20, 36)
STEPS = 50


@timetile.stencil
def driven(u: Field, k: Scalar, s: Series):
    u.next = u[0, 0] + k * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u[0, 0]) + s[0]


@functools.cache
def text() -> str:
    """A step with a number that changes from step to step, as a program's text."""
    return str(driven.module(CELLS, "float32"))


def compiled(
    executor: Executor = "planes",
    halos: Halos = "compared",
    cache: Cache | bool = False,
) -> CompiledProgram:
    """The program, compiled anew."""
    return timetile.compile(text(), executor=executor, halos=halos, cache=cache)


def arguments(program: CompiledProgram, corner: float | None = None) -> list[Any]:
    """Values for the arguments of the program; the first field has a number in its corner."""
    cells = np.random.default_rng(7).random(CELLS, dtype=np.float32)
    numbers = np.linspace(0, 1, STEPS + 1, dtype=np.float32)
    given: dict[str | None, Any] = {"k": np.float32(0.1), "s": numbers, "steps": STEPS}
    found: list[Any] = [given.get(p.name, cells.copy()) for p in program.parameters]
    if corner is not None:
        found[0][0, 0] = corner
    return found


@functools.cache
def choice_sent(job: bytes) -> bytes:
    """What a process answers to a job, made once for all tests."""
    return pickle.dumps(made_choice(pickle.loads(job)))


class ChosenHere:
    """Stands for a process: the choice is made here, when the run has waited some times."""

    after, waited = 2, 0
    failure, said = "", ""
    jobs: list[ChoiceJob]

    def __init__(self, job: ChoiceJob):
        self.job, self.is_begun = job, True
        self.jobs.append(job)
        self.failure = self.said

    @property
    def is_ready(self) -> bool:
        return ChosenHere.waited >= self.after

    def result(self) -> MadeChoice | None:
        if self.failure:
            return None
        return pickle.loads(choice_sent(pickle.dumps(self.job)))


def no_assembler(arch: str) -> bool:
    return False


@pytest.fixture(autouse=True)
def begins(monkeypatch: pytest.MonkeyPatch) -> type[ChosenHere]:
    """Runs begin early, and schedules are chosen in this process, without an assembler."""
    monkeypatch.setattr(making, "assembles", no_assembler)
    monkeypatch.setenv(beside.PROCESSES, "2")
    monkeypatch.delenv(beside.VARIABLE, raising=False)
    monkeypatch.setattr(beside, "ChoosingProcess", ChosenHere)
    for name, value in (("jobs", list[ChoiceJob]()), ("waited", 0), ("after", 2), ("said", "")):
        monkeypatch.setattr(ChosenHere, name, value, raising=False)
    return ChosenHere


class EarlyPlanes(PlanesRunner):
    """Runs plane by plane, and begins early as on a GPU."""

    names: list[str]

    def __init__(self, kernels: ProgramKernels, progress: Any = None):
        super().__init__(kernels, progress)
        kernels.beside.is_allowed = True

    def begins_early(self) -> bool:
        return True

    def wait(self) -> None:
        ChosenHere.waited += 1

    def launch(self, op: Any, operands: Sequence[Any], values: Any) -> Sequence[Any]:
        EarlyPlanes.names.append(op.kernel.string_value())
        return super().launch(op, operands, values)


def run_early(program: CompiledProgram, values: list[Any], steps: int = STEPS) -> list[str]:
    """The kernels launched by a run that begins early."""
    EarlyPlanes.names = []
    program.run_checked(MarkedCells.copy_of, EarlyPlanes(program.kernels), values, Span(steps))
    return EarlyPlanes.names


@pytest.mark.parametrize("same", [True, False], ids=["common", "apart"])
def test_a_run_that_goes_over_to_chosen_kernels_ends_with_the_bits_of_the_plain_loop(same: bool):
    expected, program = compiled("numpy"), compiled()
    corner = None if same else 2.0
    ended, values = arguments(expected, corner), arguments(program, corner)
    expected(*ended, steps=STEPS)
    names = run_early(program, values)
    for one, other in zip(ended, values):
        assert np.array_equal(one, other)
    depths = {each.name: each.steps for facts in chosen(program, same).facts for each in facts}
    # Two pieces of single steps, and the deepest kernels from then on.
    over = names.index(next(name for name in names if depths[name] == max(depths.values())))
    assert over >= 2 * FIRST_STEPS and set(map(depths.get, names[:over])) == {1}
    assert max(depths.values()) > 1
    # The other steps take the kernels made for the whole run.
    made = chosen(program, same).beside.made
    assert made is not None and set(names[over:]) <= set(made.kernels)


def chosen(program: CompiledProgram, same: bool) -> ProgramKernels:
    """The kernels of runs with equal halos, or with others."""
    return program.kernels.common if same else program.kernels


def test_a_run_that_ends_before_the_choice_takes_single_steps(begins: type[ChosenHere]):
    begins.after = 1000
    expected, program = compiled("numpy", "common"), compiled(halos="common")
    ended, values = arguments(expected), arguments(program)
    expected(*ended, steps=20)
    names = run_early(program, values, 20)
    assert len(names) == 20 and len(set(names)) == 1
    assert all(np.array_equal(one, other) for one, other in zip(ended, values))
    # The next run takes the choice at once, and other doors wait for it.
    begins.after = 0
    assert max(each.steps for each in program.kernels.facts[0]) > 1
    assert len(run_early(program, values, STEPS)) < STEPS
    assert len(begins.jobs) == 1


def test_few_steps_begin_no_choice(begins: type[ChosenHere]):
    program = compiled(halos="common")
    values, runner = arguments(program), EarlyPlanes(program.kernels)
    for steps, begun in ((FEW_STEPS - 1, 0), (1, 0), (1, 1)):
        EarlyPlanes.names = []
        program.run_checked(MarkedCells.copy_of, runner, values, Span(steps))
        assert len(EarlyPlanes.names) == steps and len(begins.jobs) == begun


def test_the_first_kernels_read_memory_and_search_for_nothing(monkeypatch: pytest.MonkeyPatch):
    def searched(*_: object) -> None:
        raise AssertionError("a schedule is searched for")

    monkeypatch.setattr(Trials, "compared", searched)
    (loop,) = loops_of(compiled().kernels.beside.quick.tiled)
    assert loop.decisions.reads_memory and tuple(loop.depth_list) == (1,)


def test_a_failed_choice_leaves_a_run_in_single_steps_and_the_next_run_chooses(
    begins: type[ChosenHere],
):
    begins.said = "an error"
    program = compiled(halos="common")
    values = arguments(program)
    assert len(run_early(program, values)) == STEPS
    assert len(run_early(program, values)) < STEPS
    assert len(begins.jobs) == 1


def test_kernels_of_a_choice_beside_a_run_equal_kernels_of_a_choice_before():
    program, other = compiled(halos="common"), compiled(halos="common")
    program.kernels.beside.is_allowed = True
    program.kernels.beside.begin(program.kernels.loops[0], 1)
    assert program.kernels.facts == other.kernels.facts
    made = program.kernels.beside.made
    assert made is not None and made.schedules is not None and len(made.kernels) > 1
    assert all(kernel == other.kernels.kernel(name) for name, kernel in made.kernels.items())
    assert str(program.kernels.tiled) == str(other.kernels.tiled)
    assert program.kernels.remarks == other.kernels.remarks


def begins_early(depth: int | None = None) -> bool:
    """Whether runs of the program begin early on one GPU."""
    kernels = timetile.compile(text(), executor="planes", depth=depth, cache=False).kernels
    kernels.beside.is_allowed = True
    kernels.beside.begin(kernels.loops[0], 4)
    return kernels.beside.process is not None


def test_runs_wait_where_the_environment_says_so_and_for_given_depths(
    monkeypatch: pytest.MonkeyPatch,
):
    assert begins_early() and not begins_early(2)
    with monkeypatch.context() as patch:
        patch.setenv(beside.VARIABLE, "1")
        assert not begins_early()
    with monkeypatch.context() as patch:
        patch.setenv(beside.PROCESSES, "1")
        assert not begins_early()
    monkeypatch.setattr(sys, "executable", "/usr/bin/blender")
    assert not begins_early()


def test_a_program_with_kernels_in_the_cache_begins_with_them(
    begins: type[ChosenHere], cache: Cache
):
    launches: list[int] = []
    for _ in range(2):
        program = compiled(halos="common", cache=cache)
        launches.append(len(run_early(program, arguments(program))))
    assert len(begins.jobs) == 1
    assert launches[1] < min(launches[0], STEPS // 2)


class Card(Recorder):
    """Records waits for the stream, too."""

    def synchronize(self, stream: int) -> None:
        ChosenHere.waited += 1


@pytest.mark.parametrize("captures", [False, True])
def test_a_captured_run_waits_for_its_schedule(begins: type[ChosenHere], captures: bool):
    program = compiled(halos="common")
    (loop,) = program.kernels.loops
    numbers = np.zeros(STEPS, np.float32)
    outside = {each: numbers if is_series(each) else np.float32(0) for each in loop.scalars}
    on = Card(captures=captures)
    runner = GpuRunner(program.kernels, on, alone=True)
    runner(loop, STEPS, [DeviceBuffer(pointer, 8) for pointer in (1, 2)], outside)
    assert len(begins.jobs) == (not captures)
    single = program.kernels.facts[0][-1].name
    names = [name for name, _ in on.launched]
    assert names[0] != single if captures else names[:FIRST_STEPS] == [single] * FIRST_STEPS
    assert len(names) < STEPS
    runner.close()
    assert not on.users


def test_a_piece_takes_two_to_four_hundredths_of_a_second():
    assert next_piece(8, PIECE_SECONDS / 2) == 16
    assert next_piece(8, 1.5 * PIECE_SECONDS) == 8
    assert next_piece(8, 3 * PIECE_SECONDS) == 4
    assert next_piece(1, 3 * PIECE_SECONDS) == 1


def job() -> ChoiceJob:
    """The choice for the program."""
    own = compiled(halos="common").kernels
    return ChoiceJob.of(own.source, own.options, None, 0, 8)


def test_a_process_sends_the_choice():
    good = ChoosingProcess(job())
    wait_for_schedules()
    made = good.result()
    assert good.is_ready and made is not None
    assert decode_facts(made.facts)[0][0].name in made.kernels


def test_a_failing_process_leaves_the_last_line_of_its_error(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(choosing_process, "MODULE", "json.tool")
    bad = ChoosingProcess(job())
    assert bad.result() is None
    assert caplog.messages == [
        "the process that chooses schedules beside the run failed (Expecting value: line 1 column "
        "1 (char 0)), and the next run waits for its schedule; please report the program"
    ]


def test_a_choice_without_a_turn_yet_is_given_up_at_a_demand(
    monkeypatch: pytest.MonkeyPatch,
):
    turns = Turns()
    turns.busy = os.cpu_count() or 1
    monkeypatch.setattr(choosing_process, "TURNS", turns)
    waiting = ChoosingProcess(job())
    assert not waiting.is_ready
    assert waiting.result() is None and not waiting.failure
    assert waiting.is_ready
