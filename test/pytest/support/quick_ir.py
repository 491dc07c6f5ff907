"""
Frequent questions for xDSL's IR, in a process of many tests.

A fifth of the tests' time is xDSL's core: hashes of values and operations, operands and properties
by name, and walks over operations, each some calls of functions in Python. The functions below give
equal answers in fewer calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from operator import attrgetter
from typing import Any

from xdsl.ir import Block, BlockOps, Operation, SSAValue
from xdsl.ir.core import OpOperands, SSAValues
from xdsl.irdl.operations import BeforeVariadicSingleAccessor, VarIRConstruct

from support.plain_classes import derived

SEQUENCES: dict[VarIRConstruct, Callable[[Operation], Any]] = {
    VarIRConstruct.OPERAND: attrgetter("_operands"),
    VarIRConstruct.RESULT: attrgetter("results"),
    VarIRConstruct.REGION: attrgetter("regions"),
}
"""The operands, results and regions of an operation, without xDSL's views for changes."""

FIELDS = {
    (SSAValue, "type"): "_type",
    (Operation, "next_op"): "_next_op",
    (Operation, "prev_op"): "_prev_op",
    (Block, "first_op"): "_first_op",
    (Block, "last_op"): "_last_op",
}
"""Properties that only return a field of the object."""

WALK: Callable[..., Iterator[Operation]] = Operation.walk
"""xDSL's walk, for all orders."""


ITEM: Callable[[Any, int], Any] = tuple[Any, ...].__getitem__
"""One of some values, without the question for a slice."""


class ByPlace:
    """An operand, a result or a region by name, at a known place."""

    def __init__(self, accessor: Any):
        self.accessor, self.place = accessor, accessor.idx
        self.sequence = SEQUENCES[accessor.construct]

    def __get__(self, op: Operation, owner: object = None) -> Any:
        """The value or the region."""
        return ITEM(self.sequence(op), self.place)

    def __set__(self, op: Operation, value: object) -> None:
        """xDSL's error: operands are not written by name."""
        self.accessor.__set__(op, value)


def following(op: Operation | None) -> Iterator[Operation]:
    """An operation and the following operations of the block; each may be moved or erased."""
    while op is not None:
        behind = op.next_op
        yield op
        op = behind


def operations(self: BlockOps) -> Iterator[Operation]:
    """The operations of a block."""
    return following(self.block.first_op)


def walked(
    self: Operation, *, reverse: bool = False, region_first: bool = False
) -> Iterator[Operation]:
    """An operation and all nested operations."""
    if reverse or region_first:
        yield from WALK(self, reverse=reverse, region_first=region_first)
        return
    yield self
    for region in self.regions:
        for block in region.blocks:
            for op in following(block.first_op):
                if op.regions:
                    yield from walked(op)
                else:
                    yield op


def value_at(self: SSAValues[Any], place: Any) -> Any:
    """A value, or the values of a slice."""
    found = ITEM(self, place)
    return SSAValues(found) if type(place) is slice else found


def operand_at(self: OpOperands, place: Any) -> Any:
    """An operand, or the operands of a slice."""
    return value_at(OPERANDS(self), place)


def operands_in_turn(self: OpOperands) -> Iterator[SSAValue]:
    """The operands."""
    return iter(OPERANDS(self))


def operand_count(self: OpOperands) -> int:
    """The number of operands."""
    return len(OPERANDS(self))


OPERANDS: Callable[[OpOperands], SSAValues[Any]] = attrgetter("_op._operands")
"""The operands behind a view."""

SUCCESSORS: Any = Operation.successors
"""xDSL's property of the blocks that an operation branches to."""


def set_successors(op: Operation, new: Sequence[Block]) -> None:
    """Set the blocks that an operation branches to: hardly any has one."""
    if new or op.successor_uses:
        SUCCESSORS.fset(op, new)


REPLACED: dict[tuple[type, str], object] = {
    (BlockOps, "__iter__"): operations,
    (Operation, "walk"): walked,
    (Operation, "operands"): property(OpOperands, Operation.operands.fset),
    (OpOperands, "__getitem__"): operand_at,
    (OpOperands, "__iter__"): operands_in_turn,
    (OpOperands, "__len__"): operand_count,
    (SSAValues, "__getitem__"): value_at,
    (Operation, "successors"): property(SUCCESSORS.fget, set_successors),
    **{(owner, name): property(attrgetter(field)) for (owner, name), field in FIELDS.items()},
}
"""Functions and properties of xDSL's classes."""


def answer_quickly() -> None:
    """Answer in few calls from now on, for all operations defined so far."""
    for root, name in product((SSAValue, Operation, Block), ("__hash__", "__eq__")):
        for each in derived(root):
            if name in vars(each):
                setattr(each, name, getattr(object, name))
    for (owner, name), quick in REPLACED.items():
        setattr(owner, name, quick)
    for each in derived(Operation):
        for name, accessor in list(vars(each).items()):
            known = type(accessor) is BeforeVariadicSingleAccessor
            if known and accessor.construct in SEQUENCES:
                setattr(each, name, ByPlace(accessor))
