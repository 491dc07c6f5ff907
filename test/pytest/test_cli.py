"""The command line: every command, every way to give an argument, every error's sentence."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread
from numpy.typing import NDArray

import timetile
from support.catalogue import star, sum_program
from support.executors import kernel_executors
from support.programs import program_text
from timetile.dialects.tile import LaunchOp
from timetile.passes.arch import ARCHS
from timetile.runtime import commands, doctor
from timetile.runtime.assembler import assemble, assembler_version
from timetile.runtime.cache import Cache
from timetile.runtime.cli import main
from timetile.runtime.comparison import difference
from timetile.runtime.facts import launch_counts, loop_flops, occupancy, reach, redundancy
from timetile.runtime.gpu import Unavailable, gpu_is_available
from timetile.runtime.kernels import Kernel, loops_of
from timetile.runtime.loading import load_text
from timetile.runtime.planning import planned_function
from timetile.runtime.plotting import panels, plot
from timetile.runtime.usage import UsageError

Field = NDArray[np.float64]

ROWS, COLUMNS = 14, 19

HEAT = f"""
!field = !stencil.field<[-1,{ROWS + 1}]x[-1,{COLUMNS + 1}]xf64>
!temp = !stencil.temp<?x?xf64>
func.func @heat(%u: !field, %v: !field, %k: f64, %steps: index) {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r:2 = scf.for %t = %zero to %steps step %one iter_args(%a = %u, %b = %v) -> (!field, !field) {{
    %in = stencil.load %a : !field -> !temp
    %out = stencil.apply(%x = %in : !temp, %w = %k : f64) -> (!temp) {{
      %up = stencil.access %x[-1, 0] : !temp
      %left = stencil.access %x[0, -1] : !temp
      %right = stencil.access %x[0, 1] : !temp
      %m0 = arith.mulf %w, %up : f64
      %m1 = arith.mulf %w, %left : f64
      %m2 = arith.mulf %w, %right : f64
      %s1 = arith.addf %m0, %m1 : f64
      %s2 = arith.addf %s1, %m2 : f64
      stencil.return %s2 : f64
    }}
    stencil.store %out to %b(<[0, 0], [{ROWS}, {COLUMNS}]>) : !temp to !field
    scf.yield %b, %a : !field, !field
  }}
  func.return
}}
"""
"""With k = 0.25 and small integers every result is exact, and so the same with and without fma."""

K = 0.25
DEFAULT_PIPELINE = (
    "temporal-fusion{depths=2},choose-schedule,device-tiling,split-sums,multi-queue-buffering,"
    "register-streaming,peel-boundaries"
)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty disk cache for every test."""
    monkeypatch.setenv("TIMETILE_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def heat(tmp_path: Path) -> Path:
    """The program above, as a file."""
    path = tmp_path / "heat.mlir"
    path.write_text(HEAT)
    return path


def fields() -> tuple[Field, Field]:
    """Two buffers of small integers, halos included."""
    random = np.random.default_rng(5)
    shape = (ROWS + 2, COLUMNS + 2)
    u, v = (random.integers(-8, 9, shape).astype(np.float64) for _ in range(2))
    return u, v


def expected_after(steps: int) -> tuple[Field, Field]:
    """What the program leaves in both buffers."""
    u, v = fields()
    old, new = u, v
    for _ in range(steps):
        new[1:-1, 1:-1] = K * (old[:-2, 1:-1] + old[1:-1, :-2] + old[1:-1, 2:])
        old, new = new, old
    return u, v


def inputs(tmp_path: Path, **arrays: NDArray[np.generic] | float) -> Path:
    """A .npz file; the program's two fields unless others are given."""
    path = tmp_path / "in.npz"
    with path.open("wb") as file:
        np.savez(file, **(arrays or dict(zip(("u", "v"), fields(), strict=True))))
    return path


def outputs(path: Path) -> dict[str, Field]:
    with np.load(path) as file:
        return {name: file[name] for name in file.files}


def run(line: str) -> int:
    """Run a command line as the shell would split it; argparse leaves by SystemExit."""
    try:
        return main(shlex.split(line))
    except SystemExit as leave:
        assert isinstance(leave.code, int)
        return leave.code


def error_of(line: str, capsys: pytest.CaptureFixture[str]) -> str:
    """The sentence of a command that the user got wrong."""
    assert run(line) == 2
    captured = capsys.readouterr()
    *remarks, sentence = captured.err.splitlines()
    assert all(remark.startswith("warning: ") for remark in remarks)
    assert sentence.startswith("timetile: ")
    return sentence.removeprefix("timetile: ")


# The command itself.


def test_the_installed_command_is_main():
    (script,) = entry_points(group="console_scripts", name="timetile")
    assert script.load() is main


def test_version(capsys: pytest.CaptureFixture[str]):
    assert run("--version") == 0
    assert capsys.readouterr().out == f"timetile {timetile.__version__}\n"


@pytest.mark.parametrize("command", ["", "run", "compile", "explain", "cache", "doctor"])
def test_help(command: str, capsys: pytest.CaptureFixture[str]):
    assert run(f"{command} --help") == 0
    assert f"usage: timetile {command}".strip() in capsys.readouterr().out


@pytest.mark.parametrize("command", ["cache path", "compile {heat} --emit nvvm"])
def test_a_reader_that_leaves_is_no_error(command: str, heat: Path):
    """As in `timetile compile heat.mlir | head -1`."""
    script = "import sys; from timetile.runtime.cli import main; sys.exit(main(sys.argv[1:]))"
    arguments = shlex.split(command.format(heat=heat))
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        stdout=writer, stderr=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, "")


