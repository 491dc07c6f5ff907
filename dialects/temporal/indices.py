"""The text of scalars and coordinates of a cell function."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer

from timetile.dialects.syntax import (
    parse_integers,
    parse_values,
)


def print_scalars_and_indices(
    printer: Printer, scalars: Sequence[SSAValue], indices: Sequence[int]
) -> None:
    """Print ` scalars(%dt) indices [1]`; nothing for an update without scalars and indices."""
    if scalars:
        printer.print_string(" scalars")
        with printer.in_parens():
            printer.print_list(scalars, printer.print_operand)
    if indices:
        printer.print_string(f" indices {list(indices)}")


def parse_scalars_and_indices(parser: Parser) -> tuple[list[SSAValue], list[int]]:
    """Inverse of `print_scalars_and_indices`."""
    scalars: list[SSAValue] = []
    indices: list[int] = []
    if parser.parse_optional_keyword("scalars"):
        scalars = parse_values(parser, parser.Delimiter.PAREN)
    if parser.parse_optional_keyword("indices"):
        indices = parse_integers(parser)
    return scalars, indices
