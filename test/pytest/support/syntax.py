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
