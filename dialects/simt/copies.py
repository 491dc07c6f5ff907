"""Asynchronous copies to shared memory, and slices of shared memory."""

from __future__ import annotations

from xdsl.dialects.builtin import (
    I64,
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
from xdsl.pattern_rewriter import RewritePattern
from xdsl.traits import HasCanonicalizationPatternsTrait, Pure
from xdsl.utils.exceptions import VerifyException

from timetile.dialects.making import make_segmented, with_known_segments
from timetile.dialects.simt.buffers import (
    GLOBAL_SPACE,
    SHARED_SPACE,
    OrderingEffects,
    address_space,
    integer,
)
from timetile.dialects.simt.directives import BufferPlace


class CopyCanonicalization(HasCanonicalizationPatternsTrait):
    """Copies with a known mask or place."""

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        from timetile.dialects.simt.canonicalize import SimplifyCopy

        return (SimplifyCopy(),)


@with_known_segments
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
    target_offset = prop_def(IntegerAttr[I64])
    source_offset = prop_def(IntegerAttr[I64])
    bytes = prop_def(IntegerAttr[I64])

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(OrderingEffects(), CopyCanonicalization())

    custom_directives = (BufferPlace,)
    assembly_format = (
        "custom<BufferPlace>($target, type($target), $target_index, type($target_index), "
        "$target_offset) "
        "`,` "
        "custom<BufferPlace>($source, type($source), $source_index, type($source_index), "
        "$source_offset) "
        "`bytes` $bytes (`mask` $mask^)? attr-dict"
    )

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
        make_segmented(
            self,
            [target, target_index, source, source_index, mask],
            {
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


@irdl_op_definition
class SharedOp(IRDLOperation):
    """
    A slice of the block's dynamic shared memory, beginning at byte `at`.

    Example: `%ring = simt.shared at 0 : memref<512xf64, 3>`
    """

    name = "simt.shared"

    at = prop_def(IntegerAttr[I64])
    result = result_def(MemRefType | LLVMPointerType)
    traits = traits_def(Pure())

    assembly_format = "`at` $at attr-dict `:` type($result)"

    def __init__(self, at: int, result_type: Attribute):
        super().__init__(properties={"at": integer(at)}, result_types=[result_type])

    def verify_(self) -> None:
        if address_space(self.result) != SHARED_SPACE:
            raise VerifyException("shared memory lives in address space 3")
        if self.at.value.data % 16:
            raise VerifyException(
                f"a slice starts at a multiple of 16 bytes, got {self.at.value.data}"
            )
