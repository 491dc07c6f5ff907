"""
Measure the chosen schedule beside other depths: whole runs of programs as users write them.

    python benchmarks/choice.py --out benchmarks/results/choice-h100.json
    python benchmarks/choice.py heat:f64 yee3:f32 --depths 1,2,3
    python benchmarks/choice.py --near 1 --tune 3 --budget 240 --out build/choice.json

A program is a step of `choice_models.py`, or a stencil of `stencils.py`. Kernels are compiled in
parallel; each program runs through the public interface, on arrays in GPU memory, at the chosen
depth and at every depth of a list, or at depths near the chosen one. A run takes about 0.1 s; the
best of three counts. Programs are then tuned, in a limit of time each. Rows are written as they
come.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import fields, replace
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any

from choice_answers import DTYPES, Answer, Question, described_answer, domain_of, rows_of
from choice_arrays import Arrays, rate
from choice_models import MODELS
from measure import commit, predicted
from reports import write_report
from rich.console import Console
from rows import described, parsed, source
from timing import copy_bandwidth
from xdsl.dialects.builtin import ModuleOp

import timetile
from timetile.dialects.tile.schedule import Schedule, ScheduleAttr
from timetile.runtime.cache.store import Cache
from timetile.runtime.device.gpu import Device, device
from timetile.runtime.kernels.loops import loops_of
from timetile.runtime.kernels.machine_code import steady_loop
from timetile.runtime.kernels.measured import schedules_text
from timetile.runtime.kernels.options import run_passes
from timetile.runtime.program.arguments import checked_argument
from timetile.runtime.program.compiled_program import CompiledProgram, Executor
from timetile.runtime.program.tuned_program import tuned

STENCIL_NAMES = (
    *("j2d5pt", "j2d9pt", "j2d9pt-gol", "j2d25pt", "gradient2d", "star2d3r", "box2d3r"),
    *("j3d7pt", "j3d13pt", "j3d17pt", "j3d27pt", "poisson", "star3d4r", "wave1", "wave4"),
)
"""The stencils of the tables of performance."""

DEPTHS = {2: (4, 6, 8, 10, 12, 14), 3: (1, 2, 3, 4, 5, 6)}
"""The depths tried, by the number of axes."""

FEW_DEPTHS = (1, 2, 3, 5)
"""The depths tried for a step that writes several fields."""

USUAL = {each.name: getattr(Schedule(), each.name) for each in fields(Schedule)}
"""The entries of a schedule, with their usual values."""

RESULTS = Path(__file__).parent / "results"


@cache
def module_of(name: str, element: str) -> ModuleOp | str:
    """The stencil program of a question."""
    if name in MODELS:
        return MODELS[name].step.module(domain_of(name), DTYPES[element])
    return source(name, domain_of(name), element)[0]


def compiled(
    question: Question, cached: Cache, arch: str | None = None, executor: Executor = "gpu"
) -> CompiledProgram:
    """
    The program of a question, for fields with equal halos. The executor `planes` makes a GPU's
    kernels without the GPU, for a given target.
    """
    compile_with = partial(
        timetile.compile,
        executor=executor, arch=arch, depth=question.depth, halos="common", cache=cached,
    )  # fmt: skip
    made = compile_with(module_of(question.program, question.element))
    if not question.changes:
        return made
    module = made.kernels.source.clone()
    run_passes(made.kernels.options.tile_passes()[:2], module)
    entries = (entry.split("=") for entry in question.changes.split(";"))
    changes = {key: parsed(value, USUAL.get(key, 0)) for key, value in entries}
    for loop in loops_of(module):
        loop.schedule = ScheduleAttr(replace(loop.decisions, **changes))
    return compile_with(module)


def nearby(chosen: Answer, near: int) -> list[Question]:
    """The depths near a chosen one; none of a depth that was asked for."""
    question = chosen.question
    if chosen.error or question.depth is not None:
        return []
    away = (step for far in range(1, near + 1) for step in (-far, far))
    depths = (chosen.depth + step for step in away)
    return [replace(question, depth=depth) for depth in depths if depth > 0]


def compiled_in_groups(
    asked: Iterable[Sequence[Question]], near: int, pool: ProcessPoolExecutor, folder: Path
) -> Iterator[list[Answer]]:
    """
    Answers to the questions of each group, and about depths near a chosen one, as groups come:
    all choices are begun before depths near them.
    """

    def begin(question: Question) -> Future[Answer]:
        return pool.submit(answered, question, folder)

    groups = {begin(question): group for group in map(list, asked) for question in group}
    answers: dict[int, list[Answer]] = {id(group): [] for group in groups.values()}
    left = {id(group): len(group) for group in groups.values()}
    while groups:
        done, _ = wait(groups, return_when=FIRST_COMPLETED)
        for each in done:
            group = groups.pop(each)
            answer, key = each.result(), id(group)
            answers[key].append(answer)
            more = nearby(answer, near)
            groups |= {begin(question): group for question in more}
            left[key] += len(more) - 1
            if not left[key]:
                yield answers.pop(key)


def answered(question: Question, folder: Path) -> Answer:
    """Put the kernels of a question into the cache."""
    try:
        return made(compiled(question, Cache(folder)), question)
    except Exception as error:
        return Answer(question, described(error))


def made(program: CompiledProgram, question: Question) -> Answer:
    """Make all kernels of a question's program."""
    answer, began = Answer(question), time.process_time()
    for facts in program.kernels.facts:
        for known in facts:
            program.kernels.kernel(known.name)
    describe(program, answer)
    answer.seconds = round(time.process_time() - began, 2)
    return answer


