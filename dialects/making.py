"""Operations made without the conversions of constructors: a kernel has thousands of operations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from xdsl.dialects.builtin import UNKNOWN_LOC, DenseArrayBase, i32
from xdsl.ir import Attribute, Operation, SSAValue

Segment = SSAValue | Sequence[SSAValue] | None
"""An operand, several operands, or none."""


@cache
def segment_sizes(sizes: tuple[int, ...]) -> Attribute:
    """The property with the number of operands in each segment."""
    return DenseArrayBase.from_list(i32, sizes)


def segment_sizes_of(op: Operation) -> tuple[int, ...]:
    """The number of operands in each segment of an operation."""
    sizes = op.properties["operandSegmentSizes"]
    assert isinstance(sizes, DenseArrayBase)
    return decoded_sizes(sizes.data.data)


@cache
def decoded_sizes(data: bytes) -> tuple[int, ...]:
    """The sizes of segments in the bytes of a property."""
    return i32.unpack(data, len(data) // i32.size)


def make_segmented(
    op: Operation,
    segments: Sequence[Segment],
    properties: Mapping[str, Attribute],
    result_types: Sequence[Attribute] = (),
) -> None:
    """Make a new operation with operands in segments of any sizes."""
    operands: list[SSAValue] = []
    sizes: list[int] = []
    for segment in segments:
        values = () if segment is None else (segment,) if isinstance(segment, SSAValue) else segment
        operands.extend(values)
        sizes.append(len(values))
    sized = {**properties, "operandSegmentSizes": segment_sizes(tuple(sizes))}
    make(op, operands, sized, result_types)


def make(
    op: Operation,
    operands: Sequence[SSAValue],
    properties: Mapping[str, Attribute],
    result_types: Sequence[Attribute] = (),
) -> None:
    """Make a new operation at an unknown place of a program."""
    Operation.__init__(
        op,
        operands=operands,
        properties=properties,
        result_types=result_types,
        location=UNKNOWN_LOC,
    )
