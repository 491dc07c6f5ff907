"""
The command line writes snapshots, continues from a snapshot, and prints how to continue an
interrupted run.
"""

from __future__ import annotations

import os
import shlex
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timetile
from support.command_line import K, error_of, expected_after, inputs, outputs, run
from support.stops import NO_LOOP, PROGRAMS, arguments_of, copied
from timetile.runtime.cli import long_runs
from timetile.runtime.cli.snapshots import snapshot_path

pytestmark = [pytest.mark.usefixtures("cache_of_file"), pytest.mark.usefixtures("chosen_among_few")]


# The command line.


def snapshots_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("run-*.npz"))


def test_snapshots_are_written_beside_the_output(
    heat: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    out = tmp_path / "run.npz"
    line = f"run {heat} --args {inputs(tmp_path)} --set k={K} --executor cpu --out {out}"
    assert run(f"{line} --steps 10 --snapshot-every 4") == 0
    said = capsys.readouterr().out.splitlines()
    assert snapshots_in(tmp_path) == ["run-04.npz", "run-08.npz", "run-10.npz"]
    assert said[:3] == [f"wrote {tmp_path / name}" for name in snapshots_in(tmp_path)]
    assert "@heat on cpu: 10 steps" in said[3]
    assert said[4] == "the last time level is in arg0 (%u)"
    found = outputs(out)
    for name, expected in zip(("arg0", "arg1"), expected_after(10), strict=True):
        assert np.array_equal(found[name], expected)
    kept = outputs(tmp_path / "run-04.npz")
    assert sorted(kept) == ["arg0", "arg1", "arg2", "timetile.step"]
    assert kept["timetile.step"] == 4 and kept["arg2"] == K


def kept_in(path: Path) -> dict[str, Any]:
    """The arrays of a kept file."""
    if path.suffix == ".h5":
        with pytest.importorskip("h5py").File(path) as file:
            return {name: file[name][:] for name in file}
    group: Any = pytest.importorskip("zarr").open_group(str(path), mode="r")
    return {name: group[name][:] for name in group}


@pytest.mark.parametrize("name", ["run.zarr", "run.h5"])
@pytest.mark.parametrize("executor", ["cpu", "planes"])
def test_a_kept_file_has_the_last_level_of_all_snapshots(
    name: str, executor: str, heat: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    path, out = tmp_path / name, tmp_path / "run.npz"
    options = f"--executor {executor} --keep {path}"
    line = f"run {heat} --args {inputs(tmp_path)} --set k={K} {options}"
    assert run(f"{line} --steps 5 --snapshot-every 3 --out {out}") == 0
    said = capsys.readouterr().out.splitlines()
    assert said[:2] == [f"wrote step 3 to {path}", f"wrote {tmp_path / 'run-3.npz'}"]
    going_on = f"run {heat} --args {tmp_path / 'run-5.npz'} {options}"
    assert run(f"{going_on} --steps 4 --snapshot-every 3") == 0
    found = kept_in(path)
    assert list(found["step"]) == [3, 5, 8, 9] and set(found) == {"step", "u"}
    for step, cells in zip(found["step"], found["u"], strict=True):
        assert np.array_equal(cells, expected_after(int(step))[int(step) % 2])


def test_an_interrupted_run_leaves_a_readable_file(
    heat: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    path = tmp_path / "run.h5"
    line = f"run {heat} --args {inputs(tmp_path)} --set k={K} --executor cpu --keep {path}"
    with monkeypatch.context() as patched:
        Interrupt(3, press_ctrl_c).install(patched)
        assert run(f"{line} --steps 10 --snapshot-every 3") == 130
    assert capsys.readouterr().err.splitlines()[-1] == (
        f"timetile: interrupted; {path} has snapshots to step 6 of 10; runs with --out OUT.npz can "
        "go on"
    )
    assert list(kept_in(path)["step"]) == [3, 6]


def test_wrong_uses_of_keep_are_refused(
    heat: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    path = tmp_path / "run.zarr"
    line = f"run {heat} --args {inputs(tmp_path)} --set k={K} --executor cpu --steps 2"
    assert error_of(f"{line} --keep {path}", capsys) == (
        f"--keep adds fields to {path} after some of --steps; give --snapshot-every K"
    )
    path.mkdir()
    assert error_of(f"{line} --snapshot-every 1 --keep {path}", capsys) == (
        f"{path} exists; remove it, name another file with --keep, or go on from a snapshot of the "
        "run with --args or --first-step"
    )
    away = tmp_path / "away" / "run.h5"
    assert error_of(f"{line} --snapshot-every 1 --keep {away}", capsys) == (
        f"cannot open {away}: its folder is missing; make the folder, or name another path"
    )


@pytest.mark.parametrize("every", [3, 4])
def test_a_run_goes_on_from_a_snapshot(every: int, heat: Path, tmp_path: Path):
    """After an odd number of steps, too, when the buffers have changed places."""
    out = tmp_path / "run.npz"
    line = f"run {heat} --args {inputs(tmp_path)} --set k={K} --executor cpu --out {out} --steps"
    assert run(f"{line} {every} --snapshot-every {every}") == 0
    snapshot = tmp_path / f"run-{every}.npz"
    rest = (
        f"run {heat} --args {snapshot} --executor cpu --out {out} --steps {9 - every} "
        f"--snapshot-every 9"
    )
    assert run(rest) == 0
    level = outputs(tmp_path / "run-9.npz")["arg0"]
    assert np.array_equal(level, expected_after(9)[1])
    assert outputs(tmp_path / "run-9.npz")["timetile.step"] == 9


def test_a_run_from_a_snapshot_reads_the_source_at_the_old_place(tmp_path: Path):
    """The program reads a series at the number of the step."""
    path = tmp_path / "driven.mlir"
    path.write_text(PROGRAMS["driven_at_a_point"])
    program = timetile.compile(path, executor="cpu", cache=False)
    given = arguments_of(program)
    np.savez(tmp_path / "in.npz", *given[:4])
    out = tmp_path / "run.npz"
    line = f"run {path} --executor cpu --out {out}"
    assert run(f"{line} --args {tmp_path / 'in.npz'} --steps 4 --snapshot-every 4") == 0
    assert run(f"{line} --args {tmp_path / 'run-4.npz'} --steps 3") == 0
    expected = program.advance(given, 7)
    for position, array in enumerate(expected[:4]):
        # The second run began with buffers in their places.
        assert any(np.array_equal(array, found) for found in outputs(out).values()), position


class Interrupt:
    """Interrupts a run in one of the pieces."""

    def __init__(self, piece: int, act: Callable[[], None]):
        self.left, self.act = piece, act

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        piece = long_runs.SnapshotRun.piece

        def interrupted(*arguments: Any) -> None:
            self.left -= 1
            if self.left == 0:
                self.act()
            piece(*arguments)

        monkeypatch.setattr(long_runs.SnapshotRun, "piece", interrupted)


def press_ctrl_c() -> None:
    raise KeyboardInterrupt


def ask_to_end() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


@pytest.mark.parametrize(("act", "status"), [(press_ctrl_c, 130), (ask_to_end, 143)])
def test_an_interrupted_run_says_how_it_goes_on(
    act: Callable[[], None],
    status: int,
    heat: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    handler = signal.getsignal(signal.SIGTERM)
    out = tmp_path / "run.npz"
    line = f"run {heat} --args {inputs(tmp_path)} --set k={K} --executor cpu --out {out}"
    with monkeypatch.context() as patched:
        Interrupt(3, act).install(patched)
        assert run(f"{line} --steps 10 --snapshot-every 3 --fp-contract off") == status
    assert signal.getsignal(signal.SIGTERM) is handler
    assert snapshots_in(tmp_path) == ["run-03.npz", "run-06.npz"] and not out.exists()
    said = capsys.readouterr().err
    last = tmp_path / "run-06.npz"
    command = (
        f"timetile run {heat} --args {last} --steps 4 --snapshot-every 3 --out {out} --fp-contract "
        "off --executor cpu"
    )
    assert said.splitlines()[-1] == (
        f"timetile: interrupted; {last} has the fields after step 6 of 10; go on with: {command}"
    )
    assert run(shlex.join(shlex.split(command)[1:])) == 0
    assert np.array_equal(outputs(tmp_path / "run-10.npz")["arg0"], expected_after(10)[0])


def test_a_run_interrupted_before_the_first_snapshot_reports_no_snapshot(
    heat: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    Interrupt(1, press_ctrl_c).install(monkeypatch)
    out = tmp_path / "run.npz"
    line = f"run {heat} --random 1 --set k={K} --executor cpu --out {out} --steps 4"
    assert run(f"{line} --snapshot-every 2") == 130
    assert capsys.readouterr().err == (
        "timetile: interrupted before the first snapshot of steps 0 to 4; nothing was written\n"
    )


def test_an_interrupted_run_without_snapshots_reports_lost_fields(
    heat: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def interrupted(*arguments: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("timetile.runtime.cli.run.execute", interrupted)
    assert run(f"run {heat} --random 1 --set k={K} --executor cpu --steps 4") == 130
    assert capsys.readouterr().err == (
        "timetile: interrupted, and nothing was written; with --out OUT.npz --snapshot-every K a "
        "run keeps its fields\n"
    )


def test_the_upper_bound_of_a_loop_of_the_host_is_a_number_of_steps(tmp_path: Path):
    path = tmp_path / "driven.mlir"
    path.write_text(PROGRAMS["driven"])
    program = timetile.compile(path, executor="cpu", cache=False)
    given = arguments_of(program)[:2]
    once, again = copied(given), copied(given)
    program(*once, steps=5)
    program(*again, 5)
    assert all(map(np.array_equal, once, again))
    assert program.parameters[2].is_steps
    assert run(f"run {path} --random 1 --executor cpu --steps 5 --quiet") == 0


def test_blow_ups_are_said_with_their_steps(
    heat: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    line = (
        f"run {heat} --random 1 --set k=1e60 --executor cpu --out {tmp_path / 'run.npz'} --steps 9"
    )
    assert run(f"{line} --snapshot-every 3") == 0
    (warning,) = [text for text in capsys.readouterr().err.splitlines() if "NaN" in text]
    assert "between steps 3 and 6, and none at the start" in warning


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            "--steps 4 --snapshot-every 2",
            "--snapshot-every writes beside the file of --out, or to the file of --keep, after "
            "some of --steps; give --steps N, and --out OUT.npz or --keep RUN.zarr",
        ),
        (
            "--steps 4 --snapshot-every 0",
            "argument --snapshot-every: 0 is not a number of 1 or more; see timetile run --help",
        ),
        (
            "--set steps=4 --first-step 2",
            "--first-step begins at step 2; say how many steps follow with --steps N",
        ),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    options: str, sentence: str, heat: Path, capsys: pytest.CaptureFixture[str]
):
    assert error_of(f"run {heat} --random 1 --set k=1 {options}", capsys) == sentence


def test_a_step_that_is_no_number_is_refused(
    heat: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    path = tmp_path / "in.npz"
    entries: dict[str, Any] = {"timetile.step": np.float64(1.5)}
    np.savez(path, **entries)
    line = f"run {heat} --random 1 --set k=1 --steps 1 --args {path}"
    assert error_of(line, capsys) == (
        f"{path} has timetile.step 1.5, and a step is numbered 0 or more; give a snapshot"
    )


def test_a_program_without_stops_is_refused_before_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    path = tmp_path / "copied.mlir"
    path.write_text(PROGRAMS["copied"])
    line = f"run {path} --random 1 --steps 4 --snapshot-every 2 --out {tmp_path / 'run.npz'}"
    assert error_of(line, capsys).endswith(NO_LOOP)
    assert snapshots_in(tmp_path) == []


def test_names_of_snapshots_are_in_order():
    names = [snapshot_path(Path("a/run.npz"), step, 1000).name for step in (9, 90, 1000)]
    assert names == ["run-0009.npz", "run-0090.npz", "run-1000.npz"] == sorted(names)


def test_quiet_runs_say_nothing(heat: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    line = (
        f"run {heat} --random 1 --set k={K} --executor cpu --out {tmp_path / 'run.npz'} --steps 4"
    )
    assert run(f"{line} --snapshot-every 2 --check --quiet") == 0
    assert capsys.readouterr() == ("", "")


def test_progress_in_a_pipe_is_plain_text(
    heat: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr("timetile.runtime.cli.terminal.SECONDS_BETWEEN_LINES", 0.0)
    line = (
        f"run {heat} --random 1 --set k={K} --executor cpu --out {tmp_path / 'run.npz'} --steps 4"
    )
    assert run(f"{line} --snapshot-every 2 --progress") == 0
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "running on cpu: 2 of 4" and said[-1] == "running on cpu: 4 of 4"
    assert run(f"{line} --snapshot-every 2 --no-progress") == 0
    assert capsys.readouterr().err == ""
