"""
What can be counted of the words of sources and pages: docstrings, comments and prose.

The share of pronouns and relatives is the number of the words of `POINTERS` in docstrings, divided
by the number of all words in docstrings. Code between back quotes, fenced examples and lines
indented like code do not count. A sentence with a high share mostly cannot be read alone: xDSL's
docstrings have 2.6%. `LIMIT` holds for the docstrings and for the comments of every package; a
package with a higher share has a limit of its own in `REACHED`, for docstrings. Limits may only be
lowered. `PAGE_LIMIT` holds for every hand-written page.
"""

from __future__ import annotations

import ast
import inspect
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import cast

import pytest

ROOT = Path(__file__).parents[2]


LAYERS = ("dialects", "passes", "lowering", "runtime", "frontend")


POINTERS = frozenset(
    [
        "it",
        "its",
        "itself",
        "that",
        "which",
        "they",
        "them",
        "their",
        "theirs",
        "themselves",
        "this",
        "these",
        "those",
        "one",
        "ones",
        "what",
        "whatever",
        "such",
        "so",
        "there",
        "whose",
        "who",
        "whom",
        "he",
        "his",
    ]
)
"""Words for something named elsewhere."""


BEFORE_ONE = frozenset(
    [
        "the",
        "that",
        "this",
        "each",
        "every",
        "another",
        "other",
        "first",
        "last",
        "next",
        "same",
        "only",
        "a",
        "any",
        "which",
    ]
)
"""Words before "one" as a noun; elsewhere "one" is a number."""


LIMIT = 4.0
"""Allowed percent of pointers among the words of a package's docstrings, and of its comments."""


PAGE_LIMIT = 5.0
"""Allowed percent of pointers among the words of a page of the documentation."""

RECORDS = "experiments"
"""The folder of the log of measurements, left out: a record keeps its words."""

GENERATED = ("reference.md", "walkthrough.md")
"""Pages made from docstrings and files of tests."""

REACHED: dict[str, float] = {}
"""
Limits, in percent, of packages above `LIMIT`. Lower a number when the package gets better; add
none.
"""


BEGIN_WITH_THE_SAME: dict[str, int] = {}
"""
Allowed docstrings of a package that begin with "The same". Lower a number with each removal; add
none.
"""


WITHOUT_DOCSTRING: dict[str, int] = {}
"""
How many public classes, functions and methods of a package may lack a docstring. Lower a number;
add none.
"""


INHERITED = frozenset(
    [
        "apply",
        "parse",
        "print",
        "verify",
        "verify_",
        "parse_parameters",
        "print_parameters",
        "parse_parameter",
        "print_parameter",
        "get_effects",
        "match_and_rewrite",
        "get_canonicalization_patterns",
        "fold",
        "set_empty",
        "is_present",
        "is_anchorable",
        "get_traits",
        "get",
        "main",
    ]
)
"""Methods defined and documented by xDSL's classes."""


Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@cache
def sources() -> dict[str, list[Path]]:
    """
    The Python files of each package, inner packages included, by the layer or by the folder in a
    layer.
    """
    found: dict[str, list[Path]] = {}
    for layer in LAYERS:
        for path in sorted((ROOT / layer).rglob("*.py")):
            folders = path.parent.relative_to(ROOT).parts[:2]
            found.setdefault("/".join(folders), []).append(path)
    return found


@cache
def tree_of(path: Path) -> ast.Module:
    """The syntax of a file."""
    return ast.parse(path.read_text())


def docstrings(path: Path) -> Iterator[tuple[int, str]]:
    """
    The line and the text of each docstring: of files, classes, functions, and of names with a
    docstring below.
    """
    for node in ast.walk(tree_of(path)):
        for body in (getattr(node, name, None) for name in ("body", "orelse", "finalbody")):
            if not isinstance(body, list):
                continue
            for statement in cast(list[ast.stmt], body):
                match statement:
                    case ast.Expr(value=ast.Constant(value=str(text))):
                        yield statement.lineno, text
                    case _:
                        pass


def comments(path: Path) -> Iterator[tuple[int, str]]:
    """The line and the text of each line of comments, without marks for tools."""
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            text = token.string.lstrip("# ")
            if token.type == tokenize.COMMENT and not text.startswith("fmt:"):
                yield token.start[0], text


def words_of(text: str) -> list[str]:
    """The words of a docstring without code."""
    prose = re.sub(r"```.*?```|`[^`]*`", " ", inspect.cleandoc(text), flags=re.DOTALL)
    lines = [line for line in prose.splitlines() if not re.match(r"\s{4,}|\s*(%|//|#)", line)]
    return re.findall(r"[a-z]+", " ".join(lines).lower())


def pointers_of(words: list[str]) -> int:
    """
    The number of pointing words: words of `POINTERS`, and "one" as a noun, as in "the last one".
    """
    stands_for_a_noun = sum(pair[1] == "one" and pair[0] in BEFORE_ONE for pair in pairwise(words))
    return sum(word in POINTERS for word in words) + stands_for_a_noun


