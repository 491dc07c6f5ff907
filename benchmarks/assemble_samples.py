"""
The samples for fitting the parameters of registers: assembled kernels, a kernel a line of JSON.

    python benchmarks/assemble_samples.py --processes 2

writes `benchmarks/samples/registers-sm_90.jsonl`; `--steps` asks for steps as users write them.
Every program has some kernels of each kind of tile, near the limit of registers by the model:
fitting ones, and spilling ones. No GPU is needed. The first line names the architecture, the
assembler, the date and the commands. A sample has the numbers read by the model's function of
registers, and answers of the assembler: registers and spilled bytes of the kernel as compiled, and
the fewest registers without spills of the code inside the bounds, found by assembling the code for
several numbers of registers.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from hashlib import sha256
from itertools import chain, product, zip_longest
from pathlib import Path
from typing import Any

from choice_models import MODELS
from families import PREFIX, step_programs
from measure import commit
from register_samples import NEVER, RegisterSample, commands_of, read_register_samples, write
from rows import parse_row, source
from samples import SAMPLES, entries_of
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp

from timetile.dialects.tile.kinds import Form
from timetile.dialects.tile.schedule import Schedule, ScheduleAttr
from timetile.frontend.field_types import DType
from timetile.lowering.ptx.module import kernels_of, print_module
from timetile.passes.cells.simplify_cells import FpDivision
from timetile.passes.cost.register_facts import RegisterFacts, register_facts
from timetile.passes.cost.registers import registers
from timetile.passes.cost.setting import Setting
from timetile.passes.scheduling.candidates import Candidate, Trials
from timetile.passes.scheduling.schedule_space import schedules
from timetile.passes.scheduling.trial_kernels import TrialKernels
from timetile.passes.targets.isa import ISAS, Isa
from timetile.passes.targets.target import target_named
from timetile.runtime.kernels.assembler import assemble, assembler_version
from timetile.runtime.kernels.loops import loops_of
from timetile.runtime.kernels.of_program import ProgramKernels, raise_program
from timetile.runtime.kernels.options import Options, run_passes
from timetile.runtime.loading.modules import load

PLATES = (
    *("j2d5pt", "j2d9pt", "j2d9pt-gol", "j2d9pt-gol-columns", "j2d25pt", "star2d3r", "star2d4r"),
    *("box2d3r", "box2d4r", "gradient2d", "gradient2d-fast", "wave1", "wave2"),
)
CUBES = (
    *("j3d7pt", "j3d13pt", "j3d17pt", "j3d27pt", "poisson", "star3d3r", "star3d4r", "box3d2r"),
    *("layers", "wave4"),
)
SMALL = ("j2d5pt", "j2d9pt-gol")
"""The programs, by the number of axes; small plates have resident tiles."""

PROGRAMS = (
    *(f"{name}:{element}:8192x8192" for name in PLATES for element in ("f64", "f32")),
    *(f"{name}:{element}:512x512x512" for name in CUBES for element in ("f64", "f32")),
    *(f"{name}:{element}:512x512" for name in SMALL for element in ("f64", "f32")),
    "j2d9pt-gol:f32:8191x8191",
    "j2d5pt:f64:8191x8191",
    "j1d3pt:f64:10240000",
    *step_programs("8192x8192", "512x512x512"),
)
"""Rows of an odd number of cells have narrow accesses. Steps as users write them come last."""

LEAST, MOST = 0.5, 1.3
"""Predicted registers of the chosen kernels, as shares of the registers available to a thread."""

CONSIDERED = 80
"""Schedules of a program, the sources of kernels."""

PAIRED = 2
"""Kernels with sums of a program that has other kernels, too."""

FROM = 24
"""The fewest registers for an assembly of a kernel."""


@dataclass(frozen=True)
class Question:
    """A program under a schedule."""

    program: str
    """In the notation of `benchmarks/measure.py`: `j2d5pt:f64:8352x8352`."""
    depth: int
    schedule: Schedule

    @property
    def options(self) -> Options:
        """How the program is compiled."""
        division: FpDivision = "fast" if "-fast" in self.program else "exact"
        return Options(depth=self.depth, halos="common", fp_division=division)

    @property
    def kind(self) -> tuple[Any, ...]:
        """The common property of kernels with similar registers."""
        s = self.schedule
        if s.tile != "block" or s.resident:
            return s.tile, s.form, s.resident
        return s.tile, s.form, s.sync, s.cells[-1]

    @property
    def place(self) -> bytes:
        """The place among questions, in no order."""
        return place(repr(self))

    @property
    def name(self) -> str:
        """The question in a line, in the sample's words."""
        return name_of(self.program, self.depth, entries_of(self.schedule))


