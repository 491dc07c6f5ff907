"""The simt dialect: what one thread does that upstream's gpu dialect cannot say.

It holds only what MLIR's gpu dialect lacks, or what must stay one operation for the SIMT
interpreter: accesses of several cells with a mask, lane shuffles, asynchronous copies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self, cast

from xdsl.dialects.builtin import (
    Float32Type,
    Float64Type,
    IntAttr,
    IntegerAttr,
    IntegerType,
    MemRefType,
    UnitAttr,
    f32,
    f64,
    i1,
    i32,
    i64,
)
from xdsl.dialects.llvm import LLVMPointerType
from xdsl.ir import Attribute, Dialect, Operation, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    VarConstraint,
    base,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
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
    INTEGERS,
    decode_integers,
    encode_integers,
    parse_optional_value,
    parse_value,
    parse_values,
)

GLOBAL_SPACE, SHARED_SPACE, CLUSTER_SPACE = 1, 3, 7
"""NVVM's address spaces: global memory, the block's shared memory, that of any block of the cluster."""

CELL_BYTES: dict[Attribute, int] = {f64: 8, f32: 4, i64: 8, i32: 4}
"""Bytes of a cell, per element type that a thread can access."""


def integer(value: int) -> IntegerAttr:
    """An integer property, in a form that real MLIR reads too."""
    return IntegerAttr(value, i64)


def buffer_type(element: Attribute, cells: int, space: int) -> MemRefType[Attribute]:
    """A flat buffer of `cells` elements in an address space."""
    return MemRefType(element, [cells], memory_space=IntegerAttr(space, i64))


def cell_count(buffer: Attribute) -> int:
    """Cells of a flat buffer, by its type."""
    (count,) = cast(MemRefType[Attribute], buffer).get_shape()
    return count


def buffer_element(buffer: SSAValue) -> Attribute | None:
    """The type of a buffer's cells; None for a pointer, which names none."""
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
    """The operation reads its buffer."""

    @classmethod
    def get_effects(cls, op: Operation) -> set[EffectInstance]:
        assert isinstance(op, AccessOp)
        return {EffectInstance(MemoryEffectKind.READ, op.buffer)}


class WriteEffects(MemoryEffect):
    """The operation writes its buffer."""

    @classmethod
    def get_effects(cls, op: Operation) -> set[EffectInstance]:
        assert isinstance(op, AccessOp)
        return {EffectInstance(MemoryEffectKind.WRITE, op.buffer)}


class OrderingEffects(MemoryEffect):
    """The operation orders others: it is neither erased nor moved across memory accesses."""

    @classmethod
    def get_effects(cls, op: Operation) -> set[EffectInstance]:
        return {EffectInstance(MemoryEffectKind.READ), EffectInstance(MemoryEffectKind.WRITE)}


class AccessOp(IRDLOperation):
    """
    Base of the accesses: cells `index + offset` and following of a buffer (elements), where the
    mask is on. At the nvvm level the buffer is a pointer and the index is part of it.
    """

    buffer = operand_def(MemRefType | LLVMPointerType)
    index = opt_operand_def(IntegerType)
    mask = opt_operand_def(i1)
    offset = prop_def(IntegerAttr)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    @property
    def cell_types(self) -> tuple[Attribute, ...]:
        """The types of the cells that are accessed, in order."""
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
        printer.print_operand(self.buffer)
        with printer.in_square_brackets():
            if self.index is not None:
                printer.print_operand(self.index)
                printer.print_string(" + ")
            printer.print_string(str(self.offset.value.data))
        if self.mask is not None:
            printer.print_string(" mask ")
            printer.print_operand(self.mask)

    @staticmethod
    def parse_access(
        parser: Parser,
    ) -> tuple[SSAValue, SSAValue | None, SSAValue | None, int]:
        """Parse what `print_access` printed: buffer, index, mask, offset."""
        buffer = parse_value(parser)
        parser.parse_punctuation("[")
        index = parse_optional_value(parser)
        if index is not None:
            parser.parse_punctuation("+")
        offset = parser.parse_integer()
        parser.parse_punctuation("]")
        mask = parse_value(parser) if parser.parse_optional_keyword("mask") else None
        return buffer, index, mask, offset


