"""Asynchronous copies to shared memory, and slices of shared memory."""

from __future__ import annotations

from xdsl.dialects.builtin import (
    IntegerAttr,
    IntegerType,
    MemRefType,
    i1,
)
from xdsl.dialects.llvm import LLVMPointerType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.pattern_rewriter import RewritePattern
from xdsl.printer import Printer
from xdsl.traits import HasCanonicalizationPatternsTrait, Pure
from xdsl.utils.exceptions import VerifyException

from timetile.dialects.simt.accesses import AccessOp
from timetile.dialects.simt.buffers import (
    GLOBAL_SPACE,
    SHARED_SPACE,
    OrderingEffects,
    address_space,
    integer,
    print_cells,
)
from timetile.dialects.syntax import (
    parse_value,
)


class CopyCanonicalization(HasCanonicalizationPatternsTrait):
    """Copies with a known mask or place."""

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        from timetile.dialects.simt.canonicalize import SimplifyCopy

        return (SimplifyCopy(),)


@irdl_op_definition
class CopyAsyncOp(IRDLOperation):
    """
    Start copying `bytes` (4, 8 or 16) from global to shared memory. Where the mask is off the
    target is filled with zeros, and counts as unset. The copying thread sees the target after
    `nvvm.cp.async.wait.group` for the copy's group; other threads see the target after a
    synchronisation.

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
    traits = traits_def(OrderingEffects(), CopyCanonicalization())

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
