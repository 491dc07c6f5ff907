"""
Measure all rows of `choice.py` at one commit, in one go: the chosen schedule, the depths beside the
chosen one, and schedules of other kinds, as tuning measures them.

    python benchmarks/choice_rows.py --ahead --arch h200
    python benchmarks/choice_rows.py --arch h200 --out benchmarks/results/choice-h200.json
    CUDA_VISIBLE_DEVICES=0 python benchmarks/choice_rows.py --share 0 2 --out 0.json
    CUDA_VISIBLE_DEVICES=1 python benchmarks/choice_rows.py --share 1 2 --out 1.json
    python benchmarks/choice_rows.py --resume 0.json 1.json --most 0 --out choice.json

Programs are listed in `choice_programs.py`. A share of the programs has a GPU and cores of its own.
Processes without a GPU compile for a target (`choice_pool.py`); the calling process measures a
program when all kernels are ready, and writes the row. With `--ahead` kernels are only compiled,
and a call with the same `--folder` and `--arch` then measures what is ready. Each schedule must
leave the bits of the choice; the best of three runs of `SECONDS` counts. Chosen, best and tuned
schedules are measured once more, for longer.

- `default_gpts`: the chosen schedule; `other_depths`: depths one below and above, and the best
  depth of the rows of `--known`, each with the schedule chosen for the depth;
- `tuning`: the model's best schedules of different kinds, more of them with `--only`; `tuned_gpts`:
  the best of these and the choice, `compared` schedules in all;
- `best_gpts`: the best of all.

Rows of `--resume` are kept, and their programs left out: a further call completes a set of rows.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
import time
from collections.abc import Iterable, Iterator
from importlib import import_module
from math import lcm
from pathlib import Path
from typing import Any

from choice import RESULTS, compiled, first_results
from choice_answers import Question, domain_of
from choice_arrays import Arrays, rate
from choice_pool import KINDS, KINDS_OF_FEW, Compiled, Kept, Place, Pool, Ready
from choice_programs import all_questions, in_order_of_cost
from measure import commit
from reports import write_report
from rows import described
from settings import wait_for_choices
from timing import copy_bandwidth

from timetile.passes.diagnostics import CompileError
from timetile.runtime.cache.store import Cache
from timetile.runtime.device.gpu import Device, device
from timetile.runtime.kernels.measured import WORTH_TAKING
from timetile.runtime.kernels.of_program import ProgramKernels
from timetile.runtime.program.arguments import checked_argument
from timetile.runtime.program.compiled_program import CompiledProgram
from timetile.runtime.program.targets import name_of_target, target_of_gpu
from timetile.runtime.program.tuned_program import GpuBench

SECONDS = 0.012
"""The least time of a timed run."""

AGAIN_SECONDS = 0.03
"""The least time of a run of the chosen, the tuned and the best schedule at the end."""

AGREEING = 2
"""Launches of the deepest kernels in a run whose bits are compared."""

Rows = list[dict[str, Any]]


class Program:
    """A program on a GPU, and the speeds of its schedules, in 1e9 cell updates a second."""

    def __init__(self, ready: Ready, gpu: Device, place: Place):
        self.ready, self.gpu = ready, gpu
        self.program = compiled(ready.question, Cache(place.folder), place.arch)
        self.arrays = Arrays(self.program, ready.question).values
        self.known: dict[Compiled, float] = {}
        """Speeds of schedules."""
        self.made: dict[Compiled, ProgramKernels] = {}
        self.wrong: list[str] = []
        """Schedules that left other bits."""

    def kernels_of(self, made: Compiled) -> ProgramKernels:
        """The kernels of a compiled schedule."""
        if made not in self.made:
            self.made[made] = self.program.kernels.with_schedules(made.given)
        return self.made[made]

    def agrees(self, made: Compiled, bench: GpuBench) -> bool:
        """Whether a schedule leaves the bits of the chosen one."""
        chosen, behind = self.ready.chosen, self.ready.behind
        steps = lcm(made.depth, chosen.depth) * AGREEING + behind
        return bench.agree(self.kernels_of(chosen), self.kernels_of(made), steps)

    def measure(self, made: Compiled, seconds: float) -> float:
        """The speed of a schedule."""
        ready, kernels = self.ready, self.kernels_of(made)
        program = CompiledProgram(kernels.source, kernels, "gpu", 0)
        work = ready.question, self.gpu, made.depth, self.arrays, seconds, ready.behind
        return rate(program, *work)

    def measure_other(self, made: Compiled, bench: GpuBench) -> None:
        """Measure a schedule with the bits of the choice."""
        try:
            if self.agrees(made, bench):
                self.known[made] = self.measure(made, SECONDS)
            else:
                self.wrong.append(made.schedule)
        except (CompileError, RuntimeError) as error:
            self.ready.errors.append(f"{made.depth} steps: {described(error)}")

    def measure_all(self) -> None:
        """Measure each schedule once, and the chosen, the tuned and the best one for longer."""
        checked = [checked_argument(p, a, 0) for p, a in zip(self.program.parameters, self.arrays)]
        chosen, others = self.ready.chosen, [*self.ready.near, *self.ready.kinds]
        self.known[chosen] = self.measure(chosen, SECONDS)
        with GpuBench(self.program, checked).open() as bench:
            for made in others:
                if made not in self.known:
                    self.measure_other(made, bench)
        # A short run's speed may be too high: those of longer runs are compared.
        again: set[Compiled] = set()
        for of in (self.all_tuned, [chosen, *others], [chosen]):
            while (made := self.best(of)) not in again:
                self.known[made] = self.measure(made, AGAIN_SECONDS)
                again.add(made)

    @property
    def all_tuned(self) -> list[Compiled]:
        """The choice, and what tuning measures."""
        ready = self.ready
        others = (each for each in (*ready.near, *ready.kinds) if each.given in ready.considered)
        return [ready.chosen, *others]

    def speed(self, made: Compiled) -> float:
        """The best speed of a schedule; 0 without one."""
        return self.known.get(made, 0.0)

    def best(self, all_made: Iterable[Compiled]) -> Compiled:
        """The fastest schedule."""
        return max(all_made, key=self.speed)

    def row(self) -> dict[str, Any]:
        """The row of a measured program."""
        ready, chosen = self.ready, self.ready.chosen
        best = self.best([*self.all_tuned, *ready.near])
        tuned = self.best(self.all_tuned)
        if self.speed(tuned) < WORTH_TAKING * self.speed(chosen):
            tuned = chosen
        question = ready.question
        return {
            "program": question.program,
            "dtype": question.element,
            "domain": list(domain_of(question.program)),
            "default_gpts": self.speed(chosen),
            "default_depth": chosen.depth,
            "best_gpts": self.speed(best),
            "best_depth": best.depth,
            "tuned_gpts": self.speed(tuned),
            "tuned_depth": tuned.depth,
            "tuned_schedule": tuned.schedule,
            "ratio": round(self.speed(chosen) / self.speed(best), 3),
            "tuned_ratio": round(self.speed(tuned) / self.speed(best), 3),
            "compared": len({*self.all_tuned}),
            **chosen.resources,
            "schedule": chosen.schedule,
            "best_schedule": best.schedule,
            "best_spill_words": best.resources.get("steady_spill_words"),
            "other_depths": {str(each.depth): self.speed(each) for each in ready.near},
            "tuning": [[e.depth, e.schedule, self.speed(e)] for e in ready.kinds],
            "other_bits": self.wrong,
            "errors": ready.errors,
        }


def measured_row(ready: Ready, gpu: Device, place: Place) -> dict[str, Any]:
    """The row of a program with compiled kernels."""
    program = Program(ready, gpu, place)
    try:
        program.measure_all()
        return program.row()
    finally:
        program.program.close()
        program.arrays.clear()
        import_module("cupy").get_default_memory_pool().free_all_blocks()


def kept_rows(paths: Iterable[Path]) -> Rows:
    """The rows of earlier results."""
    return [row for path in paths for row in json.loads(path.read_text())["rows"]]


def names_of(rows: Rows) -> set[tuple[str, str]]:
    """The programs and types of rows."""
    return {(row["program"], row["dtype"]) for row in rows}


def arguments() -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--share", type=int, nargs=2, default=(0, 1), help="K N: the K-th of N")
    parser.add_argument("--only", nargs="*", help="programs, name[:element]")
    parser.add_argument("--most", type=int, help="so many rows, the first ones")
    parser.add_argument("--budget", type=float, default=140, help="no row begins later, seconds")
    cores = len(os.sched_getaffinity(0))
    parser.add_argument("--processes", type=int, default=cores - 1, help="that compile")
    parser.add_argument("--resume", type=Path, nargs="*", default=[], help="results to complete")
    parser.add_argument("--ahead", action="store_true", help="compile for --arch, measure nothing")
    parser.add_argument("--arch", help="the target; the GPU's own unless given")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--commit", default=None)
    parser.add_argument("--folder", type=Path, default=Path("build/choice-rows"))
    parser.add_argument("--first", type=Path, default=RESULTS / "first-result.json")
    parser.add_argument("--known", type=Path, default=RESULTS / "choice-h200.json")
    options = parser.parse_args()
    if options.ahead and options.arch is None:
        parser.error("--ahead needs the target of the kernels: give --arch, as h200")
    return options


class Report:
    """The rows of a call, those of earlier calls first."""

    def __init__(self, options: argparse.Namespace):
        self.options, self.began = options, time.perf_counter()
        self.rows = kept_rows(options.resume)
        self.first = first_results(options.first)
        self.about: dict[str, Any] = {
            "commit": options.commit or commit(),
            "command": shlex.join(["python", "benchmarks/choice_rows.py", *sys.argv[1:]]),
        }
        for path in options.resume[:1]:
            known = json.loads(path.read_text())
            self.about |= {key: known[key] for key in ("device", "copy_tb_per_s")}

    @property
    def spent(self) -> float:
        """Seconds since the beginning."""
        return time.perf_counter() - self.began

    def add(self, row: dict[str, Any]) -> None:
        """Add a row, and write all."""
        first = self.first.get(f"{row['program']} {row['dtype']}")
        about = {"device": self.about["device"], "commit": self.about["commit"]}
        self.rows.append({**row, "first_result_s": first, **about})
        print(f"{self.spent:.0f} s", json.dumps(row), flush=True)
        self.write()

    def write(self) -> None:
        """Write all rows."""
        if self.options.out is not None:
            write_report(self.options.out, self.about, self.rows)


def kinds_of(options: argparse.Namespace) -> int:
    """How many schedules of different kinds a row compares."""
    return KINDS_OF_FEW if options.only else KINDS


def names_of_question(question: Question) -> tuple[str, str]:
    """The names by which `--only` asks for a program."""
    return question.program, f"{question.program}:{question.element}"


def asked(options: argparse.Namespace, known: Rows, done: Rows) -> list[Question]:
    """The programs of a share without a row, in the order of `--only` or the cheapest first."""
    only: list[str] = options.only or []
    found = [q for q in all_questions() if not only or {*names_of_question(q)} & {*only}]
    share, shares = options.share
    own = in_order_of_cost(found, known)[share::shares]
    if only:
        own.sort(key=lambda q: min(only.index(n) for n in names_of_question(q) if n in only))
    own = own[: options.most]
    return [each for each in own if (each.program, each.element) not in names_of(done)]


def main() -> None:
    options = arguments()
    wait_for_choices()
    report, known = Report(options), kept_rows([options.known])
    questions = asked(options, known, report.rows)
    if not questions:
        report.write()
        return
    if options.ahead:
        compile_ahead(options, questions, known)
        return
    gpu = device()
    with gpu.current():
        copy = round(copy_bandwidth(gpu), 3)
        arch = options.arch or name_of_target(target_of_gpu(None, 0, Cache(options.folder)))
        report.about |= {"device": gpu.name, "copy_tb_per_s": copy, "target": arch}
        place = Place(options.folder, arch)
        for ready in all_ready(options, questions, known, place):
            if report.spent > options.budget:
                break
            try:
                report.add(measured_row(ready, gpu, place))
            except Exception as error:
                name = f"{ready.question.program} {ready.question.element}"
                print(f"{report.spent:.0f} s {name}: {described(error)}", flush=True)
    print(f"{report.spent:.0f} s")


def compile_ahead(options: argparse.Namespace, questions: list[Question], known: Rows) -> None:
    """Compile programs, and keep them for a call that measures."""
    place, began = Place(options.folder, options.arch), time.perf_counter()
    kept = Kept(place)
    with Pool(options.processes, place, known, kinds_of(options)) as pool:
        pool.begin([each for each in questions if kept.of(each) is None])
        for ready in pool:
            kept.keep(ready)
            spent = time.perf_counter() - began
            print(f"{spent:.0f} s {ready.question.program} {ready.question.element}", flush=True)
            if spent > options.budget:
                break


def all_ready(
    options: argparse.Namespace, questions: list[Question], known: Rows, place: Place
) -> Iterator[Ready]:
    """Compiled programs: those compiled ahead, then others as they are ready."""
    kept = Kept(place)
    ahead = {each: ready for each in questions if (ready := kept.of(each)) is not None}
    with Pool(options.processes, place, known, kinds_of(options)) as pool:
        pool.begin([each for each in questions if each not in ahead])
        yield from ahead.values()
        yield from pool


if __name__ == "__main__":
    main()