def describe(program: CompiledProgram, answer: Answer) -> None:
    """Write the facts of the first loop's deepest kernel into an answer."""
    deepest = program.kernels.facts[0][0]
    kernel = program.kernels.kernel(deepest.name)
    answer.depth = deepest.steps
    answer.schedule = str(loops_of(program.kernels.tiled)[0].schedule)
    answer.predicted = round(predicted(program, deepest.name).gcells_per_second, 1)
    answer.registers, answer.spilled_bytes = kernel.registers, kernel.spill_bytes
    steady = None if kernel.cubin is None else steady_loop(kernel.cubin, kernel.arch)
    if steady is not None:
        answer.steady_instructions = steady.instructions
        answer.steady_spill_words = steady.spill_words


def tune(question: Question, gpu: Device, cached: Cache, limit: float, answer: Answer) -> None:
    """
    Tune the program of a question in a limit of time, with a cache of its own, and write the best
    of three runs into its answer, with what tuning measured at other depths.
    """
    program = compiled(question, cached)
    values = Arrays(program, question).values
    checked = [checked_argument(p, a, 0) for p, a in zip(program.parameters, values)]
    record = tuned(program, checked, limit)
    for row in record.rows:
        for schedule in row.chosen:
            if schedule is not None:
                key = f"{schedule.depth}"
                answer.tried[key] = max(answer.tried.get(key, 0.0), round(row.gcells_per_second, 1))
    answer.tuned_schedule = schedules_text(record.best.chosen)
    answer.tuned_gpts = rate(program, question, gpu, program.kernels.facts[0][0].steps)


def depths_of(name: str) -> list[int]:
    """The depths tried for a program: few where a step writes several fields."""
    depths = DEPTHS[len(domain_of(name))]
    several = name in MODELS and len(MODELS[name].step.step.written) > 1
    return list(FEW_DEPTHS if several else depths)


def questions(
    names: Sequence[str], depths: Sequence[int] | None, changes: str
) -> Iterator[Question]:
    """The chosen schedule of each program, and other depths."""
    for text in names:
        name, _, rest = text.partition(":")
        element, *given = rest.split(":")
        for each in (element,) if element else tuple(DTYPES):
            if given:
                own = [(*entry.split("/"), "")[:2] for entry in given]
                yield from (Question(name, each, int(d) or None, more) for d, more in own)
                continue
            yield Question(name, each, None, changes)
            wanted = depths if depths is not None else depths_of(name)
            yield from (Question(name, each, depth, changes) for depth in wanted)


def arguments() -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", nargs="*", help="name[:element[:depth/entries...]]")
    parser.add_argument("--depths", help="depths beside the chosen one: 1,2,4")
    parser.add_argument("--changes", default="", help="entries of all schedules: period=3")
    parser.add_argument("--near", type=int, help="depths so near to the chosen one, and no others")
    parser.add_argument("--tune", type=float, default=0, help="seconds to tune each program, too")
    parser.add_argument("--budget", type=float, default=420, help="no program begins later")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--commit", default=None)
    parser.add_argument("--folder", type=Path, default=Path("build/choice-cache"))
    known = RESULTS / "first-result.json"
    parser.add_argument("--first", type=Path, default=known, help="rows of first_result.py")
    return parser.parse_args()


