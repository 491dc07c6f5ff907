"""
Measure the chosen schedule beside other depths: whole runs of programs as users write them.

    python benchmarks/choice.py --out benchmarks/results/choice-h100.json
    python benchmarks/choice.py heat:f64 yee3:f32 --depths 1,2,3

A program is a step of `choice_models.py`, or a stencil of `stencils.py`. Kernels are compiled in
parallel first; then each program runs through the public interface, on arrays in GPU memory, at the
chosen depth and at every depth of a list. A run takes about 0.1 s; the best of three counts.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, fields, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from choice_models import MODELS, start
from measure import commit, predicted
from reports import write_report
from rich.console import Console
from rows import described, parsed, source
from timing import copy_bandwidth, events
from xdsl.dialects import stencil
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

import timetile
from timetile.dialects.syntax import element_type, field_type
from timetile.dialects.tile.schedule import Schedule, ScheduleAttr
from timetile.frontend.field_types import DType
from timetile.runtime.cache.store import Cache
from timetile.runtime.device.gpu import Device, device
from timetile.runtime.kernels.loops import loops_of
from timetile.runtime.kernels.machine_code import steady_loop
from timetile.runtime.kernels.options import run_passes
from timetile.runtime.program.compiled_program import CompiledProgram

DTYPES: dict[str, DType] = {"f64": "float64", "f32": "float32"}

PLATE, CUBE = (8192, 8192), (512, 512, 512)
"""The domains by the number of axes."""

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

SECONDS = 0.1
"""The least time of a timed run."""


@dataclass(frozen=True)
class Question:
    """A program under a depth, or the chosen depth for None, with entries of the schedule."""

    program: str
    element: str
    depth: int | None = None
    changes: str = ""
    """Entries of the schedule in place of the chosen: `period=3;cells=6`."""


@dataclass
class Answer:
    """What was compiled: the schedule, the deepest kernel's resources and steady loop."""

    question: Question
    error: str = ""
    depth: int = 0
    schedule: str = ""
    predicted: float = 0.0
    registers: int = 0
    spilled_bytes: int = 0
    steady_instructions: int = 0
    steady_spill_words: int = 0
    seconds: float = 0.0
    gpts_per_s: float = 0.0
    tuned_gpts: float = 0.0
    """Of the chosen schedule's program: the speed after tuning, where asked for."""


def domain_of(name: str) -> tuple[int, ...]:
    """The domain of a program."""
    if name in MODELS:
        return PLATE if MODELS[name].step.step.rank == 2 else CUBE
    return CUBE if name in ("poisson", "wave4") or "3d" in name else PLATE


@cache
def module_of(name: str, element: str) -> ModuleOp | str:
    """The stencil program of a question."""
    if name in MODELS:
        return MODELS[name].step.module(domain_of(name), DTYPES[element])
    return source(name, domain_of(name), element)[0]


def compiled(question: Question, cached: Cache) -> CompiledProgram:
    """The program of a question, for fields with equal halos."""
    program, depth = module_of(question.program, question.element), question.depth
    made = timetile.compile(program, executor="gpu", depth=depth, halos="common", cache=cached)
    if not question.changes:
        return made
    module = made.kernels.source.clone()
    run_passes(made.kernels.options.tile_passes()[:2], module)
    entries = (entry.split("=") for entry in question.changes.split(";"))
    changes = {key: parsed(value, USUAL.get(key, 0)) for key, value in entries}
    for loop in loops_of(module):
        loop.schedule = ScheduleAttr(replace(loop.decisions, **changes))
    return timetile.compile(module, executor="gpu", depth=depth, halos="common", cache=cached)


def answered(question: Question, folder: Path) -> Answer:
    """Put the kernels of a question into the cache."""
    answer = Answer(question)
    began = time.process_time()
    try:
        program = compiled(question, Cache(folder))
        for facts in program.kernels.facts:
            for known in facts:
                program.kernels.kernel(known.name)
        describe(program, answer)
    except Exception as error:
        answer.error = described(error)
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


def is_field(kind: Attribute) -> bool:
    """Whether an argument is a field."""
    return kind.name == stencil.FieldType.name


def takes(function: FuncOp) -> bool:
    """Whether a function has a body, and takes fields."""
    return bool(function.body.blocks) and any(map(is_field, function.body.block.arg_types))


class Arrays:
    """The arguments of a program's function: arrays in GPU memory, and numbers."""

    def __init__(self, program: CompiledProgram, question: Question):
        self.cupy: Any = import_module("cupy")
        (function,) = (op for op in program.module.walk() if isinstance(op, FuncOp) and takes(op))
        numbers = dict(MODELS[question.program].numbers) if question.program in MODELS else {}
        made: dict[str, Any] = {}
        self.values: list[Any] = []
        for argument in function.body.block.args:
            hint = argument.name_hint or ""
            if not is_field(argument.type):
                self.values.append(numbers.get(hint, 1))
                continue
            base = hint.removesuffix("_next").removesuffix("_prev")
            shape = field_type(argument).get_shape()
            dtype = DTYPES[str(element_type(argument))]
            if base not in made or question.program not in MODELS:
                made[base] = self.cupy.asarray(start(base, shape, dtype))
            self.values.append(made[base].copy())


