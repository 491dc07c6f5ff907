"""Long runs that try other schedules on their own steps: bits, records, and who tries."""

from __future__ import annotations

import functools
import pickle
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest

import timetile
from support.recorder import Recorder
from timetile import CompileError, Field, Scalar, Series
from timetile.dialects.series import is_series
from timetile.runtime.cache.store import Cache
from timetile.runtime.device.cells import DeviceBuffer
from timetile.runtime.device.gpu_runner import GpuRunner
from timetile.runtime.executors import rival_runs
from timetile.runtime.executors.homes import MarkedCells
from timetile.runtime.executors.runners import PlanesRunner
from timetile.runtime.explain.explanation import take_records
from timetile.runtime.kernels import beside, making, making_rivals, rivals
from timetile.runtime.kernels.choosing import answer_to
from timetile.runtime.kernels.choosing_process import MadeRivals, RivalsJob
from timetile.runtime.kernels.kernel import Kernel
from timetile.runtime.kernels.making_rivals import made_rivals
from timetile.runtime.kernels.measured import ChosenSchedules, DeviceRecords
from timetile.runtime.kernels.of_program import ProgramKernels
from timetile.runtime.kernels.rivals import RivalSchedules
from timetile.runtime.program.compiled_program import CompiledProgram
from timetile.runtime.program.pieces import Span

# One worker has the shared kernels.
pytestmark = pytest.mark.xdist_group("rivals")

CELLS = (20, 36)
STEPS = 2005
SECONDS = 1e-3
"""Of a step with the chosen kernels."""

CACHE = Cache(Path(tempfile.mkdtemp(prefix="timetile-rivals")))


@timetile.stencil
def pushed(u: Field, k: Scalar, s: Series):
    u.next = u[0, 0] + k * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u[0, 0]) + s[0]


@functools.cache
def text() -> str:
    """The program's text."""
    return str(pushed.module(CELLS, "float32"))


def compiled(executor: Any = "planes") -> CompiledProgram:
    """The program, with records of a made-up GPU."""
    program = timetile.compile(text(), executor=executor, halos="common", cache=CACHE)
    program.kernels.records = DeviceRecords("a GPU", None)
    return program


@functools.cache
def answer(job: bytes) -> MadeRivals:
    """The answer to a job, made once for all tests."""
    made = answer_to(pickle.loads(job))
    assert isinstance(made, MadeRivals)
    return made


class MadeHere:
    """Stands for a process: rivals are made here, when the run has looked some times."""

    after, looks, jobs, failure = 2, 0, 0, ""

    def __init__(self, job: RivalsJob):
        MadeHere.jobs += 1
        self.made = None if self.failure else answer(pickle.dumps(job))

    @property
    def is_ready(self) -> bool:
        MadeHere.looks += 1
        return MadeHere.looks > self.after


def no_assembler(arch: str) -> bool:
    return False


@pytest.fixture(autouse=True)
def tries(monkeypatch: pytest.MonkeyPatch) -> type[MadeHere]:
    """Two rivals, made in this process, without an assembler."""
    monkeypatch.setattr(making, "assembles", no_assembler)
    monkeypatch.setattr(making_rivals, "MOST_RIVALS", 2)
    monkeypatch.setattr(making_rivals, "WORTH_TRYING", 0.5)
    monkeypatch.setattr(rival_runs, "SLOW", 1.0)
    monkeypatch.setenv(beside.PROCESSES, "2")
    monkeypatch.delenv(rivals.TRIALS, raising=False)
    monkeypatch.setattr(rivals, "RivalsProcess", MadeHere)
    for name, value in (("after", 2), ("looks", 0), ("jobs", 0), ("failure", "")):
        monkeypatch.setattr(MadeHere, name, value)
    return MadeHere


Speed = Callable[[ProgramKernels], float]


class ClockedRunner(PlanesRunner):
    """Notes launches, and has a clock of its own. Nothing is computed."""

    speed: Speed
    clock, has_room = 0.0, True
    ran: list[tuple[ProgramKernels, int]]

    def begins_early(self) -> bool:
        return True

    def now(self) -> float:
        return ClockedRunner.clock

    def loads(self) -> bool:
        return self.has_room

    def launch(self, op: Any, operands: Sequence[Any], values: Any) -> Sequence[Any]:
        steps = self.depths[op.kernel.string_value()]
        ClockedRunner.clock += steps * ClockedRunner.speed(self.kernels)
        ClockedRunner.ran.append((self.kernels, steps))
        return []


class ClockedPlanes(ClockedRunner):
    """Computes, too."""

    def launch(self, op: Any, operands: Sequence[Any], values: Any) -> Sequence[Any]:
        super().launch(op, operands, values)
        return PlanesRunner.launch(self, op, operands, values)


