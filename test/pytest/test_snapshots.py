"""Runs that stop between steps: the bits are those of one run, interrupted ones say how they go on, others are refused."""

from __future__ import annotations

import os
import re
import shlex
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timetile
from support.command_line import HEAT, K, error_of, expected_after, fields, inputs, outputs, run
from timetile import CompileError, Field, Scalar
from timetile.runtime.cli import long_runs
from timetile.runtime.cli.snapshots import snapshot_path
from timetile.runtime.program.compiled_program import CompiledProgram, Executor

pytestmark = pytest.mark.usefixtures("own_cache")

PAGE = (Path(__file__).parents[2] / "docs" / "programs.md").read_text()
PROGRAMS = {
    re.findall(r"func\.func @(\w+)", text)[0]: text
    for text in re.findall(r"^```mlir\n(.*?)^```", PAGE, re.M | re.S)
}
IN_PIECES = (
    "heat", "chained", "regions", "in_place", "damped", "buffers", "driven", "driven_at_a_point",
    "filtered",
)  # fmt: skip
"""Time loops of kernels and of the host: with sources, with conditions, with the number of the step."""

NO_LOOP = "it has no time loop, and a run stops between the steps of one; call the program once for each step"


def arguments_of(program: CompiledProgram) -> list[Any]:
    """Fields of random numbers, the same halos in all, and a number of steps that is not the run's."""
    random = np.random.default_rng(4)
    made: list[Any] = []
    for parameter in program.parameters:
        if parameter.bounds is None:
            made.append(7)
            continue
        shape = [high - low for low, high in zip(parameter.bounds.lb, parameter.bounds.ub)]
        cells = np.zeros(shape)
        inside = tuple(slice(1, -1) for _ in shape)
        cells[inside] = random.random(cells[inside].shape)
        made.append(cells)
    return made


def copied(values: list[Any]) -> list[Any]:
    return [value.copy() if np.ndim(value) else value for value in values]


# Programs.


@pytest.mark.parametrize("executor", ["cpu", "planes"])
@pytest.mark.parametrize("name", IN_PIECES)
def test_stops_leave_the_bits_of_one_run(name: str, executor: Executor):
    program = timetile.compile(PROGRAMS[name], executor=executor, cache=False, depth=2)
    given = arguments_of(program)
    once, parts = copied(given), copied(given)
    expected = program.advance(once, 7)
    found: Sequence[Any] = ()
    steps: list[int] = []
    for step, found in program.snapshots(parts, steps=7, every=3):
        steps.append(step)
        so_far = copied(given)
        for left, right in zip(program.advance(so_far, step), found, strict=True):
            assert np.array_equal(left, right)
    assert steps == [3, 6, 7]
    assert all(map(np.array_equal, once, parts))
    assert all(map(np.array_equal, expected, found))


def test_going_on_by_hand_needs_the_number_of_the_step():
    program = timetile.compile(PROGRAMS["driven_at_a_point"], executor="cpu", cache=False)
    given = arguments_of(program)
    once, parts, wrong = copied(given), copied(given), copied(given)
    program.advance(once, 7)
    program.advance(program.advance(parts, 4), 3, first_step=4)
    program.advance(program.advance(wrong, 4), 3)
    assert all(map(np.array_equal, once, parts))
    assert not all(map(np.array_equal, once, wrong))


TWO_LOOPS = HEAT.replace(
    "  func.return",
    HEAT[HEAT.index("  %r:2") : HEAT.index("  func.return")].replace("%r", "%s").replace("%t ", "%i ")
    + "  func.return",
).replace("%s1", "%sum1").replace("%s2", "%sum2")  # fmt: skip

IN_A_LOOP = (
    PROGRAMS["driven"]
    .replace("%n: index)", "%n: index, %shots: index)")
    .replace("  %r:2 =", "  scf.for %shot = %c0 to %shots step %c1 {\n  %r:2 =")
    .replace("  return\n", "  }\n  return\n")
)

CARRIES_A_NUMBER = PROGRAMS["driven"].replace(
    "%r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A, %b = %B) -> (!field, !field) {",
    "%w0 = arith.constant 0.0 : f64\n"
    "%r:3 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A, %b = %B, %now = %w0) -> (!field, !field, f64) {",
).replace(
    "    %ti = arith.index_cast %t : index to i64\n    %now = arith.sitofp %ti : i64 to f64\n", ""
).replace("scf.yield %b, %a : !field, !field", "%h = arith.constant 0.5 : f64\n%next = arith.addf %now, %h : f64\n"
          "scf.yield %b, %a, %next : !field, !field, f64")  # fmt: skip


@pytest.mark.parametrize(
    ("text", "operation", "reason"),
    [
        (PROGRAMS["copied"], "func.func", NO_LOOP),
        (PROGRAMS["upwind"], "func.func", NO_LOOP),
        (
            PROGRAMS["prepared"],
            "temporal.loop",
            "it is outside the time loop, and would run again in each piece of the run; move it to a function of its own",
        ),
        (
            IN_A_LOOP,
            "scf.for",
            "it is inside another operation, and would start again in each piece of the run; write a function of the time "
            "loop alone",
        ),
        (
            TWO_LOOPS,
            "temporal.loop",
            "it is the second time loop of the function, and a run stops between the steps of one loop; write a function "
            "for each loop",
        ),
        (
            CARRIES_A_NUMBER,
            "scf.for",
            "it carries a value of type f64 from step to step, which is lost where a run stops; keep it in a memref that "
            "is an argument",
        ),
    ],
)
def test_runs_that_cannot_stop_are_refused(text: str, operation: str, reason: str):
    program = timetile.compile(text, executor="cpu", cache=False)
    given = [np.ones(1)]
    with pytest.raises(CompileError) as caught:
        program.snapshots(given, 4, 2)
    assert (caught.value.reason, caught.value.operation) == (reason, operation)