# timetile run: arguments.


@pytest.mark.parametrize("keys", [("arg0", "arg1"), ("u", "v"), ("arr_0", "arr_1"), ("arg0", "v")])
@pytest.mark.parametrize("steps", [0, 1, 4])
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


def test_an_index_that_is_also_computed_with_is_no_trip_count(
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
        "there is no value for arg3 (%steps), a scalar of type index; give it with --set steps=VALUE"
    )
    assert run(f"{line} --set steps=2") == 0


@pytest.mark.parametrize(
    ("steps", "names"), [(0, []), (1, ["heat_step"]), (5, ["heat_d2", "heat_step"])]
)
def test_a_run_compiles_only_the_kernels_that_it_launches(steps: int, names: list[str]):
    program = timetile.compile(HEAT, executor="simt", depth=2, cache=False)
    values = [*fields(), np.float64(K), np.int64(steps)]
    assert commands.kernels_of_run(program, values, None) == names
    assert commands.kernels_of_run(program, values, 1) == ["heat_step"]
    assert np.array_equal(values[0], fields()[0])


# timetile run: what it says.


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
    assert "check: all 2 fields equal those of the CPU executor, bit for bit" in said
    for name, expected in zip(("arg0", "arg1"), expected_after(5), strict=True):
        assert np.array_equal(outputs(out)[name], expected)


