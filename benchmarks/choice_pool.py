"""Compilation of the rows of `choice_rows.py` in processes.

A program's chosen kernels come first; then given depths near the choice, and the model's best
schedules of different kinds, as `timetile tune` considers. Work for the first programs goes first:
programs are ready one after the other.
"""

from __future__ import annotations

import heapq
import os
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field, replace
from multiprocessing import active_children
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any

from choice import answered, compiled, made
from choice_answers import Answer, Question
from rows import described

from timetile.runtime.cache.store import Cache
from timetile.runtime.kernels.measured import ChosenSchedules, written_schedules
from timetile.runtime.kernels.of_program import ProgramKernels
from timetile.runtime.kernels.tuning import considered, replaced, steps_of
from timetile.runtime.kernels.workers import launched

NEAR = 2
"""How far given depths lie from the chosen one."""

KINDS = 4
"""Schedules of different kinds made for tuning, beside the chosen one."""


@dataclass(frozen=True)
class Compiled:
    """A schedule whose kernels are in the cache."""

    question: Question
    depth: int
    schedule: str
    given: ChosenSchedules | None = None
    """The schedules of all loops, for schedules of tuning."""
    resources: dict[str, Any] = field(default_factory=dict[str, Any], compare=False)
    """Prediction, registers and spills of the deepest kernel."""

    @property
    def key(self) -> tuple[int, str]:
        """Equal for equal kernels."""
        return self.depth, self.schedule


@dataclass
class Ready:
    """A program with its chosen schedule, and with others."""

    question: Question
    chosen: Compiled
    near: list[Compiled] = field(default_factory=list[Compiled])
    kinds: list[Compiled] = field(default_factory=list[Compiled])
    errors: list[str] = field(default_factory=list[str])
    left: int = 0
    """Schedules still to come."""


def of_answer(answer: Answer) -> Compiled:
    """The chosen schedule of an answer. Raises ValueError for an answer with an error."""
    if answer.error:
        raise ValueError(answer.error)
    resources: dict[str, Any] = {
        "predicted": answer.predicted,
        "registers": answer.registers,
        "spilled_bytes": answer.spilled_bytes,
        "steady_spill_words": answer.steady_spill_words,
        "compile_cpu_s": answer.seconds,
    }
    return Compiled(answer.question, answer.depth, answer.schedule, None, resources)


def chosen(question: Question, folder: Path) -> tuple[Compiled, list[ChosenSchedules]]:
    """The chosen schedule of a question, and schedules of different kinds for tuning."""
    program = compiled(question, Cache(folder))
    own, kernels = of_answer(made(program, question)), program.kernels
    default, given = written_schedules(kernels.tiled), list[ChosenSchedules]()
    for number, found in enumerate(kernels.model_choices):
        if found is not None:
            others = (replaced(default, number, c) for c in considered(found, default[number]))
            given += [each for each in others if each not in (default, *given)][:KINDS]
    return own, given


def near(question: Question, folder: Path) -> Compiled:
    """The schedule chosen for a given depth."""
    return of_answer(answered(question, folder))


def of_kind(question: Question, given: ChosenSchedules, folder: Path) -> Compiled:
    """A given schedule."""
    kernels: ProgramKernels = compiled(question, Cache(folder)).kernels.with_schedules(given)
    for name in launched(kernels):
        kernels.kernel(name)
    first = next(each for each in given if each is not None)
    return Compiled(question, steps_of(given), first.schedule, given)


class Pool:
    """Compiles programs in processes, and gives a program when all schedules are ready."""

    def __init__(self, processes: int, folder: Path, known: list[dict[str, Any]]):
        self.processes, self.folder = max(1, processes), folder
        self.best_depths = {
            (row["program"], row["dtype"]): row["best_depth"] or row["default_depth"]
            for row in known
        }
        """The best depths of earlier rows."""
        self.pool = ProcessPoolExecutor(self.processes)
        self.waiting: list[tuple[int, int, Callable[..., Any], tuple[Any, ...]]] = []
        """Work not begun, by program and number."""
        self.running: dict[Future[Any], tuple[int, Callable[..., Any], tuple[Any, ...]]] = {}
        self.ready: SimpleQueue[Ready | None] = SimpleQueue()
        self.programs: dict[int, Ready] = {}
        self.number, self.is_closed = 0, False

    def __enter__(self) -> Pool:
        self.pool.submit(os.getpid).result()
        return self

    def __exit__(self, *_: object) -> None:
        self.is_closed = True
        for process in active_children():
            process.kill()
        self.pool.shutdown(wait=False, cancel_futures=True)

    def begin(self, questions: list[Question]) -> None:
        """Begin to compile programs, the first ones first."""
        for place, question in enumerate(questions):
            self.add(place, chosen, question, self.folder)
        Thread(target=self.run, daemon=True).start()

    def __iter__(self) -> Iterator[Ready]:
        """Programs in the order of their completion."""
        while (ready := self.ready.get()) is not None:
            yield ready

    def add(self, place: int, work: Callable[..., Any], *given: Any) -> None:
        """Add work for the program at a place in the order."""
        self.number += 1
        heapq.heappush(self.waiting, (place, self.number, work, given))

    def run(self) -> None:
        """Keep all processes busy until nothing is left."""
        while self.waiting or self.running:
            while self.waiting and len(self.running) < self.processes:
                place, _, work, given = heapq.heappop(self.waiting)
                self.running[self.pool.submit(work, *given)] = place, work, given
            done, _ = wait(self.running, return_when=FIRST_COMPLETED)
            if self.is_closed:
                return
            for each in done:
                self.take(*self.running.pop(each), each)
        self.ready.put(None)

    def take(
        self, place: int, work: Callable[..., Any], given: tuple[Any, ...], done: Future[Any]
    ) -> None:
        """Take the result of work."""
        program = self.programs.get(place)
        try:
            result = done.result()
        except Exception as error:
            print(f"{work.__name__} {given[0]}: {described(error)}", flush=True)
            if program is None:
                return
            program.errors.append(f"{work.__name__} {given[0].depth}: {described(error)}")
        else:
            if program is None:
                own, others = result
                program = self.programs[place] = Ready(given[0], own)
                self.add_others(place, program, others)
                return
            (program.near if work is near else program.kinds).append(result)
        program.left -= 1
        if not program.left:
            self.ready.put(program)

    def add_others(self, place: int, program: Ready, kinds: list[ChosenSchedules]) -> None:
        """Add work for depths near the choice, for the best known depth, and for tuning."""
        question, depth = program.question, program.chosen.depth
        best = self.best_depths.get((question.program, question.element), depth)
        depths = dict.fromkeys((depth - 1, depth + 1, best, depth - 2, depth + 2))
        asked = [each for each in depths if each > 0 and each != depth]
        program.left = len(asked) + len(kinds)
        for each in asked:
            self.add(place, near, replace(question, depth=each), self.folder)
        for each in kinds:
            self.add(place, of_kind, question, each, self.folder)
        if not program.left:
            self.ready.put(program)
