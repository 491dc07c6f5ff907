"""A module as text, beside the places of its operations."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import FileLineColLoc, IntAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute
from xdsl.parser import Parser

from timetile.runtime.loading.modules import make_context

NO_FILE = "<program>"
"""Stands for the file of a program: each place then has the name of a file."""

TextPlace = tuple[int, int] | tuple[int, int, str] | None
"""
Line and column of an operation, and the file if different from the program's; None if unknown.
"""


def places_of(module: ModuleOp, name: str) -> list[TextPlace]:
    """The places of all operations of a module loaded by a name, in order."""
    return [place_of(op.location, name) for op in module.walk()]


def place_of(location: Attribute | None, name: str) -> TextPlace:
    """The place of an operation of a module loaded by a name."""
    if not isinstance(location, FileLineColLoc):
        return None
    line, column, file = location.line.data, location.column.data, location.filename.data
    return (line, column) if file == name else (line, column, file)


def module_of_text(text: str, places: Sequence[TextPlace], name: str) -> ModuleOp:
    """The module of a printed text, with the place of each operation in a file of this name."""
    module = Parser(make_context(), text).parse_module()
    for op, place in zip(module.walk(), places, strict=True):
        if place is not None:
            line, column, *file = place
            op.location = FileLineColLoc(
                StringAttr(*file or [name]), IntAttr(line), IntAttr(column)
            )
    return module