@irdl_op_definition
class LoadOp(AccessOp):
    """
    Read 1, 2 or 4 cells. Where the mask is off they are unset.

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
    """Base of the accesses that write the cells they are given."""

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
        """Parse what `print` printed: cells, buffer, index, offset, mask."""
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
    The given cells where the mask is off, the buffer's where it is on: a predicated load over the
    registers.

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
    Start copying `bytes` (4, 8 or 16) from global to shared memory; where the mask is off the
    target is filled with zeros that count as unset. The copy has arrived for this thread once
    `nvvm.cp.async.wait.group` has waited for its group, for others after a synchronisation.

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
        def access(buffer: SSAValue, index: SSAValue | None, offset: IntegerAttr) -> None:
            printer.print_operand(buffer)
            with printer.in_square_brackets():
                if index is not None:
                    printer.print_operand(index)
                    printer.print_string(" + ")
                printer.print_string(str(offset.value.data))

        printer.print_string(" ")
        access(self.target, self.target_index, self.target_offset)
        printer.print_string(", ")
        access(self.source, self.source_index, self.source_offset)
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
class ShuffleOp(IRDLOperation):
    """
    The value that lane + delta of the same warp holds; unset where there is no such lane.

    Example: `%l = simt.shuffle %v delta -1 : f64`
    """

    name = "simt.shuffle"

    value = operand_def()
    delta = prop_def(IntegerAttr)
    result = result_def()
    traits = traits_def(Pure())

    def __init__(self, value: SSAValue, delta: int):
        super().__init__(
            operands=[value], properties={"delta": integer(delta)}, result_types=[value.type]
        )

    def verify_(self) -> None:
        if self.value.type not in CELL_BYTES or self.value.type != self.result.type:
            raise VerifyException(f"a shuffle moves 4 or 8 bytes, got {self.value.type}")
        if not 0 < abs(self.delta.value.data) < 32:
            raise VerifyException(f"a shuffle reaches 1 to 31 lanes, got {self.delta.value.data}")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.value)
        printer.print_string(f" delta {self.delta.value.data} : ")
        printer.print_attribute(self.value.type)

    @classmethod
    def parse(cls, parser: Parser) -> ShuffleOp:
        value = parse_value(parser)
        parser.parse_keyword("delta")
        delta = parser.parse_integer()
        parser.parse_punctuation(":")
        parser.parse_type()
        return cls(value, delta)


class UnaryOp(IRDLOperation):
    """Base of the operations of one value whose result is of its type."""

    value = operand_def()
    result = result_def()
    traits = traits_def(Pure())

    def __init__(self, value: SSAValue):
        super().__init__(operands=[value], result_types=[value.type])


@irdl_op_definition
class UniformOp(UnaryOp):
    """
    A value that all lanes of a warp hold alike, known to be so: what depends on it alone does not
    diverge inside a warp.

    Example: `%u = simt.uniform %warp : i32`
    """

    name = "simt.uniform"

    value = operand_def(i32)
    result = result_def(i32)
    assembly_format = "$value attr-dict `:` type($value)"


@irdl_op_definition
class AllOp(UnaryOp):
    """
    The condition holds for all lanes of a warp: what depends on it does not diverge inside a warp.

    Example: `%a = simt.all %m : i1`
    """

    name = "simt.all"

    value = operand_def(i1)
    result = result_def(i1)
    assembly_format = "$value attr-dict `:` type($value)"


@irdl_op_definition
class SharedOp(IRDLOperation):
    """
    A slice of the block's dynamic shared memory, `at` bytes from its start.

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


@irdl_op_definition
class UnsetOp(IRDLOperation):
    """
    A value that nothing has set: planes before the first one. No stored cell may depend on it.

    Example: `%u = simt.unset : f64`
    """

    name = "simt.unset"

    result = result_def()
    assembly_format = "attr-dict `:` type($result)"
    traits = traits_def(Pure())

    def __init__(self, result_type: Attribute):
        super().__init__(result_types=[result_type])


