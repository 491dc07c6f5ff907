"""
Random pairs of `fuzz.py`, compiled and evaluated without a GPU, and judged on one: a short time of
a GPU judges what many processors have prepared.

    CUDA_VISIBLE_DEVICES= python test/fuzz_ahead.py prepare FOLDER --processes 10 --seconds 100
    python test/fuzz_ahead.py judge FOLDER --processes 15 --seconds 60 --out fuzz.json

The folder gets the pairs, with fields as evaluated, and a file for each fault that is found;
kernels, of an H200, go to the cache.
"""

from __future__ import annotations

import argparse
import pickle
import sys
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

import fuzz
import pytest

import timetile
from support.fake_core import driver_in_place
from support.no_gpu import NoGpu
from support.pairs import Pair, batch
from timetile.frontend.model import Model

Known = tuple[int, Pair, Mapping[str, Any] | None]
"""A pair, the number of its batch, and its fields after a run; None where a GPU evaluates them."""

PAIRS = 5
"""Pairs of a batch."""

LIMIT = 25.0
"""Seconds of a pair at most."""


@contextmanager
def kept_kernels() -> Generator[None]:
    """Kernels are of an H200, and kept in the cache."""

    def kept(made: Callable[..., Any]) -> Callable[..., Any]:
        def make(*given: Any, **options: Any) -> Any:
            chosen = {"arch": "h200"} if options.get("executor") == "gpu" else {}
            return made(*given, **{**options, **chosen, "cache": True})

        return make

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(timetile, "compile", kept(timetile.compile))
        patch.setattr(Model, "on", kept(Model.on))
        yield


def fields_of(pair: Pair) -> Mapping[str, Any] | None:
    """The fields after a run, evaluated without a GPU; None for a GPU's own functions."""
    text = fuzz.text_of(pair)
    if fuzz.LIBRARY.search(text):
        return None
    with pair.schedules(), pair.thresholds():
        return dict(fuzz.expected(pair, text, "gpu"))


def prepare(folder: Path, place: int, options: argparse.Namespace) -> None:
    """Prepare batches until the time is over: a file for each batch."""
    fuzz.quiet()
    driver, number = NoGpu(), options.seed + place
    with kept_kernels(), driver_in_place(driver):
        while time.time() < options.end:
            rows: list[Known] = []
            for pair in batch(number, PAIRS):
                driver.differ = not pair.common
                # Nothing runs: no fields are compared.
                if fuzz.judged(pair, "gpu", LIMIT, {}).kind == "equal":
                    rows.append((number, pair, fields_of(pair)))
            (folder / f"{number}.part").write_bytes(pickle.dumps(rows))
            (folder / f"{number}.part").rename(folder / f"{number}.pairs")
            number += options.processes


def pairs_of(folder: Path, place: int, options: argparse.Namespace) -> Iterator[Known]:
    """The prepared pairs of a process."""
    for path in sorted(folder.glob("*.pairs"))[place :: options.processes]:
        yield from pickle.loads(path.read_bytes())


def judge(folder: Path, place: int, options: argparse.Namespace) -> None:
    """Judge pairs until the time is over."""
    fuzz.quiet()
    ends: list[tuple[str, fuzz.Outcome]] = []
    with kept_kernels():
        for number, pair, known in pairs_of(folder, place, options):
            if time.time() > options.end:
                break
            outcome = fuzz.judged(pair, "gpu", LIMIT, known)
            outcome.where += f"\nbatch {number}: {pair}"
            ends.append((pair.family, outcome))
    (folder / f"{place}.ends").write_bytes(pickle.dumps(ends))


def main() -> int:
    parser = argparse.ArgumentParser(description="Prepare random pairs, or judge prepared ones.")
    parser.add_argument("what", choices=("prepare", "judge"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=0, help="the number of the first batch")
    parser.add_argument("--processes", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--out", type=Path, help="where the counts go, as JSON")
    options = parser.parse_args()
    options.executor, start = "gpu", time.time()
    options.end = start + options.seconds
    options.folder.mkdir(parents=True, exist_ok=True)
    work = prepare if options.what == "prepare" else judge
    places = range(options.processes)
    made = [SpawnProcess(target=work, args=(options.folder, place, options)) for place in places]
    for each in made:
        each.start()
    for each in made:
        each.join()
    counts = fuzz.Counts()
    for path in options.folder.glob("*.ends"):
        for family, outcome in pickle.loads(path.read_bytes()):
            fuzz.count(counts, family, outcome, options.folder)
    if work is judge:
        print(fuzz.write_counts(options, counts, time.time() - start))
    return 1 if counts.found else 0


if __name__ == "__main__":
    sys.exit(main())
