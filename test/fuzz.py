"""
Random programs under random schedules, in large numbers: each pair ends with the bits of an
evaluation with NumPy, is refused in one sentence, or is a fault.

    python test/fuzz.py --pairs 20000 --processes 16 --out benchmarks/results/fuzz.json
    python test/fuzz.py --pairs 20000 --processes 1 --executor gpu

Pairs are drawn in batches by the number of a seed; `--seed` is the first number. The folder of
`--keep` gets a file for the first pair of each kind of fault: the message, and the program.
Programs with contracted products and sums, and cells of any operations, are compared with the
executor numpy; other programs with an evaluation without code of timetile. No family needs LLVM;
fields of bfloat16 need the package ml_dtypes, and are else counted as "not judged".
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import logging
import os
import platform
import re
import signal
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent / "pytest"))

import timetile
from support import reference
from support.description import Program, random_inputs
from support.drawn_fields import CannotJudge
from support.drawn_models import How
from support.pairs import FAMILIES, Family, Pair, batch
from support.programs import program_text
from timetile.passes.analysis.cells.cell_operations import FUNCTIONS
from timetile.passes.diagnostics import CompileError
from timetile.runtime.machine.driver import gpu_is_available
from timetile.runtime.program.compiled_program import Executor

SUMMARY = "Run random programs under random schedules, and judge how each ends."

INTERNAL = "the IR is wrong after"
"""The beginnings of refusals without a fault in the program."""

NO_FAULTS = ("equal", "refused", "not judged")
"""The ends of pairs that show no fault."""

EXACT: tuple[Family, ...] = ("sums",)
"""Families whose products and sums are exact, contracted or not."""

CHECKS = "check_"
"""The beginning of the names of functions that refuse arguments."""

WRITTEN_EVERY = 10
"""Seconds between two writes of the counts during a run."""

SHAPE = (14, 70)
"""The shape of fields in programs with any cell operations."""


@dataclass
class Outcome:
    """
    The end of a pair: equal, refused, wrong, internal, traceback, time-out or not judged, and the
    message.
    """

    kind: str
    said: str = ""
    where: str = ""
    text: str = ""


@dataclass
class Counts:
    """How pairs ended."""

    pairs: int = 0
    outcomes: Counter[str] = field(default_factory=Counter[str])
    refused: Counter[str] = field(default_factory=Counter[str])
    families: Counter[str] = field(default_factory=Counter[str])
    found: Counter[str] = field(default_factory=Counter[str])


class TookTooLong(BaseException):
    """A pair's time is over."""


def stop(*_: object) -> None:
    raise TookTooLong


def text_of(pair: Pair) -> str:
    """A pair's program as text."""
    if isinstance(pair.program, str):
        return pair.program
    if not isinstance(pair.program, Program):
        return pair.program.text()
    text = program_text(pair.program)
    if pair.constant:
        text = text.replace("to %steps step", "to %count step").replace(
            "  %one =", f"  %count = arith.constant {pair.steps} : index\n  %one ="
        )
    return text


def fields_of(pair: Pair) -> dict[str, np.ndarray[Any, Any]]:
    """Inputs of a run: arrays by name."""
    if isinstance(pair.program, Program):
        return random_inputs(pair.program, pair.steps, common_halos=pair.common).arrays
    assert isinstance(pair.program, str)
    random = np.random.default_rng(pair.steps)
    results = pair.program.partition("iter_args")[2].partition(")")[0].count("=") // 2
    arrays = [random.uniform(-1, 1, SHAPE) for _ in range(results)]
    return {f"{name}{k}": a.copy() for k, a in enumerate(arrays) for name in "ab"}


def how(pair: Pair, executor: Executor) -> How:
    """How a step in Python runs."""
    places = pair.places() if executor == "gpu" else {}
    return How(executor, pair.depth, pair.steps, pair.contract, places)


def run(pair: Pair, executor: Executor, text: str) -> Mapping[str, np.ndarray[Any, Any]]:
    """The fields after a run."""
    if not isinstance(pair.program, Program | str):
        return pair.program.found(how(pair, executor))
    arrays = fields_of(pair)
    scalars: list[float] = [0.5]
    if isinstance(pair.program, Program):
        values = random_inputs(pair.program, pair.steps).scalars
        scalars = [values[name] for name in pair.program.scalars]
    program = timetile.compile(
        text,
        executor=executor,
        depth=None if pair.schedule else pair.depth,
        passes=pair.schedule.passes(pair.depth, 1) if pair.schedule else None,
        fp_contract=pair.contract,
        halos=pair.halos,
        cache=False,
    )
    with program:
        program(*arrays.values(), *scalars, pair.steps)
    return arrays