def rival_at(number: int, factor: float) -> Speed:
    """Seconds of a step, if a rival takes a factor of the chosen kernels' time."""

    def speed(kernels: ProgramKernels) -> float:
        if kernels.given is None:
            return SECONDS
        own = known_rivals().index(kernels.given)
        return SECONDS * (factor if own == number else 2.0)

    return speed


@functools.cache
def known_rivals() -> tuple[ChosenSchedules, ...]:
    """The rivals of the schedule chosen for the program."""
    return answer(pickle.dumps(job_of(compiled().kernels))).rivals


def job_of(own: ProgramKernels) -> RivalsJob:
    """The job of a run."""
    return RivalsJob.of(own.source, own.options, CACHE, 0, STEPS)


def numbers_of(program: CompiledProgram) -> list[Any]:
    """Values for the arguments of the program."""
    cells = np.random.default_rng(7).random(CELLS, dtype=np.float32)
    series = np.linspace(0, 0.1, STEPS + 1, dtype=np.float32)
    given: dict[str | None, Any] = {"k": np.float32(0.1), "s": series, "steps": STEPS}
    return [given.get(p.name, cells.copy()) for p in program.parameters]


def tried(
    program: CompiledProgram,
    speed: Speed,
    steps: int = STEPS,
    kind: type[ClockedRunner] = ClockedRunner,
) -> list[Any]:
    """The arguments after a run that tries rivals."""
    ClockedRunner.speed, ClockedRunner.ran = staticmethod(speed), []
    values = numbers_of(program)
    program.run_checked(MarkedCells.copy_of, kind(program.kernels), values, Span(steps))
    assert sum(count for _, count in ClockedRunner.ran) == steps
    return values


def test_the_fastest_rival_runs_the_rest_and_is_recorded():
    program = compiled()
    tried(program, rival_at(1, 0.8))
    own = program.kernels
    winner = own.rivals.winner
    assert winner is not None and winner.given == known_rivals()[1]
    ran = ClockedRunner.ran
    # The last steps, and no steps before the trial, run in the winner's kernels.
    assert {kernels for kernels, _ in ran[-5:]} == {winner} and ran[0][0] is own
    singles = sum(count == 1 for _, count in ran)
    assert singles < STEPS // 8
    assert own.records is not None
    record = own.records.of(own.model_key)
    assert record is not None and record.in_run
    assert record.program == "@pushed, 18 x 34 cells (f32)"
    cells = 18 * 34
    assert record.best.gcells_per_second == pytest.approx(cells / (0.8 * SECONDS) / 1e9)
    assert record.default == pytest.approx(cells / SECONDS / 1e9) and len(record.rows) == 3
    # The next program takes the winner, and nobody tries again.
    later = own.with_new_records()
    assert later.chosen == winner.given and not later.rivals.may_begin(later.loops[0])
    assert later.facts == winner.facts
    take_records(program)
    assert program.kernels.record == record and program.kernels.chosen == winner.given
    program.kernels = own
    # So do later runs of the program, where the winner's kernels are made.
    tried(program, rival_at(1, 0.8))
    assert {kernels for kernels, _ in ClockedRunner.ran} == {winner}


def test_a_run_with_trials_ends_with_the_bits_of_the_plain_loop():
    program, expected = compiled(), compiled("numpy")
    values = tried(program, rival_at(0, 0.5), kind=ClockedPlanes)
    ended = numbers_of(expected)
    expected(*ended, steps=STEPS)
    assert all(np.array_equal(one, other) for one, other in zip(ended, values))
    assert len({kernels for kernels, _ in ClockedRunner.ran}) == 3


@pytest.mark.parametrize("many", [1, 1000])
def test_runs_of_other_numbers_of_steps_take_the_winner_where_single_steps_are_few(
    monkeypatch: pytest.MonkeyPatch, many: int
):
    monkeypatch.setattr(rival_runs, "MANY", many)
    program = compiled()
    tried(program, rival_at(0, 0.5))
    own = program.kernels
    for steps in (STEPS - 24, STEPS - 5, STEPS - 18):
        tried(program, rival_at(0, 0.5), steps)
        taken = own.rivals.winner if many == 1 or steps == STEPS - 24 else own
        assert {kernels for kernels, _ in ClockedRunner.ran} == {taken}
        assert sum(count == 1 for _, count in ClockedRunner.ran) < 24 + 4


def test_the_chosen_schedule_stays_unless_a_rival_is_clearly_faster():
    program = compiled()
    tried(program, rival_at(1, 0.995))
    own = program.kernels
    assert own.rivals.winner is None and ClockedRunner.ran[-1][0] is own
    later = own.with_new_records()
    assert later.record is not None and later.chosen is None and later.key == own.key
    assert not later.rivals.may_begin(later.loops[0])


