"""docs/command_line.md lists the options of commands; docs/guide/tuning.md shows a report."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import timetile
from timetile.runtime.cli.command_line import make_parser
from timetile.runtime.cli.options import Options

ROOT = Path(__file__).parents[2]

SHARED = "Options of run, compile, explain and tune"
"""The section with the options of four commands."""

SECTIONS = {
    "run": (SHARED, "run"),
    "compile": (SHARED, "compile"),
    "explain": (SHARED, "explain"),
    "tune": (SHARED, "tune"),
    "example": ("example",),
}
"""The sections of the page with a command's options."""

ELSEWHERE = frozenset(["-h", "--help", "--verbose"])
"""Options of every command, described above the tables."""

NAMED_APART = frozenset(["--arch"])
"""Options with more choices than a row holds."""


def text_of(page: str) -> str:
    """The Markdown of a page."""
    return (ROOT / page).read_text()


def section_of(page: str, title: str) -> str:
    """The text below a title of a page, up to the next title."""
    _, _, rest = page.partition(f"\n## {title}\n")
    assert rest, f"no section {title}"
    return rest.partition("\n## ")[0]


def documented(section: str) -> dict[str, list[str]]:
    """The options of a section's table, or of the section's commands, each with the choices."""
    rows = re.findall(r"^\| (`.*?`) \|", section, re.MULTILINE)
    cells = rows or re.findall(r"`timetile (.*?)`", section)
    found: dict[str, list[str]] = {}
    for cell in cells:
        for option, value in re.findall(r"(?<![\w-])(--?[a-z][a-z-]*)(?: ([^`\s]+))?", cell):
            choices = value.replace("\\", "").split("|")
            found[option] = choices if len(choices) > 1 else []
    return found


def options_of(command: str) -> dict[str, list[str]]:
    """The options in the help of a command, each with the choices."""
    arguments = [command] if command == "example" else [command, "x.mlir"]
    parsed = make_parser().parse_args(arguments, namespace=Options())
    found: dict[str, list[str]] = {}
    for names in re.findall(r"^  (-.*?)(?:  .*)?$", parsed.parser.format_help(), re.MULTILINE):
        choices = [c for group in re.findall(r"\{(.*?)\}", names) for c in group.split(",")]
        for option in re.findall(r"(?<![\w{,-])--?[a-z][a-z-]*", names):
            found[option] = [] if option in NAMED_APART else choices
    return {option: found[option] for option in found if option not in ELSEWHERE}


@pytest.mark.parametrize("command", SECTIONS)
def test_the_page_lists_every_option_of_a_command_with_all_choices(command: str):
    listed: dict[str, list[str]] = {}
    for title in SECTIONS[command]:
        listed |= documented(section_of(text_of("docs/command_line.md"), title))
    assert listed == options_of(command)


def test_a_row_gives_the_options_and_the_choices():
    page = "\n## one\n\n| `-o FILE`, `--out FILE` | x |\n| `--emit a\\|b` | y |\n\n## two\n"
    assert documented(section_of(page, "one")) == {"-o": [], "--out": [], "--emit": ["a", "b"]}


def labels_of(report: str) -> list[str]:
    """The labels of a report's lines: the words up to two blanks."""
    return re.findall(r"^  (\w\S*(?: \S+)*?)  ", report, re.MULTILINE)


def test_the_guide_shows_and_explains_every_label_of_a_report():
    guide = text_of("docs/guide/tuning.md")
    (shown,) = re.findall(r"^```text\n(.*?)^```", guide, re.MULTILINE | re.DOTALL)
    program = timetile.compile(ROOT / "examples/heat2d.mlir", executor="cpu", cache=False)
    labels = labels_of(str(program.explain()))
    assert labels_of(shown) == labels
    explained = re.findall(r"^- \*\*(.*?)\.\*\*", guide, re.MULTILINE)
    assert set(labels) <= set(explained)
