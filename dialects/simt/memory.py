"""Buffers of the simt dialect, and the accesses of one thread to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self, cast

from xdsl.dialects.builtin import (
    IntAttr,
    IntegerAttr,
    IntegerType,
    MemRefType,
    f32,
    f64,
    i1,
    i32,
    i64,
)
from xdsl.dialects.llvm import LLVMPointerType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import EffectInstance, MemoryEffect, MemoryEffectKind, Pure
from xdsl.utils.exceptions import VerifyException

from timetile.dialects.syntax import (
    parse_optional_value,
    parse_value,
    parse_values,
)

GLOBAL_SPACE, SHARED_SPACE, CLUSTER_SPACE = 1, 3, 7
"""NVVM's address spaces: global memory, shared memory of the block, shared memory of the cluster."""

CELL_BYTES: dict[Attribute, int] = {f64: 8, f32: 4, i64: 8, i32: 4}
"""Bytes of a cell, per element type of memory accesses."""


def integer(value: int) -> IntegerAttr:
    """An integer property, in a form read by MLIR too."""
    return IntegerAttr(value, i64)


def buffer_type(element: Attribute, cells: int, space: int) -> MemRefType[Attribute]:
    """A flat buffer of `cells` elements in an address space."""
    return MemRefType(element, [cells], memory_space=IntegerAttr(space, i64))


def cell_count(buffer: Attribute) -> int:
    """Cells of a flat buffer, by the buffer's type."""
    (count,) = cast(MemRefType[Attribute], buffer).get_shape()
    return count


def buffer_element(buffer: SSAValue) -> Attribute | None:
    """The type of a buffer's cells; None for an untyped pointer."""
    kind = buffer.type
    if not isinstance(kind, MemRefType):
        return None
    return cast(MemRefType[Attribute], kind).element_type


def address_space(buffer: SSAValue) -> int:
    """The NVVM address space of a buffer or a pointer."""
    match buffer.type:
        case MemRefType(memory_space=IntegerAttr(value=space)):
            return space.data
        case LLVMPointerType(addr_space=IntAttr() as space):
            return space.data
        case _:
            raise VerifyException(f"{buffer.type} names no address space")


class ReadEffects(MemoryEffect):
    """The operation reads the buffer."""

    @classmethod
    def get_effects(cls, op: Operation) -> set[EffectInstance]:
        assert isinstance(op, AccessOp)
        return {EffectInstance(MemoryEffectKind.READ, op.buffer)}


class WriteEffects(MemoryEffect):
    """The operation writes the buffer."""

    @classmethod
    def get_effects(cls, op: Operation) -> set[EffectInstance]:
        assert isinstance(op, AccessOp)
        return {EffectInstance(MemoryEffectKind.WRITE, op.buffer)}


class OrderingEffects(MemoryEffect):
    """The operation orders memory accesses: passes neither erase nor move the operation."""

    @classmethod
    def get_effects(cls, op: Operation) -> set[EffectInstance]:
        return {EffectInstance(MemoryEffectKind.READ), EffectInstance(MemoryEffectKind.WRITE)}


def print_cells(
    printer: Printer, buffer: SSAValue, index: SSAValue | None, offsets: Sequence[int]
) -> None:
    """Print `%buffer[%i + 0, 64]`."""
    printer.print_operand(buffer)
    with printer.in_square_brackets():
        if index is not None:
            printer.print_operand(index)
            printer.print_string(" + ")
        printer.print_list(offsets, lambda offset: printer.print_string(str(offset)))


def parse_buffer(parser: Parser) -> tuple[SSAValue, SSAValue | None]:
    """Parse `%buffer[%i +`: buffer and index."""
    buffer = parse_value(parser)
    parser.parse_punctuation("[")
    index = parse_optional_value(parser)
    if index is not None:
        parser.parse_punctuation("+")
    return buffer, index


class AccessOp(IRDLOperation):
    """
    Base of the accesses to consecutive cells of a buffer, beginning at `index + offset` (cells), where the
    mask is on. At the nvvm level the buffer is a pointer, and the pointer includes the index.
    """

    buffer = operand_def(MemRefType | LLVMPointerType)
    index = opt_operand_def(IntegerType)
    mask = opt_operand_def(i1)
    offset = prop_def(IntegerAttr)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    @property
    def cell_types(self) -> tuple[Attribute, ...]:
        """The types of the accessed cells, in order."""
        raise NotImplementedError

    def verify_(self) -> None:
        types = self.cell_types
        if len(set(types)) != 1 or types[0] not in CELL_BYTES:
            raise VerifyException("an access is of one or more cells of one type")
        if len(types) not in (1, 2, 4) or len(types) * CELL_BYTES[types[0]] > 16:
            raise VerifyException(
                f"a thread accesses 1, 2 or 4 cells of 16 bytes at most, got {len(types)}"
            )
        element = buffer_element(self.buffer)
        if element is not None and element != types[0]:
            raise VerifyException(f"cells of {types[0]} in a buffer of {element}")

    def print_access(self, printer: Printer) -> None:
        """Print `%buffer[%i + 3] mask %m`."""
        print_cells(printer, self.buffer, self.index, [self.offset.value.data])
        if self.mask is not None:
            printer.print_string(" mask ")
            printer.print_operand(self.mask)

    @staticmethod
    def parse_access(
        parser: Parser,
    ) -> tuple[SSAValue, SSAValue | None, SSAValue | None, int]:
        """Inverse of `print_access`: buffer, index, mask, offset."""
        buffer, index = parse_buffer(parser)
        offset = parser.parse_integer()
        parser.parse_punctuation("]")
        mask = parse_value(parser) if parser.parse_optional_keyword("mask") else None
        return buffer, index, mask, offset