def share_of_pointers(paths: list[Path]) -> float:
    """The share of pointers among the words of the docstrings of some files, in percent."""
    texts = [words_of(text) for path in paths for _, text in docstrings(path)]
    return 100 * sum(map(pointers_of, texts)) / max(1, sum(map(len, texts)))


@pytest.mark.parametrize("package", sources())
def test_docstrings_of_a_package_point_at_little(package: str):
    share = share_of_pointers(sources()[package])
    limit = REACHED.get(package, LIMIT)
    assert share <= limit, f"{share:.1f}% of the words of {package} are pronouns or relatives"


@pytest.mark.parametrize("package", sources())
def test_comments_of_a_package_point_at_little(package: str):
    texts = [words_of(text) for path in sources()[package] for _, text in comments(path)]
    pointers, words = sum(map(pointers_of, texts)), sum(map(len, texts))
    most = max(1.0, LIMIT / 100 * words)
    assert pointers <= most, f"{pointers} of {words} words in comments are pronouns or relatives"


def test_a_comment_in_a_string_is_no_comment(tmp_path: Path):
    path = tmp_path / "source.py"
    path.write_text('text = "# in a string"\n# On a line of its own.\n')
    assert [text for _, text in comments(path)] == ["On a line of its own."]


@cache
def pages() -> dict[str, Path]:
    """The hand-written pages of the documentation, by name."""
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return {
        str(path.relative_to(ROOT)): path
        for path in found
        if path.parent.name != RECORDS and path.name not in GENERATED
    }


def prose_of(page: str) -> str:
    """The text of a page without blocks of code and targets of links."""
    without_code = re.sub(r"^```.*?^```", " ", page, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"\]\([^)]*\)", "]", without_code)


@pytest.mark.parametrize("name", pages())
def test_a_page_points_at_little(name: str):
    words = words_of(prose_of(pages()[name].read_text()))
    share = 100 * pointers_of(words) / len(words)
    assert share <= PAGE_LIMIT, f"{share:.1f}% of the words of {name} are pronouns or relatives"


def test_code_and_links_of_a_page_are_not_counted():
    page = "It is [so](which.md).\n\n```python\nthat = this\n```\n\nDone."
    assert words_of(prose_of(page)) == ["it", "is", "so", "done"]


def test_limits_are_of_packages_that_need_them():
    assert REACHED.keys() <= sources().keys()
    assert all(limit > LIMIT for limit in REACHED.values())


def test_pointers_are_counted_outside_of_code():
    assert words_of("It is `that`.\n\n        %x = what\n    a field, which") == [
        "it",
        "is",
        "a",
        "field",
        "which",
    ]


@pytest.mark.parametrize("package", sources())
def test_no_docstring_begins_with_the_same(package: str):
    """ "The same" needs the docstring above: name the thing."""
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in sources()[package]
        for line, text in docstrings(path)
        if text.strip().startswith("The same")
    ]
    assert len(found) <= BEGIN_WITH_THE_SAME.get(package, 0), found


ELSEWHERE = ("docs", "benchmarks", "examples", "test")
"""Folders with Python files outside of all packages."""


@pytest.mark.parametrize("folder", ELSEWHERE)
def test_no_docstring_outside_of_the_packages_leans_on_another(folder: str):
    """A docstring with one of these first words needs the sentence before."""
    files = sorted((ROOT / folder).rglob("*.py"))
    assert files, f"no files in {folder}"
    leaning = re.compile(r"\s*(The same|They|Their|It|Its|These|Those|So many)\b")
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in files
        for line, text in docstrings(path)
        if leaning.match(text)
    ]
    assert not found, found


@cache
def documented_methods() -> frozenset[str]:
    """
    The names of all methods with a docstring: a method of equal name in another class implements
    the method.
    """
    return frozenset(
        item.name
        for paths in sources().values()
        for path in paths
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ClassDef)
        for item in node.body
        if isinstance(item, ast.FunctionDef) and ast.get_docstring(item) is not None
    )


def undocumented(node: Documented, where: str) -> Iterator[str]:
    """The public classes, functions and methods of a file or class without a docstring."""
    for child in node.body:
        if not isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if child.name.startswith("_") or child.name in INHERITED:
            continue
        overloaded = any(ast.unparse(mark) == "overload" for mark in child.decorator_list)
        implements = isinstance(node, ast.ClassDef) and child.name in documented_methods()
        if ast.get_docstring(child) is None and not overloaded and not implements:
            yield f"{where}.{child.name}"
        if isinstance(child, ast.ClassDef):
            yield from undocumented(child, f"{where}.{child.name}")


@pytest.mark.parametrize("package", sources())
def test_what_is_public_has_a_docstring(package: str):
    found = [
        name
        for path in sources()[package]
        for name in undocumented(tree_of(path), str(path.relative_to(ROOT)))
    ]
    assert len(found) <= WITHOUT_DOCSTRING.get(package, 0), found
