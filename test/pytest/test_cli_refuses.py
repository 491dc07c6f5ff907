"""The command, and its refusals: one sentence for every error, and exit code 2."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path

import numpy as np
import pytest

import timetile
from support.command_line import error_of, fields, run
from timetile.passes.targets.isa import ISAS
from timetile.runtime.cli import compiled, main

pytestmark = pytest.mark.usefixtures("cache_of_file")


# The command.


def test_the_installed_command_is_main():
    (script,) = entry_points(group="console_scripts", name="timetile")
    assert script.load() is main


def test_the_option_version_prints_the_version(capsys: pytest.CaptureFixture[str]):
    assert run("--version") == 0
    assert capsys.readouterr().out == f"timetile {timetile.__version__}\n"


@pytest.mark.parametrize("command", ["", "run", "compile", "explain", "cache", "doctor"])
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]):
    assert run(f"{command} --help") == 0
    assert f"usage: timetile {command}".strip() in capsys.readouterr().out


# Errors: one sentence each, and exit code 2.


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("", "the following arguments are required: run|compile|explain|tune|example|cache|doctor; "
            "see timetile --help"),
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
        (
            "run heat2d --steps 1",
            "heat2d is the name of an example, and no file; timetile example heat2d --out DIR "
            "writes the file",
        ),
        (
            "explain model.py",
            "model.py is a program in Python; run the file with python model.py, or give a "
            "program in MLIR, as the mlir of a model",
        ),
        (
            "run {heat} --stpes=3",
            "--stpes is no option of timetile run; write --steps; see timetile run --help",
        ),
        ("run {heat} 3", "3 is no argument of timetile run; see timetile run --help"),
        (
            "explain {heat} --emit ptx",
            "--emit is no option of timetile explain; see timetile explain --help",
        ),
        ("run {png}", "{png} is not a text file; give a program in MLIR"),
        (
            "run {heat}",
            "arg3 (%steps) is the number of steps; give it with --steps N",
        ),
        (
            "run {heat} --steps 1",
            "no values for arg0 (%u), arg1 (%v); give values with --args IN.npz, or fill the "
            "fields with --random SEED or --init discs",
        ),
        (
            "run {heat} --steps 1 --random 0",
            "no value for arg2 (%k), a scalar of type f64; give the value with --set k=VALUE",
        ),
        (
            "run {heat} --random 0 --set k=1 --set steps=5 --steps 4",
            "arg3 (%steps) is the number of steps, and is given by --steps, too; give the number "
            "once",
        ),
        (
            "run {heat} --steps 1 --set k=1e400",
            "arg2 (%k) is of type f64, and '1e400' is not a number of the type",
        ),
        (
            "run {heat} --steps 99999999999999999999",
            "argument --steps: '99999999999999999999' is more than 9223372036854775807, the "
            "largest that fits; see timetile run --help",
        ),
        (
            "compile {heat} --pipeline ''",
            "--pipeline names no pass; leave out the option for the default passes",
        ),
        (
            "run {heat} --executor cpu --device 7",
            "--device has no effect with --executor cpu; leave out the option",
        ),
        ("run {heat} --steps 1 --set k", "--set k has no value; write --set k=VALUE"),
        (
            "run {heat} --steps 1 --set k=fast",
            "arg2 (%k) is of type f64, and 'fast' is not a number of the type",
        ),
        (
            "run {heat} --set steps=1.5",
            "arg3 (%steps) is of type index, and '1.5' is not a number of the type",
        ),
        (
            "run {heat} --steps 1 --set dt=1",
            "--set dt=1 names 'dt', not an argument of @heat; its arguments are arg0 (%u), "
            "arg1 (%v), arg2 (%k), arg3 (%steps)",
        ),
        (
            "run {heat} --steps 1 --set 4=1",
            "--set 4=1 names '4', not an argument of @heat; its arguments are arg0 (%u), "
            "arg1 (%v), arg2 (%k), arg3 (%steps)",
        ),
        (
            "run {heat} --steps 1 --set k=1 --set arg2=1",
            "arg2 (%k) is given twice; give every argument once",
        ),
        (
            "run {heat} --steps 1 --args {heat}",
            "{heat} is not a .npz file of plain arrays; write a file with np.savez",
        ),
        (
            "run {heat} --steps 1 --args {one}",
            "{one} holds one array; write a .npz file with np.savez",
        ),
        (
            "run {heat} --steps 1 --args {typo}",
            "{typo} names 'w', not an argument of @heat; its arguments are arg0 (%u), "
            "arg1 (%v), arg2 (%k), arg3 (%steps)",
        ),
        (
            "run {heat} --steps 1 --args {wide}",
            "{wide} has an array of shape (3,) for arg2 (%k), a scalar; give the scalar with "
            "--set k=VALUE",
        ),
        (
            "run {heat} --steps 1 --random 0 --set k=1 --args {small}",
            "argument 0 (%u) has shape (3, 3), and its field [-1, 15) x [-1, 20), halos included, "
            "has shape (16, 21); pass an array of the field's shape",
        ),
        (
            "run {heat} --steps 1 --random 0 --set k=1 --args {single}",
            "argument 0 (%u) has elements of float32, and its field of float64; pass it as float64",
        ),
        ("run {heat} --steps 1 --random 0 --set k=1 --out {folder}", "cannot open {folder}: Is a "
            "directory"),
        (
            "run {heat} --steps 1 --random 0 --set k=1 --plot {folder}/x.none",
            "{folder}/x.none is of no known kind of picture; give a name with the ending .png",
        ),
        (
            "run {heat} --steps 1 --executor numpy --check",
            "--check compares with another executor, and numpy is the last; run with --executor "
            "gpu, cpu, planes, simt or ptx",
        ),
        (
            "run {heat} --steps 1 --executor simt --threads 2",
            "--threads has no effect on the simt executor; run with --executor cpu",
        ),
        (
            "explain {heat} --steps 5",
            "--steps has no effect without --all; give --all to show launches",
        ),
        (
            "compile {heat} --emit tile --steps 5",
            "--steps has no effect without --emit bundle, the only output with a number of steps; "
            "leave out --steps",
        ),
        ("compile {heat} --depth 1 -o {folder}/none/x.ptx",
            "cannot open {folder}/none/x.ptx: No such file or directory"),
        (
            "compile {heat} --pipeline no-such-pass",
            "--pipeline 'no-such-pass' cannot be used: no pass is named no-such-pass; xdsl-opt "
            "--help lists all",
        ),
        (
            "compile {heat} --pipeline device-tiling{{",
            "--pipeline 'device-tiling{{' cannot be used: Expected argument name here",
        ),
        (
            "compile {heat} --pipeline cse --depth 2",
            "--depth has no effect with --pipeline; write temporal-fusion{{depths=N}} in the "
            "pipeline",
        ),
        (
            "explain {heat} --pipeline cse",
            "--pipeline leaves a time loop without placed kernels; it needs at least "
            "device-tiling,multi-queue-buffering,peel-boundaries",
        ),
        (
            "compile {empty}",
            "@empty stores no field: timetile compiles stencil.store operations, and nests of "
            "loops over memrefs, in scf.for loops over time or outside them; name another "
            "function, or store a result",
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
    assert all(arch in sentence for arch in ISAS)


def test_a_program_that_does_not_parse_is_shown(heat: Path, capsys: pytest.CaptureFixture[str]):
    heat.write_text("func.func @f() {\n  arith.no_such_op\n}\n")
    assert run(f"compile {heat}") == 2
    said = capsys.readouterr().err
    assert said.startswith(f"timetile: {heat} is not a valid program: {heat}:")
    assert "Operation arith.no_such_op is not registered" in said


def test_a_missing_gpu_is_refused(
    heat: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(compiled, "gpu_is_available", lambda: False)
    assert error_of(f"run {heat} --executor gpu", capsys) == (
        "no GPU can be used, timetile doctor says why; run with --executor cpu"
    )


def test_a_missing_numbered_gpu_is_refused(
    heat: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(compiled, "gpu_is_available", lambda: False)
    assert error_of(f"compile {heat} --device 7", capsys) == (
        "--device 7 cannot be opened, as no GPU can be used (timetile doctor tells the reason); "
        "leave out --device"
    )


def test_a_field_that_no_memory_holds_is_refused(heat: Path, capsys: pytest.CaptureFixture[str]):
    heat.write_text(
        heat.read_text().replace(",15]", ",1000000001]").replace(",20]", ",1000000001]")
    )
    said = error_of(f"run {heat} --random 1 --set k=1 --steps 1 --executor numpy", capsys)
    assert re.fullmatch(
        r"arg0 \(%u\) has \d+ bytes, more than any memory; give the program a smaller field", said
    )


def test_ctrl_c_while_the_compiler_is_loaded_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    class Interrupting:
        def find_spec(self, name: str, *rest: object) -> None:
            if name == "timetile.runtime.cli.command_line":
                raise KeyboardInterrupt

    monkeypatch.setattr(sys, "meta_path", [Interrupting(), *sys.meta_path])
    monkeypatch.delitem(sys.modules, "timetile.runtime.cli.command_line")
    assert main(["doctor"]) == 130
    assert capsys.readouterr().err == "timetile: interrupted\n"


def test_a_number_that_no_gpu_has_is_refused_with_the_drivers_reason(
    heat: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def refuse(number: int) -> None:
        raise RuntimeError("the NVIDIA driver reports CUDA_ERROR_INVALID_DEVICE")

    monkeypatch.setattr(compiled, "gpu_is_available", lambda: True)
    monkeypatch.setattr(compiled, "device", refuse)
    assert error_of(f"run {heat} --device 7", capsys) == (
        "--device 7 cannot be opened: the NVIDIA driver reports CUDA_ERROR_INVALID_DEVICE"
    )


def test_an_unforeseen_failure_is_one_sentence_and_a_traceback_on_request(
    heat: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def fail(*arguments: object, **options: object) -> None:
        raise ZeroDivisionError("of a\nkind")

    monkeypatch.setattr(compiled, "compile_program", fail)
    assert run(f"compile {heat}") == 1
    said = capsys.readouterr().err
    assert re.fullmatch(
        r"timetile: an internal error, please report it: ZeroDivisionError: of a kind "
        r"\(\S+test_cli_refuses.py:\d+\); --verbose shows the traceback\n",
        said,
    )
    assert run(f"compile {heat} --verbose") == 1
    assert "Traceback" in capsys.readouterr().err


def test_coordinates_beyond_32_bits_are_refused_by_compile(
    heat: Path, capsys: pytest.CaptureFixture[str]
):
    heat.write_text(heat.read_text().replace(",20]", ",2147483649]"))
    said = error_of(f"compile {heat} --arch sm_90", capsys)
    assert re.fullmatch(
        r"temporal\.loop in @heat \(.*heat\.mlir:7\): a field reaches from -1 to 2147483649 along "
        r"axis 1, and coordinates end at 1073741824; cut the domain into several",
        said,
    )


def test_a_program_of_400_nested_loops_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    field = "!stencil.field<[-1,9]xf64>"
    loops = [f"scf.for %t{k} = %zero to %one step %one {{" for k in range(400)]
    program = tmp_path / "nested.mlir"
    program.write_text(
        "\n".join(
            [
                f"func.func @nested(%u: {field}, %v: {field}) {{",
                "%zero = arith.constant 0 : index",
                "%one = arith.constant 1 : index",
                *loops,
                f"%x = stencil.load %u : {field} -> !stencil.temp<?xf64>",
                f"stencil.store %x to %v(<[0], [9]>) : !stencil.temp<?xf64> to {field}",
                *("}" for _ in loops),
                "func.return",
                "}",
            ]
        )
    )
    assert error_of(f"run {program} --random 1 --executor cpu", capsys) == (
        "the program is nested too deeply for Python's stack; write fewer loops inside each other"
    )
