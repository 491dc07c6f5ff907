"""Schedules and kernels made in a process of its own, beside the runs of the caller.

A fresh process, no fork, may outlive the caller, and holds neither locks nor arrays nor the GPU.
The process gets a job on standard input: to choose schedules, or to make rivals of the chosen
ones. It keeps choice and kernels in the cache, and answers on standard output. The process ends
after the work, at the latest after five minutes, and the caller's end waits for nothing: a short
program leaves a full cache to the next.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from tempfile import TemporaryFile
from threading import Condition, Thread
from typing import IO, Any, Generic, Self, TypeVar, cast

from xdsl.dialects.builtin import ModuleOp

from timetile.passes.diagnostics import LOGGER
from timetile.runtime.cache.store import Cache
from timetile.runtime.kernels.assembled_choice import AssembledSchedule
from timetile.runtime.kernels.kernel import Kernel, Parts
from timetile.runtime.kernels.measured import ChosenSchedules
from timetile.runtime.kernels.options import Options
from timetile.runtime.loading.places import NO_FILE, TextPlace, module_of_text, places_of
from timetile.runtime.machine.teams import available_threads

CORES_OF_A_CHOICE = 4
"""Cores for each of several processes that choose at once."""

WORD_BYTES = 8
"""In front of what a process sends: the number of the bytes."""

MODULE = "timetile.runtime.kernels.choosing"

JobT = TypeVar("JobT")
AnswerT = TypeVar("AnswerT")


@dataclass(frozen=True)
class ChoiceJob:
    """Schedules to choose, and kernels to make for a run of a time loop."""

    text: str
    places: Sequence[TextPlace]
    """File and line of each operation."""
    options: Options
    cache: Cache | None
    loop: int
    """The time loop, by its number."""
    steps: int
    """The steps of the run."""

    @classmethod
    def of(
        cls, source: ModuleOp, options: Options, cache: Cache | None, loop: int, steps: int
    ) -> Self:
        """The job for a time loop of a module."""
        return cls(str(source), places_of(source, NO_FILE), options, cache, loop, steps)

    def module(self) -> ModuleOp:
        """The module, read anew."""
        return module_of_text(self.text, self.places, NO_FILE)


@dataclass(frozen=True)
class MadeChoice:
    """Chosen schedules, and the kernels made for a run."""

    facts: Parts
    """What launch plans need to know about all kernels."""
    schedules: ChosenSchedules | None
    """None where the facts came from the cache."""
    seen: list[list[AssembledSchedule]]
    kernels: dict[str, Kernel]
    remarks: tuple[str, ...]


@dataclass(frozen=True)
class RivalsJob(ChoiceJob):
    """Rivals of the schedule chosen for a time loop, and kernels to make for a run of each."""


@dataclass(frozen=True)
class MadeRivals:
    """The rivals of a chosen schedule, with kernels in the cache."""

    chosen: ChosenSchedules
    rivals: tuple[ChosenSchedules, ...]


class Turns:
    """Lets few processes choose at once. Other choices begin later, or are given up before."""

    def __init__(self) -> None:
        self.changed, self.busy = Condition(), 0
        self.waiting: set[object] = set()
        """Choices asked for and not ended."""

    def take(self, choosing: BesideProcess[Any, Any]) -> bool:
        """Wait for a turn. Whether the choice is still asked for."""
        most = max(1, available_threads() // CORES_OF_A_CHOICE)
        with self.changed:
            self.changed.wait_for(lambda: choosing.is_given_up or self.busy < most)
            if choosing.is_given_up:
                return False
            self.busy += 1
            choosing.is_begun = True
            return True

    def end(self, choosing: BesideProcess[Any, Any]) -> None:
        """A choice is made, has failed, or is given up."""
        with self.changed:
            self.busy -= choosing.is_begun
            self.waiting.discard(choosing)
            self.changed.notify_all()


TURNS = Turns()


class BesideProcess(Generic[JobT, AnswerT]):
    """A job in a process, whose answer a thread of the caller reads."""

    def __init__(self, job: JobT):
        self.job, self.failure = job, ""
        self.made: AnswerT | None = None
        self.is_begun = self.is_given_up = False
        TURNS.waiting.add(self)
        # A daemon: the end of the caller waits for no choice.
        Thread(target=self.work, name="timetile choice", daemon=True).start()

    @property
    def is_ready(self) -> bool:
        """Whether the job is done, or has failed."""
        return self not in TURNS.waiting

    def work(self) -> None:
        """Run the process in turn."""
        process = None
        try:
            if TURNS.take(self):
                process = self.choose()
        except (OSError, pickle.PickleError) as error:
            self.failure = str(error)
        finally:
            TURNS.end(self)
        if process is not None:
            process.wait()

    def choose(self) -> subprocess.Popen[bytes]:
        """Run the process until the answer is sent, or a failure."""
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        # Words of the process go to a file: nobody may be there to read a pipe.
        with TemporaryFile() as said:
            process = subprocess.Popen(
                [sys.executable, "-m", MODULE], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=said, env=environment, start_new_session=True,
            )  # fmt: skip
            assert process.stdin is not None and process.stdout is not None
            with suppress(BrokenPipeError), process.stdin as pipe:
                pipe.write(pickle.dumps(self.job))
            with process.stdout as pipe:
                sent = received(pipe)
            if sent is None:
                status = process.wait()
                said.seek(0)
                lines = said.read().decode(errors="replace").split("\n")
                self.failure = next(filter(None, reversed(lines)), f"it ended with {status}")
            else:
                self.made = cast(AnswerT, pickle.loads(sent))
        return process


class ChoosingProcess(BesideProcess[ChoiceJob, MadeChoice]):
    """A choice in a process."""

    def result(self) -> MadeChoice | None:
        """
        The choice, waited for. None after a failure, with a warning, and for a choice without a
        turn yet: the caller then chooses.
        """
        with TURNS.changed:
            self.is_given_up = not self.is_begun
            TURNS.changed.notify_all()
            TURNS.changed.wait_for(lambda: self.is_ready)
        if self.failure:
            LOGGER.warning(
                "the process that chooses schedules beside the run failed (%s), and the next run "
                "waits for its schedule; please report the program",
                self.failure,
            )
        return self.made


class RivalsProcess(BesideProcess[RivalsJob, MadeRivals]):
    """Rivals made in a process."""


def received(pipe: IO[bytes]) -> bytes | None:
    """The bytes sent by a process, behind the number of bytes; None after an early end."""
    length = int.from_bytes(pipe.read(WORD_BYTES))
    sent = pipe.read(length)
    return sent if length and len(sent) == length else None


def wait_for_schedules() -> None:
    """
    Wait until the schedules of all runs so far are chosen, and in the cache. A first run on a GPU
    begins with kernels of a single step, while a process chooses: wait before a measurement.
    """
    with TURNS.changed:
        TURNS.changed.wait_for(lambda: not TURNS.waiting)