def place(text: str) -> bytes:
    """The place in an order that depends on nothing but the text."""
    return sha256(text.encode()).digest()


def name_of(program: str, depth: int, entries: Mapping[str, Any]) -> str:
    """A program under a schedule, in a line."""
    return json.dumps([program, depth, entries], sort_keys=True)


APART = 0.25
"""The least share of a kernel's operations in each of two branches for tiles."""


@cache
def raised(program: str, options: Options) -> ModuleOp:
    """A program at temporal level."""
    name, element, domain, *_ = parse_row(program)
    if name.startswith(PREFIX):
        dtype: DType = "float64" if element == "f64" else "float32"
        step = MODELS[name.removeprefix(PREFIX)].step
        return raise_program(step.module(domain, dtype), options)
    return raise_program(load(source(name, domain, element)[0]), options)


def near_the_limit(candidate: Candidate, isa: Isa) -> bool:
    """The predicted registers are near the available ones."""
    threads = candidate.schedule.layout().threads * candidate.schedule.occupancy
    most = isa.registers_for(threads)
    return LEAST * most <= candidate.cost.registers <= MOST * most


def questions(program: str, arch: str, most: int) -> Iterator[Question]:
    """Kernels of a program, `most` of all kinds alike, and pairs of kernels with sums."""
    asked = Question(program, 1, Schedule())
    module = raised(program, replace(asked.options, depth=None))
    (loop,) = loops_of(module)
    trials = Trials(loop, module, target_named(arch), may_spill=True)
    tried = sorted(schedules(loop, trials.target), key=lambda each: place(repr(each)))
    found = trials.compared(None, tried[:CONSIDERED]).found
    near = [candidate for candidate in found if near_the_limit(candidate, trials.target.isa)]
    kinds: dict[tuple[Any, ...], list[Question]] = defaultdict(list)
    for candidate in near:
        question = Question(program, candidate.depth, candidate.schedule)
        kinds[question.kind].append(question)
    ordered = [sorted(kind, key=lambda question: question.place) for kind in kinds.values()]
    ordered.sort(key=lambda kind: kind[0].place)
    turns = chain.from_iterable(zip_longest(*ordered))
    chosen = [question for question in turns if question is not None][:most]
    yield from dict.fromkeys((*chosen, *pairs(program, near)))


def pairs(program: str, found: Sequence[Candidate]) -> Iterator[Question]:
    """
    Strips of sums in all ways of going on in the next column, and of taking two turns of the loop.
    """
    strips = [c for c in found if c.schedule.form is Form.ROWS and len(c.schedule.cells) == 1]
    periods = list(dict.fromkeys(c.schedule.period for c in strips))
    asked = [Question(program, c.depth, replace(c.schedule, period=None)) for c in strips]
    for question in sorted(dict.fromkeys(asked), key=lambda q: q.place)[:PAIRED]:
        for alone, period in product((False, True), periods):
            schedule = replace(question.schedule, columns_alone=alone, period=period)
            yield replace(question, schedule=schedule)


def kernel_threads(question: Question) -> ModuleOp:
    """The deepest kernel of a question, as the code of a thread."""
    module = raised(question.program, replace(question.options, depth=None)).clone()
    for loop in loops_of(module):
        loop.schedule = ScheduleAttr(question.schedule)
    kernels = ProgramKernels(module, question.options, None)
    lowered = kernels.kernel_module(kernels.facts[0][0].name)
    kernels.run(kernels.options.thread_passes(), lowered, verify=False)
    return lowered


def without_guards(threads: ModuleOp) -> bool:
    """Leave a kernel only the code of tiles inside the bounds; False if all tiles have guards."""
    sizes = {
        op: min(sum(1 for _ in region.walk()) for region in op.regions)
        for op in threads.walk()
        if isinstance(op, scf.IfOp)
    }
    largest = max(sizes, key=lambda op: sizes[op], default=None)
    if largest is None or sizes[largest] < APART * sum(1 for _ in threads.walk()):
        return False
    for op in reversed(list(largest.false_region.block.ops)):
        if not isinstance(op, scf.YieldOp):
            op.detach()
            op.erase(safe_erase=False)
    return True


def printed(question: Question, threads: ModuleOp) -> str:
    """The PTX of a kernel."""
    run_passes(question.options.hardware_passes(), threads, verify=False)
    target = question.options.target
    return print_module(kernels_of(threads), target.isa.ptx_version, target.name)


def spills_at(ptx: str, arch: str, registers: int) -> bool:
    """Whether the assembler spills with a given number of registers of a thread."""
    limited = re.sub(r"\.minnctapersm \d+", f".maxnreg {registers}", ptx)
    return assemble(limited, arch).spill_bytes > 0


