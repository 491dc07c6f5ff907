"""
Measure all rows of `choice.py` at one commit, in one go: the chosen schedule, the depths beside the
chosen one, and the schedule found by tuning.

    CUDA_VISIBLE_DEVICES=0 taskset -c 0-15 python benchmarks/choice_rows.py --share 0 2
    CUDA_VISIBLE_DEVICES=1 taskset -c 16-31 python benchmarks/choice_rows.py --share 1 2

Programs are the steps of `choice_models.py`, real steps of `real_steps.py`, examples, and stencils
of the tables. A share of the programs has a GPU and cores of its own. Processes compile: the chosen
kernels of all programs first, then kernels of a step more and a step less, then the best schedules
of different kinds, as `timetile tune` would. The calling process measures ready kernels: the best
of three runs of a depth, then `Tuning`, with the bits of all schedules compared. Rows are written
after each measurement.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import choice
from check_python import EXAMPLES
from choice import STENCIL_NAMES, Arrays, Measuring, answered, compiled, rate
from choice_answers import Answer, Question
from choice_models import MODELS, UserModel
from real_steps import PROGRAMS

from timetile.runtime.cache.store import Cache
from timetile.runtime.kernels.measured import (
    ChosenSchedules,
    best_first,
    schedules_text,
    written_schedules,
)
from timetile.runtime.kernels.program_titles import updates_of_step
from timetile.runtime.kernels.tuning import Tuning, considered, replaced
from timetile.runtime.kernels.workers import launched
from timetile.runtime.program.arguments import checked_argument
from timetile.runtime.program.compiled_program import CompiledProgram
from timetile.runtime.program.tuned_program import GpuBench

REAL = ("acoustic_2d_so4", "acoustic_3d_so8", "wave_3d_so4", "vardiff_3d_so4", "elastic_3d_so4")
"""Real steps, as of Devito's operators, in FP32."""

TABLE_F32 = ("j2d5pt", "j2d9pt", "gradient2d", "star2d3r", "box2d3r", "j3d7pt", "j3d27pt")
"""Stencils of the tables in FP32; all are measured in FP64."""

SECONDS = 0.05
"""The least time of a timed run."""

KINDS = 3
"""Schedules of different kinds made for tuning, beside the chosen one."""

LIMIT = 4.0
"""Seconds of tuning a program."""


def add_programs() -> list[str]:
    """Add real steps and examples to the models: their names."""
    sys.path.insert(0, str(EXAMPLES))
    names: list[str] = [*REAL]
    for name in REAL:
        MODELS[name] = UserModel(PROGRAMS[name])
    for name in ("fdtd", "gray_scott", "lattice_boltzmann", "shallow_water", "burgers"):
        example = import_module(name)
        names.append(f"examples/{name}")
        MODELS[names[-1]] = UserModel(getattr(example, name), dict(example.NUMBERS))
    return names


def all_questions() -> list[Question]:
    """The programs, each with a type first."""
    own, more = list(MODELS), add_programs()
    named = [(name, "f64") for name in own] + [(name, "f32") for name in more]
    named += [(name, "f64") for name in STENCIL_NAMES] + [(name, "f32") for name in own]
    named += [(name, "f32") for name in TABLE_F32]
    return [Question(name, element) for name, element in named]


def made_for_tuning(question: Question, folder: Path) -> list[ChosenSchedules]:
    """Compile the chosen schedule and others, as given ones: all schedules, the chosen first."""
    kernels = compiled(question, Cache(folder)).kernels
    default = written_schedules(kernels.tiled)
    given = [default]
    for number, found in enumerate(kernels.model_choices):
        if found is not None:
            others = (replaced(default, number, each) for each in considered(found))
            given += [each for each in others if each not in given][:KINDS]
    for each in given:
        own = kernels.with_schedules(each)
        for name in launched(own):
            own.kernel(name)
    return given


