"""
Counts of the words of sources and pages: docstrings, comments, messages and prose.

The share of pointers is the number of the words of `POINTERS`, divided by the number of all words.
Code between back quotes, fenced examples and lines indented like code do not count. A sentence with
a high share mostly cannot be read alone: xDSL's docstrings have 2.6%. `LIMIT` holds for the
docstrings and for the comments of every package and of every other folder, and for the messages of
every layer; `OF_LIMIT` and `REPEATS_LIMIT` for chains of nouns and for repeated words, the price of
rare pronouns; `FILE_LIMIT` for every file; `PAGE_LIMIT` for every hand-written page. Limits may
only be lowered.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

from support.syntax import nodes_of, tree_of
from support.words import (
    comments,
    comments_of_mlir,
    docstrings,
    messages,
    pointers_of,
    repeats_a_word,
    sentences,
    words_of,
)

pytestmark = pytest.mark.xdist_group("sources")

ROOT = Path(__file__).parents[2]

LAYERS = ("dialects", "passes", "lowering", "runtime", "frontend")


LIMIT = 5.0
"""Allowed percent of pointers: a package's docstrings, its comments, and a layer's messages."""

OF_LIMIT = 9.5
"""Allowed percent of "of" among the words of a folder's docstrings. (xDSL's have 2.6%.)"""

REPEATS_LIMIT = 30.0
"""Allowed percent of sentences with a noun or verb twice, in a folder's docstrings."""

MLIR_LIMIT = 6.8
"""Allowed percent of pointers among the words of all comments of programs in MLIR."""

FILE_LIMIT = 6.0
"""Allowed percent of pointers among the words of a file's docstrings and comments."""

FEW_WORDS = 100
"""A file of at most as many words has no limit alone."""


PAGE_LIMIT = 5.0
"""Allowed percent of pointers among the words of a page of the documentation."""

RECORDS = "experiments"
"""The folder of the log of measurements, left out: a record keeps its words."""

GENERATED = ("reference.md", "walkthrough.md")
"""Pages made from docstrings and files of tests."""


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


ELSEWHERE = ("docs", "benchmarks", "examples", "test")
"""Folders with Python files outside of all packages."""


@cache
def folders() -> dict[str, list[Path]]:
    """The Python files of each package, and of each folder outside of all packages."""
    elsewhere = {name: sorted((ROOT / name).rglob("*.py")) for name in ELSEWHERE}
    assert all(elsewhere.values())
    return sources() | elsewhere


def pointers_and_words(texts: Iterable[str]) -> tuple[int, int]:
    """The number of pointers in some texts, and the number of all words."""
    words = [words_of(text) for text in texts]
    return sum(map(pointers_of, words)), sum(map(len, words))


def check_share(texts: Iterable[str], limit: float, place: str) -> None:
    """The share of pointers in the texts of a place is at most `limit` percent, or one word."""
    pointers, words = pointers_and_words(texts)
    share = 100 * pointers / max(1, words)
    assert pointers <= 1 or share <= limit, f"{share:.1f}% of {words} words of {place} are pointers"


@pytest.mark.parametrize("folder", folders())
def test_docstrings_of_a_folder_point_at_little(folder: str):
    found = [text for path in folders()[folder] for _, text in docstrings(path)]
    check_share(found, LIMIT, f"docstrings of {folder}")


@pytest.mark.parametrize("folder", folders())
def test_comments_of_a_folder_point_at_little(folder: str):
    found = [text for path in folders()[folder] for text in comments(path)]
    check_share(found, LIMIT, f"comments of {folder}")


@pytest.mark.parametrize("folder", folders())
def test_a_file_points_at_little(folder: str):
    for path in folders()[folder]:
        found = [*comments(path), *(text for _, text in docstrings(path))]
        if pointers_and_words(found)[1] > FEW_WORDS:
            check_share(found, FILE_LIMIT, str(path.relative_to(ROOT)))


@pytest.mark.parametrize("folder", folders())
def test_docstrings_of_a_folder_chain_few_nouns(folder: str):
    words = [
        w for path in folders()[folder] for _, text in docstrings(path) for w in words_of(text)
    ]
    share = 100 * words.count("of") / len(words)
    assert share <= OF_LIMIT, f'{share:.1f}% of {len(words)} words of {folder} are "of"'


@pytest.mark.parametrize("folder", folders())
def test_sentences_of_a_folder_repeat_few_words(folder: str):
    found = [
        s for path in folders()[folder] for _, text in docstrings(path) for s in sentences(text)
    ]
    repeating = sum(map(repeats_a_word, found))
    share = 100 * repeating / len(found)
    assert repeating <= 1 or share <= REPEATS_LIMIT, f"{share:.1f}% of {folder} repeat a word"


def test_comments_of_programs_point_at_little():
    paths = [
        p for folder in ("test/filecheck", "examples") for p in (ROOT / folder).rglob("*.mlir")
    ]
    words = [word for path in sorted(paths) for word in words_of(comments_of_mlir(path))]
    share = 100 * pointers_of(words) / len(words)
    assert share <= MLIR_LIMIT, f"{share:.1f}% of {len(words)} words of comments are pointers"


def test_a_repeated_word_is_counted_once_a_sentence():
    first, second = sentences("The cells of a row of cells. Both rows, with their halos.")
    assert repeats_a_word(first) and not repeats_a_word(second)


@pytest.mark.parametrize("layer", LAYERS)
def test_messages_of_a_layer_point_at_little(layer: str):
    found = [text for path in sorted((ROOT / layer).rglob("*.py")) for text in messages(path)]
    assert found, f"no messages in {layer}"
    check_share(found, LIMIT, f"messages of {layer}")


def test_messages_are_texts_of_refusals_errors_and_help(tmp_path: Path):
    path = tmp_path / "source.py"
    path.write_text(
        'refuse(op, f"it has {n} " "rings")\n'
        'raise ValueError("no plane" if x else "no ring")\n'
        'parser.add_argument("--out", help="the file")\n'
        'print("which is no message")\n'
    )
    found = [" ".join(text.split()) for text in messages(path)]
    assert sorted(found) == ["it has rings", "no plane no ring", "the file"]


def test_a_comment_in_a_string_is_no_comment(tmp_path: Path):
    path = tmp_path / "source.py"
    path.write_text(
        'text = "# in a string" + \'# "\'  # Behind a line.\n'
        'more = "\\"# in a string"  # fmt: skip\n'
        '"""A docstring\n# of "two" lines."""\n# On a line of its own.\n'
    )
    assert comments(path) == ("Behind a line.", "On a line of its own.")


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
    assert not found, found


@pytest.mark.parametrize("folder", ELSEWHERE)
def test_no_docstring_outside_of_the_packages_leans_on_another(folder: str):
    """A docstring with one of these first words needs the sentence before."""
    leaning = re.compile(r"\s*(The same|They|Their|It|Its|These|Those|So many)\b")
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in folders()[folder]
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
        for node in nodes_of(path)
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
def test_every_public_name_has_a_docstring(package: str):
    found = [
        name
        for path in sources()[package]
        for name in undocumented(tree_of(path), str(path.relative_to(ROOT)))
    ]
    assert not found, found
