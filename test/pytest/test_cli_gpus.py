"""The option --gpus of the command line, and its refusals."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.command_line import error_of
from support.driver import BookKeeper
from timetile.runtime.cli import compiled, main

pytestmark = pytest.mark.usefixtures("own_cache", "chosen_among_few")


def test_missing_gpus_are_refused(
    heat: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(compiled, "gpu_is_available", lambda: False)
    assert error_of(f"run {heat} --gpus 2", capsys) == (
        "no GPU can be used, timetile doctor says why; run with --executor cpu"
    )


def test_more_gpus_than_the_driver_knows_are_refused(
    heat: Path,
    driver: BookKeeper,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    monkeypatch.setattr(compiled, "gpu_is_available", lambda: True)
    assert driver.gpus == 2
    assert error_of(f"run {heat} --gpus 3", capsys) == (
        "--gpus 3 cannot be opened: there is no GPU 2, the driver numbers them from 0 to 1"
    )


def test_one_gpu_and_several_are_refused(heat: Path, capsys: pytest.CaptureFixture[str]):
    assert error_of(f"run {heat} --gpus 2 --device 1", capsys) == (
        "--device names one GPU, and --gpus several; leave out one of both"
    )


def test_explain_tells_what_exchanges_cost(heat: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["explain", str(heat), "--gpus", "2", "--parts", "1x2"]) == 0
    said = capsys.readouterr().out
    assert "On 2 GPUs of a host, predicted\n  parts         1 x 2\n" in said
    rows = said[said.index("launches   steps") :].splitlines()[2:]
    costs = [row.split() for row in rows if row[:1].isdigit()]
    chosen, *others = costs
    assert all(float(chosen[-2]) <= 1.01 * float(other[-2]) for other in others)
    assert "stored" not in {row[2] for row in costs}, "kernels store whole planes beside only"
    speed = re.search(r"speed +(\d\.\d\d) times the \d+ GCells/s of one; the domain is too", said)
    assert speed is not None and float(speed[1]) < 1, "few cells are faster on one GPU"


def test_parts_without_gpus_are_refused(heat: Path, capsys: pytest.CaptureFixture[str]):
    assert error_of(f"explain {heat} --parts 1x2", capsys) == (
        "--parts has no effect without --gpus; give --gpus, too"
    )
    assert error_of(f"explain {heat} --gpus 2 --parts 2x2", capsys) == (
        "parts are 2 numbers of 1 or more with the product 2, one part for each rank, got (2, 2)"
    )