def tune(measuring: Measuring, answer: Answer, given: list[ChosenSchedules]) -> None:
    """Measure schedules of a program with `Tuning`, and the best one like other rows."""
    question, gpu = answer.question, measuring.gpu
    program = compiled(question, Cache(measuring.options.folder))
    kernels, values = program.kernels, Arrays(program, question).values
    checked = [checked_argument(p, a, 0) for p, a in zip(program.parameters, values)]
    default, *others = given
    with GpuBench(program, checked).open() as bench:
        tuning = Tuning(kernels, bench, updates_of_step(kernels), LIMIT)
        tuning.end = tuning.clock() + LIMIT
        first = kernels.with_schedules(default)
        tuning.measure(first, first, default)
        tuning.measure_all(first, others)
    best = best_first(tuning.rows)[0].chosen
    for row in tuning.rows:
        for each in row.chosen:
            if each is not None:
                known = answer.tried.get(str(each.depth), 0.0)
                answer.tried[str(each.depth)] = max(known, round(row.gcells_per_second, 1))
    answer.tuned_schedule, answer.tuned_gpts = schedules_text(best), answer.gpts_per_s
    if best != default:
        own = kernels.with_schedules(best)
        other = CompiledProgram(kernels.source, own, "gpu", 0)
        found = rate(other, question, gpu, own.facts[0][0].steps)
        answer.tuned_gpts = max(found, answer.gpts_per_s)
    program.close()


Found = tuple[Answer, list[ChosenSchedules] | None]
"""An answer with compiled kernels, or schedules for tuning."""


def made(pool: ProcessPoolExecutor, questions: list[Question], folder: Path) -> Iterator[Found]:
    """Answers with compiled kernels as they come, then schedules for tuning, by the answer."""
    waiting = {pool.submit(answered, question, folder) for question in questions}
    tuning: dict[Future[list[ChosenSchedules]], Answer] = {}
    while waiting or tuning:
        both: list[Future[Any]] = [*waiting, *tuning]
        wait(both, return_when=FIRST_COMPLETED)
        for each in [future for future in waiting if future.done()]:
            waiting.remove(each)
            answer = each.result()
            yield answer, None
            if answer.question.depth is None and not answer.error:
                for depth in (answer.depth - 1, answer.depth + 1):
                    if depth > 0:
                        near = replace(answer.question, depth=depth)
                        waiting.add(pool.submit(answered, near, folder))
                tuning[pool.submit(made_for_tuning, answer.question, folder)] = answer
        for other in [future for future in tuning if future.done()]:
            answer = tuning.pop(other)
            if other.exception() is None:
                yield answer, other.result()


def arguments() -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--share", type=int, nargs=2, default=(0, 1), help="K N: the K-th of N")
    parser.add_argument("--only", nargs="*", help="names of programs")
    parser.add_argument("--most", type=int, help="so many rows, the first ones")
    parser.add_argument("--budget", type=float, default=140, help="no measurement begins later")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--commit", default=None)
    parser.add_argument("--folder", type=Path, default=Path("build/choice-rows"))
    parser.add_argument("--first", type=Path, default=choice.RESULTS / "first-result.json")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    began, choice.SECONDS = time.perf_counter(), SECONDS
    share, shares = options.share
    asked = [q for q in all_questions() if not options.only or q.program in options.only]
    questions, later = (
        asked[: options.most][share::shares],
        list[tuple[Answer, list[ChosenSchedules]]](),
    )
    with ProcessPoolExecutor(max(1, len(os.sched_getaffinity(0)) - 1)) as pool:
        # Processes of the pool begin before the GPU is in use.
        pool.submit(os.getpid).result()
        folder = options.folder.with_name(f"{options.folder.name}-{share}")
        options.folder = folder
        measuring = Measuring(options)
        with measuring.gpu.current():
            for answer, given in made(pool, questions, folder):
                if given is None:
                    measuring.measure(answer)
                elif answer.gpts_per_s:
                    later.append((answer, given))
                if time.perf_counter() - began > options.budget:
                    break
            for answer, given in later:
                measuring.do(answer, partial(tune, measuring, answer, given))
        pool.shutdown(wait=False, cancel_futures=True)
    measuring.console.print(f"{time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
