"""
The code of the documentation runs: every Python block and every `sh` block of README.md and of
docs/.

A page's Python blocks run in order, in one namespace, as a file with the page's line numbers. An
`sh` block runs in bash, in a folder that has `examples/`. Commands that are not run stand in a
`console` block, behind a `$`.
"""

from __future__ import annotations

import io
import os
import re
import runpy
import shlex
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path

import pytest
from xdsl.xdsl_opt_main import xDSLOptMain

from timetile.runtime.cli import main
from timetile.runtime.cli.command_line import make_parser

# Pages share kernels of the examples: one worker has the cache.
pytestmark = pytest.mark.xdist_group("pages")

ROOT = Path(__file__).parents[2]
GENERATED = {"docs/reference.md", "docs/walkthrough.md"}
"""Pages with generators that run the code, and compare the page with the output."""

SYSTEMS = sorted(str(page.relative_to(ROOT)) for page in (ROOT / "docs" / "systems").glob("*.md"))
RUN_BY_ANOTHER_TEST = dict.fromkeys(["docs/systems.md", *SYSTEMS], "test_systems_page.py")
"""Pages with place holders in `sh` blocks, or with printed kernels, and the test of the pages."""

SHOWN = (
    "pip install ",
    "mpiexec ",
    "make ",
    "python benchmarks/",
    "python docs/",
    "timetile doctor",
    "nsys ",
    "ncu ",
)
"""Commands of `console` blocks: such commands install, need a GPU, or depend on the machine."""

OWN_TOOLS = ("timetile", "xdsl-opt")

LANGUAGES = {"python", "sh", "console", "mlir", "c", "text", "diff", "{toctree}", ""}

PAGES = sorted(
    page
    for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    if (page := str(path.relative_to(ROOT))) not in GENERATED
)


def text_of(page: str) -> str:
    """The Markdown of a page."""
    return (ROOT / page).read_text()


def blocks(page: str, language: str) -> list[str]:
    """The fenced blocks of one language of a page."""
    return re.findall(rf"^```{language}\n(.*?)^```", text_of(page), re.MULTILINE | re.DOTALL)


def python_of(page: str) -> str:
    """The Python blocks of a page as one file; each line has the line number of the page."""
    lines: list[str] = []
    inside = False
    for line in text_of(page).splitlines():
        if line.startswith("```"):
            inside = line == "```python"
            lines.append("")
        else:
            lines.append(line if inside else "")
    return "\n".join(lines)


WITH_PYTHON = [page for page in PAGES if blocks(page, "python")]
WITH_SHELL = [page for page in PAGES if blocks(page, "sh") and page not in RUN_BY_ANOTHER_TEST]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache_of_file: None) -> Path:
    """The current folder, with the examples."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("page", WITH_PYTHON)
def test_python_of_a_page_runs(page: str, folder: Path, capsys: pytest.CaptureFixture[str]):
    path = folder / f"{Path(page).stem}.py"
    path.write_text(python_of(page))
    runpy.run_path(str(path))


def run_in_bash(script: str) -> None:
    """Run a script in bash, with the tools beside the running interpreter, in any environment."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{script}\n{done.stderr}"


def run_here(tool: str, arguments: list[str]) -> None:
    """Run one of our tools in the process of the test, without the start of a new process."""
    with redirect_stdout(io.StringIO()):
        if tool == "timetile":
            assert main(arguments) == 0
        else:
            xDSLOptMain(args=arguments).run()


@pytest.mark.parametrize("page", WITH_SHELL)
def test_shell_commands_of_a_page_run(page: str, folder: Path):
    for script in blocks(page, "sh"):
        commands = [shlex.split(line) for line in script.splitlines()]
        if re.search(r"[|<>;&$]", script) or any(c[0] not in OWN_TOOLS for c in commands):
            run_in_bash(script)
            continue
        for tool, *arguments in commands:
            run_here(tool, arguments)


def shown_commands(page: str) -> list[str]:
    """The `timetile` commands of a page in indented blocks, too long to be run."""
    text = text_of(page).replace("\\\n", " ")
    return re.findall(r"^    (timetile .*\bexamples/.*)$", text, re.MULTILINE)


SHOWN_COMMANDS = [command for page in PAGES for command in shown_commands(page)]


@pytest.mark.parametrize("command", SHOWN_COMMANDS)
def test_a_command_that_is_only_shown_is_understood(command: str):
    options = make_parser().parse_args(shlex.split(command)[1:])
    assert (ROOT / options.program).exists()


@pytest.mark.parametrize("page", PAGES)
def test_every_block_has_a_language_that_is_known(page: str):
    opened = re.findall(r"^```(.*)\n(?:(?!```).*\n)*```$", text_of(page), re.MULTILINE)
    assert set(opened) <= LANGUAGES


@pytest.mark.parametrize("page", PAGES)
def test_console_blocks_show_only_what_no_test_can_run(page: str):
    commands = [
        line.removeprefix("$ ")
        for block in blocks(page, "console")
        for line in block.splitlines()
        if line.startswith("$ ")
    ]
    assert all(command.startswith(SHOWN) or " --gpus " in command for command in commands)


def test_the_pages_with_code_are_found():
    assert {"README.md", "docs/python.md", "docs/guide/first_program.md"} <= set(WITH_PYTHON)
    assert {"README.md", "docs/guide/tuning.md"} <= set(WITH_SHELL)
    assert RUN_BY_ANOTHER_TEST.keys() <= set(PAGES)