def rate(program: CompiledProgram, question: Question, gpu: Device, depth: int) -> float:
    """The best of three runs, in 1e9 cell updates per second."""
    values = Arrays(program, question).values
    cells = 1
    for extent in domain_of(question.program):
        cells *= extent

    def run(steps: int) -> None:
        program(*values, steps=steps)

    steps = 2 * depth
    run(steps)
    spent = min(events(gpu, lambda: run(steps), 2))
    steps = depth * max(2, int(SECONDS * 1e3 / max(spent, 1e-3) * 2))
    best = min(events(gpu, lambda: run(steps), 3))
    program.close()
    return round(cells * steps / best / 1e6, 1)


def tuned_rate(question: Question, gpu: Device, cached: Cache) -> float:
    """The best of three runs of a program after tuning, with a cache of its own."""
    program = compiled(question, cached)
    # The first run tunes.
    program.tunes = True
    steps = 2 * program.kernels.facts[0][0].steps
    program(*Arrays(program, question).values, steps=steps)
    return rate(program, question, gpu, program.kernels.facts[0][0].steps)


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


def rows_of(answers: Sequence[Answer]) -> Iterator[dict[str, Any]]:
    """A row for each program and type: the chosen schedule beside the best depth measured."""
    programs: dict[tuple[str, str], list[Answer]] = {}
    for answer in answers:
        if answer.gpts_per_s:
            question = answer.question
            programs.setdefault((question.program, question.element), []).append(answer)
    for (name, element), measured in programs.items():
        chosen = next((each for each in measured if each.question.depth is None), None)
        if chosen is None:
            continue
        best = max(measured, key=lambda each: each.gpts_per_s)
        yield {
            "program": name,
            "dtype": element,
            "domain": list(domain_of(name)),
            "default_gpts": chosen.gpts_per_s,
            "default_depth": chosen.depth,
            "best_gpts": best.gpts_per_s,
            "best_depth": best.depth,
            "tuned_gpts": chosen.tuned_gpts or None,
            "ratio": round(chosen.gpts_per_s / best.gpts_per_s, 3),
            "predicted": chosen.predicted,
            "registers": chosen.registers,
            "spilled_bytes": chosen.spilled_bytes,
            "compile_cpu_s": chosen.seconds,
            "schedule": chosen.schedule,
            "other_depths": {str(each.depth): each.gpts_per_s for each in measured},
        }


def arguments() -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", nargs="*", help="name[:element[:depth/entries...]]")
    parser.add_argument("--depths", help="depths beside the chosen one: 1,2,4")
    parser.add_argument("--changes", default="", help="entries of all schedules: period=3")
    parser.add_argument("--tune", action="store_true", help="tune each program, too")
    parser.add_argument("--seconds", type=float, default=420, help="no program begins later")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--commit", default=None)
    parser.add_argument("--folder", type=Path, default=Path("build/choice-cache"))
    return parser.parse_args()


def main() -> None:
    options = arguments()
    began = time.perf_counter()
    names = options.programs or [*MODELS, *STENCIL_NAMES]
    depths = None
    if options.depths is not None:
        depths = [int(each) for each in options.depths.split(",") if each]
    every = list(questions(names, depths, options.changes))
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        answers = list(pool.map(answered, every, [options.folder] * len(every)))
    console = Console(width=200)
    console.print(f"compiled in {time.perf_counter() - began:.0f} s")
    gpu = device()
    with gpu.current():
        bandwidth = copy_bandwidth(gpu)
        for answer in answers:
            if answer.error or time.perf_counter() - began > options.seconds:
                console.print(answer.question, answer.error or "no time left")
                continue
            try:
                program = compiled(answer.question, Cache(options.folder))
                answer.gpts_per_s = rate(program, answer.question, gpu, answer.depth)
                if options.tune and answer.question.depth is None:
                    own = Cache(options.folder / "tuned")
                    answer.tuned_gpts = tuned_rate(answer.question, gpu, own)
            except Exception as error:
                answer.error = described(error)
            import_module("cupy").get_default_memory_pool().free_all_blocks()
            q = answer.question
            console.print(
                f"{q.program} {q.element} {q.depth or '-'} {q.changes} d{answer.depth} "
                f"{answer.gpts_per_s} tuned {answer.tuned_gpts} pred {answer.predicted} "
                f"r{answer.registers} s{answer.spilled_bytes} loop {answer.steady_instructions}/"
                f"{answer.steady_spill_words} {answer.error}",
                markup=False,
                highlight=False,
                soft_wrap=True,
            )
    about = {
        "commit": options.commit or commit(),
        "device": gpu.name,
        "copy_tb_per_s": round(bandwidth, 3),
        "command": "python benchmarks/choice.py",
    }
    if options.out is not None:
        write_report(options.out, about, rows_of(answers))


if __name__ == "__main__":
    main()