@irdl_op_definition
class PhaseOp(IRDLOperation):
    """
    A mark: the operations up to the next mark belong to this stream step of the unrolled body, this
    stage and this row of the thread's cells. An `inner` row is one of which other warps neither read
    nor write anything in this step. `order-threads` orders by it and erases it.

    Example: `simt.phase step 0 stage 3 row 1 inner`
    """

    name = "simt.phase"

    step = prop_def(IntegerAttr)
    stage = prop_def(IntegerAttr)
    row = prop_def(IntegerAttr)
    inner = opt_prop_def(UnitAttr)
    traits = traits_def(OrderingEffects())

    def __init__(self, step: int, stage: int, row: int, *, inner: bool = False):
        super().__init__(
            properties={
                "step": integer(step),
                "stage": integer(stage),
                "row": integer(row),
                "inner": UnitAttr() if inner else None,
            }
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(
            f" step {self.step.value.data} stage {self.stage.value.data} row {self.row.value.data}"
        )
        if self.inner is not None:
            printer.print_string(" inner")

    @classmethod
    def parse(cls, parser: Parser) -> PhaseOp:
        numbers: list[int] = []
        for word in ("step", "stage", "row"):
            parser.parse_keyword(word)
            numbers.append(parser.parse_integer())
        return cls(*numbers, inner=parser.parse_optional_keyword("inner") is not None)


class ArrivalsOp(IRDLOperation):
    """
    Base of the two halves of a barrier of the block: what a thread did before it arrived is seen by
    everyone who waited for the phase in which all threads arrived. Phases are numbered from 0. The first
    operand is where they are counted, in one 64-bit word of shared memory or in two that take turns:
    two where other blocks send, since those may be a phase ahead.
    """

    def verify_(self) -> None:
        words = self.operands[0]
        if address_space(words) != SHARED_SPACE or buffer_element(words) not in (i64, None):
            raise VerifyException("arrivals are counted in 64-bit words of shared memory")
        if buffer_element(words) is not None and cell_count(words.type) not in (1, 2):
            raise VerifyException("arrivals are counted in one word, or in two that take turns")


@irdl_op_definition
class ExpectOp(ArrivalsOp):
    """
    Make the arrivals ready for phases in which all threads of `warps` warps arrive. One thread does; a
    barrier before the first arrival lets the others see it.

    Example: `simt.expect %b warps 8`
    """

    name = "simt.expect"

    arrivals = operand_def(MemRefType | LLVMPointerType)
    warps = prop_def(IntegerAttr)
    traits = traits_def(OrderingEffects())

    def __init__(self, arrivals: SSAValue, warps: int):
        super().__init__(operands=[arrivals], properties={"warps": integer(warps)})

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.arrivals)
        printer.print_string(f" warps {self.warps.value.data}")

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        arrivals = parse_value(parser)
        parser.parse_keyword("warps")
        return cls(arrivals, parser.parse_integer())


@irdl_op_definition
class ArriveOp(ArrivalsOp):
    """
    The threads of a warp arrive, each for itself, and go on. The phase is complete when all have and as
    many bytes have been sent by other blocks as the threads said to expect.

    Example: `simt.arrive %b phase %p bytes %n : memref<1xi64, 3>`
    """

    name = "simt.arrive"

    arrivals = operand_def(MemRefType | LLVMPointerType)
    phase = operand_def(i32)
    bytes = opt_operand_def(i32)
    traits = traits_def(OrderingEffects())
    assembly_format = "$arrivals `phase` $phase (`bytes` $bytes^)? attr-dict `:` type($arrivals)"

    def __init__(self, arrivals: SSAValue, phase: SSAValue, bytes: SSAValue | None = None):
        super().__init__(operands=[arrivals, phase, bytes])


