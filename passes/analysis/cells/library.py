"""The functions of C's mathematical library that cells call, and how compiled code names them.

Compiled code calls them by names of our own, which are bound to their addresses when the code is loaded.
LLVM knows nothing of such a name: it neither evaluates the function itself nor replaces it by another one.
"""

from __future__ import annotations

from xdsl.dialects.builtin import f32, f64
from xdsl.ir import Attribute, Operation

from timetile.passes.analysis.cells.cell_operations import FUNCTIONS

LIBRARY = {operation: known.library for operation, known in FUNCTIONS.items()}
"""The library's name of each operation, for FP64."""

SUFFIXES: dict[Attribute, str] = {f64: "", f32: "f"}
"""What follows the name, by the type."""

PREFIX = "timetile."

BARRIER = f"{PREFIX}barrier"
"""Waits at a barrier, whose address it takes, for the other threads of a team."""


def library_name(op: Operation) -> str:
    """The library's name of an operation, for its type: `expf`."""
    return LIBRARY[type(op)] + SUFFIXES[op.results[0].type]


def library_names() -> list[str]:
    """All functions, in every type."""
    return [name + suffix for name in LIBRARY.values() for suffix in SUFFIXES.values()]
