"""Compilation of the rows of `choice_rows.py` in processes without a GPU.

A program's chosen kernels come first; then those of given depths near the choice, and of the
model's best schedules of different kinds, as `timetile tune` considers. Work for the first programs
goes first: programs are ready one after the other. The target's name carries all facts: with facts
found by each process the caller would ask the cache for other kernels.
"""

from __future__ import annotations

import heapq
import os
import pickle
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field, replace
from multiprocessing import active_children, get_context
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any

from choice import compiled, describe
from choice_answers import Answer, Question
from choice_programs import add_programs
from rows import described
from settings import wait_for_choices

from timetile.runtime.cache.store import Cache
from timetile.runtime.kernels.kernel import Kernel
from timetile.runtime.kernels.measured import ChosenSchedules, written_schedules
from timetile.runtime.kernels.of_program import ProgramKernels
from timetile.runtime.kernels.planning import launched_by, planned_function
from timetile.runtime.kernels.tuning import considered, replaced, steps_of
from timetile.runtime.machine.forks import VARIABLE as PROCESSES

NEAR = 1
"""How far given depths lie from the chosen one."""

KINDS = 2
"""Schedules of different kinds made for tuning, beside the chosen one, for rows of all programs."""

KINDS_OF_FEW = 4
"""Such schedules for rows of programs that `--only` names."""

LAUNCHES = 2
"""Launches of the deepest kernel in the shortest run: kernels serve even numbers of launches."""

PERIODS = (1, 2, 3)
"""Runs whose kernels are compiled, in such launches."""

MOST_BEHIND = 4
"""Most single steps behind the last launch of the deepest kernel in a run."""


@dataclass(frozen=True)
class Place:
    """Where kernels are compiled to, and for which target."""

    folder: Path
    arch: str

    def program(self, question: Question) -> Any:
        """The program of a question, made without a GPU."""
        return compiled(question, Cache(self.folder), self.arch, "planes")


@dataclass(frozen=True)
class Compiled:
    """A schedule whose kernels are in the cache."""

    given: ChosenSchedules
    """The schedules of all loops."""
    resources: dict[str, Any] = field(default_factory=dict[str, Any], compare=False)
    """Prediction, registers and spills of the deepest kernel."""

    @property
    def depth(self) -> int:
        """Steps of launches of the deepest kernels."""
        return steps_of(self.given)

    @property
    def schedule(self) -> str:
        """The schedule of the first loop with one."""
        return next(each.schedule for each in self.given if each is not None)


@dataclass
class Ready:
    """A program with its chosen schedule, and with others."""

    question: Question
    chosen: Compiled
    near: list[Compiled] = field(default_factory=list[Compiled])
    kinds: list[Compiled] = field(default_factory=list[Compiled])
    considered: list[ChosenSchedules] = field(default_factory=list[ChosenSchedules])
    """What tuning measures."""
    errors: list[str] = field(default_factory=list[str])
    behind: int = 0
    """Steps of a run behind its launches of the deepest kernels."""
    left: int = 0
    """Schedules still to come."""


def launched(kernels: ProgramKernels, behind: int) -> list[str]:
    """The kernels launched by runs with some steps behind."""
    names: dict[str, None] = {}
    for loop in kernels.loops:
        facts = kernels.facts_of(loop)
        period = LAUNCHES * max(fact.steps for fact in facts)
        for periods in PERIODS:
            plan = planned_function(loop, facts, periods * period + behind)
            names.update(dict.fromkeys(launched_by(plan)))
    return list(names)


def make_kernels(
    own: ProgramKernels,
    given: ChosenSchedules,
    made: Mapping[str, Kernel],
    behind: int | None = None,
) -> int:
    """
    Put the kernels of runs with given schedules into the cache, with kernels made for the choice.
    The steps of a run behind its launches: unless given, as many as let runs do with the fewest
    kernels.
    """
    kernels = own.with_schedules(given)
    kernels.choice.kernels.update(made)
    if behind is None:
        behind = min(range(MOST_BEHIND + 1), key=lambda each: len(launched(kernels, each)))
    for name in launched(kernels, behind):
        kernels.kernel(name)
    return behind


def resources_of(answer: Answer) -> dict[str, Any]:
    """Prediction, registers and spills of the deepest kernel."""
    return {
        "predicted": answer.predicted,
        "registers": answer.registers,
        "spilled_bytes": answer.spilled_bytes,
        "steady_spill_words": answer.steady_spill_words,
    }


def chosen(question: Question, place: Place) -> Ready:
    """A program with its chosen schedule, and schedules that tuning measures."""
    began = time.process_time()
    program, answer = place.program(question), Answer(question)
    kernels = program.kernels
    describe(program, answer)
    default, given = written_schedules(kernels.tiled), list[ChosenSchedules]()
    resources = resources_of(answer)
    behind = make_kernels(kernels, default, kernels.choice.kernels)
    resources["compile_cpu_s"] = round(time.process_time() - began, 2)
    for number, found in enumerate(kernels.model_choices):
        if found is not None:
            others = (replaced(default, number, c) for c in considered(found, default[number]))
            given += [each for each in others if each not in (default, *given)]
    return Ready(question, Compiled(default, resources), considered=given, behind=behind)