def first_results(path: Path) -> dict[str, float]:
    """Seconds to a first result on a GPU from an empty cache, by program and type."""
    rows: list[dict[str, Any]] = json.loads(path.read_text())["rows"] if path.exists() else []
    return {
        row["program"]: row["wall_s"]
        for row in rows
        if row["executor"] == "gpu" and "wall_s" in row and not row.get("waits")
    }


class Measuring:
    """Measures answers as kernels come, and writes rows, until the budget is spent."""

    def __init__(self, options: argparse.Namespace):
        self.options, self.gpu = options, device()
        self.began = time.perf_counter()
        self.console = Console(width=200)
        self.answers: list[Answer] = []
        self.first = first_results(options.first)
        with self.gpu.current():
            bandwidth = copy_bandwidth(self.gpu)
        self.about = {
            "commit": options.commit or commit(),
            "device": self.gpu.name,
            "copy_tb_per_s": round(bandwidth, 3),
            "command": shlex.join(["python", "benchmarks/choice.py", *sys.argv[1:]]),
        }

    def do(self, answer: Answer, work: Callable[[], None]) -> None:
        """Do a part of the measuring in the budget, and write the rows so far."""
        if time.perf_counter() - self.began > self.options.budget:
            answer.error = answer.error or "no time left"
        if not answer.error:
            try:
                work()
            except Exception as error:
                answer.error = described(error)
            import_module("cupy").get_default_memory_pool().free_all_blocks()
        line = described_answer(answer)
        self.console.print(line, markup=False, highlight=False, soft_wrap=True)
        if self.options.out is not None:
            write_report(self.options.out, self.about, map(self.whole, rows_of(self.answers)))

    def whole(self, row: dict[str, Any]) -> dict[str, Any]:
        """A row with the seconds to a first result, as far as known, the GPU and the commit."""
        first = self.first.get(f"{row['program']} {row['dtype']}")
        known = {"device": self.gpu.name, "commit": self.about["commit"]}
        return {**row, "first_result_s": first, **known}

    def measure(self, answer: Answer) -> None:
        """Measure the speed of a question's program."""
        self.answers.append(answer)

        def work() -> None:
            program = compiled(answer.question, Cache(self.options.folder))
            answer.gpts_per_s = rate(program, answer.question, self.gpu, answer.depth)

        self.do(answer, work)

    def tune(self, answer: Answer) -> None:
        """Tune a question's program."""
        own, limit = Cache(self.options.folder.with_name("tuned")), self.options.tune
        self.do(answer, lambda: tune(answer.question, self.gpu, own, limit, answer))


def main() -> None:
    options = arguments()
    names = options.programs or [*MODELS, *STENCIL_NAMES]
    depths: list[int] | None = None if options.near is None else []
    if options.depths is not None:
        depths = [int(each) for each in options.depths.split(",") if each]
    asked: dict[object, list[Question]] = {}
    for each in questions(names, depths, options.changes):
        # Depths of a program near the chosen one follow the choice, others wait for nothing.
        key = each if options.near is None else (each.program, each.element)
        asked.setdefault(key, []).append(each)
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        # Processes of the pool begin before the GPU is in use.
        pool.submit(os.getpid).result()
        made = compiled_in_groups(asked.values(), options.near or 0, pool, options.folder)
        ready: SimpleQueue[list[Answer]] = SimpleQueue()

        def compile_beside() -> None:
            for answers in made:
                ready.put(answers)

        Thread(target=compile_beside, daemon=True).start()
        measuring = Measuring(options)
        with measuring.gpu.current():
            for _ in asked:
                for answer in ready.get():
                    measuring.measure(answer)
    if not options.tune:
        return
    # Records of tuning stay apart: the next run measures the default.
    shutil.copytree(options.folder, options.folder.with_name("tuned"), dirs_exist_ok=True)
    with measuring.gpu.current():
        order = {question: k for k, own in enumerate(asked.values()) for question in own}
        chosen = [each for each in measuring.answers if each.question in order]
        for answer in sorted(chosen, key=lambda each: order[each.question]):
            if answer.question.depth is None:
                measuring.tune(answer)


if __name__ == "__main__":
    main()