@irdl_op_definition
class LoadOp(AccessOp):
    """
    Read 1, 2 or 4 cells. The results are unset where the mask is off.

    Example: `%a, %b = simt.load %buffer[%i + 2] mask %m : f64, f64`
    """

    name = "simt.load"

    cells = var_result_def()
    traits = traits_def(ReadEffects())

    def __init__(
        self,
        buffer: SSAValue,
        index: SSAValue | None,
        offset: int,
        types: Sequence[Attribute],
        mask: SSAValue | None = None,
    ):
        super().__init__(
            operands=[buffer, index, mask],
            properties={"offset": integer(offset)},
            result_types=[list(types)],
        )

    @property
    def cell_types(self) -> tuple[Attribute, ...]:
        return tuple(self.cells.types)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        self.print_access(printer)
        printer.print_string(" : ")
        printer.print_list(self.cells.types, printer.print_attribute)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        buffer, index, mask, offset = cls.parse_access(parser)
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        return cls(buffer, index, offset, types, mask)


class WriteOp(AccessOp):
    """Base of the accesses with operands to write."""

    cells = var_operand_def()
    traits = traits_def(WriteEffects())

    @property
    def cell_types(self) -> tuple[Attribute, ...]:
        return tuple(self.cells.types)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.cells, printer.print_operand)
        printer.print_string(" to ")
        self.print_access(printer)

    @classmethod
    def parse_write(
        cls, parser: Parser
    ) -> tuple[list[SSAValue], SSAValue, SSAValue | None, int, SSAValue | None]:
        """Inverse of `print`: cells, buffer, index, offset, mask."""
        cells = parse_values(parser, parser.Delimiter.NONE)
        parser.parse_keyword("to")
        buffer, index, mask, offset = cls.parse_access(parser)
        return list(cells), buffer, index, offset, mask


@irdl_op_definition
class StoreOp(WriteOp):
    """
    Write 1, 2 or 4 cells where the mask is on.

    Example: `simt.store %a, %b to %buffer[%i + 2] mask %m`
    """

    name = "simt.store"

    def __init__(
        self,
        cells: Sequence[SSAValue],
        buffer: SSAValue,
        index: SSAValue | None,
        offset: int,
        mask: SSAValue | None = None,
    ):
        super().__init__(
            operands=[list(cells), buffer, index, mask], properties={"offset": integer(offset)}
        )

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        return cls(*cls.parse_write(parser))


@irdl_op_definition
class OverrideOp(AccessOp):
    """
    The given cells where the mask is off, cells of the buffer where the mask is on: a predicated load over
    the registers.

    Example: `%c = simt.override %a from %buffer[%i + 2] mask %m`
    """

    name = "simt.override"

    cells = var_operand_def()
    res = var_result_def()
    traits = traits_def(ReadEffects())

    def __init__(
        self,
        cells: Sequence[SSAValue],
        buffer: SSAValue,
        index: SSAValue | None,
        offset: int,
        mask: SSAValue,
    ):
        super().__init__(
            operands=[list(cells), buffer, index, mask],
            properties={"offset": integer(offset)},
            result_types=[[c.type for c in cells]],
        )

    @property
    def cell_types(self) -> tuple[Attribute, ...]:
        return tuple(self.cells.types)

    def verify_(self) -> None:
        super().verify_()
        if self.mask is None:
            raise VerifyException("an override has a mask")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.cells, printer.print_operand)
        printer.print_string(" from ")
        self.print_access(printer)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        cells = parse_values(parser, parser.Delimiter.NONE)
        parser.parse_keyword("from")
        buffer, index, mask, offset = cls.parse_access(parser)
        if mask is None:
            parser.raise_error("an override has a mask")
        return cls(cells, buffer, index, offset, mask)