@irdl_op_definition
class WaitOp(ArrivalsOp):
    """
    Wait until a phase is complete, the last one before that in which the warp arrives next. Phases
    before the first are complete.

    Example: `simt.wait %b phase %p : memref<1xi64, 3>`
    """

    name = "simt.wait"

    arrivals = operand_def(MemRefType | LLVMPointerType)
    phase = operand_def(i32)
    traits = traits_def(OrderingEffects())
    assembly_format = "$arrivals `phase` $phase attr-dict `:` type($arrivals)"

    def __init__(self, arrivals: SSAValue, phase: SSAValue):
        super().__init__(operands=[arrivals, phase])


@irdl_op_definition
class ClusterBarrierOp(IRDLOperation):
    """
    All threads of the blocks of a cluster wait for each other.

    Example: `simt.cluster_barrier`
    """

    name = "simt.cluster_barrier"

    traits = traits_def(OrderingEffects())
    assembly_format = "attr-dict"

    def __init__(self):
        super().__init__()


@irdl_op_definition
class PeerOp(IRDLOperation):
    """
    A buffer of the block's shared memory as another block of the cluster has it, by that block's rank.

    Example: `%peer = simt.peer %buffer block %rank : memref<512xf64, 3> -> memref<512xf64, 7>`
    """

    name = "simt.peer"

    buffer = operand_def(MemRefType | LLVMPointerType)
    rank = operand_def(i32)
    result = result_def(MemRefType | LLVMPointerType)
    traits = traits_def(Pure())
    assembly_format = "$buffer `block` $rank attr-dict `:` type($buffer) `->` type($result)"

    def __init__(self, buffer: SSAValue, rank: SSAValue):
        element = buffer_element(buffer)
        peer: Attribute = LLVMPointerType(IntAttr(CLUSTER_SPACE))
        if element is not None:
            peer = buffer_type(element, cell_count(buffer.type), CLUSTER_SPACE)
        super().__init__(operands=[buffer, rank], result_types=[peer])

    def verify_(self) -> None:
        if (address_space(self.buffer), address_space(self.result)) != (
            SHARED_SPACE,
            CLUSTER_SPACE,
        ):
            raise VerifyException("a block's buffer, space 3, has a peer in the cluster, space 7")


@irdl_op_definition
class SendOp(WriteOp):
    """
    Write 1, 2 or 4 cells to another block of the cluster where the mask is on. It goes on at once: who
    waits in the other block for the phase sees them, and they count among the bytes expected of it.

    Example: `simt.send %a, %b to %peer[%i + 2] mask %m arrivals %w phase %p`
    """

    name = "simt.send"

    arrivals = operand_def(MemRefType | LLVMPointerType)
    phase = operand_def(i32)

    def __init__(
        self,
        cells: Sequence[SSAValue],
        buffer: SSAValue,
        index: SSAValue | None,
        offset: int,
        mask: SSAValue | None,
        arrivals: SSAValue,
        phase: SSAValue,
    ):
        super().__init__(
            operands=[arrivals, phase, list(cells), buffer, index, mask],
            properties={"offset": integer(offset)},
        )

    def verify_(self) -> None:
        super().verify_()
        if {address_space(self.buffer), address_space(self.arrivals)} != {CLUSTER_SPACE}:
            raise VerifyException("cells are sent to a peer, and counted there: space 7")

    def print(self, printer: Printer) -> None:
        super().print(printer)
        printer.print_string(" arrivals ")
        printer.print_operand(self.arrivals)
        printer.print_string(" phase ")
        printer.print_operand(self.phase)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        written = cls.parse_write(parser)
        parser.parse_keyword("arrivals")
        arrivals = parse_value(parser)
        parser.parse_keyword("phase")
        return cls(*written, arrivals, parse_value(parser))


