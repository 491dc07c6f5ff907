"""The nightly command draws the same pairs of a number every time, and tells how each ends."""

from __future__ import annotations

import importlib.util
import json
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from support import reference
from support.pairs import FAMILIES, batch
from timetile.passes.diagnostics import CompileError
from timetile.runtime.program.compiled_program import Executor


@pytest.fixture
def fuzz() -> ModuleType:
    """The command, as a module."""
    path = Path(__file__).parents[1] / "fuzz.py"
    spec = importlib.util.spec_from_file_location("fuzz", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["fuzz"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("number", range(len(FAMILIES)))
def test_batches_are_the_same_every_time(number: int, fuzz: ModuleType):
    first, second = batch(number, 5), batch(number, 5)
    assert len(first) == 5
    assert [pair.family for pair in first] == [FAMILIES[number]] * 5
    assert [fuzz.text_of(pair) for pair in first] == [fuzz.text_of(pair) for pair in second]
    assert [pair.schedule for pair in first] == [pair.schedule for pair in second]


@pytest.mark.usefixtures("chosen_among_few")
@pytest.mark.covering(every=2)
@pytest.mark.parametrize(("executor", "count"), [("planes", 3), ("ptx", 1)])
@pytest.mark.parametrize("number", range(len(FAMILIES)))
def test_pairs_end_equal_or_refused(number: int, executor: Executor, count: int, fuzz: ModuleType):
    ends = {outcome.kind for _, outcome in fuzz.judge_batch(number, count, executor, 120)}
    assert "equal" in ends and ends <= {"equal", "refused"}


def failing(error: BaseException) -> Any:
    def run(*_: object) -> None:
        raise error

    return run


@pytest.mark.parametrize(
    ("error", "kind", "said"),
    [
        (CompileError("temporal.loop in @run (<program>:4): 3 are too many"), "refused", "3 are "
            "too many"),
        (CompileError("the IR is wrong after cse: no"), "internal", "after cse"),
        (KeyError("negf"), "traceback", "negf"),
    ],
)  # fmt: skip
def test_errors_are_told_apart(
    error: BaseException, kind: str, said: str, fuzz: ModuleType, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(fuzz, "run", failing(error))
    outcome = fuzz.judged(batch(0, 1)[0], "planes", 60)
    assert outcome.kind == kind
    assert said in outcome.said


# An alarm that rings while an object is deleted or garbage is collected is lost, and comes again.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_wrong_bits_and_lost_time_are_found(fuzz: ModuleType, monkeypatch: pytest.MonkeyPatch):
    pair = next(p for p in batch(0, 20) if p.steps and p.contract == "off")
    run, slow = reference.run, fuzz.run

    def run_wrongly(program: Any, inputs: Any, steps: int) -> dict[str, str]:
        names = run(program, inputs, steps)
        next(iter(inputs.arrays.values())).flat[0] += 1
        return names

    monkeypatch.setattr(fuzz.reference, "run", run_wrongly)
    outcome = fuzz.judged(pair, "planes", 60)
    assert outcome.kind == "wrong"
    assert outcome.said.startswith("1 of ")

    def run_for_ever(*arguments: Any) -> Any:
        while True:
            slow(*arguments)

    monkeypatch.setattr(fuzz, "run", run_for_ever)
    assert fuzz.judged(pair, "planes", 0.2).kind == "time-out"


def test_known_fields_are_not_evaluated_again(fuzz: ModuleType, monkeypatch: pytest.MonkeyPatch):
    def run(*_: object) -> dict[str, Any]:
        return {"a": np.zeros(3)}

    monkeypatch.setattr(fuzz, "run", run)
    monkeypatch.setattr(fuzz, "expected", None)
    pair = batch(0, 1)[0]
    ends = {"equal": {"a": np.zeros(3)}, "wrong": {"a": np.ones(3)}}
    for kind, known in ends.items():
        assert fuzz.judged(pair, "planes", 60, known).kind == kind
    assert fuzz.judged(pair, "planes", 60, {}).kind == "equal"


def test_counts_and_wrong_programs_are_written(
    fuzz: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    counts, keep = fuzz.Counts(), tmp_path / "found"
    refused = "temporal.loop in @run (<program>:4): depth 12 is left out"
    fuzz.count(counts, "roles", fuzz.Outcome("refused", refused), keep)
    fuzz.count(counts, "roles", fuzz.Outcome("equal"), keep)
    wrong = fuzz.Outcome("wrong", "3 of 9 cells of a differ", "\nbatch 7", "func.func")
    fuzz.count(counts, "roles", wrong, keep)
    assert (counts.pairs, counts.refused) == (3, {"depth N is left out": 1})
    assert counts.outcomes == {"refused": 1, "equal": 1, "wrong": 1}
    (kept,) = keep.iterdir()
    assert kept.read_text().endswith("// batch 7\n// 3 of 9 cells of a differ\nfunc.func")
    options = fuzz.argparse.Namespace(executor="planes")
    result = json.loads(json.dumps(fuzz.described(options, counts, 1.5)))
    assert result["found"] == {"wrong, roles:  N of N cells of a differ": 1}
    assert {"command", "commit", "machine", "device", "versions", "seconds"} <= result.keys()


def test_an_interrupted_run_does_not_wait_for_its_batches(fuzz: ModuleType):
    pool = ProcessPoolExecutor(1, get_context("spawn"))
    job = pool.submit(time.sleep, 600)
    while not job.running():
        time.sleep(0.01)
    fuzz.end(pool)
    with pytest.raises(BrokenProcessPool):
        job.result()
