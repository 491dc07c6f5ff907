"""Accesses of a thread to consecutive cells of a buffer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import (
    IntegerAttr,
    IntegerType,
    MemRefType,
    i1,
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
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.pattern_rewriter import RewritePattern
from xdsl.traits import (
    EffectInstance,
    HasCanonicalizationPatternsTrait,
    MemoryEffect,
    MemoryEffectKind,
)
from xdsl.utils.exceptions import VerifyException

from timetile.dialects.cell_types import CELL_BYTES
from timetile.dialects.directives import Values
from timetile.dialects.making import make_segmented, segment_sizes_of, with_known_segments
from timetile.dialects.simt.buffers import (
    GLOBAL_SPACE,
    OrderingEffects,
    address_space,
    buffer_element,
    integer,
)
from timetile.dialects.simt.directives import BufferPlace, Cells


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


class AccessCanonicalization(HasCanonicalizationPatternsTrait):
    """Accesses with a known mask or place."""

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        from timetile.dialects.simt.canonicalize import SimplifyAccess

        return (SimplifyAccess(),)


class AccessOp(IRDLOperation):
    """
    Base of the accesses to consecutive cells of a buffer, beginning at `index + offset` (cells),
    where the mask is on. At the hardware level the buffer is a pointer, and the pointer includes
    the index.
    """

    buffer = operand_def(MemRefType | LLVMPointerType)
    index = opt_operand_def(IntegerType)
    mask = opt_operand_def(i1)
    offset = prop_def(IntegerAttr)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    custom_directives = (Cells, BufferPlace, Values)

    PLACE: ClassVar[str] = (
        "custom<BufferPlace>($buffer, type($buffer), $index, type($index), $offset) "
        "(`mask` $mask^)?"
    )
    """The format of the place of an access, with its mask."""

    @property
    def cell_types(self) -> tuple[Attribute, ...]:
        """The types of the accessed cells, in order."""
        raise NotImplementedError

    @property
    def place(self) -> tuple[SSAValue, SSAValue | None, SSAValue | None]:
        """
        The buffer, the index and the mask. They are the last operands, and are found at once: each
        of xDSL's accessors decodes the sizes of all segments.
        """
        *_, indices, masks = segment_sizes_of(self)
        operands = [*self.operands]
        mask = operands.pop() if masks else None
        index = operands.pop() if indices else None
        return operands[-1], index, mask

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


@with_known_segments
@irdl_op_definition
class LoadOp(AccessOp):
    """
    Read 1, 2 or 4 cells. The results are unset where the mask is off.

    Example: `%a, %b = simt.load %buffer[%i + 2] mask %m : f64, f64`
    """

    name = "simt.load"

    cells = var_result_def()
    traits = traits_def(ReadEffects(), AccessCanonicalization())

    assembly_format = f"{AccessOp.PLACE} attr-dict `:` type($cells)"

    def __init__(
        self,
        buffer: SSAValue,
        index: SSAValue | None,
        offset: int,
        types: Sequence[Attribute],
        mask: SSAValue | None = None,
    ):
        make_segmented(self, [buffer, index, mask], {"offset": integer(offset)}, types)

    @property
    def cell_types(self) -> tuple[Attribute, ...]:
        return tuple(self.cells.types)


class WriteOp(AccessOp):
    """Base of the accesses with operands to write."""

    cells = var_operand_def()
    traits = traits_def(WriteEffects())

    WRITTEN: ClassVar[str] = f"custom<Values>($cells, type($cells)) `to` {AccessOp.PLACE}"
    """The format of what is written, and where."""

    @property
    def cell_types(self) -> tuple[Attribute, ...]:
        return tuple(self.cells.types)


MAY_BE_UNSET = "simt.may_be_unset"
"""The attribute of a store to global memory of cells that may be unset, and are read by nobody."""


@with_known_segments
@irdl_op_definition
class StoreOp(WriteOp):
    """
    Write 1, 2 or 4 cells where the mask is on.

    Example: `simt.store %a, %b to %buffer[%i + 2] mask %m`
    """

    name = "simt.store"

    traits = traits_def(WriteEffects(), AccessCanonicalization())

    assembly_format = f"{WriteOp.WRITTEN} attr-dict"

    def __init__(
        self,
        cells: Sequence[SSAValue],
        buffer: SSAValue,
        index: SSAValue | None,
        offset: int,
        mask: SSAValue | None = None,
    ):
        make_segmented(self, [cells, buffer, index, mask], {"offset": integer(offset)})


@with_known_segments
@irdl_op_definition
class OverrideOp(AccessOp):
    """
    The given cells where the mask is off, cells of the buffer where the mask is on: a predicated
    load over the registers.

    Example: `%c = simt.override %a from %buffer[%i + 2] mask %m`
    """

    name = "simt.override"

    cells = var_operand_def()
    res = var_result_def()
    traits = traits_def(ReadEffects(), AccessCanonicalization())

    assembly_format = (
        f"custom<Cells>($cells, type($cells), type($res)) `from` {AccessOp.PLACE} attr-dict"
    )

    def __init__(
        self,
        cells: Sequence[SSAValue],
        buffer: SSAValue,
        index: SSAValue | None,
        offset: int,
        mask: SSAValue,
    ):
        types = [cell.type for cell in cells]
        make_segmented(self, [cells, buffer, index, mask], {"offset": integer(offset)}, types)

    @property
    def cell_types(self) -> tuple[Attribute, ...]:
        return tuple(self.cells.types)

    def verify_(self) -> None:
        super().verify_()
        if self.mask is None:
            raise VerifyException("an override has a mask")


@with_known_segments
@irdl_op_definition
class PrefetchOp(AccessOp):
    """
    Ask for a cell's line to be in the first-level cache soon, where the mask is on.

    Example: `simt.prefetch %buffer[%i + 2] mask %m : f64`
    """

    name = "simt.prefetch"

    cell = prop_def(Attribute)
    traits = traits_def(OrderingEffects(), AccessCanonicalization())

    assembly_format = f"{AccessOp.PLACE} attr-dict `:` $cell"

    def __init__(
        self,
        buffer: SSAValue,
        index: SSAValue | None,
        offset: int,
        cell: Attribute,
        mask: SSAValue | None = None,
    ):
        make_segmented(self, [buffer, index, mask], {"offset": integer(offset), "cell": cell})

    @property
    def cell_types(self) -> tuple[Attribute, ...]:
        return (self.cell,)

    def verify_(self) -> None:
        super().verify_()
        if address_space(self.buffer) != GLOBAL_SPACE:
            raise VerifyException("a prefetch reads global memory")
