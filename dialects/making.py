"""Operations made without the conversions of constructors: a kernel has thousands of operations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NoReturn, TypeVar

from xdsl.dialects.builtin import UNKNOWN_LOC, DenseArrayBase, i32
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl.operations import BaseAttrAccessor

DefinitionT = TypeVar("DefinitionT", bound=Operation)

Segment = SSAValue | Sequence[SSAValue] | None
"""An operand, several operands, or none."""


@lru_cache(maxsize=1 << 10)
def segment_sizes(sizes: tuple[int, ...]) -> Attribute:
    """The property with the number of operands in each segment."""
    return DenseArrayBase.from_list(i32, sizes)


def segment_sizes_of(op: Operation) -> tuple[int, ...]:
    """The number of operands in each segment of an operation."""
    sizes = op.properties["operandSegmentSizes"]
    assert isinstance(sizes, DenseArrayBase)
    return decoded_sizes(sizes.data.data)


@lru_cache(maxsize=1 << 10)
def decoded_sizes(data: bytes) -> tuple[int, ...]:
    """The sizes of segments in the bytes of a property."""
    return i32.unpack(data, len(data) // i32.size)


class KnownSegments:
    """Operands of an operation by name, among operands in segments."""

    def __init__(self, accessor: BaseAttrAccessor):
        self.accessor = accessor
        self.places: dict[bytes, int | slice | None] = {}
        """The places of the operands, for sizes of all segments as in a property."""

    def __get__(self, op: Operation, owner: object = None) -> Any:
        """One operand, several, or None, as declared."""
        sizes = op.properties["operandSegmentSizes"]
        assert isinstance(sizes, DenseArrayBase)
        data = sizes.data.data
        if data not in self.places:
            self.places[data] = self.place(decoded_sizes(data))
        place = self.places[data]
        return None if place is None else op.operands[place]

    def place(self, sizes: tuple[int, ...]) -> int | slice | None:
        """The place of one operand, or the places of several; None if the operand is absent."""
        found = self.accessor.index(sizes, range(sum(sizes)))
        return slice(found.start, found.stop) if isinstance(found, range) else found

    def __set__(self, op: Operation, value: object) -> NoReturn:
        """NotImplementedError: operands are not written by name."""
        raise NotImplementedError("make a new operation: operands are not written by name")


def with_known_segments(definition: type[DefinitionT]) -> type[DefinitionT]:
    """
    The definition of an operation with operands in segments of sizes kept as a property. Sizes are
    decoded once: passes ask for operands by name ten thousand times in a compilation.
    """
    for name, accessor in list(vars(definition).items()):
        if isinstance(accessor, BaseAttrAccessor):
            setattr(definition, name, KnownSegments(accessor))
    return definition


def make_segmented(
    op: Operation,
    segments: Sequence[Segment],
    properties: Mapping[str, Attribute | None],
    result_types: Sequence[Attribute] = (),
) -> None:
    """
    Make a new operation with operands in segments of any sizes. A property that is None is absent.
    """
    operands: list[SSAValue] = []
    sizes: list[int] = []
    for segment in segments:
        values = () if segment is None else (segment,) if isinstance(segment, SSAValue) else segment
        operands.extend(values)
        sizes.append(len(values))
    sized = {name: value for name, value in properties.items() if value is not None}
    sized["operandSegmentSizes"] = segment_sizes(tuple(sizes))
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
