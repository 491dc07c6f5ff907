"""The syntax of source files, parsed once a process for all tests that look at sources."""

from __future__ import annotations

import ast
import gc
from functools import cache
from pathlib import Path


def tree_of(path: Path) -> ast.Module:
    """The syntax of a file; a file may have several paths."""
    return tree_of_file(path.resolve())


@cache
def tree_of_file(path: Path) -> ast.Module:
    """
    The syntax of a file under its own path. The syntax of all files is a million objects, never
    garbage: collections of garbage leave them out.
    """
    tree = ast.parse(path.read_text())
    gc.freeze()
    return tree


KINDS = (ast.Module, ast.stmt, ast.ExceptHandler, ast.match_case, ast.Call)
"""What tests look for: with the other nodes, a file has six times as many."""


def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """The statements, handlers and calls of a file; a file may have several paths."""
    return nodes_of_file(path.resolve())


@cache
def nodes_of_file(path: Path) -> tuple[ast.AST, ...]:
    """The nodes of a file under its own path: a walk costs more than reading the file."""
    return tuple(node for node in ast.walk(tree_of_file(path)) if isinstance(node, KINDS))
