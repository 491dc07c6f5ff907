"""
Facts of verified IR beyond the types, each with the only assertion of the kind. Code for unverified
IR refuses wrong IR instead.
"""

from __future__ import annotations

from typing import TypeVar, cast

from xdsl.dialects.builtin import AnyFloat, FloatAttr, IntegerAttr, IntegerType, MemRefType
from xdsl.dialects.stencil import TempType
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.utils.hints import isa

OperationT = TypeVar("OperationT", bound=Operation)


def block_of(op: Operation) -> Block:
    """The block around an operation inside a module."""
    block = op.parent
    assert block is not None
    return block


def parent_of(op: Operation, kind: type[OperationT]) -> OperationT:
    """The operation around an operation, of the kind proved by the inner operation's verifier."""
    parent = op.parent_op()
    assert isinstance(parent, kind)
    return parent


def ancestor_of(op: Operation, kind: type[OperationT]) -> OperationT:
    """The nearest operation of a kind around an operation, as proved by a verifier."""
    around = op.parent_op()
    while around is not None and not isinstance(around, kind):
        around = around.parent_op()
    assert around is not None
    return around


def terminator_of(block: Block, kind: type[OperationT]) -> OperationT:
    """The terminator of a block, of the kind proved by the verifier of the operation around."""
    terminator = block.last_op
    assert isinstance(terminator, kind)
    return terminator


def maker_of(value: SSAValue, kind: type[OperationT]) -> OperationT:
    """The operation with a value as result, of the kind proved by a verifier."""
    owner = value.owner
    assert isinstance(owner, kind)
    return owner


def operation_at(value: SSAValue) -> Operation:
    """The operation with a value as result, or around the block of an argument."""
    owner = value.owner
    around = owner if isinstance(owner, Operation) else owner.parent_op()
    assert around is not None
    return around


def memref_type(value: SSAValue) -> MemRefType[Attribute]:
    """The type of a memref."""
    kind = value.type
    assert isa(kind, MemRefType[Attribute])
    return kind


def temp_element(value: SSAValue) -> Attribute:
    """The cell type of a `!stencil.temp`."""
    kind = value.type
    assert isa(kind, TempType[Attribute])
    return kind.element_type


def number_attribute(value: float, kind: Attribute) -> FloatAttr | IntegerAttr:
    """A whole number or a float as an attribute of a type."""
    if isinstance(kind, IntegerType):
        return IntegerAttr(int(value), cast(IntegerType, kind))
    return FloatAttr(value, float_type(kind))


def float_type(kind: Attribute) -> AnyFloat:
    """A type of cells, as the float type proved by a verifier."""
    assert isa(kind, AnyFloat)
    return kind
