"""
`timetile example` lists, shows and writes the files of examples/, and prints correct commands.
"""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from support.command_line import error_of, run
from timetile.runtime.cli.command_line import make_parser
from timetile.runtime.cli.example import examples, title_of

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = {
    **{path.stem: path for path in EXAMPLES.glob("*.mlir")},
    **{f"python/{p.stem}": p for p in (EXAMPLES / "python").glob("*.py") if p.stem != "draw"},
}


def test_all_examples_are_listed(capsys: pytest.CaptureFixture[str]):
    assert run("example") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(examples())
    assert set(examples()) == set(NAMES)
    for line, name in zip(lines, examples()):
        assert line.endswith("  " + title_of(NAMES[name].read_text())) and line.endswith(".")


@pytest.mark.parametrize("name", NAMES)
def test_an_example_is_shown(name: str, capsys: pytest.CaptureFixture[str]):
    assert run(f"example {name}") == 0
    assert capsys.readouterr().out == NAMES[name].read_text()


@pytest.mark.parametrize("name", NAMES)
def test_an_example_is_written_with_its_command(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    folder = tmp_path / "a folder"
    assert run(f"example {name} --out {shlex.quote(str(folder))}") == 0
    (path,) = folder.iterdir()
    assert path.read_text() == NAMES[name].read_text()
    wrote, command = capsys.readouterr().out.splitlines()
    assert wrote == f"wrote {path}"
    first, *words = shlex.split(command.removeprefix("run it: "))
    if path.suffix == ".py":
        assert (first, words) == ("python", [str(path)])
        assert '\nif __name__ == "__main__":\n' in path.read_text()
    else:
        assert first == "timetile" and make_parser().parse_args(words).program == path


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("example plate", f"there is no example 'plate'; the examples are {', '.join(examples())}"),
        (
            "example --out {folder}",
            "--out needs the name of an example; timetile example lists the names",
        ),
        ("example heat2d --out {folder}/file", "cannot open {folder}/file: File exists"),
    ],
)
def test_an_unknown_example_is_refused(
    line: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "file").touch()
    assert error_of(line.format(folder=tmp_path), capsys) == sentence.format(folder=tmp_path)
