"""Words of sources and pages, and the words with which a sentence points at another sentence."""

from __future__ import annotations

import ast
import inspect
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import cast

from support.syntax import nodes_of

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
"""Words before "one" as a noun, counted twice."""


@cache
def docstrings(path: Path) -> tuple[tuple[int, str], ...]:
    """
    The line and the text of each docstring: of files, classes, functions, and of names with a
    docstring below.
    """
    return tuple(docstrings_of(nodes_of(path)))


def docstrings_of(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    """The line and the text of each docstring among the nodes of a syntax."""
    for node in nodes:
        for body in (getattr(node, name, None) for name in ("body", "orelse", "finalbody")):
            if not isinstance(body, list):
                continue
            for statement in cast(list[ast.stmt], body):
                match statement:
                    case ast.Expr(value=ast.Constant(value=str(text))):
                        yield statement.lineno, text
                    case _:
                        pass


STRING_OR_COMMENT = re.compile(
    r'"""(?:\\[\s\S]|[^\\])*?"""|"(?:\\[\s\S]|[^"\\\n])*"'
    r"|'''(?:\\[\s\S]|[^\\])*?'''|'(?:\\[\s\S]|[^'\\\n])*'|#(?P<comment>.*)"
)
"""A string, or a comment up to the end of the line: a comment begins outside of strings."""


@cache
def comments(path: Path) -> tuple[str, ...]:
    """The text of each line of comments, without marks for tools."""
    found = (each["comment"] for each in STRING_OR_COMMENT.finditer(path.read_text()))
    texts = (comment.lstrip("# ") for comment in found if comment is not None)
    return tuple(text for text in texts if not text.startswith("fmt:"))


def words_of(text: str) -> list[str]:
    """The words of a docstring without code."""
    prose = re.sub(r"```.*?```|`[^`]*`", " ", inspect.cleandoc(text), flags=re.DOTALL)
    lines = [line for line in prose.splitlines() if not re.match(r"\s{4,}|\s*(%|//|#)", line)]
    return re.findall(r"[a-z]+", " ".join(lines).lower())


def pointers_of(words: list[str]) -> int:
    """
    The number of pointing words: words of `POINTERS`, and once more each "one" as a noun, as in
    "the last one".
    """
    stands_for_a_noun = sum(pair[1] == "one" and pair[0] in BEFORE_ONE for pair in pairwise(words))
    return sum(word in POINTERS for word in words) + stands_for_a_noun


SHORT_WORD = 3
"""Words of at most as many letters are no nouns to repeat."""

SMALL = (
    "from into that this which when where have each than then only same other others must "
    "both between before after over under without within with every does more less most least "
    "also such while until their they them what some none two three four"
)

SMALL_WORDS = frozenset(SMALL.split(" "))
"""Words that a sentence may have twice."""

DIRECTIVE = re.compile(r"//\s*([A-Z][A-Z0-9_-]*:|-----|[%@!#])")
"""Comments for tools, in a program in MLIR."""


def sentences(text: str) -> list[str]:
    """The sentences of a docstring, and its parts between colons."""
    return [part for part in re.split(r"[.;:!?]\s+|\n\n", text) if words_of(part)]


def repeats_a_word(sentence: str) -> bool:
    """Whether a sentence has a word twice, an "s" at the end aside."""
    long = [word for word in words_of(sentence) if len(word) > SHORT_WORD]
    counts = Counter(word.rstrip("s") for word in long if word not in SMALL_WORDS)
    return max(counts.values(), default=0) > 1


def comments_of_mlir(path: Path) -> str:
    """The comments of a program in MLIR, without directives."""
    lines = [line.strip() for line in path.read_text().splitlines()]
    found = [line for line in lines if line.startswith("//") and not DIRECTIVE.match(line)]
    return " ".join(line.lstrip("/ ") for line in found)


SPEAKERS = re.compile(r"refuse\w*|remark\w*|error|\w*(Error|Exception|Warning)")
"""Functions and classes with a message as the first text among the arguments."""


def text_of(message: ast.expr) -> str:
    """The text of an expression: an f-string without its values, and both sides of a choice."""
    match message:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(text_of(part) or " " for part in parts)
        case ast.BinOp(left=first, right=second):
            return text_of(first) + text_of(second)
        case ast.IfExp(body=first, orelse=second):
            return f"{text_of(first)} {text_of(second)}"
        case _:
            return ""


def messages(path: Path) -> Iterator[str]:
    """The texts of refusals, remarks and errors in a file, and the texts of `help=`."""
    for node in nodes_of(path):
        if not isinstance(node, ast.Call):
            continue
        match node.func:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                speaks = SPEAKERS.fullmatch(name) is not None
            case _:
                speaks = False
        texts = [text for argument in node.args if (text := text_of(argument)).strip()]
        if speaks and texts:
            yield texts[0]
        yield from (text_of(given.value) for given in node.keywords if given.arg == "help")


OF_NAMES = (POINTERS - {"one"}) | {"also", "both", "neither", "then"}
"""Words with which the name of a test points; "one" points if a noun."""


def pointers_of_name(words: list[str]) -> int:
    """The number of pointing words in the name of a test."""
    stands_for_a_noun = sum(pair[1] == "one" and pair[0] in BEFORE_ONE for pair in pairwise(words))
    return sum(word in OF_NAMES for word in words) + stands_for_a_noun
