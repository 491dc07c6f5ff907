"""Operations made without the conversions of constructors: a kernel has thousands of operations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from xdsl.dialects.builtin import DenseArrayBase, i32
from xdsl.ir import Attribute, Operation, SSAValue

Segment = SSAValue | Sequence[SSAValue] | None
"""An operand, several operands, or none."""


@cache
def segment_sizes(sizes: tuple[int, ...]) -> Attribute:
    """The property with the number of operands in each segment."""
    return DenseArrayBase.from_list(i32, sizes)


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
    Operation.__init__(op, operands=operands, properties=sized, result_types=result_types)
