"""The functions of C's mathematical library, and their names in compiled code.

Compiled code calls the functions by names of our own, bound to addresses when the code is loaded.
LLVM does not know our names: LLVM neither evaluates a function nor replaces a function by another.
"""

from __future__ import annotations

from xdsl.dialects.builtin import f32, f64
from xdsl.ir import Attribute, Operation

from timetile.passes.analysis.cells.cell_operations import FUNCTIONS

LIBRARY = {operation: known.library for operation, known in FUNCTIONS.items()}
"""The library's name of each operation, for FP64."""

SUFFIXES: dict[Attribute, str] = {f64: "", f32: "f"}
"""The suffix of a function's name, by the type of the argument."""

PREFIX = "timetile."

BARRIER = f"{PREFIX}barrier"
"""
The function with which a thread waits for the other threads of a team; the argument is the
barrier's address.
"""


def library_name(op: Operation) -> str:
    """The library's name of an operation, for the operation's type: `expf`."""
    return LIBRARY[type(op)] + SUFFIXES[op.results[0].type]


def library_names() -> list[str]:
    """All functions, in every type."""
    return [name + suffix for name in LIBRARY.values() for suffix in SUFFIXES.values()]