def near(question: Question, place: Place, behind: int) -> Compiled:
    """The schedule chosen for a given depth."""
    program, answer = place.program(question), Answer(question)
    describe(program, answer)
    at_depth = program.kernels
    given = written_schedules(at_depth.tiled)
    own = place.program(replace(question, depth=None)).kernels
    make_kernels(own, given, {**at_depth.choice.kernels, **at_depth.made}, behind)
    return Compiled(given, resources_of(answer))


def of_kind(question: Question, place: Place, behind: int, given: ChosenSchedules) -> Compiled:
    """A given schedule."""
    make_kernels(place.program(question).kernels, given, {}, behind)
    return Compiled(given)


def begin_process() -> None:
    """
    Begin a process that compiles: others are busy beside, so that it begins no further processes.
    """
    os.environ[PROCESSES] = "1"
    wait_for_choices()
    add_programs()


class Pool:
    """Compiles programs in processes, and gives a program when all schedules are ready."""

    def __init__(self, processes: int, place: Place, known: list[dict[str, Any]], kinds: int):
        """`kinds`: schedules of different kinds made for tuning."""
        self.processes, self.place, self.kinds = max(1, processes), place, kinds
        self.best_depths = {
            (row["program"], row["dtype"]): row["best_depth"] or row["default_depth"]
            for row in known
        }
        """The best depths of earlier rows."""
        # New processes, no forks: the caller may have the GPU in use.
        self.pool = ProcessPoolExecutor(self.processes, get_context("spawn"), begin_process)
        self.waiting: list[tuple[int, int, Callable[..., Any], tuple[Any, ...]]] = []
        """Work not begun, by program and number."""
        self.running: dict[Future[Any], tuple[int, Callable[..., Any], tuple[Any, ...]]] = {}
        self.ready: SimpleQueue[Ready | None] = SimpleQueue()
        self.programs: dict[int, Ready] = {}
        self.number, self.is_closed = 0, False

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        self.is_closed = True
        for process in active_children():
            process.kill()
        self.pool.shutdown(wait=False, cancel_futures=True)

    def begin(self, questions: list[Question]) -> None:
        """Begin to compile programs, the first ones first."""
        for place, question in enumerate(questions):
            self.add(place, chosen, question, self.place)
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
        try:
            while (self.waiting or self.running) and not self.is_closed:
                self.begin_waiting()
                done, _ = wait(self.running, return_when=FIRST_COMPLETED)
                for each in done:
                    self.take(*self.running.pop(each), each)
        finally:
            self.ready.put(None)

    def begin_waiting(self) -> None:
        """Begin work until all processes are busy."""
        while self.waiting and len(self.running) < self.processes:
            place, _, work, given = heapq.heappop(self.waiting)
            self.running[self.pool.submit(work, *given)] = place, work, given

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
                self.programs[place] = result
                self.add_others(place, result)
                return
            (program.near if work is near else program.kinds).append(result)
        program.left -= 1
        if not program.left:
            self.ready.put(program)

    def add_others(self, place: int, program: Ready) -> None:
        """Add work for depths near the choice, for the best known depth, and for tuning."""
        question, depth = program.question, program.chosen.depth
        best = self.best_depths.get((question.program, question.element), depth)
        depths = dict.fromkeys((depth - NEAR, depth + NEAR, best))
        asked = [each for each in depths if each > 0 and each != depth]
        kinds = program.considered
        # The best kind of a given depth mostly is the depth's choice.
        for each in asked:
            best_kind = next((kind for kind in kinds if steps_of(kind) == each), None)
            kinds = [kind for kind in kinds if kind is not best_kind]
        kinds = kinds[: self.kinds]
        program.left = len(asked) + len(kinds)
        for each in asked:
            self.add(place, near, replace(question, depth=each), self.place, program.behind)
        for each in kinds:
            self.add(place, of_kind, question, self.place, program.behind, each)
        if not program.left:
            self.ready.put(program)


class Kept:
    """Programs compiled ahead, in files of the folder of their kernels."""

    def __init__(self, place: Place):
        self.place = place

    def path(self, question: Question) -> Path:
        """The file of a program."""
        name = f"{question.program}-{question.element}-{self.place.arch}".replace("/", "-")
        return self.place.folder / "ready" / f"{name}.pickle"

    def keep(self, ready: Ready) -> None:
        """Keep a program."""
        path = self.path(ready.question)
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(".draft")
        draft.write_bytes(pickle.dumps(ready))
        draft.replace(path)

    def of(self, question: Question) -> Ready | None:
        """A program compiled ahead; None if it was not."""
        path = self.path(question)
        return pickle.loads(path.read_bytes()) if path.exists() else None
