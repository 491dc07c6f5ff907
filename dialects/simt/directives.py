"""Directives of the simt dialect's formats: places in buffers, `%buffer[%i + 2]`."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr
from xdsl.irdl import IRDLOperation
from xdsl.irdl.declarative_assembly_format import (
    AttributeVariable,
    CustomDirective,
    OperandVariable,
    OptionalOperandVariable,
    ParsingState,
    PrintingState,
    TypeDirective,
    VariadicOperandVariable,
    irdl_custom_directive,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.hints import isa

from timetile.dialects.directives import ValueText, parse_value, parse_values, types_of
from timetile.dialects.simt.buffers import integer
from timetile.dialects.syntax import Integers, decode_integers, encode_integers


def parse_buffer(
    parser: Parser,
    state: ParsingState,
    buffer: tuple[OperandVariable, TypeDirective],
    index: tuple[OptionalOperandVariable, TypeDirective],
) -> None:
    """Parse `%buffer[%i +`, or `%buffer[` without an index."""
    parse_value(parser, state, *buffer)
    parser.parse_punctuation("[")
    place = parser.parse_optional_unresolved_operand()
    index[0].set(state, place)
    index[1].set(state, [] if place is None else types_of(parser, [place]))
    if place is not None:
        parser.parse_punctuation("+")


def print_cells(
    printer: Printer,
    state: PrintingState,
    op: IRDLOperation,
    buffer: OperandVariable,
    index: OptionalOperandVariable,
    offsets: Sequence[int],
) -> None:
    """Print `%buffer[%i + 0, 64]`."""
    buffer.print(printer, state, op)
    with printer.in_square_brackets():
        if (place := index.get(op)) is not None:
            printer.print_operand(place)
            printer.print_string(" + ")
        printer.print_list(offsets, printer.print_int)
    state.should_emit_space, state.last_was_punctuation = True, True


@irdl_custom_directive
class BufferPlace(CustomDirective):
    """`%buffer[%i + 2]`: a cell of a buffer, counted from an index, or from the buffer's first."""

    buffer: OperandVariable
    buffer_kind: TypeDirective
    index: OptionalOperandVariable
    index_kind: TypeDirective
    offset: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        buffer, index = (self.buffer, self.buffer_kind), (self.index, self.index_kind)
        parse_buffer(parser, state, buffer, index)
        self.offset.set(state, integer(parser.parse_integer()))
        parser.parse_punctuation("]")

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        offset = self.offset.get(op)
        assert isinstance(offset, IntegerAttr)
        print_cells(printer, state, op, self.buffer, self.index, [offset.value.data])


@irdl_custom_directive
class Places(CustomDirective):
    """`%buffer[%i + 0, 64]`: several words of a buffer."""

    buffer: OperandVariable
    buffer_kind: TypeDirective
    index: OptionalOperandVariable
    index_kind: TypeDirective
    offsets: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        buffer, index = (self.buffer, self.buffer_kind), (self.index, self.index_kind)
        parse_buffer(parser, state, buffer, index)
        offsets = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_integer)
        self.offsets.set(state, encode_integers(offsets))
        parser.parse_punctuation("]")

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        offsets = self.offsets.get(op)
        assert isa(offsets, Integers)
        print_cells(printer, state, op, self.buffer, self.index, decode_integers(offsets))


@irdl_custom_directive
class Cells(ValueText[VariadicOperandVariable]):
    """`%a, %b`: cells defined above, with results of their types."""

    value: VariadicOperandVariable
    kind: TypeDirective
    results: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        parse_values(parser, state, self.value, self.kind, self.results)


@irdl_custom_directive
class OneType(CustomDirective):
    """`f64`: the type of a value and of the result."""

    kind: TypeDirective
    result: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        kind = parser.parse_type()
        self.kind.set(state, [kind])
        self.result.set(state, [kind])

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        self.kind.print(printer, state, op)
