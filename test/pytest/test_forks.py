"""
Work in forked copies of the process: its results, what happens without one, and kernels that do not
depend on the number of processes.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from typing import Any

import pytest
from xdsl.dialects.builtin import ModuleOp

import timetile
from support.command_line import HEAT
from timetile.passes.loops.temporal_fusion import write_depths
from timetile.runtime.kernels import assembled_choice
from timetile.runtime.kernels.ahead import KernelsAhead
from timetile.runtime.kernels.assembled_choice import AssembledChoice
from timetile.runtime.kernels.assembler import assembler_version
from timetile.runtime.kernels.loops import loops_of
from timetile.runtime.kernels.of_program import ProgramKernels
from timetile.runtime.kernels.planning import launched_by, planned_function
from timetile.runtime.machine import forks
from timetile.runtime.machine.forks import VARIABLE, Forked, processes

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be forked")

HERE = os.getpid()

needs_assembler = pytest.mark.skipif(assembler_version() is None, reason="no assembler")


def test_a_copy_sends_its_result():
    work = Forked(lambda: (os.getpid(), b"x" * 3_000_000))
    process, sent = work.result()
    assert process != HERE and len(sent) == 3_000_000


def test_the_process_does_the_work_of_a_copy_that_fails():
    def work() -> str:
        if os.getpid() != HERE:
            raise MemoryError
        return "here"

    assert Forked(work).result() == "here"


def test_an_error_of_the_work_reaches_the_caller():
    def work() -> None:
        raise ArithmeticError("no number")

    with pytest.raises(ArithmeticError, match="no number"):
        Forked(work).result()


def test_the_process_does_the_work_of_a_copy_that_is_stuck(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(forks, "PATIENCE", 0.2)

    def work() -> str:
        if os.getpid() != HERE:
            time.sleep(60)
        return "here"

    forked = Forked(work)
    assert forked.result() == "here"
    with pytest.raises(ProcessLookupError):
        os.kill(forked.process, 0)


def test_a_copy_ends_with_its_object():
    forked = Forked(lambda: time.sleep(60))
    process = forked.process
    os.kill(process, 0)
    del forked
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


@pytest.mark.parametrize("said", ["0", "many", "-1"])
def test_a_number_of_processes_is_a_number_from_1_on(said: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(VARIABLE, said)
    with pytest.raises(ValueError, match=f"{VARIABLE} is a number from 1 on, got '{said}'"):
        processes()


def test_a_process_with_jax_compiles_alone(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv(VARIABLE, "4")
    assert processes() == 4
    monkeypatch.setitem(sys.modules, "jax", sys)
    assert processes() == 1


@pytest.fixture
def always_assembled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The assembler is asked about kernels of few registers, too."""
    monkeypatch.setattr(assembled_choice, "FEW_REGISTERS", 0.0)


def kernels_to_come(steps: int) -> tuple[ProgramKernels, list[str]]:
    """Kernels of a program with a run of some steps to come, and those that the run launches."""
    kernels = timetile.compile(HEAT, executor="cpu", arch="h100-sxm", cache=False).kernels
    (loop,) = kernels.loops
    kernels.expect(loop, steps)
    return kernels, launched_by(planned_function(loop, kernels.facts_of(loop), steps))


@needs_assembler
@pytest.mark.usefixtures("always_assembled")
def test_kernels_of_a_run_are_begun_beside_the_assembler(monkeypatch: pytest.MonkeyPatch):
    made: list[dict[str, str]] = []
    for count in ("1", "4"):
        monkeypatch.setenv(VARIABLE, count)
        kernels, launched = kernels_to_come(1000)
        foreseen = set(kernels.ahead.begun)
        assert foreseen == (set() if count == "1" else set(launched[1:3]))
        made.append({name: kernels.kernel(name).ptx for name in launched})
        assert len(launched) > 1 and not kernels.ahead.begun
    assert made[0] == made[1]


@needs_assembler
@pytest.mark.usefixtures("always_assembled")
def test_begun_kernels_of_another_schedule_are_forgotten(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(VARIABLE, "4")
    begun: list[str] = []
    refine, foresee = AssembledChoice.refine, KernelsAhead.foresee

    def other_choice(self: AssembledChoice, module: ModuleOp, choices: Any) -> None:
        refine(self, module, choices)
        write_depths(loops_of(module)[0], [2])

    def noted(self: KernelsAhead, names: Sequence[str], make: Any, room: int) -> None:
        begun.extend(names)
        foresee(self, names, make, room)

    monkeypatch.setattr(AssembledChoice, "refine", other_choice)
    monkeypatch.setattr(KernelsAhead, "foresee", noted)
    kernels, launched = kernels_to_come(1000)
    assert begun and not kernels.ahead.begun
    assert max(fact.steps for fact in kernels.facts[0]) == 2 and launched


def test_kernels_do_not_depend_on_the_number_of_processes(monkeypatch: pytest.MonkeyPatch):
    made: list[dict[str, tuple[str, bytes | None]]] = []
    remarks: list[list[str]] = []
    for count in ("1", "3"):
        monkeypatch.setenv(VARIABLE, count)
        kernels = timetile.compile(HEAT, executor="cpu", arch="h100-sxm", cache=False).kernels
        names = [fact.name for facts in kernels.facts for fact in facts]
        kernels.begin(names)
        assert len(kernels.ahead.begun) == (0 if count == "1" else min(2, len(names) - 2))
        found = {name: kernels.kernel(name) for name in names}
        made.append({name: (each.ptx, each.cubin) for name, each in found.items()})
        remarks.append(sorted(kernels.remarks))
        assert len(names) > 2 and not kernels.ahead.begun
    assert made[0] == made[1] and remarks[0] == remarks[1]
