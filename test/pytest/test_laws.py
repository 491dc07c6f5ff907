"""
Laws of the packages: imports point one way, and finding timetile costs nothing. Laws of every file:
nothing is silenced, and sizes are bounded.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import timetile
from support.syntax import nodes_of, tree_of
from support.words import OF_NAMES, pointers_of_name

pytestmark = pytest.mark.xdist_group("sources")

PACKAGE = Path(timetile.__file__).parent
LAYERS = ("dialects", "passes", "lowering", "runtime", "frontend")
"""Each layer may import itself and the layers before."""


def sources(layer: str) -> list[Path]:
    return sorted((PACKAGE / layer).rglob("*.py"))


def imports_of(path: Path) -> Iterator[tuple[int, str]]:
    """
    Every module imported by a file, at any place of the file, with the line; relative modules as
    dots.
    """
    for node in nodes_of(path):
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, alias.name) for alias in names)
            case ast.ImportFrom(module=module, level=level, names=names):
                yield node.lineno, "." * level + (module or "")
                # `from timetile import passes` names a module too.
                yield from ((node.lineno, f"{module}.{alias.name}") for alias in names)
            case _:
                pass


def layer_of(module: str) -> str | None:
    """The layer of a module; None for modules outside timetile."""
    parts = module.split(".")
    return parts[1] if parts[0] == "timetile" and len(parts) > 1 and parts[1] in LAYERS else None


@pytest.mark.parametrize("layer", LAYERS)
def test_imports_point_one_way(layer: str):
    allowed = LAYERS[: LAYERS.index(layer) + 1]
    files = sources(layer)
    assert files, f"no files in {layer}"
    wrong = [
        f"{path.relative_to(PACKAGE)}:{line} imports {module}"
        for path in files
        for line, module in imports_of(path)
        if (other := layer_of(module)) is not None and other not in allowed
    ]
    assert not wrong, wrong


def test_imports_are_absolute_and_name_the_package():
    """A root folder imported under its own name would be a second copy of the package."""
    wrong = [
        f"{path.relative_to(PACKAGE)}:{line} imports {module}"
        for layer in LAYERS
        for path in sources(layer)
        for line, module in imports_of(path)
        if module.startswith(".") or module.split(".")[0] in LAYERS
    ]
    assert not wrong, wrong


def python(code: str, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run code in a new interpreter, with a folder at the head of the interpreter's path."""
    prologue = "" if path is None else f"import sys; sys.path.insert(0, {str(path)!r}); "
    command = [sys.executable, "-c", prologue + code]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def modules_after(code: str) -> set[str]:
    """The modules loaded by an interpreter after some code."""
    done = python(f"{code}\nimport sys, json; print(json.dumps(list(sys.modules)))")
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


def test_finding_timetile_loads_nothing_heavy():
    """Every run of xdsl-opt imports the universe."""
    loaded = modules_after("import timetile.lowering.universe")
    heavy = {"numpy", "cuda", "matplotlib", "rich", "timetile.runtime", "timetile.passes"}
    assert not (heavy | {"timetile.dialects"}) & loaded


def test_everything_in_the_universe_loads_without_the_runtime():
    """Other frontends embed the passes: passes import neither NumPy nor CUDA."""
    code = """
from timetile.lowering.universe import TIMETILE_UNIVERSE as universe
for kind in (universe.all_dialects, universe.all_passes, universe.all_targets):
    for name, factory in kind.items():
        assert factory().name == name, name
"""
    loaded = modules_after(code)
    assert "timetile.passes.tiling.device_tiling" in loaded
    assert not {"cuda", "numpy", "timetile.runtime"} & loaded


@pytest.mark.parametrize("layer", LAYERS)
def test_root_folders_refuse_another_name(layer: str):
    """The folders lie at the top of the repository; imports from the top would make copies."""
    done = python(f"import {layer}", PACKAGE)
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last == (f"ImportError: import this package as 'timetile.{layer}', not as {layer!r}")


ROOT = Path(__file__).parents[2]
FOLDERS = (*LAYERS, "src/timetile", "docs", "benchmarks", "examples", "test")
"""The folders with Python files, below the root."""

MOST_LINES = 400
"""Lines of a file."""

MOST_LINES_OF_A_FUNCTION = 60
"""Lines of a function, without the docstring."""


def files_of(folder: str) -> list[Path]:
    """The Python files below a folder of the repository, without files behind links."""
    return sorted((ROOT / folder).rglob("*.py"))


def lines_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The lines of a function, from the name to the end, without the docstring's lines."""
    assert function.end_lineno is not None
    count = function.end_lineno - function.lineno + 1
    match function.body[0]:
        case ast.Expr(value=ast.Constant(value=str()), lineno=first, end_lineno=int(last)):
            return count - (last - first + 1)
        case _:
            return count


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_file_and_no_function_is_long(folder: str):
    files = files_of(folder)
    assert files, f"no files in {folder}"
    long: list[str] = []
    for path in files:
        where, text = path.relative_to(ROOT), path.read_text()
        if len(text.splitlines()) > MOST_LINES:
            long.append(f"{where} has more than {MOST_LINES} lines")
        for node in nodes_of(path):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            if lines_of(node) > MOST_LINES_OF_A_FUNCTION:
                long.append(f"{node.name} in {where} has {lines_of(node)} lines")
    assert not long, long


def test_a_name_of_a_test_can_be_read_alone():
    """A first word that points, or two such words, would lean on another test's name."""
    names = [
        node.name.removeprefix("test_").split("_")
        for path in files_of("test/pytest")
        for node in tree_of(path).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]
    leaning = [
        "_".join(words)
        for words in names
        if words[0] in OF_NAMES or len(words) == 1 or pointers_of_name(words) > 1
    ]
    assert names and not leaning, leaning


EXAMPLE = "my_pass.py"
"""The file that a page tells the reader to write."""


def test_a_file_in_backquotes_exists():
    """
    Docstrings, comments and pages name files of the repository, with or without the folder. Logs
    of experiments name files of their day.
    """
    texts = [
        path
        for folder in (*LAYERS, "src", "docs", "benchmarks", "examples", "test")
        for suffix in ("py", "md", "mlir")
        for path in (ROOT / folder).rglob(f"*.{suffix}")
        if "experiments" not in path.parts
    ]
    texts += ROOT.glob("*.md")
    assert len(texts) > 500
    files = {f"/{path.relative_to(ROOT)}" for path in texts}
    wrong = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in texts
        for name in re.findall(r"`([\w./-]+\.py)`", path.read_text())
        if name != EXAMPLE and not any(file.endswith(f"/{name}") for file in files)
    ]
    assert not wrong, wrong


def test_no_file_silences_its_checks():
    """Neither a type error nor an exception is hidden."""
    own = Path(__file__).resolve()
    files = [path for folder in FOLDERS for path in files_of(folder) if path.resolve() != own]
    for path in files:
        text = path.read_text()
        assert "type: ignore" not in text and "noqa" not in text, path
        for node in nodes_of(path):
            if isinstance(node, ast.ExceptHandler):
                assert not isinstance(node.body[0], ast.Pass), f"{path}:{node.lineno}"
