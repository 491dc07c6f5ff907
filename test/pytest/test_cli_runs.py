"""Runs and compilations of the command line: arguments, printed lines, drawings, emitted levels."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import timetile
from support.catalogue import star, sum_program
from support.command_line import (
    COLUMNS,
    HEAT,
    ROWS,
    Field,
    K,
    error_of,
    expected_after,
    fields,
    inputs,
    outputs,
    run,
)
from support.executors import kernel_executors
from support.programs import program_text
from timetile.passes.targets.isa import ISAS
from timetile.runtime.cli import run as run_command
from timetile.runtime.cli.long_runs import Outcome
from timetile.runtime.kernels.assembler import assemble, assembler_version
from timetile.runtime.loading.modules import load_text
from timetile.runtime.program.ahead import kernels_of_run
from timetile.runtime.program.comparison import difference

pytestmark = pytest.mark.usefixtures("cache_of_file")

DEFAULT_PIPELINE = (
    "temporal-fusion{depths=2},choose-schedule,device-tiling,split-sums,multi-queue-buffering,"
    "register-streaming,peel-boundaries"
)


# timetile run: arguments.


@timetile.stencil
def sums(u: timetile.Field):
    u.next = 0.5 * (u[-1] + u[1])


def test_a_run_of_bf16_goes_on_from_its_file(tmp_path: Path):
    """Files of NumPy's have bfloat16 as two bytes without a type."""
    cells = np.linspace(0, 1, 9).astype(ml_dtypes.bfloat16)
    program, out = tmp_path / "sums.mlir", tmp_path / "out.npz"
    program.write_text(str(sums.module((9,), "bfloat16")))
    given = inputs(tmp_path, arg0=cells, arg1=cells)
    for _ in range(2):
        assert run(f"run {program} --args {given} --steps 2 --executor numpy --out {out}") == 0
        given = out
    expected = sums.on(executor="numpy").advance({"u": cells}, 4)["u"]
    assert outputs(out)["arg0"].tobytes() == expected.tobytes()


@pytest.mark.parametrize("keys", [("arg0", "arg1"), ("u", "v"), ("arr_0", "arr_1"), ("arg0", "v")])
@pytest.mark.parametrize("steps", [0, 4])
def test_run_takes_arrays_by_position_and_by_name(
    keys: tuple[str, str], steps: int, heat: Path, tmp_path: Path
):
    given = inputs(tmp_path, **dict(zip(keys, fields(), strict=True)))
    out = tmp_path / "out.npz"
    assert run(f"run {heat} --args {given} --set k={K} --steps {steps} --out {out}") == 0
    found = outputs(out)
    assert list(found) == ["arg0", "arg1"]
    for name, expected in zip(found, expected_after(steps), strict=True):
        assert np.array_equal(found[name], expected)


def test_run_takes_what_savez_writes_by_position(heat: Path, tmp_path: Path):
    given = tmp_path / "in.npz"
    np.savez(given, *fields(), np.float64(K), np.int64(3))
    out = tmp_path / "out.npz"
    assert run(f"run {heat} --args {given} --out {out}") == 0
    assert np.array_equal(outputs(out)["arg1"], expected_after(3)[1])


def test_run_takes_arrays_in_fortran_order(heat: Path, tmp_path: Path):
    u, v = fields()
    given = inputs(tmp_path, u=np.asfortranarray(u), v=np.asfortranarray(v))
    out = tmp_path / "out.npz"
    assert run(f"run {heat} --args {given} --set k={K} --steps 2 --out {out}") == 0
    assert np.array_equal(outputs(out)["arg0"], expected_after(2)[0])


@pytest.mark.parametrize("key", ["k", "%k", "2", "arg2"])
def test_run_sets_scalars_by_name_and_position(key: str, heat: Path, tmp_path: Path):
    out = tmp_path / "out.npz"
    given = inputs(tmp_path)
    assert run(f"run {heat} --args {given} --set {key}={K} --set steps=3 --out {out}") == 0
    assert np.array_equal(outputs(out)["arg1"], expected_after(3)[1])


