"""Accesses and copies take pointers: `simt.load %a[%i + 2]` becomes `simt.load %p[2]`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.ir import SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from timetile.dialects import nvvm, simt
from timetile.lowering.gpu_to_nvvm.pointers import FunctionValues, moved, nearer
from timetile.passes.patterns import Patterns

MaskedAccess = simt.LoadOp | simt.StoreOp | simt.OverrideOp | simt.PrefetchOp


@dataclass(frozen=True)
class AccessPattern(RewritePattern):
    """Base of the patterns of accesses. An access without an index has the buffer's pointer."""

    values: FunctionValues

    def place(self, op: MaskedAccess, rewriter: PatternRewriter) -> tuple[SSAValue, int]:
        """The pointer of an access, and the offset from the pointer in cells."""
        pointer = self.values.pointer(op, op.buffer, op.index, rewriter)
        element = self.values.elements[op.buffer]
        return nearer(pointer, op.offset.value.data, element, rewriter)


class ConvertLoad(AccessPattern):
    """Loads."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: simt.LoadOp, rewriter: PatternRewriter, /) -> None:
        if op.index is not None:
            pointer, offset = self.place(op, rewriter)
            rewriter.replace(op, simt.LoadOp(pointer, None, offset, list(op.cells.types), op.mask))


class ConvertStore(AccessPattern):
    """Stores."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: simt.StoreOp, rewriter: PatternRewriter, /) -> None:
        if op.index is not None:
            pointer, offset = self.place(op, rewriter)
            rewriter.replace(op, simt.StoreOp(list(op.cells), pointer, None, offset, op.mask))


class ConvertOverride(AccessPattern):
    """Loads under a mask, in place of cells."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: simt.OverrideOp, rewriter: PatternRewriter, /) -> None:
        if op.index is not None and op.mask is not None:
            pointer, offset = self.place(op, rewriter)
            rewriter.replace(op, simt.OverrideOp(list(op.cells), pointer, None, offset, op.mask))


class ConvertPrefetch(AccessPattern):
    """Prefetches."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: simt.PrefetchOp, rewriter: PatternRewriter, /) -> None:
        if op.index is not None:
            pointer, offset = self.place(op, rewriter)
            rewriter.replace(op, simt.PrefetchOp(pointer, None, offset, op.cell, op.mask))


@dataclass(frozen=True)
class ConvertCopy(RewritePattern):
    """Asynchronous copies. A copy under a mask reads all of its bytes or none."""

    values: FunctionValues

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: simt.CopyAsyncOp, rewriter: PatternRewriter, /) -> None:
        values, element = self.values, self.values.elements[op.target]
        target = values.pointer(op, op.target, op.target_index, rewriter)
        source = values.pointer(op, op.source, op.source_index, rewriter)
        target = moved(target, op.target_offset.value.data, element, rewriter)
        source = moved(source, op.source_offset.value.data, element, rewriter)
        size = op.bytes.value.data
        taken: SSAValue | None = None
        if op.mask is not None:
            every, none = values.int(size, rewriter), values.int(0, rewriter)
            taken = rewriter.insert(arith.SelectOp(op.mask, every, none)).result
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
