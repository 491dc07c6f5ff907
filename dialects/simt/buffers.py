"""Buffers of the simt dialect: types, address spaces, text, and effects on memory."""

from __future__ import annotations

from functools import lru_cache
from typing import cast

from xdsl.dialects.builtin import (
    IntAttr,
    IntegerAttr,
    MemRefType,
    i64,
)
from xdsl.dialects.llvm import LLVMPointerType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.traits import EffectInstance, MemoryEffect, MemoryEffectKind
from xdsl.utils.exceptions import VerifyException

GLOBAL_SPACE, SHARED_SPACE, CLUSTER_SPACE = 1, 3, 7
"""
NVVM's address spaces: global memory, shared memory of the block, shared memory of the cluster.
"""


@lru_cache(maxsize=1 << 14)
def integer(value: int) -> IntegerAttr:
    """An integer property, in a form read by MLIR too."""
    return IntegerAttr(value, i64)


def buffer_type(element: Attribute, cells: int, space: int) -> MemRefType[Attribute]:
    """A flat buffer of `cells` elements in an address space."""
    return MemRefType(element, [cells], memory_space=IntegerAttr(space, i64))


def cell_count(buffer: Attribute) -> int:
    """Cells of a flat buffer, by the buffer's type."""
    (count,) = cast("MemRefType[Attribute]", buffer).get_shape()
    return count


def buffer_element(buffer: SSAValue) -> Attribute | None:
    """The type of a buffer's cells; None for an untyped pointer."""
    kind = buffer.type
    if not isinstance(kind, MemRefType):
        return None
    return cast("MemRefType[Attribute]", kind).element_type


def address_space(buffer: SSAValue) -> int:
    """The NVVM address space of a buffer or a pointer."""
    match buffer.type:
        case MemRefType(memory_space=IntegerAttr(value=space)):
            return space.data
        case LLVMPointerType(addr_space=IntAttr() as space):
            return space.data
        case _:
            raise VerifyException(f"{buffer.type} names no address space")


class OrderingEffects(MemoryEffect):
    """The operation orders memory accesses: passes neither erase nor move the operation."""

    @classmethod
    def get_effects(cls, op: Operation) -> set[EffectInstance]:
        return {EffectInstance(MemoryEffectKind.READ), EffectInstance(MemoryEffectKind.WRITE)}