def fewest(spills: Callable[[int], bool], isa: Isa, guess: int) -> int:
    """
    The fewest registers without spills, in units of the instruction set, found from a guess on;
    `NEVER` if the most registers of a thread are too few.
    """
    unit, most = isa.register_unit, isa.registers_per_thread
    numbers = [*range(FROM, most, unit), most]
    low, high, step = 0, len(numbers), 1
    place = min(bisect_left(numbers, guess), high - 1)
    while low < high:
        # # Numbers below `low` spill; numbers from `high` on do not.
        if spills(numbers[place]):
            low, place = place + 1, place + step
        else:
            high, place = place, place - step
        step *= 2
        if not low <= place < high:
            place = (low + high) // 2
    return numbers[low] if low < len(numbers) else NEVER


def answered(question: Question) -> RegisterSample | str:
    """The sample of a question, or the reason for its absence."""
    try:
        return sample_of(question)
    except Exception as error:
        return f"{question.program} {question.depth} {question.schedule}: {error}"


def facts_of_question(question: Question) -> RegisterFacts | None:
    """The numbers read by the model; None without a kernel."""
    module = raised(question.program, replace(question.options, depth=None))
    (loop,) = loops_of(module)
    facts = TrialKernels(loop, module).facts(question.depth, question.schedule)
    return None if facts is None else register_facts(facts, Setting.of(question.schedule))


def sample_of(question: Question) -> RegisterSample:
    """The sample of a question."""
    facts, isa = facts_of_question(question), question.options.target.isa
    if facts is None:
        raise ValueError("the program has no such kernel")
    threads = kernel_threads(question)
    inner = threads.clone()
    ptx = printed(question, threads)
    assembled = assemble(ptx, isa.name)
    apart = without_guards(inner)
    if apart:
        ptx = printed(question, inner)
    guess = registers(facts, question.options.target.parameters.registers)
    return RegisterSample(
        commit()[:10],
        question.program,
        question.depth,
        entries_of(question.schedule),
        facts,
        assembled.registers,
        assembled.spill_bytes,
        apart,
        fewest(lambda most: spills_at(ptx, isa.name, most), isa, guess),
    )


def assembled_samples(
    every: Sequence[Question], pool: ProcessPoolExecutor
) -> Iterator[RegisterSample]:
    """The samples of questions, in order."""
    for number, answer in enumerate(pool.map(answered, every), 1):
        print(f"{number} of {len(every)}", file=sys.stderr, flush=True)
        if isinstance(answer, str):
            print(answer, file=sys.stderr, flush=True)
        else:
            yield answer


def list_of_questions(asked: tuple[str, str, int]) -> list[Question]:
    """The questions of a program, for another process."""
    return list(questions(*asked))


def header(arch: str, before: Sequence[str]) -> dict[str, Any]:
    """The facts of a file of samples, after the commands `before`."""
    command = " ".join(["python", "benchmarks/assemble_samples.py", *sys.argv[1:]])
    return {
        "arch": arch,
        "assembler": f"nvJitLink {assembler_version()}",
        "date": date.today().isoformat(),
        "commands": [*before, command],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", nargs="*", default=PROGRAMS, help="stencil:dtype:domain")
    parser.add_argument("--arch", choices=tuple(ISAS), default="sm_90")
    parser.add_argument("--most", type=int, default=4, help="kernels of a program")
    parser.add_argument("--kernels", type=int, help="kernels of all programs, of all kinds")
    parser.add_argument("--more", action="store_true", help="keep the samples that there are")
    parser.add_argument("--steps", action="store_true", help="steps as users write them alone")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--out", type=Path, help="another file")
    options = parser.parse_args()
    path = options.out or SAMPLES / f"registers-{options.arch}.jsonl"
    found = read_register_samples(path.name) if options.more else []
    before = commands_of(path.name) if options.more else []
    known = {name_of(sample.program, sample.depth, sample.schedule) for sample in found}
    first = header(options.arch, before)
    with ProcessPoolExecutor(options.processes) as pool:
        chosen = [p for p in options.programs if p.startswith(PREFIX) or not options.steps]
        wanted = [(program, options.arch, options.most) for program in chosen]
        every = sorted(
            chain.from_iterable(pool.map(list_of_questions, wanted)), key=lambda q: q.place
        )
        asked = [question for question in every[: options.kernels] if question.name not in known]
        for sample in assembled_samples(asked, pool):
            found.append(sample)
            write(path, first, found)


if __name__ == "__main__":
    main()