def test_run_sets_fields_everywhere(heat: Path, tmp_path: Path):
    out = tmp_path / "out.npz"
    assert run(f"run {heat} --set u=8 --set v=0.5 --set k={K} --steps 1 --out {out}") == 0
    found = outputs(out)
    assert np.all(found["arg0"] == 8)
    assert np.all(found["arg1"][1:-1, 1:-1] == 6)
    assert np.all(found["arg1"][0] == 0.5)


def test_run_fills_at_random_only_what_is_not_given(heat: Path, tmp_path: Path):
    def result(options: str) -> dict[str, Field]:
        out = tmp_path / "out.npz"
        assert run(f"run {heat} --set k={K} --steps 0 --out {out} {options}") == 0
        return outputs(out)

    first, again, other = (result(f"--random {seed}") for seed in (1, 1, 2))
    for name in ("arg0", "arg1"):
        assert np.array_equal(first[name], again[name])
        assert not np.array_equal(first[name], other[name])
    mixed = result(f"--random 1 --args {inputs(tmp_path, u=fields()[0])}")
    assert np.array_equal(mixed["arg0"], fields()[0])
    assert np.array_equal(mixed["arg1"], first["arg1"])


def test_steps_replace_a_constant_trip_count(heat: Path, tmp_path: Path):
    text = HEAT.replace(", %steps: index", "").replace(
        "%zero = arith", "%steps = arith.constant 2 : index\n  %zero = arith"
    )
    heat.write_text(text)
    out = tmp_path / "out.npz"
    for options, steps in (("", 2), ("--steps 5", 5)):
        given = inputs(tmp_path)
        assert run(f"run {heat} --args {given} --set k={K} --out {out} {options}") == 0
        assert np.array_equal(outputs(out)["arg0"], expected_after(steps)[0])