LIBRARY = re.compile("|".join(re.escape(op.name) for op in FUNCTIONS))
"""Library functions with a version of the GPU's own, off by a few units in the last place."""


def expected(pair: Pair, text: str, executor: Executor) -> Mapping[str, np.ndarray[Any, Any]]:
    """
    The fields after the unfused program. For a GPU's own functions: the fields after single steps
    on the GPU, equal for kernels of all schedules.
    """
    if not isinstance(pair.program, Program | str):
        if pair.contract == "fast" and pair.family not in EXACT:
            return pair.program.found(how(pair, "numpy"))
        return pair.program.expected(how(pair, executor))
    if executor == "gpu" and LIBRARY.search(text):
        return run(replace(pair, depth=1, schedule=None, halos="apart"), "gpu", text)
    if pair.contract == "fast" or isinstance(pair.program, str):
        return run(pair, "numpy", text)
    inputs = random_inputs(pair.program, pair.steps, common_halos=pair.common)
    reference.run(pair.program, inputs, pair.steps)
    return inputs.arrays


def differences(
    one: Mapping[str, np.ndarray[Any, Any]], other: Mapping[str, np.ndarray[Any, Any]]
) -> Iterator[str]:
    """The differing bits; all NaNs count as equal."""
    for name, a in one.items():
        b = other[name]
        if (a.shape, a.dtype) != (b.shape, b.dtype):
            yield f"{name} has {a.dtype} of {a.shape}, not {b.dtype} of {b.shape}"
            continue
        same = (a.view(f"u{a.itemsize}") == b.view(f"u{b.itemsize}")) | (np.isnan(a) & np.isnan(b))
        if not same.all():
            yield f"{np.count_nonzero(~same)} of {same.size} cells of {name} differ"


def judged(
    pair: Pair, executor: Executor, seconds: float, known: Mapping[str, Any] | None = None
) -> Outcome:
    """
    The end of a pair, within a time limit in seconds. `known`: the fields to end with; none where
    nothing runs.
    """
    text = text_of(pair)
    signal.signal(signal.SIGALRM, stop)
    # A first alarm may be lost: Python ignores what is raised while an object is deleted.
    signal.setitimer(signal.ITIMER_REAL, seconds, 5)
    try:
        with pair.schedules(), pair.thresholds():
            found = run(pair, executor, text)
        right = expected(pair, text, executor) if known is None else known
        wrong = list(differences(found, right)) if right else []
    except CannotJudge as error:
        return Outcome("not judged", str(error))
    except TookTooLong:
        return Outcome("time-out", f"over {seconds} s", text=text)
    except CompileError as error:
        said = str(error)
        return Outcome("internal" if INTERNAL in said else "refused", said, text=text)
    except Exception as error:
        if is_refusal(error):
            return Outcome("refused", str(error), text=text)
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{type(error).__name__} in {Path(place.filename).name}:{place.name}"
        return Outcome("traceback", str(error), where, text)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return Outcome("wrong", "; ".join(wrong), text=text) if wrong else Outcome("equal")


def is_refusal(error: BaseException) -> bool:
    """Whether an error is of a check of what a user has given."""
    if not isinstance(error, TypeError | ValueError):
        return False
    return traceback.extract_tb(error.__traceback__)[-1].name.startswith(CHECKS)


def reason(said: str) -> str:
    """A refusal without names, places and numbers."""
    shown = re.sub(r"\S*/(\w+\.py)", r"\1", re.sub(r"\d+", "N", said))
    return re.sub(r"^\S+ in @\S+( \([^)]*\))?: ", "", shown)[:160]


def quiet() -> None:
    """
    A process of the fuzzer prints no remarks, as remarks are no outcome, prints its stack if it
    crashes, and leaves interruptions to the first process.
    """
    faulthandler.enable()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.getLogger("timetile").setLevel(logging.ERROR)


def judge_batch(
    number: int,
    count: int,
    executor: Executor,
    seconds: int,
    families: Sequence[Family] = FAMILIES,
) -> list[tuple[str, Outcome]]:
    """How the pairs of a batch end."""
    results: list[tuple[str, Outcome]] = []
    for k, pair in enumerate(batch(number, count, families)):
        outcome = judged(pair, executor, seconds)
        if outcome.kind not in NO_FAULTS:
            drawn = (
                f"batch {number}, pair {k}: {pair.family}, {pair.schedule}, depth {pair.depth}, "
                f"{pair.steps} steps, "
            )
            drawn += f"contraction {pair.contract}, halos {pair.halos}, common {pair.common}, "
            drawn += f"choice {pair.choice}, parts {pair.sites}, exchanged every {pair.every}"
            outcome.where = f"{outcome.where}\n{drawn}"
        else:
            outcome.text = ""
        results.append((pair.family, outcome))
    return results


