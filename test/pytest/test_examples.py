"""The examples: programs agree on all executors, drivers run, pictures exist."""

from __future__ import annotations

import re
import runpy
import shlex
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest

import timetile
from timetile.runtime.arithmetic.cells import dtype_of
from timetile.runtime.cli.command_line import make_parser
from timetile.runtime.machine.driver import gpu_is_available
from timetile.runtime.program.compiled_program import CompiledProgram, Executor

pytestmark = pytest.mark.usefixtures("chosen_among_few")

EXAMPLES = Path(__file__).parents[2] / "examples"
PROGRAMS = sorted(EXAMPLES.glob("*.mlir"))
PICTURE_BYTES = 150_000
OTHERS: tuple[tuple[Executor, int], ...] = (
    (("simt", 2), ("gpu", 2)) if gpu_is_available() else (("simt", 2),)
)
"""Executors of kernels, and the depth of a kernel."""

LONG: dict[str, tuple[tuple[Executor, int], ...]] = {"star25": (("simt", 1), ("planes", 2))}
"""Executors and depths for a program with much code: threads run a kernel of single steps."""

# A size that leaves tiles partly filled, by rank.
SMALL = {2: 37, 3: 11}

each_program = pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)


def shrunken(text: str) -> str:
    """An example's program on a smaller domain."""
    (sides,) = re.findall(r"^!field = !stencil\.field<((?:\[-?\d+,\d+\]x)+)", text, re.MULTILINE)
    (halo, top), *others = re.findall(r"\[-(\d+),(\d+)\]", sides)
    assert all(side == (halo, top) for side in others)
    size, small = int(top) - int(halo), SMALL[1 + len(others)]
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith("!field"):
            line = line.replace(f",{top}]", f",{small + int(halo)}]")
        elif "stencil.store" in line:
            line = re.sub(rf"\b{size}\b", str(small), line)
        lines.append(line)
    return "\n".join(lines)


def arguments_for(program: CompiledProgram) -> list[Any]:
    """
    Random fields, halos included, a small number for every rate, and no steps by the argument.
    """
    random = np.random.default_rng(3)

    def scalar(dtype: np.dtype[Any]) -> float:
        return 0.1 if dtype.kind == "f" else 0

    return [
        scalar(dtype_of(p.kind))
        if p.bounds is None
        else random.random(p.shape).astype(dtype_of(p.kind))
        for p in program.parameters
    ]


def test_every_program_has_a_driver_and_a_picture():
    names = {path.stem for path in PROGRAMS}
    assert names == {path.stem for path in EXAMPLES.glob("*.py")}
    assert names == {path.stem for path in (EXAMPLES / "pictures").glob("*.png")}
    assert len(names) == 5


@each_program
def test_the_picture_of_an_example_is_a_small_file(path: Path):
    picture = EXAMPLES / "pictures" / f"{path.stem}.png"
    assert picture.stat().st_size < PICTURE_BYTES


@each_program
def test_all_executors_agree_on_a_smaller_domain(path: Path):
    text = shrunken(path.read_text())
    assert len(text) < len(path.read_text())
    on_cpu = timetile.compile(text, executor="cpu", cache=False)
    expected = arguments_for(on_cpu)
    # Enough for kernels of both depths, with two and with three buffers.
    latest = on_cpu(*expected, steps=6).latest
    assert all(np.isfinite(field).all() for field in expected)
    for executor, depth in LONG.get(path.stem, OTHERS):
        program = timetile.compile(text, executor=executor, depth=depth, cache=False)
        fields = arguments_for(program)
        result = program(*fields, steps=6)
        assert result.latest == latest
        for number, (a, b) in enumerate(zip(expected, fields, strict=True)):
            assert np.array_equal(a, b), f"argument {number} differs on {executor}"


@pytest.mark.covering(every=2)
@each_program
def test_the_driver_draws_its_picture(
    path: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    picture = tmp_path / "picture.png"
    driver = str(path.with_suffix(".py"))
    command = [driver, "--steps", "2", "--executor", "cpu", "--out", str(picture)]
    monkeypatch.setattr("sys.argv", command)
    monkeypatch.chdir(tmp_path)
    plt.switch_backend("agg")
    runpy.run_path(driver, run_name="__main__")
    plt.close("all")
    assert "2 steps" in capsys.readouterr().out
    assert picture.read_bytes().startswith(b"\x89PNG")


@each_program
def test_the_command_in_the_header_is_right(path: Path):
    """The header names the program, and existing options and arguments."""
    header = "".join(
        line.removeprefix("//").rstrip() + "\n"
        for line in path.read_text().splitlines()
        if line.startswith("//")
    )
    (command,) = re.findall(r"^ {3}timetile (run .*(?:\n {7}.*)*)", header, re.MULTILINE)
    options = make_parser().parse_args(shlex.split(command))
    assert options.program.name == path.name
    program = timetile.compile(path, executor="cpu")
    names = {p.name for p in program.parameters}
    given = {setting.partition("=")[0] for setting in options.set}
    assert names.issuperset(given)
    scalars = {p.name for p in program.parameters if p.bounds is None}
    assert scalars <= given | {"steps"} and options.steps
    # Coefficients have a value; fields written by steps have a shape.
    assert options.init is not None