def test_check_fails_where_bits_differ(
    heat: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    execute = commands.execute

    def execute_and_spoil(
        program: timetile.CompiledProgram, values: list[Field], steps: int | None
    ) -> timetile.RunResult:
        result = execute(program, values, steps)
        if program.executor == "simt":
            values[1][2, 3] += 1
        return result

    monkeypatch.setattr(commands, "execute", execute_and_spoil)
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


def test_plot_draws_the_last_time_level(heat: Path, tmp_path: Path):
    picture = tmp_path / "out.png"
    line = f"run {heat} --args {inputs(tmp_path)} --set k={K} --steps 3 --plot {picture}"
    assert run(line) == 0
    height, width, _ = imread(picture).shape
    assert height > 100 and width > 100


@pytest.mark.parametrize(("shape", "count"), [((9,), 1), ((5, 7), 1), ((4, 5, 6), 3)])
def test_fields_of_any_rank_are_drawn(shape: tuple[int, ...], count: int, tmp_path: Path):
    field = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    drawn = list(panels("u", field))
    assert len(drawn) == count
    assert all(data.ndim == min(2, field.ndim) for _, data in drawn)
    sizes: list[int] = []
    for names in (["u"], ["u", "v"]):
        plot(dict.fromkeys(names, field), tmp_path / "out.png")
        sizes.append(imread(tmp_path / "out.png").shape[0])
    assert sizes[1] == 2 * sizes[0]


def test_slices_go_through_the_middle():
    field = np.arange(4 * 5 * 6).reshape(4, 5, 6)
    titles, slices = zip(*panels("u", field), strict=True)
    assert titles == ("u, middle z", "u, middle y", "u, middle x")
    for axis, data in enumerate(slices):
        assert np.array_equal(data, field.take(field.shape[axis] // 2, axis))


def test_pictures_need_matplotlib(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(UsageError, match=r'pictures need matplotlib; .*"timetile\[plot\]"'):
        plot({"u": np.zeros(3)}, tmp_path / "out.png")


# timetile compile.


@pytest.mark.parametrize(
    ("level", "holds"),
    [
        ("temporal", "temporal.loop"),
        ("tile", "tile.kernel @heat_d2"),
        ("gpu", "simt.store"),
        ("nvvm", "nvvm."),
    ],
)
def test_compile_emits_ir_that_parses(level: str, holds: str, heat: Path, tmp_path: Path):
    out = tmp_path / "out.mlir"
    assert run(f"compile {heat} --depth 2 --emit {level} -o {out}") == 0
    text = out.read_text()
    assert holds in text
    assert str(load_text(text)) + "\n" == text


@pytest.mark.parametrize("arch", list(ARCHS))
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
        "builtin.module: the module must hold one public function, and holds @heat, @other; name it "
        "with `function`"
    )
    assert error_of(f"compile {heat} --function third", capsys) == (
        "builtin.module: the module must hold @third, and holds @heat, @other; name it with `function`"
    )
    assert run(f"compile {heat} --function other --emit temporal") == 0


# timetile explain.


def test_explain_says_what_was_recognised(heat: Path, capsys: pytest.CaptureFixture[str]):
    assert run(f"explain {heat} --depth 4 --steps 30") == 0
    said = " ".join(capsys.readouterr().out.split())
    for expected in (
        "0 %u f64 [-1, 15) x [-1, 20) buffer",
        "2 %k f64 scalar",
        "3 %steps index number of steps",
        "rotation %a <- %b, %b <- %a",
        "live before a step %a",
        "coefficient fields none",
        "scalars %k",
        "%b = heat_cell0 in [0, 14) x [0, 19): 3 reads of %a; 1 mulf, 2 fma = 5 flops",
        "reach of a step [-1, +0] x [-1, +1]",
        "8 bytes read, 8 written, 5 flops",
        "depths 4, 2, 1",
        "streamed along axis 0",
        "levels in shared memory 4 accesses a cell, 4 with planes in registers, too",
        "shared memory from",
        "Predicted on sm_90 kernel GCells/s steps ns a step pipe issue shared memory",
        "@heat_d4",
        "Queues of @heat_d4",
        "load of %a",
        "30 steps",
        "Everything was done: there are no remarks.",
    ):
        assert expected in said
    assert ("limited by" in said) == (assembler_version() is not None)
    assert ("unknown without the assembler" in said) == (assembler_version() is None)


def test_explain_shows_the_schedules_that_lost(heat: Path, capsys: pytest.CaptureFixture[str]):
    """The chosen schedule is the first of those that the model compares; nothing was compared by hand."""
    assert run(f"explain {heat}") == 0
    said = capsys.readouterr().out
    depth = re.search(r"depths +(\d+)", said)
    best = re.search(r"The best of \d+ schedules\n.*\n.*\n(\d+) ", said)
    assert depth is not None
    assert best is not None
    assert depth.group(1) == best.group(1)
    # Rows have no neighbours in other warps: there is one level only.
    assert "each level" not in said
    passes = "temporal-fusion{depths=2},device-tiling,multi-queue-buffering,peel-boundaries"
    assert main(["explain", str(heat), "--pipeline", passes]) == 0
    assert "schedules" not in capsys.readouterr().out


def test_explain_compares_the_levels_that_may_hold_a_tile(
    heat: Path, capsys: pytest.CaptureFixture[str]
):
    """For a star in 3D: each larger level overlaps less, and waits longer."""
    heat.write_text(program_text(sum_program("f64", star(3, 1))((512, 512, 512))))
    assert run(f"explain {heat}") == 0
    said = capsys.readouterr().out
    title = "The best of each level that may hold a tile\n"
    columns, _, *lines = said.partition(title)[2].splitlines()
    assert re.split(" {2,}", columns.strip()) == [
        "tile", "depth", "cells", "blocks", "GCells/s", "valid", "steps", "ns a step", "waiting"
    ]  # fmt: skip
    rows = {row[0]: row[1:] for row in (re.split(" {2,}", line.strip()) for line in lines[:3])}
    assert list(rows) == ["block", "cluster", "device"]
    assert rows["block"][2] == "1"
    assert rows["cluster"][2] == "2 x 1"
    assert re.fullmatch(r"\d+ x 1", rows["device"][2])
    valid = [int(row[4].removesuffix("%")) for row in rows.values()]
    waiting = [int(row[7]) for row in rows.values()]
    assert valid == sorted(valid) and valid[-1] <= 100
    assert waiting == sorted(waiting) and waiting[0] > 0
    # The first row is what was chosen.
    best = re.search(r"The best of \d+ schedules\n.*\n.*\n(\d+) +([\dx ]+?) {2,}", said)
    assert best is not None
    assert list(best.groups()) == rows["block"][:2]
    # What the columns mean is said below.
    assert [line.split()[0] for line in lines[3:6]] == ["valid", "steps", "waiting"]


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
    """Every command takes the option; kernels whose blocks wait for nobody are as they were."""
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
    tiling = 'device-tiling{tile="device" cells=4,1 lanes=1,32 warps=2,1 blocks=2,1 pack=1}'
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


def test_explain_says_what_was_not_done(heat: Path, capsys: pytest.CaptureFixture[str]):
    """A depth whose overlap is wider than any tile."""
    assert run(f"explain {heat} --depth 200 --function heat") == 0
    captured = capsys.readouterr()
    assert "Not done, and why" in captured.out
    assert "depth 200 is left out: its overlap leaves no cell of the tile" in captured.out
    # Said once, in the answer.
    assert captured.err == ""


def test_explain_says_why_a_loop_is_no_time_loop(heat: Path, capsys: pytest.CaptureFixture[str]):
    heat.write_text(HEAT.replace("scf.yield %b, %a", "scf.yield %b, %b"))
    assert run(f"explain {heat}") == 2
    captured = capsys.readouterr()
    line = HEAT.splitlines().index("    scf.yield %b, %a : !field, !field") + 1
    assert captured.out.split("\n", 2)[2] == (
        f"  scf.yield in @heat ({heat}:{line}): the time loop is left as it is: it yields a field "
        "twice; yield each carried field once\n"
    )
    assert captured.err.startswith("timetile: no time loop was found: ")


@pytest.mark.parametrize("steps", [0, 1, 7, 100])
def test_launch_counts_are_those_of_the_plan(steps: int):
    program = timetile.compile(HEAT, executor="cpu", depth=4, cache=False)
    (loop,) = loops_of(program.module)
    kernels = program.kernels.facts_of(loop)
    counts = launch_counts(loop, kernels, steps)
    depths = {kernel.name: kernel.steps for kernel in kernels}
    assert sum(depths[name] * n for name, n in counts.launches.items()) == steps
    launches = [
        op for op in planned_function(loop, kernels, steps).walk() if isinstance(op, LaunchOp)
    ]
    assert set(counts.launches) == {launch.kernel.string_value() for launch in launches}


def test_facts_of_a_step():
    program = timetile.compile(HEAT, executor="cpu", depth=3, cache=False)
    (loop,) = loops_of(program.module)
    assert loop_flops(loop) == 5
    assert reach(loop.updates) == [(-1, 0), (-1, 1)]


def test_more_overlap_is_more_redundancy():
    """A deeper kernel computes more of its tile twice; nothing computes less than what is useful."""
    totals: list[float] = []
    for depth in (2, 6):
        program = timetile.compile(HEAT, executor="cpu", depth=depth, cache=False)
        kernels = {k.sym_name.data: k for k in commands.placed_kernels(program)}
        found = redundancy(kernels[f"heat_d{depth}"])
        assert found.plane >= 1 and found.stream >= 1
        totals.append(found.total)
    assert totals[0] < totals[1]


@pytest.mark.parametrize(
    ("registers", "shared", "blocks", "limit"),
    [(128, 0, 4, "registers"), (121, 0, 4, "registers"), (32, 100_000, 2, "shared memory"),
     (16, 0, 16, "warps")],
)  # fmt: skip
def test_occupancy(registers: int, shared: int, blocks: int, limit: str):
    kernel = Kernel(
        "k", "", None, grid=1, block=128, cluster=1, apart=1, message_words=0, bound_waits=False,
        shared_bytes=shared, registers=registers, spill_bytes=0,
    )  # fmt: skip
    found = occupancy(kernel, ARCHS["sm_90"])
    assert (found.blocks, found.warps, found.limit) == (blocks, 4, limit)


def test_verbose_says_what_is_being_done(heat: Path, capsys: pytest.CaptureFixture[str]):
    assert run(f"explain {heat} --depth 1 --verbose") == 0
    assert "info: compiling @heat_step\n" in capsys.readouterr().err
    assert run(f"explain {heat} --depth 1") == 0
    assert capsys.readouterr().err == ""


# timetile cache and doctor.


def test_cache_is_shown_verified_rebuilt_and_cleared(
    heat: Path, own_cache: Path, capsys: pytest.CaptureFixture[str]
):
    def said(line: str, code: int = 0) -> str:
        assert run(line) == code
        return capsys.readouterr().out

    assert said("cache path") == f"{own_cache}\n"
    assert said("cache verify") == f"0 entries in {own_cache}, 0 damaged\n"
    explained = said(f"explain {heat} --depth 2")
    keys = Cache.default().keys()
    assert said("cache verify") == f"{len(keys)} entries in {own_cache}, 0 damaged\n"
    for path in own_cache.glob("??/*/kernel.ptx"):
        path.write_text("damaged")
    damaged = said("cache verify", 1)
    assert damaged.count("damaged: ") == 2
    assert f"{len(keys)} entries in {own_cache}, 2 damaged\n" in damaged
    assert said(f"explain {heat} --depth 2") == explained
    assert said("cache verify") == f"{len(keys)} entries in {own_cache}, 0 damaged\n"
    assert said("cache clear") == f"removed {len(keys)} entries from {own_cache}\n"
    assert Cache.default().keys() == []


def test_doctor_names_everything(own_cache: Path, capsys: pytest.CaptureFixture[str]):
    assert run("doctor") == 0
    lines = capsys.readouterr().out.splitlines()
    found = {line[:12].strip(): line[13:] for line in lines}
    assert found["timetile"] == f"found  {timetile.__version__}"
    assert found["numpy"] == f"found  {np.__version__}"
    assert found["cache"] == f"found  {own_cache}, 0 entries"
    assert found["driver"].startswith("found" if gpu_is_available() else "none")
    assert found["assembler"].startswith("none" if assembler_version() is None else "found")


class FakeDriver:
    """What `doctor` asks of the driver's bindings."""

    def cuDriverGetVersion(self) -> tuple[int, int]:
        return 0, 13010

    def cuDeviceGetCount(self) -> tuple[int, int]:
        return 0, 2

    def cuDeviceTotalMem(self, handle: int) -> tuple[int, int]:
        return 0, (80 + handle) << 30


class FakeDevice:
    """Two GPUs, one of an architecture that is not known."""

    def __init__(self, number: int):
        self.cuda, self.handle = FakeDriver(), number
        self.name = "A GPU"
        self.arch = ("sm_90", "sm_100")[number]


def test_doctor_lists_the_gpus(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(doctor, "driver", FakeDriver)
    monkeypatch.setattr(doctor, "Device", FakeDevice)
    found = {finding.what: finding.text for finding in doctor.gpus()}
    assert found == {
        "driver": "for CUDA 13.1",
        "GPU 0": "A GPU, sm_90, 80 GiB",
        "GPU 1": f"A GPU, sm_100, 81 GiB; kernels are tuned for {', '.join(ARCHS)}",
    }


def test_doctor_says_why_not(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(doctor, "driver", lambda: Unavailable("no NVIDIA driver was found"))
    monkeypatch.setattr(doctor, "assembler_version", lambda: None)
    monkeypatch.setattr(doctor, "PACKAGES", ("no-such-package",))
    found = {finding.what: finding for finding in doctor.examine()}
    assert not found["driver"].found
    assert found["driver"].text == "no NVIDIA driver was found"
    assert not found["GPU"].found
    assert 'pip install "timetile[assembler]"' in found["assembler"].text
    assert found["no-such-package"].text == "not installed"


# Errors: one sentence each, and exit code 2.


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("", "the following arguments are required: COMMAND; see timetile --help"),
        ("run", "the following arguments are required: PROGRAM.mlir; see timetile run --help"),
        (
            "run {heat} --steps -1",
            "argument --steps: '-1' is not a number of 0 or more; see timetile run --help",
        ),
        (
            "run {heat} --depth 0",
            "argument --depth: 0 is not a number of 1 or more; see timetile run --help",
        ),
        ("run no.mlir", "cannot open no.mlir: No such file or directory"),
        ("run {png}", "{png} is not a text file; give a program in MLIR"),
        (
            "run {heat}",
            "arg3 (%steps) is the number of steps; give it with --steps N",
        ),
        (
            "run {heat} --steps 1",
            "there are no values for arg0 (%u), arg1 (%v); give them with --args IN.npz, or fill "
            "them with --random SEED",
        ),
        (
            "run {heat} --steps 1 --random 0",
            "there is no value for arg2 (%k), a scalar of type f64; give it with --set k=VALUE",
        ),
        ("run {heat} --steps 1 --set k", "--set k has no value; write --set k=VALUE"),
        (
            "run {heat} --steps 1 --set k=fast",
            "arg2 (%k) is of type f64, and 'fast' is no such number",
        ),
        (
            "run {heat} --set steps=1.5",
            "arg3 (%steps) is of type index, and '1.5' is no such number",
        ),
        (
            "run {heat} --steps 1 --set dt=1",
            "--set dt=1 names 'dt', which is no argument of @heat; its arguments are arg0 (%u), "
            "arg1 (%v), arg2 (%k), arg3 (%steps)",
        ),
        (
            "run {heat} --steps 1 --set 4=1",
            "--set 4=1 names '4', which is no argument of @heat; its arguments are arg0 (%u), "
            "arg1 (%v), arg2 (%k), arg3 (%steps)",
        ),
        (
            "run {heat} --steps 1 --set k=1 --set arg2=1",
            "arg2 (%k) is given twice; give every argument once",
        ),
        (
            "run {heat} --steps 1 --args {heat}",
            "{heat} is not a .npz file of plain arrays; write one with np.savez",
        ),
        (
            "run {heat} --steps 1 --args {one}",
            "{one} holds one array; write a .npz file with np.savez",
        ),
        (
            "run {heat} --steps 1 --args {typo}",
            "{typo} names 'w', which is no argument of @heat; its arguments are arg0 (%u), "
            "arg1 (%v), arg2 (%k), arg3 (%steps)",
        ),
        (
            "run {heat} --steps 1 --args {wide}",
            "{wide} has an array of shape (3,) for arg2 (%k), which is a scalar; give it with "
            "--set k=VALUE",
        ),
        (
            "run {heat} --steps 1 --random 0 --set k=1 --args {small}",
            "argument 0 has shape (3, 3), and its field [-1, 15) x [-1, 20), halos included, has "
            "shape (16, 21); pass an array of that shape",
        ),
        (
            "run {heat} --steps 1 --random 0 --set k=1 --args {single}",
            "argument 0 has elements of float32, and its field of float64; pass it as float64",
        ),
        ("run {heat} --steps 1 --random 0 --set k=1 --out {folder}", "cannot open {folder}: Is a directory"),
        (
            "run {heat} --steps 1 --random 0 --set k=1 --plot {folder}/x.none",
            "{folder}/x.none is of no kind of picture that is known; give it a name that ends in .png",
        ),
        (
            "run {heat} --steps 1 --executor cpu --check",
            "--check compares with the CPU executor; run with --executor gpu, planes or simt",
        ),
        ("compile {heat} -o {folder}/none/x.ptx", "cannot open {folder}/none/x.ptx: No such file or directory"),
        (
            "compile {heat} --pipeline no-such-pass",
            "--pipeline 'no-such-pass' cannot be used: Unrecognized passes: ['no-such-pass']",
        ),
        (
            "compile {heat} --pipeline device-tiling{{",
            "--pipeline 'device-tiling{{' cannot be used: Expected argument name here",
        ),
        (
            "compile {heat} --pipeline cse --depth 2",
            "--depth has no effect with --pipeline; write temporal-fusion{{depths=N}} in the pipeline",
        ),
        (
            "explain {heat} --pipeline cse",
            "--pipeline leaves a time loop without placed kernels; it needs at least choose-schedule,"
            "device-tiling,multi-queue-buffering,register-streaming,peel-boundaries",
        ),
        (
            "compile {empty}",
            "no time loop was found: timetile compiles scf.for loops over rotated stencil fields; the "
            "remarks say what stands in the way of those that are there",
        ),
    ],
)  # fmt: skip
def test_errors_are_one_sentence(
    line: str, sentence: str, heat: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    u, _ = fields()
    arrays: dict[str, Callable[[Path], None]] = {
        "one": lambda path: np.save(path, u),
        "typo": lambda path: np.savez(path, w=u),
        "wide": lambda path: np.savez(path, k=np.zeros(3)),
        "small": lambda path: np.savez(path, u=np.zeros((3, 3))),
        "single": lambda path: np.savez(path, u=u.astype(np.float32)),
    }
    places = {"heat": heat, "folder": tmp_path, "png": tmp_path / "x.png"}
    places["png"].write_bytes(b"\x89PNG")
    places["empty"] = tmp_path / "empty.mlir"
    places["empty"].write_text("func.func @empty() { func.return }")
    for name, write in arrays.items():
        places[name] = tmp_path / f"{name}.{'npy' if name == 'one' else 'npz'}"
        write(places[name])
    assert error_of(line.format(**places), capsys) == sentence.format(**places)


def test_a_wrong_choice_names_the_right_ones(heat: Path, capsys: pytest.CaptureFixture[str]):
    sentence = error_of(f"compile {heat} --arch sm_10", capsys)
    assert sentence.startswith("argument --arch: invalid choice: 'sm_10' (choose from ")
    assert all(arch in sentence for arch in ARCHS)


def test_a_program_that_does_not_parse_is_shown(heat: Path, capsys: pytest.CaptureFixture[str]):
    heat.write_text("func.func @f() {\n  arith.no_such_op\n}\n")
    assert run(f"compile {heat}") == 2
    said = capsys.readouterr().err
    assert said.startswith(f"timetile: {heat} is not a valid program: {heat}:")
    assert "Operation arith.no_such_op is not registered" in said


def test_a_gpu_that_is_not_there(
    heat: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(commands, "gpu_is_available", lambda: False)
    assert error_of(f"run {heat} --executor gpu", capsys) == (
        "no GPU can be used, timetile doctor says why; run with --executor cpu"
    )


def test_a_gpu_of_another_number(
    heat: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def refuse(number: int) -> None:
        raise RuntimeError("the NVIDIA driver reports CUDA_ERROR_INVALID_DEVICE")

    monkeypatch.setattr(commands, "gpu_is_available", lambda: True)
    monkeypatch.setattr(commands, "device", refuse)
    assert error_of(f"run {heat} --device 7", capsys) == (
        "--device 7 cannot be opened: the NVIDIA driver reports CUDA_ERROR_INVALID_DEVICE"
    )


def test_other_exceptions_are_not_hidden(heat: Path, monkeypatch: pytest.MonkeyPatch):
    """What no user can do anything about keeps its traceback."""

    def fail(*arguments: object, **options: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(commands, "compile_program", fail)
    with pytest.raises(ZeroDivisionError):
        run(f"compile {heat}")