@pytest.mark.parametrize("after", [1000, 12])
def test_a_run_that_ends_before_the_trial_keeps_nothing(tries: type[MadeHere], after: int):
    tries.after = after
    program = compiled()
    tried(program, rival_at(0, 0.5))
    own = program.kernels
    assert own.rivals.winner is None and {kernels for kernels, _ in ClockedRunner.ran} == {own}
    assert own.records is not None and own.records.of(own.model_key) is None
    # The next run finds the rivals made.
    tries.after = 0
    tried(program, rival_at(0, 0.5))
    assert own.rivals.winner is not None and tries.jobs == 1


def test_short_runs_and_runs_told_so_make_no_rivals(
    tries: type[MadeHere], monkeypatch: pytest.MonkeyPatch
):
    program = compiled()
    monkeypatch.setattr(rival_runs, "SLOW", 1e9)
    tried(program, lambda kernels: 1e-7)
    assert program.kernels.rivals.step_seconds == 0 and not tries.jobs
    monkeypatch.setattr(rival_runs, "SLOW", 1.0)
    tried(program, lambda kernels: 1e-5)
    assert program.kernels.rivals.step_seconds == pytest.approx(1e-5) and not tries.jobs
    tried(program, lambda kernels: 1e-5)
    assert len({count for _, count in ClockedRunner.ran}) <= 4
    monkeypatch.setenv(rivals.TRIALS, "0")
    tried(compiled(), lambda kernels: SECONDS)
    assert not tries.jobs


def test_a_failed_process_and_kernels_that_do_not_load_leave_the_chosen_schedule(
    tries: type[MadeHere], monkeypatch: pytest.MonkeyPatch
):
    tries.failure = "an error"
    program = compiled()
    tried(program, rival_at(0, 0.5))
    assert program.kernels.rivals.is_over and program.kernels.rivals.winner is None
    tries.failure = ""
    monkeypatch.setattr(ClockedRunner, "has_room", False)
    program = compiled()
    tried(program, rival_at(0, 0.5))
    assert {kernels for kernels, _ in ClockedRunner.ran} == {program.kernels}


def test_a_rival_that_does_not_compile_is_left_out(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(beside.PROCESSES, "1")
    first, second = known_rivals()
    kernel = ProgramKernels.kernel

    def failing(kernels: ProgramKernels, name: str) -> Kernel:
        if kernels.given == first:
            raise CompileError("no code")
        return kernel(kernels, name)

    monkeypatch.setattr(ProgramKernels, "kernel", failing)
    assert made_rivals(job_of(compiled().kernels)).rivals == (second,)


def test_one_runner_at_a_time_tries():
    kernels = compiled().kernels
    own = kernels.rivals
    assert own.enter() and not own.enter()
    own.leave()
    assert own.enter()


def test_loops_of_given_depths_and_programs_without_a_cache_have_no_rivals():
    for depth, cache in ((4, CACHE), (None, False)):
        own = timetile.compile(text(), executor="planes", depth=depth, cache=cache).kernels
        own.records = DeviceRecords("a GPU", None)
        assert not RivalSchedules(own).may_begin(own.loops[0])


class Card(Recorder):
    """Has a clock: rivals are fast."""

    def __init__(self, *, captures: bool):
        super().__init__(captures=captures)
        self.used: set[Kernel] = set()

    def load(self, kernel: Kernel) -> None:
        self.used.add(kernel)

    def synchronize(self, stream: int) -> None:
        pass


@pytest.mark.parametrize("captures", [False, True])
def test_threads_share_one_trial_and_a_captured_run_tries_nothing(
    tries: type[MadeHere], monkeypatch: pytest.MonkeyPatch, captures: bool
):
    on, program = Card(captures=captures), compiled()

    def now(runner: GpuRunner) -> float:
        return len(on.launched) * 12 * SECONDS

    monkeypatch.setattr(GpuRunner, "now", now)
    (loop,) = program.kernels.loops
    series = np.zeros(STEPS, np.float32)
    outside = {each: series if is_series(each) else np.float32(0) for each in loop.scalars}
    runner = GpuRunner(program.kernels, on, alone=True)

    def call(pointer: int) -> None:
        buffers = [DeviceBuffer(pointer + k, 8) for k in range(2)]
        runner(loop, STEPS, buffers, dict(outside))

    threads = [Thread(target=call, args=(pointer,)) for pointer in (1, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    own = program.kernels
    assert own.records is not None
    assert tries.jobs == bool(on.used) == own.rivals.is_over == (not captures)
    assert (own.records.of(own.model_key) is None) == captures
    runner.close()
    assert not on.users
