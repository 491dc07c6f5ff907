"""
The required contents of `test/filecheck`: a file for every pass, dialect and target, every
operation and attribute in the dialect's file, and every sentence of the compiler to its user, word
for word.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path

import pytest
from xdsl.universe import Universe

from support.syntax import nodes_of
from timetile.lowering.universe import DIALECTS, PASSES, TARGETS

# One worker reads the sources.
pytestmark = pytest.mark.xdist_group("sources")

ROOT = Path(__file__).parents[2]
FILECHECK = ROOT / "test" / "filecheck"
FILES = sorted(FILECHECK.rglob("*.mlir"))

UNREACHABLE = {
    # The definitions of the operations refuse the IR first.
    re.escape("expected a field, got ") + ".+",
    re.escape("expected an integer, got ") + ".+",
    # NVRTC compiles every function for every known architecture.
    re.escape("NVRTC does not compile CUDA's functions for ") + ".+" + re.escape(": ") + ".+",
}
"""Sentences without IR that causes them."""


# Files.


@pytest.mark.parametrize("name", PASSES)
def test_pass_has_its_file(name: str):
    assert (FILECHECK / "passes" / f"{name}.mlir").is_file()


@pytest.mark.parametrize("name", TARGETS)
def test_target_has_its_file(name: str):
    assert (FILECHECK / "targets" / f"{name}.mlir").is_file()


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize("file", ["ops.mlir", "invalid.mlir"])
def test_dialect_has_its_files(name: str, file: str):
    assert (FILECHECK / "dialects" / name / file).is_file()


def test_every_file_is_of_something_registered():
    """A file has the name of its pass or target, and may add a subject: `ptx-refused.mlir`."""
    for folder, names in (("passes", PASSES), ("targets", TARGETS)):
        for file in (FILECHECK / folder).iterdir():
            assert any(file.stem == name or file.stem.startswith(f"{name}-") for name in names), (
                f"{file.name} belongs to nothing in lowering/universe.py"
            )


def test_plain_xdsl_opt_finds_everything():
    """
    The entries registered here are the entries found by xdsl-opt through the installed entry point.
    """
    found = Universe.get_multiverse()
    assert found.all_dialects.keys() >= DIALECTS.keys()
    assert found.all_passes.keys() >= PASSES.keys()
    assert found.all_targets.keys() >= TARGETS.keys()


@pytest.mark.parametrize("name", PASSES)
def test_registered_name_is_the_passes_own(name: str):
    assert PASSES[name]().name == name


# Operations and attributes.


def without_comments(file: Path) -> str:
    return re.sub(r"//.*", "", file.read_text())


@pytest.mark.parametrize("name", DIALECTS)
def test_every_operation_and_attribute_is_round_tripped(name: str):
    text = without_comments(FILECHECK / "dialects" / name / "ops.mlir")
    dialect = DIALECTS[name]()
    for named in (*dialect.operations, *dialect.attributes):
        assert re.search(rf"(?<![\w.]){named.name.replace('.', '[.<]')}(?![\w.])", text), (
            f"{named.name} does not occur in dialects/{name}/ops.mlir"
        )


# Sentences.


def pattern_of(message: ast.expr) -> str | None:
    """A regular expression for the texts of a string or an f-string; None for anything else."""
    match message:
        case ast.Constant(value=str() as text):
            return re.escape(text)
        case ast.JoinedStr(values=parts):
            return "".join(pattern_of(part) or ".+" for part in parts)
        case _:
            return None


SPEAKERS = {
    # Callers of a sentence, and the argument with the sentence.
    "VerifyException": 0,
    "CompileError": 0,
    "CannotRaiseError": 1,
    "remark": 1,
    "refuse": 1,
}


def sentences(file: Path) -> Iterator[str]:
    """The sentences of a file, as regular expressions."""
    for node in nodes_of(file):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            position = SPEAKERS.get(node.func.id)
            if position is not None and len(node.args) > position:
                pattern = pattern_of(node.args[position])
                if pattern is not None and pattern.strip(".+") and pattern not in UNREACHABLE:
                    yield pattern


@cache
def checks() -> str:
    """The CHECK lines of all files, comments left out."""
    lines = (re.findall(r"// *[A-Z]+(?:-[A-Z]+)?: +(.*)", file.read_text()) for file in FILES)
    return "\n".join(chain.from_iterable(lines))


@pytest.mark.parametrize("folder", ["dialects", "passes", "lowering"])
def test_every_sentence_is_pinned(folder: str):
    for source in sorted((ROOT / folder).rglob("*.py")):
        # The wording of a sentence, without its content.
        if source.name == "diagnostics.py":
            continue
        for sentence in sentences(source):
            assert re.search(sentence, checks()), (
                f"no CHECK line of test/filecheck says, as {source.name} does: {sentence}"
            )


# Each file.


def test_a_file_runs_and_states_its_intent():
    """Commands first, then at least a line of prose."""
    for file in FILES:
        commands, _, rest = file.read_text().partition("\n\n")
        assert all(line.startswith("// RUN: ") for line in commands.splitlines()), file
        intent = rest.partition("\n\n")[0].splitlines()
        assert all(re.match(r"// (?![A-Z-]+: )", line) for line in intent), file
        assert intent[-1].endswith("."), file


def test_every_prefix_is_used():
    """A prefix of a command without a line would check nothing."""
    for file in FILES:
        text = file.read_text()
        for command in re.findall(r"// RUN: (.*filecheck.*)", text):
            asked = re.search(r"--check-prefix(?:es)?=([\w,-]+)", command)
            for prefix in asked[1].split(",") if asked else ["CHECK"]:
                is_used = re.search(rf"// *{prefix}(-[A-Z0-9]+)?: ", text)
                assert is_used, f"no line of {file} says {prefix}:"


def prefixes_asked(text: str) -> set[str]:
    """The prefixes of lines for which the commands of a file ask."""
    commands = "\n".join(re.findall(r"// RUN: (.*)", text))
    named = re.findall(r"--check-prefix(?:es)?=([\w,-]+)", commands)
    asked = {"RUN", *chain.from_iterable(each.split(",") for each in named)}
    if re.search(r"filecheck %s(?!.*--check-prefix)", commands):
        asked.add("CHECK")
    return asked


def test_every_line_is_checked():
    """A line with a prefix of no command checks nothing."""
    suffix = r"-(?:NOT|NEXT|SAME|DAG|LABEL|EMPTY|COUNT-\d+)"
    for file in FILES:
        text = file.read_text()
        used = {re.sub(suffix + "$", "", p) for p in re.findall(r"// *([A-Z][A-Z0-9-]*): ", text)}
        assert used <= prefixes_asked(text), file