def test_numbers_that_are_none_are_refused():
    program = timetile.compile(HEAT, executor="cpu", cache=False)
    given = (*fields(), K, 0)
    with pytest.raises(ValueError, match=r"^the number of steps is not negative, got -1$"):
        program.snapshots(given, -1, 2)
    with pytest.raises(
        ValueError, match=r"^a run stops after every so many steps, 1 or more, got 0$"
    ):
        program.snapshots(given, 4, 0)
    with pytest.raises(ValueError, match=r"^the first step has a number of 0 or more, got -1$"):
        program(*given, steps=1, first_step=-1)
    text = "^a run from first_step on needs a number of steps; give steps=, too$"
    with pytest.raises(ValueError, match=text):
        program(*given, first_step=2)


# Models.


def test_snapshots_of_a_model_are_those_of_one_run():
    @timetile.stencil
    def wave(p: Field, m: Field, k: Scalar):
        p.next = 2 * p[0] - p.prev[0] + k * m[0] * (p[-1] - 2 * p[0] + p[1])

    model = wave.on(executor="cpu", cache=False)
    start = {"p": np.sin(np.arange(20.0)), "m": np.full(20, 0.5)}
    found = list(model.snapshots(start, steps=11, every=4, k=0.5))
    assert [step for step, _ in found] == [4, 8, 11]
    for step, state in found:
        expected = model.advance(start, step, k=0.5)
        assert expected.keys() == state.keys()
        assert all(np.array_equal(expected[name], state[name]) for name in expected)
    # Each snapshot has arrays of its own.
    assert len({id(state["p"]) for _, state in found}) == 3
    assert list(model.snapshots(start, steps=0, every=4, k=0.5)) == []
    wrong: Any = start["p"]
    with pytest.raises(TypeError, match="a state has an array for each field"):
        model.snapshots(wrong, 4, 2)
    with pytest.raises(ValueError, match="a run stops after every so many steps"):
        model.snapshots(start, 4, 0)


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


@pytest.mark.parametrize("every", [3, 4])
def test_a_run_goes_on_from_a_snapshot(every: int, heat: Path, tmp_path: Path):
    """After an odd number of steps, too, when the buffers have changed places."""
    out = tmp_path / "run.npz"
    line = f"run {heat} --args {inputs(tmp_path)} --set k={K} --executor cpu --out {out} --steps"
    assert run(f"{line} {every} --snapshot-every {every}") == 0
    snapshot = tmp_path / f"run-{every}.npz"
    rest = f"run {heat} --args {snapshot} --executor cpu --out {out} --steps {9 - every} --snapshot-every 9"
    assert run(rest) == 0
    level = outputs(tmp_path / "run-9.npz")["arg0"]
    assert np.array_equal(level, expected_after(9)[1])
    assert outputs(tmp_path / "run-9.npz")["timetile.step"] == 9


def test_a_source_goes_on_where_it_was(tmp_path: Path):
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
    """Interrupts a run in one of its pieces."""

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
        f"timetile run {heat} --args {last} --steps 4 --snapshot-every 3 --out {out} --fp-contract off "
        "--executor cpu"
    )
    assert said.splitlines()[-1] == (
        f"timetile: interrupted; {last} has the fields after step 6 of 10; go on with: {command}"
    )
    assert run(shlex.join(shlex.split(command)[1:])) == 0
    assert np.array_equal(outputs(tmp_path / "run-10.npz")["arg0"], expected_after(10)[0])


def test_a_run_interrupted_before_its_first_snapshot(
    heat: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    Interrupt(1, press_ctrl_c).install(monkeypatch)
    out = tmp_path / "run.npz"
    line = f"run {heat} --random 1 --set k={K} --executor cpu --out {out} --steps 4"
    assert run(f"{line} --snapshot-every 2") == 130
    assert capsys.readouterr().err == (
        "timetile: interrupted before the first snapshot of steps 0 to 4; nothing was written\n"
    )


def test_a_run_without_snapshots_says_that_it_kept_nothing(
    heat: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def interrupted(*arguments: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("timetile.runtime.cli.run.execute", interrupted)
    assert run(f"run {heat} --random 1 --set k={K} --executor cpu --steps 4") == 130
    assert capsys.readouterr().err == (
        "timetile: interrupted, and nothing was written; with --out OUT.npz --snapshot-every K a run keeps its fields\n"
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
            "--snapshot-every writes beside the file of --out, after some of --steps; give --out OUT.npz and --steps N",
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
def test_options_that_do_not_go_together(
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
        f"{path} has timetile.step 1.5, which is no number of a step; take a snapshot"
    )


def test_a_program_that_cannot_stop_is_refused_before_it_runs(
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
