"""
Directives of assembly formats: values without their types, and the taps of a cell function.

A value is defined above its uses: the text of a use need not repeat the type. xDSL's own `$value`
wants the type written or inferred from the constraints of the operation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar, cast

from xdsl.dialects.builtin import IntAttr
from xdsl.ir import Attribute, SSAValue
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
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.utils.hints import isa

from timetile.dialects.syntax import defined_value, parse_integers
from timetile.dialects.taps import Tap, Tapping, encode_taps, print_taps


def types_of(parser: Parser, operands: Sequence[UnresolvedOperand]) -> list[Attribute]:
    """The types of values defined above."""
    return [defined_value(parser, operand).type for operand in operands]


def parse_value(
    parser: Parser, state: ParsingState, value: OperandVariable | OptionalOperandVariable,
    kind: TypeDirective,
) -> None:  # fmt: skip
    """Parse a value defined above."""
    operand = parser.parse_unresolved_operand()
    value.set(state, operand)
    kind.set(state, types_of(parser, [operand]))


def parse_values(
    parser: Parser, state: ParsingState, values: VariadicOperandVariable, *kinds: TypeDirective
) -> None:
    """Parse one or more values defined above. Each of `kinds` takes the types of the values."""
    operands = parser.parse_comma_separated_list(
        parser.Delimiter.NONE, parser.parse_unresolved_operand
    )
    values.set(state, operands)
    for kind in kinds:
        kind.set(state, types_of(parser, operands))


Variable = TypeVar(
    "Variable", bound=OperandVariable | OptionalOperandVariable | VariadicOperandVariable
)


class ValueText(CustomDirective, Generic[Variable]):
    """Base of directives printed as values, without types."""

    value: Variable

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        self.value.print(printer, state, op)


class AnchoredText(ValueText[Variable]):
    """Base of directives for values that stand for an optional group."""

    kind: TypeDirective

    def set_empty(self, state: ParsingState) -> None:
        self.value.set_empty(state)
        self.kind.set_empty(state)

    def is_present(self, op: IRDLOperation) -> bool:
        return self.value.is_present(op)

    def is_anchorable(self) -> bool:
        return True


@irdl_custom_directive
class Value(ValueText[OperandVariable]):
    """`%v`: a value defined above."""

    value: OperandVariable
    kind: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        parse_value(parser, state, self.value, self.kind)


@irdl_custom_directive
class OptionalValue(ValueText[OptionalOperandVariable]):
    """`%v`, or nothing: a value defined above."""

    value: OptionalOperandVariable
    kind: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        operand = parser.parse_optional_unresolved_operand()
        self.value.set(state, operand)
        self.kind.set(state, [] if operand is None else types_of(parser, [operand]))


@irdl_custom_directive
class AnchoredValue(AnchoredText[OptionalOperandVariable]):
    """`%v`: a value defined above; stands for an optional group."""

    value: OptionalOperandVariable
    kind: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        parse_value(parser, state, self.value, self.kind)


@irdl_custom_directive
class Number(CustomDirective):
    """`3`: a number without a type."""

    number: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        self.number.set(state, IntAttr(parser.parse_integer()))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        number = self.number.get(op)
        assert isa(number, IntAttr)
        state.print_whitespace(printer)
        printer.print_int(number.data)

    def is_present(self, op: IRDLOperation) -> bool:
        return self.number.is_present(op)

    def is_anchorable(self) -> bool:
        return self.number.is_anchorable()


@irdl_custom_directive
class Values(AnchoredText[VariadicOperandVariable]):
    """`%v, %w`: one or more values defined above; stand for an optional group."""

    value: VariadicOperandVariable
    kind: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        parse_values(parser, state, self.value, self.kind)


@irdl_custom_directive
class Taps(CustomDirective):
    """`(%a[-1, 0], %b[0, 0])`: the taps of a cell function. Equal operands are named once."""

    operands: VariadicOperandVariable
    kinds: TypeDirective
    taps: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        operands: list[UnresolvedOperand] = []
        known: list[SSAValue] = []
        taps: list[Tap] = []

        def parse_tap() -> None:
            operand = parser.parse_unresolved_operand()
            value = defined_value(parser, operand)
            if value not in known:
                known.append(value)
                operands.append(operand)
            taps.append(Tap(known.index(value), tuple(parse_integers(parser))))

        parser.parse_comma_separated_list(parser.Delimiter.PAREN, parse_tap)
        self.operands.set(state, operands)
        self.kinds.set(state, [value.type for value in known])
        self.taps.set(state, encode_taps(taps))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        print_taps(printer, cast(Tapping, op).tap_list, self.operands.get(op))
        state.should_emit_space, state.last_was_punctuation = True, True