def count(counts: Counts, family: str, outcome: Outcome, keep: Path | None) -> None:
    """Count an outcome, and keep the first pair of each kind."""
    counts.pairs += 1
    counts.outcomes[outcome.kind] += 1
    counts.families[f"{family}: {outcome.kind}"] += 1
    if outcome.kind in ("refused", "not judged"):
        counts.refused[reason(outcome.said)] += 1
    if outcome.kind in NO_FAULTS:
        return
    key = f"{outcome.kind}, {family}: {outcome.where.partition(chr(10))[0]} {reason(outcome.said)}"
    counts.found[key] += 1
    if keep is not None and counts.found[key] <= 3:
        keep.mkdir(parents=True, exist_ok=True)
        comment = "".join(
            f"// {line}\n" for line in [key, *outcome.where.splitlines(), outcome.said]
        )
        path = keep / f"{outcome.kind}-{sum(counts.found.values())}.mlir"
        path.write_text(comment + outcome.text)


def described(options: argparse.Namespace, counts: Counts, seconds: float) -> dict[str, Any]:
    """The written result: settings and counts."""
    device = "none" if options.executor != "gpu" else timetile_device()
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()
    names = ("xdsl", "numpy", "hypothesis")
    return {
        "command": " ".join(["python", *sys.argv]),
        "commit": commit,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "device": device,
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in names},
        },
        "seconds": round(seconds),
        "pairs": counts.pairs,
        "outcomes": dict(counts.outcomes),
        "families": dict(sorted(counts.families.items())),
        "refused": dict(counts.refused),
        "found": dict(counts.found),
    }


def write_counts(options: argparse.Namespace, counts: Counts, seconds: float) -> dict[str, Any]:
    """The result so far, also in the file of `--out`, which is replaced as a whole."""
    result = described(options, counts, seconds)
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        part = options.out.with_suffix(".part")
        part.write_text(json.dumps(result, indent=1) + "\n")
        part.replace(options.out)
    return result


def timetile_device() -> str:
    from timetile.runtime.device.gpu import device

    return device(0).name


def end(pool: ProcessPoolExecutor) -> None:
    """End the processes of a pool, with their batches."""
    for process in active_children():
        process.terminate()
    pool.shutdown(wait=False, cancel_futures=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=SUMMARY)
    parser.add_argument("--pairs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0, help="the number of the first batch")
    parser.add_argument("--batch", type=int, default=20, help="pairs of a batch")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=int, default=60, help="of a pair at most")
    parser.add_argument(
        "--executor", choices=("planes", "simt", "ptx", "gpu", "cpu"), default="planes"
    )
    parser.add_argument(
        "--families", nargs="+", choices=FAMILIES, default=FAMILIES, help="of programs (all)"
    )
    parser.add_argument("--out", type=Path, help="where the counts go, as JSON")
    parser.add_argument("--keep", type=Path, help="a folder for what is found")
    options = parser.parse_args()
    if options.executor == "gpu" and not gpu_is_available():
        parser.error("no GPU answers")
    counts, start = Counts(), time.perf_counter()
    numbers = range(options.seed, options.seed + -(-options.pairs // options.batch))
    pool = ProcessPoolExecutor(options.processes, get_context("spawn"), initializer=quiet)
    how_judged = (options.batch, options.executor, options.seconds, options.families)
    jobs = {pool.submit(judge_batch, n, *how_judged): n for n in numbers}
    written = start
    try:
        for job in as_completed(jobs):
            for family, outcome in job.result():
                count(counts, family, outcome, options.keep)
            print(f"\r{counts.pairs} {dict(counts.outcomes)}", end="", file=sys.stderr, flush=True)
            # A run that is cut off keeps the counts of some seconds before.
            if time.perf_counter() - written > WRITTEN_EVERY:
                written = time.perf_counter()
                write_counts(options, counts, written - start)
    except BrokenProcessPool:
        # The batches in hand are the first that have not ended: one of them ended its process.
        left = [n for job, n in jobs.items() if not job.done() or job.exception() is not None]
        counts.found[f"death, in a batch of {left[: options.processes]}"] += 1
    except KeyboardInterrupt:
        # Pairs judged before an interruption count.
        print(" stopped", file=sys.stderr)
    end(pool)
    result = write_counts(options, counts, time.perf_counter() - start)
    print()
    print(json.dumps(result, indent=1), flush=True)
    return int(bool(counts.found))


if __name__ == "__main__":
    # A pool whose processes were ended may wait for them for ever at a usual exit.
    os._exit(main())
