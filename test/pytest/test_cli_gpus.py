"""The option --gpus of the command line, and its refusals."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.command_line import error_of
from support.driver import BookKeeper
from timetile.runtime.cli import compiled

pytestmark = pytest.mark.usefixtures("own_cache")


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
