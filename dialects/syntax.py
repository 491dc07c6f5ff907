"""Small shared pieces of the dialects' custom syntax and properties."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TypeAlias, cast

from xdsl.dialects.builtin import I64, DenseArrayBase, IndexType, IntegerType, i64
from xdsl.dialects.stencil import FieldType, StencilBoundsAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.parser import AttrParser, Parser, UnresolvedOperand
from xdsl.utils.exceptions import VerifyException

from timetile.dialects.cell_types import computed_type

Integers: TypeAlias = DenseArrayBase[I64]
"""A dense array of 64-bit integers."""

ARGUMENT_NAMES = "timetile.argument_names"
"""The attribute of a function with the names of arguments, empty for arguments without a name."""

INTEGERS = DenseArrayBase.constr(i64)
"""The constraint of a property of integers."""


def encode_integers(values: Sequence[int]) -> Integers:
    """Integers as a property."""
    return encoded(tuple(values))


@lru_cache(maxsize=1 << 14)
def encoded(values: tuple[int, ...]) -> Integers:
    """Integers as a property: an attribute has no identity, and packing takes long."""
    return DenseArrayBase.from_list(i64, values)


def decode_integers(array: Integers | None) -> tuple[int, ...]:
    """The integers of a property, none where it is absent."""
    return () if array is None else decoded(array.data.data)


@lru_cache(maxsize=1 << 14)
def decoded(data: bytes) -> tuple[int, ...]:
    """The integers in the bytes of a property."""
    return i64.unpack(data, len(data) // i64.size)


def defined_value(parser: Parser, operand: UnresolvedOperand) -> SSAValue:
    """
    The value named by a use; a definition must stand above, so that the text need not repeat the
    type.
    """
    values = parser.ssa_values.get(operand.operand_name)
    if values is None or operand.index >= len(values):
        parser.raise_error(f"%{operand.operand_name} is not defined above", operand.span)
    return values[operand.index]


def parse_value(parser: Parser) -> SSAValue:
    """Parse a use of a value defined above."""
    return defined_value(parser, parser.parse_unresolved_operand())


def parse_integers(parser: AttrParser) -> list[int]:
    """Parse `[1, 0]`."""
    return parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)


def parse_bounds(parser: Parser) -> StencilBoundsAttr:
    """Parse `<[0, 0], [8, 8]>`."""
    return StencilBoundsAttr.new(StencilBoundsAttr.parse_parameters(parser))


def integer_type(value: SSAValue) -> IntegerType | IndexType:
    """The type of an integer value."""
    kind = value.type
    if not isinstance(kind, IntegerType | IndexType):
        raise VerifyException(f"expected an integer, got {kind}")
    return cast("IntegerType | IndexType", kind)


def field_type(value: SSAValue) -> FieldType[Attribute]:
    """The type of a field value."""
    kind = value.type
    if not isinstance(kind, FieldType):
        raise VerifyException(f"expected a field, got {kind}")
    return cast("FieldType[Attribute]", kind)


def element_type(value: SSAValue) -> Attribute:
    """The element type of a field value."""
    return field_type(value).element_type


def cell_type(value: SSAValue) -> Attribute:
    """The type of the numbers with which cells of a field compute."""
    return computed_type(element_type(value))


def field_bounds(value: SSAValue) -> StencilBoundsAttr:
    """
    The static bounds of a field value, halos included; VerifyException where the bounds are
    unknown.
    """
    bounds = field_type(value).bounds
    if not isinstance(bounds, StencilBoundsAttr):
        raise VerifyException(f"expected a field with static bounds, got {value.type}")
    return bounds