@irdl_op_definition
class PrefetchOp(AccessOp):
    """
    Ask for a cell's line to be in the first-level cache soon, where the mask is on.

    Example: `simt.prefetch %buffer[%i + 2] mask %m : f64`
    """

    name = "simt.prefetch"

    cell = prop_def(Attribute)
    traits = traits_def(OrderingEffects())

    def __init__(
        self,
        buffer: SSAValue,
        index: SSAValue | None,
        offset: int,
        cell: Attribute,
        mask: SSAValue | None = None,
    ):
        super().__init__(
            operands=[buffer, index, mask], properties={"offset": integer(offset), "cell": cell}
        )

    @property
    def cell_types(self) -> tuple[Attribute, ...]:
        return (self.cell,)

    def verify_(self) -> None:
        super().verify_()
        if address_space(self.buffer) != GLOBAL_SPACE:
            raise VerifyException("what is prefetched lies in global memory")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        self.print_access(printer)
        printer.print_string(" : ")
        printer.print_attribute(self.cell)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        buffer, index, mask, offset = cls.parse_access(parser)
        parser.parse_punctuation(":")
        return cls(buffer, index, offset, parser.parse_type(), mask)


@irdl_op_definition
class CopyAsyncOp(IRDLOperation):
    """
    Start copying `bytes` (4, 8 or 16) from global to shared memory. Where the mask is off the target is filled
    with zeros, and counts as unset. The copying thread sees the target after `nvvm.cp.async.wait.group` for the
    copy's group; other threads see the target after a synchronisation.

    Example: `simt.copy_async %ring[%s + 0], %field[%i + 2] bytes 16 mask %m`
    """

    name = "simt.copy_async"

    target = operand_def(MemRefType | LLVMPointerType)
    target_index = opt_operand_def(IntegerType)
    source = operand_def(MemRefType | LLVMPointerType)
    source_index = opt_operand_def(IntegerType)
    mask = opt_operand_def(i1)
    target_offset = prop_def(IntegerAttr)
    source_offset = prop_def(IntegerAttr)
    bytes = prop_def(IntegerAttr)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(OrderingEffects())

    def __init__(
        self,
        target: SSAValue,
        target_index: SSAValue | None,
        target_offset: int,
        source: SSAValue,
        source_index: SSAValue | None,
        source_offset: int,
        size: int,
        mask: SSAValue | None = None,
    ):
        super().__init__(
            operands=[target, target_index, source, source_index, mask],
            properties={
                "target_offset": integer(target_offset),
                "source_offset": integer(source_offset),
                "bytes": integer(size),
            },
        )

    def verify_(self) -> None:
        if self.bytes.value.data not in (4, 8, 16):
            raise VerifyException(
                f"an asynchronous copy moves 4, 8 or 16 bytes, got {self.bytes.value.data}"
            )
        if address_space(self.target) != SHARED_SPACE or address_space(self.source) != GLOBAL_SPACE:
            raise VerifyException("an asynchronous copy goes from global to shared memory")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        print_cells(printer, self.target, self.target_index, [self.target_offset.value.data])
        printer.print_string(", ")
        print_cells(printer, self.source, self.source_index, [self.source_offset.value.data])
        printer.print_string(f" bytes {self.bytes.value.data}")
        if self.mask is not None:
            printer.print_string(" mask ")
            printer.print_operand(self.mask)

    @classmethod
    def parse(cls, parser: Parser) -> CopyAsyncOp:
        target, target_index, _, target_offset = AccessOp.parse_access(parser)
        parser.parse_punctuation(",")
        source, source_index, _, source_offset = AccessOp.parse_access(parser)
        parser.parse_keyword("bytes")
        size = parser.parse_integer()
        mask = parse_value(parser) if parser.parse_optional_keyword("mask") else None
        return cls(
            target, target_index, target_offset, source, source_index, source_offset,
            size, mask,
        )  # fmt: skip


@irdl_op_definition
class SharedOp(IRDLOperation):
    """
    A slice of the block's dynamic shared memory, beginning at byte `at`.

    Example: `%ring = simt.shared at 0 : memref<512xf64, 3>`
    """

    name = "simt.shared"

    at = prop_def(IntegerAttr)
    result = result_def(MemRefType | LLVMPointerType)
    traits = traits_def(Pure())

    def __init__(self, at: int, result_type: Attribute):
        super().__init__(properties={"at": integer(at)}, result_types=[result_type])

    def verify_(self) -> None:
        if address_space(self.result) != SHARED_SPACE:
            raise VerifyException("shared memory lives in address space 3")
        if self.at.value.data % 16:
            raise VerifyException(
                f"a slice starts at a multiple of 16 bytes, got {self.at.value.data}"
            )

    def print(self, printer: Printer) -> None:
        printer.print_string(f" at {self.at.value.data} : ")
        printer.print_attribute(self.result.type)

    @classmethod
    def parse(cls, parser: Parser) -> SharedOp:
        parser.parse_keyword("at")
        at = parser.parse_integer()
        parser.parse_punctuation(":")
        return cls(at, parser.parse_type())
