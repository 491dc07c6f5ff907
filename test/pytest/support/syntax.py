"""The syntax of source files, parsed once a process for all tests that look at sources."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path


def tree_of(path: Path) -> ast.Module:
    """The syntax of a file; a file may have several paths."""
    return tree_of_file(path.resolve())


@cache
def tree_of_file(path: Path) -> ast.Module:
    """The syntax of a file under its own path."""
    return ast.parse(path.read_text())


def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """All nodes of the syntax of a file; a file may have several paths."""
    return nodes_of_file(path.resolve())


@cache
def nodes_of_file(path: Path) -> tuple[ast.AST, ...]:
    """All nodes of a file under its own path: a walk costs more than reading the file."""
    return tuple(ast.walk(tree_of_file(path)))
