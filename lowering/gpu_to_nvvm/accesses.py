"""Accesses and copies take pointers: `simt.load %a[%i + 2]` becomes `simt.load %p[2]`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from timetile.dialects import nvvm, simt
from timetile.lowering.gpu_to_nvvm.pointers import FunctionValues, moved, nearer
from timetile.passes.patterns import Patterns

MaskedAccess = simt.LoadOp | simt.StoreOp | simt.OverrideOp | simt.PrefetchOp


@dataclass(frozen=True)
class AccessPattern(RewritePattern):
    """What the patterns for accesses share. Without an index, the place is the buffer's pointer."""

    values: FunctionValues

    def pointed(
        self, op: MaskedAccess, buffer: SSAValue, index: SSAValue, rewriter: PatternRewriter
    ) -> tuple[SSAValue, int]:
        """The pointer of an access, and the offset from the pointer in cells."""
        pointer = self.values.pointer(op, buffer, index, rewriter)
        element = self.values.elements[buffer]
        return nearer(pointer, op.offset.value.data, element, rewriter)


class ConvertLoad(AccessPattern):
    """Loads."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: simt.LoadOp, rewriter: PatternRewriter, /) -> None:
        buffer, index, mask = op.place
        if index is not None:
            pointer, offset = self.pointed(op, buffer, index, rewriter)
            rewriter.replace(op, simt.LoadOp(pointer, None, offset, op.cell_types, mask))


class ConvertStore(AccessPattern):
    """Stores."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: simt.StoreOp, rewriter: PatternRewriter, /) -> None:
        buffer, index, mask = op.place
        if index is not None:
            pointer, offset = self.pointed(op, buffer, index, rewriter)
            rewriter.replace(op, simt.StoreOp(list(op.cells), pointer, None, offset, mask))


class ConvertOverride(AccessPattern):
    """Loads under a mask, in place of cells."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: simt.OverrideOp, rewriter: PatternRewriter, /) -> None:
        buffer, index, mask = op.place
        if index is not None and mask is not None:
            pointer, offset = self.pointed(op, buffer, index, rewriter)
            rewriter.replace(op, simt.OverrideOp(list(op.cells), pointer, None, offset, mask))


class ConvertPrefetch(AccessPattern):
    """Prefetches."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: simt.PrefetchOp, rewriter: PatternRewriter, /) -> None:
        buffer, index, mask = op.place
        if index is not None:
            pointer, offset = self.pointed(op, buffer, index, rewriter)
            rewriter.replace(op, simt.PrefetchOp(pointer, None, offset, op.cell, mask))


@dataclass(frozen=True)
class ConvertCopy(RewritePattern):
    """Asynchronous copies. A copy under a mask reads all of its bytes or none."""

    values: FunctionValues

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: simt.CopyAsyncOp, rewriter: PatternRewriter, /) -> None:
        values, element = self.values, self.values.elements[op.target]
        mask = op.mask
        target = values.pointer(op, op.target, op.target_index, rewriter)
        source = values.pointer(op, op.source, op.source_index, rewriter)
        target = moved(target, op.target_offset.value.data, element, rewriter)
        source = moved(source, op.source_offset.value.data, element, rewriter)
        size = op.bytes.value.data
        taken: SSAValue | None = None
        if mask is not None:
            every, none = values.int(size, rewriter), values.int(0, rewriter)
            chosen = arith.SelectOp.create(operands=[mask, every, none], result_types=[i32])
            taken = rewriter.insert(chosen).result
        rewriter.replace(op, nvvm.CpAsyncOp(target, source, size, taken))


def access_patterns(values: FunctionValues) -> Patterns:
    """The patterns of accesses and copies."""
    return {
        simt.LoadOp: ConvertLoad(values),
        simt.StoreOp: ConvertStore(values),
        simt.OverrideOp: ConvertOverride(values),
        simt.PrefetchOp: ConvertPrefetch(values),
        simt.CopyAsyncOp: ConvertCopy(values),
    }
