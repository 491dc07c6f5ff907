"""
Measure long runs with trials of other schedules, beside runs of the model's choice.

    python benchmarks/trial_runs.py wave2:f32 heat:f32 --out benchmarks/results/trials-h200.json
    python benchmarks/trial_runs.py wave2:f32 --seconds 12 --runs 2

Programs are named as for `choice.py`, and run on arrays in GPU memory. Two programs make equal runs
of some seconds each, one with trials, and the row says whether both end with equal bits. Between
the runs, the process with the rivals may end. A further program, compiled anew, finds the record in
the cache. Rows are written one by one.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from choice import Arrays, answered, compiled, rate
from choice_answers import Question, domain_of
from measure import commit
from reports import write_report
from rows import described

from timetile.runtime.cache.store import Cache
from timetile.runtime.device.gpu import Device, device
from timetile.runtime.kernels.choosing_process import wait_for_schedules
from timetile.runtime.kernels.measured import Measured, records, schedules_text
from timetile.runtime.kernels.rivals import TRIALS
from timetile.runtime.program.compiled_program import CompiledProgram


class Runs:
    """Runs of a program, one after the other on the same arrays."""

    def __init__(self, program: CompiledProgram, question: Question, gpu: Device, *, tries: bool):
        self.program, self.question, self.gpu, self.tries = program, question, gpu, tries
        self.values = Arrays(program, question).values

    def seconds(self, steps: int) -> float:
        """The seconds of a further run."""
        os.environ[TRIALS] = str(int(self.tries))
        self.gpu.synchronize(0)
        start = time.perf_counter()
        self.values = list(self.program(*self.values, steps=steps).buffers)
        self.gpu.synchronize(0)
        os.environ[TRIALS] = "0"
        return time.perf_counter() - start


def same_bits_of(one: Runs, other: Runs) -> bool:
    """Whether the arrays of both runs are equal, bit for bit."""
    cupy: Any = import_module("cupy")
    pairs = zip(one.values, other.values)
    return all(bool((a == b).all()) for a, b in pairs if isinstance(a, cupy.ndarray))


def rows_of_record(record: Measured) -> list[tuple[float, str]]:
    """Speeds and schedules of a record."""
    return [(round(r.gcells_per_second, 1), schedules_text(r.chosen)) for r in record.rows]


def measured(question: Question, options: argparse.Namespace, gpu: Device) -> dict[str, Any]:
    """A row."""
    cached = Cache(options.folder / f"{question.program}-{question.element}")
    cells = 1
    for extent in domain_of(question.program):
        cells *= extent
    default = compiled(question, cached)
    depth = default.kernels.facts[0][0].steps
    row: dict[str, Any] = {"program": question.program, "element": question.element}
    row["default_gcells"] = rate(default, question, gpu, depth)
    steps = int(options.seconds * row["default_gcells"] * 1e9 / cells)
    plain = Runs(default, question, gpu, tries=False)
    trial = Runs(compiled(question, cached), question, gpu, tries=True)
    # The first steps load kernels.
    for each in (plain, trial):
        each.tries = False
        each.seconds(steps // 16)
    trial.tries = True
    row["steps"] = steps
    row["default_s"] = [round(plain.seconds(steps), 3) for _ in range(options.runs)]
    tried: list[float] = []
    waited: list[float] = []
    for _ in range(options.runs):
        tried.append(trial.seconds(steps))
        start = time.perf_counter()
        wait_for_schedules()
        waited.append(round(time.perf_counter() - start, 2))
    row |= {"trial_s": [round(each, 3) for each in tried], "waited_s": waited}
    row["gcells_of_runs"] = [round(cells * steps / each / 1e9, 1) for each in tried]
    row["equal_bits"] = same_bits_of(plain, trial)
    found = next(iter(records(cached)), None)
    row["record"] = None if found is None else rows_of_record(found)
    later = compiled(question, cached)
    row["later_depth"] = later.kernels.facts[0][0].steps
    row["later_gcells"] = rate(later, question, gpu, row["later_depth"])
    for each in (default, trial.program):
        each.close()
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("programs", nargs="+", help="name:element")
    parser.add_argument("--seconds", type=float, default=2.0, help="of a run")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--folder", type=Path, default=Path("build/trials-cache"))
    options = parser.parse_args()
    os.environ[TRIALS] = "0"
    asked = [Question(*each.split(":")[:2]) for each in options.programs]
    work = [partial(answered, q, options.folder / f"{q.program}-{q.element}") for q in asked]
    with ProcessPoolExecutor() as pool:
        waiting = [pool.submit(each) for each in work]
        gpu = device()
        about = {"device": gpu.name, "commit": commit(), "command": shlex.join(sys.argv)}
        rows: list[dict[str, Any]] = []
        for question, begun in zip(asked, waiting):
            try:
                begun.result()
                with gpu.current():
                    rows.append(measured(question, options, gpu))
            except Exception as error:
                rows.append({"program": question.program, "error": described(error)})
            import_module("cupy").get_default_memory_pool().free_all_blocks()
            print(rows[-1], flush=True)
            if options.out is not None:
                write_report(options.out, about, rows)


if __name__ == "__main__":
    main()