class MessageOp(IRDLOperation):
    """
    Base of what threads of different blocks say to each other in global memory. Cells lie at
    `index + offsets[k]` (64-bit words).

    A message has a `number`, and so has each of its words beside four bytes of a cell: a word that has
    arrived says so itself, and nothing else need be ordered. Who takes message n has seen it; what its
    sender did besides is not ordered by it. A word is written again only by a sender who has taken a message
    that the reader sent after reading. Without a number a cell is alone in its word, and barriers of the
    tile order what is written and read.
    """

    buffer = operand_def(MemRefType | LLVMPointerType)
    index = opt_operand_def(IntegerType)
    number = opt_operand_def(i32)
    offsets = prop_def(INTEGERS)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(OrderingEffects())

    @property
    def cell_types(self) -> tuple[Attribute, ...]:
        """The types of the cells, in order."""
        raise NotImplementedError

    @property
    def places(self) -> tuple[int, ...]:
        """The words at which the cells begin, beside the index."""
        return decode_integers(self.offsets)

    def verify_(self) -> None:
        types = self.cell_types
        if len(set(types)) != 1 or types[0] not in CELL_BYTES:
            raise VerifyException("a message is of one or more cells of one type")
        if len(types) != len(self.places):
            raise VerifyException(f"{len(types)} cells at {len(self.places)} places")
        if address_space(self.buffer) != GLOBAL_SPACE:
            raise VerifyException("messages between blocks go through global memory")
        if buffer_element(self.buffer) not in (i64, None):
            raise VerifyException("messages are kept in 64-bit words")

    def print_place(self, printer: Printer) -> None:
        """Print `%mail[%i + 0, 64] number %n`."""
        printer.print_operand(self.buffer)
        with printer.in_square_brackets():
            if self.index is not None:
                printer.print_operand(self.index)
                printer.print_string(" + ")
            printer.print_list(self.places, lambda place: printer.print_string(str(place)))
        if self.number is not None:
            printer.print_string(" number ")
            printer.print_operand(self.number)

    @staticmethod
    def parse_place(
        parser: Parser,
    ) -> tuple[SSAValue, SSAValue | None, list[int], SSAValue | None]:
        """Parse what `print_place` printed: buffer, index, places, number."""
        buffer = parse_value(parser)
        parser.parse_punctuation("[")
        index = parse_optional_value(parser)
        if index is not None:
            parser.parse_punctuation("+")
        places = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_integer)
        parser.parse_punctuation("]")
        number = parse_value(parser) if parser.parse_optional_keyword("number") else None
        return buffer, index, places, number


@irdl_op_definition
class PostOp(MessageOp):
    """
    Write the cells of a message, or what a barrier will let others read, and go on.

    Example: `simt.post %a, %b to %mail[%i + 0, 64] number %n`
    """

    name = "simt.post"

    cells = var_operand_def()

    def __init__(
        self,
        cells: Sequence[SSAValue],
        buffer: SSAValue,
        index: SSAValue | None,
        places: Sequence[int],
        number: SSAValue | None,
    ):
        super().__init__(
            operands=[list(cells), buffer, index, number],
            properties={"offsets": encode_integers(places)},
        )

    @property
    def cell_types(self) -> tuple[Attribute, ...]:
        return tuple(self.cells.types)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.cells, printer.print_operand)
        printer.print_string(" to ")
        self.print_place(printer)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        cells = parse_values(parser, parser.Delimiter.NONE)
        parser.parse_keyword("to")
        return cls(cells, *cls.parse_place(parser))


@irdl_op_definition
class TakeOp(MessageOp):
    """
    Wait until the words of message `number` are there, and read its cells. Message 0 is that which
    nobody sends: its cells are unset. Without a number, read what is there.

    Example: `%a, %b = simt.take %mail[%i + 0, 64] number %n : f64, f64`
    """

    name = "simt.take"

    cells = var_result_def()

    def __init__(
        self,
        buffer: SSAValue,
        index: SSAValue | None,
        places: Sequence[int],
        number: SSAValue | None,
        types: Sequence[Attribute],
    ):
        super().__init__(
            operands=[buffer, index, number],
            properties={"offsets": encode_integers(places)},
            result_types=[list(types)],
        )

    @property
    def cell_types(self) -> tuple[Attribute, ...]:
        return tuple(self.cells.types)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        self.print_place(printer)
        printer.print_string(" : ")
        printer.print_list(self.cells.types, printer.print_attribute)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        place = cls.parse_place(parser)
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        return cls(*place, types)