def test_an_index_used_in_arithmetic_is_no_trip_count(
    heat: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    text = HEAT.replace("%w = %k : f64)", "%w = %k : f64, %n = %steps : index)").replace(
        "stencil.return %s2",
        "%i = arith.index_cast %n : index to i64\n"
        "%f = arith.sitofp %i : i64 to f64\n"
        "%s3 = arith.addf %s2, %f : f64\n"
        "stencil.return %s3",
    )
    heat.write_text(text)
    line = f"run {heat} --args {inputs(tmp_path)} --set k={K} --steps 1"
    assert error_of(line, capsys) == (
        "no value for arg3 (%steps), a scalar of type index; give the value with --set steps=VALUE"
    )
    assert run(f"{line} --set steps=2") == 0


@pytest.mark.parametrize(
    ("steps", "names"), [(0, []), (1, ["heat_step"]), (5, ["heat_d2", "heat_step"])]
)
def test_a_run_compiles_only_launched_kernels(steps: int, names: list[str]):
    program = timetile.compile(HEAT, executor="simt", depth=2, cache=False)
    values = [*fields(), np.float64(K), np.int64(steps)]
    found = kernels_of_run(program, values, None)
    assert found == [(program.kernels, name) for name in names]
    found = kernels_of_run(program, values, 1)
    assert found == [(program.kernels, "heat_step")]
    assert np.array_equal(values[0], fields()[0])


# timetile run: printed lines.


@pytest.mark.parametrize(("steps", "holder"), [(3, "arg1 (%v)"), (4, "arg0 (%u)")])
def test_run_says_where_the_last_time_level_is(
    steps: int, holder: str, heat: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert run(f"run {heat} --args {inputs(tmp_path)} --set k={K} --steps {steps}") == 0
    first, second = capsys.readouterr().out.splitlines()
    assert f": {steps} steps, {steps * ROWS * COLUMNS} cells updated in " in first
    assert first.endswith(" GCells/s")
    assert second == f"the last time level is in {holder}"


@pytest.mark.parametrize("executor", kernel_executors())
def test_check_compares_with_the_cpu(
    executor: str, heat: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    out = tmp_path / "out.npz"
    line = f"run {heat} --args {inputs(tmp_path)} --set k={K} --steps 5 --depth 2"
    assert run(f"{line} --executor {executor} --check --out {out}") == 0
    said = capsys.readouterr().out
    assert f"@heat on {executor}: 5 steps" in said
    assert "@heat on cpu" not in said
    assert "check: all 2 fields equal the fields of the CPU executor, bit for bit" in said
    for name, expected in zip(("arg0", "arg1"), expected_after(5), strict=True):
        assert np.array_equal(outputs(out)[name], expected)


def test_check_fails_where_bits_differ(
    heat: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    execute = run_command.execute

    def execute_and_spoil(
        program: timetile.CompiledProgram, values: list[Field], *options: Any
    ) -> Outcome:
        result = execute(program, values, *options)
        if program.executor == "simt":
            values[1][2, 3] += 1
        return result

    monkeypatch.setattr(run_command, "execute", execute_and_spoil)
    line = f"run {heat} --args {inputs(tmp_path)} --set k={K} --steps 1 --executor simt --check"
    assert run(line) == 1
    said = capsys.readouterr().out
    assert "check: arg1 (%v), simt and cpu: 1 cells differ, the first at [2, 3]" in said
    assert "bit for bit" not in said


def test_difference_is_about_bits():
    a = np.array([1.0, 0.0, np.nan], dtype=np.float32)
    assert difference(a, a.copy()) is None
    assert str(difference(a, np.array([1.0, -0.0, np.nan], np.float32))) == (
        "1 cells differ, the first at [1]: 0.0 and -0.0"
    )
    other = difference(a, np.nextafter(a, np.float32(2)))
    assert other is not None
    assert (other.count, other.first) == (2, (0,))


@pytest.mark.parametrize("option", ["--out {folder}/none/x.npz", "--plot {folder}/none/x.png"])
def test_an_impossible_write_is_reported_before_the_run(
    option: str, heat: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def never(*arguments: object) -> None:
        raise AssertionError("the program ran")

    monkeypatch.setattr(run_command, "execute", never)
    line = f"run {heat} --set k=1 --random 0 --steps 1 {option.format(folder=tmp_path)}"
    assert run(line) == 2


def test_runs_that_fail_leave_no_files(heat: Path, tmp_path: Path):
    heat.write_text(HEAT.replace("f64", "f16"))
    out, picture = tmp_path / "x.npz", tmp_path / "x.PNG"
    line = f"run {heat} --executor simt --set k=1 --random 0 --steps 1"
    assert run(f"{line} --out {out} --plot {picture}") == 2
    assert not out.exists() and not picture.exists()


# timetile compile.


@pytest.mark.parametrize(
    ("level", "holds"),
    [
        ("temporal", "temporal.loop"),
        ("tile", "tile.kernel @heat_d2"),
        ("gpu", "simt.store"),
        ("hardware", "nvvm."),
    ],
)
def test_compile_emits_ir_that_parses(level: str, holds: str, heat: Path, tmp_path: Path):
    out = tmp_path / "out.mlir"
    assert run(f"compile {heat} --depth 2 --emit {level} -o {out}") == 0
    text = out.read_text()
    assert holds in text
    assert str(load_text(text)) + "\n" == text


@pytest.mark.parametrize("arch", list(ISAS))
def test_compile_emits_ptx(arch: str, heat: Path, capsys: pytest.CaptureFixture[str]):
    assert run(f"compile {heat} --depth 2 --arch {arch}") == 0
    text = capsys.readouterr().out
    assert f".target {arch}" in text
    assert text.count(".entry") == 2
    if assembler_version() is not None:
        assert assemble(text, arch).cubin.startswith(b"\x7fELF")


def test_compile_contracts_as_asked(heat: Path, capsys: pytest.CaptureFixture[str]):
    found: list[int] = []
    for options in ("", "--fp-contract fast", "--fp-contract on", "--fp-contract off"):
        assert run(f"compile {heat} --emit temporal {options}") == 0
        found.append(capsys.readouterr().out.count("math.fma"))
    assert found == [2, 2, 0, 0]


def test_compile_takes_a_pipeline(heat: Path, capsys: pytest.CaptureFixture[str]):
    assert run(f"compile {heat} --emit tile --pipeline '{DEFAULT_PIPELINE}'") == 0
    given = capsys.readouterr().out
    assert run(f"compile {heat} --emit tile --depth 2") == 0
    assert given == capsys.readouterr().out
    shared = DEFAULT_PIPELINE.replace("buffering", "buffering{storage=shared}").replace(
        "register-streaming,", ""
    )
    assert run(f"compile {heat} --emit tile --pipeline '{shared}'") == 0
    assert "home #tile.shared" in capsys.readouterr().out


def test_compile_takes_the_function_that_is_named(heat: Path, capsys: pytest.CaptureFixture[str]):
    other = HEAT[HEAT.index("func.func") :].replace("@heat", "@other")
    heat.write_text(HEAT + other)
    assert error_of(f"compile {heat}", capsys) == (
        "builtin.module: the module must hold one public function, and holds @heat, @other; name "
        "one with --function (function= in Python)"
    )
    assert error_of(f"compile {heat} --function third", capsys) == (
        "builtin.module: the module must hold @third, and holds @heat, @other; name one "
        "with --function (function= in Python)"
    )
    assert run(f"compile {heat} --function other --emit temporal") == 0


@pytest.mark.parametrize(
    "command",
    [
        "run {heat} --executor simt --random 1 --set k=1 --steps 2",
        "compile {heat}",
        "explain {heat}",
    ],
)
def test_waits_that_no_block_has_are_bounded_for_nothing(
    command: str, heat: Path, capsys: pytest.CaptureFixture[str]
):
    """Every command takes the option; kernels without waits between blocks are unchanged."""
    line = command.format(heat=heat)
    said: list[str] = []
    for options in ("--depth 2", "--depth 2 --bound-waits"):
        assert run(f"{line} {options}") == 0
        said.append(re.sub(r"updated in .*", "", capsys.readouterr().out))
    assert said[0] == said[1]


@pytest.mark.parametrize(("sync", "loop"), [("flags", "take"), ("grid", "meet")])
def test_waits_are_bounded_as_asked(
    sync: str, loop: str, heat: Path, capsys: pytest.CaptureFixture[str]
):
    heat.write_text(program_text(sum_program("f64", star(3, 1))((16, 32, 64))))
    tiling = 'device-tiling{tile="device" cells=2,1 lanes=1,32 warps=2,1 blocks=2,1 pack=1}'
    passes = (
        f"temporal-fusion{{depths=2}},{tiling},carry-halos,multi-queue-buffering,"
        f'register-streaming{{sync="{sync}"}},peel-boundaries'
    )
    said: list[str] = []
    for options in ("", "--bound-waits"):
        assert run(f"compile {heat} --pipeline '{passes}' {options}") == 0
        said.append(capsys.readouterr().out)
    plain, bounded = (text.count("$done_") for text in said)
    waits = len(re.findall(rf"^\$(?:{loop}|wait)_\d+:", said[1], re.MULTILINE))
    assert plain == 0
    assert bounded and waits
    if assembler_version() is not None:
        assert assemble(said[1], "sm_90").cubin.startswith(b"\x7fELF")


@pytest.mark.parametrize(
    "command",
    ["run {heat} --executor planes --random 1 --set k=1 --steps 2", "compile {heat} --emit tile"],
)
def test_verbose_repeats_the_remarks_of_cached_kernels(
    command: str, heat: Path, capsys: pytest.CaptureFixture[str]
):
    line = f"{command.format(heat=heat)} --depth 64 --verbose"
    for _ in range(2):
        assert run(line) == 0
        said = capsys.readouterr().err
        assert said.count("no tile holds 64 steps at once") == 1
        assert "info: time loop 0: kernels of" in said
    assert run(f"{command.format(heat=heat)} --depth 2 --verbose") == 0
    assert "info: no remarks: nothing was left as it was\n" in capsys.readouterr().err


@pytest.mark.parametrize("executor", ["cpu", "numpy"])
@pytest.mark.parametrize("option", ["--depth 2", "--arch sm_80", "--bound-waits"])
def test_options_of_kernels_are_said_to_have_no_effect(
    option: str, executor: str, heat: Path, capsys: pytest.CaptureFixture[str]
):
    line = f"run {heat} --executor {executor} --random 1 --set k={K} --steps 2"
    assert run(f"{line} {option}") == 0
    name = option.partition(" ")[0].removeprefix("--").replace("-", "_")
    said = f"{name} has no effect on the {executor} executor, which runs no kernels; choose the"
    assert said in " ".join(capsys.readouterr().err.split())
    assert run(line) == 0
    assert "no effect" not in capsys.readouterr().err