@irdl_op_definition
class TileBarrierOp(IRDLOperation):
    """
    All threads of the `blocks` blocks that hold a tile wait for each other; what they did before in global
    memory is seen by all after it. They count each other in a word of global memory that is 0 before the
    launch, and this is barrier `number` of the tile, from 1 on. All the blocks must be resident.

    Example: `simt.tile_barrier %words[%i] number %n blocks 13`
    """

    name = "simt.tile_barrier"

    words = operand_def(MemRefType | LLVMPointerType)
    index = opt_operand_def(IntegerType)
    number = operand_def(i32)
    blocks = prop_def(IntegerAttr)
    traits = traits_def(OrderingEffects())

    def __init__(self, words: SSAValue, index: SSAValue | None, number: SSAValue, blocks: int):
        super().__init__(operands=[words, index, number], properties={"blocks": integer(blocks)})

    def verify_(self) -> None:
        words = self.words
        if address_space(words) != GLOBAL_SPACE or buffer_element(words) not in (i64, None):
            raise VerifyException("blocks count each other in 64-bit words of global memory")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.words)
        with printer.in_square_brackets():
            if self.index is not None:
                printer.print_operand(self.index)
        printer.print_string(" number ")
        printer.print_operand(self.number)
        printer.print_string(f" blocks {self.blocks.value.data}")

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        words = parse_value(parser)
        parser.parse_punctuation("[")
        index = parse_optional_value(parser)
        parser.parse_punctuation("]")
        parser.parse_keyword("number")
        number = parse_value(parser)
        parser.parse_keyword("blocks")
        return cls(words, index, number, parser.parse_integer())


@irdl_op_definition
class SplitOp(IRDLOperation):
    """
    The low and high halves of an 8-byte value.

    Example: `%lo, %hi = simt.split %v : f64`
    """

    name = "simt.split"

    value = operand_def()
    low = result_def(i32)
    high = result_def(i32)
    assembly_format = "$value attr-dict `:` type($value)"
    traits = traits_def(Pure())

    def __init__(self, value: SSAValue):
        super().__init__(operands=[value], result_types=[i32, i32])


@irdl_op_definition
class JoinOp(IRDLOperation):
    """
    The 8-byte value with these halves.

    Example: `%v = simt.join %lo, %hi : f64`
    """

    name = "simt.join"

    low = operand_def(i32)
    high = operand_def(i32)
    result = result_def()
    assembly_format = "$low `,` $high attr-dict `:` type($result)"
    traits = traits_def(Pure())

    def __init__(self, low: SSAValue, high: SSAValue, result_type: Attribute):
        super().__init__(operands=[low, high], result_types=[result_type])


class GuessOp(UnaryOp):
    """Base of the approximations that Newton's method starts from."""

    T: ClassVar = VarConstraint("T", base(Float32Type) | base(Float64Type))

    value = operand_def(T)
    result = result_def(T)
    assembly_format = "$value attr-dict `:` type($result)"


@irdl_op_definition
class ReciprocalOp(GuessOp):
    """
    About one by a value: 20 bits of it in FP64, all but the last in FP32. Subnormal numbers count as 0.

    Example: `%r = simt.reciprocal %v : f64`
    """

    name = "simt.reciprocal"


@irdl_op_definition
class ReciprocalRootOp(GuessOp):
    """
    About one by a value's square root: 20 bits of it in FP64, all but the last in FP32. Subnormal numbers
    count as 0.

    Example: `%r = simt.reciprocal_root %v : f64`
    """

    name = "simt.reciprocal_root"


Simt = Dialect(
    "simt",
    [
        LoadOp,
        StoreOp,
        OverrideOp,
        PrefetchOp,
        CopyAsyncOp,
        ShuffleOp,
        UniformOp,
        AllOp,
        SharedOp,
        UnsetOp,
        PhaseOp,
        ExpectOp,
        ArriveOp,
        WaitOp,
        ClusterBarrierOp,
        PeerOp,
        SendOp,
        PostOp,
        TakeOp,
        TileBarrierOp,
        SplitOp,
        JoinOp,
        ReciprocalOp,
        ReciprocalRootOp,
    ],
    [],
)
