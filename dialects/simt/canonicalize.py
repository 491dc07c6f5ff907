"""Canonicalization of the simt dialect: known masks and places of accesses.

A mask that is on is no mask; under a mask that is off nothing is read or written. A constant index
is a part of the offset.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern
from xdsl.transforms.canonicalization_patterns.utils import const_evaluate_operand

from timetile.dialects.simt.accesses import AccessOp, LoadOp, OverrideOp, PrefetchOp, StoreOp
from timetile.dialects.simt.arrivals import SendOp
from timetile.dialects.simt.copies import CopyAsyncOp
from timetile.dialects.simt.messages import PostOp, TakeOp
from timetile.dialects.simt.threads import UnsetOp


def known_mask(mask: SSAValue | None) -> bool | None:
    """Whether a mask is on; None if unknown. An access without a mask has a mask that is on."""
    if mask is None:
        return True
    value = const_evaluate_operand(mask)
    return None if value is None else bool(value)


def place(index: SSAValue | None, offset: IntegerAttr) -> tuple[SSAValue | None, int]:
    """The index and the offset of an access, with a constant index as a part of the offset."""
    known = None if index is None else const_evaluate_operand(index)
    return (index, offset.value.data) if known is None else (None, offset.value.data + known)


def is_plain(op: AccessOp) -> bool:
    """The access has neither a known mask nor a constant index to simplify."""
    mask_known = op.mask is not None and known_mask(op.mask) is not None
    return not mask_known and place(op.index, op.offset)[0] is op.index


def left_mask(op: AccessOp) -> SSAValue | None:
    """The mask of an access unless it is on."""
    return None if known_mask(op.mask) else op.mask


def left_of_write(
    op: AccessOp, rewriter: PatternRewriter
) -> tuple[SSAValue | None, int, SSAValue | None] | None:
    """
    The simplified index, offset and mask of an access without results. None for an access without
    a change, and for an access erased because of a mask that is off.
    """
    if is_plain(op):
        return None
    if known_mask(op.mask) is False:
        rewriter.erase(op)
        return None
    return *place(op.index, op.offset), left_mask(op)


class SimplifyLoad(RewritePattern):
    """Loads. Cells under a mask that is off are unset."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: LoadOp, rewriter: PatternRewriter, /) -> None:
        if is_plain(op):
            return
        types = list(op.cells.types)
        if known_mask(op.mask) is False:
            unset = [UnsetOp(kind) for kind in types]
            rewriter.replace(op, unset, [cell.result for cell in unset])
            return
        index, offset = place(op.index, op.offset)
        rewriter.replace(op, LoadOp(op.buffer, index, offset, types, left_mask(op)))


class SimplifyStore(RewritePattern):
    """Stores."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: StoreOp, rewriter: PatternRewriter, /) -> None:
        if (left := left_of_write(op, rewriter)) is not None:
            rewriter.replace(op, StoreOp(list(op.cells), op.buffer, *left))


class SimplifyOverride(RewritePattern):
    """Overrides: a load where the mask is on, the given cells where it is off."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: OverrideOp, rewriter: PatternRewriter, /) -> None:
        if is_plain(op) or op.mask is None:
            return
        index, offset = place(op.index, op.offset)
        cells, known = list(op.cells), known_mask(op.mask)
        if known is False:
            rewriter.replace(op, [], cells)
        elif known:
            rewriter.replace(op, LoadOp(op.buffer, index, offset, [c.type for c in cells]))
        else:
            rewriter.replace(op, OverrideOp(cells, op.buffer, index, offset, op.mask))


class SimplifyPrefetch(RewritePattern):
    """Prefetches."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: PrefetchOp, rewriter: PatternRewriter, /) -> None:
        if (left := left_of_write(op, rewriter)) is not None:
            index, offset, mask = left
            rewriter.replace(op, PrefetchOp(op.buffer, index, offset, op.cell, mask))


class SimplifySend(RewritePattern):
    """Sends."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: SendOp, rewriter: PatternRewriter, /) -> None:
        if (left := left_of_write(op, rewriter)) is not None:
            new = SendOp(list(op.cells), op.buffer, *left, op.arrivals, op.phase)
            rewriter.replace(op, new)


class SimplifyCopy(RewritePattern):
    """Asynchronous copies. Under a mask that is off a copy fills the target, and stays."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: CopyAsyncOp, rewriter: PatternRewriter, /) -> None:
        target, target_offset = place(op.target_index, op.target_offset)
        source, source_offset = place(op.source_index, op.source_offset)
        mask = None if known_mask(op.mask) else op.mask
        if (target, source, mask) == (op.target_index, op.source_index, op.mask):
            return
        new = CopyAsyncOp(
            op.target, target, target_offset, op.source, source, source_offset,
            op.bytes.value.data, mask,
        )  # fmt: skip
        rewriter.replace(op, new)


class SimplifyPost(RewritePattern):
    """Posts at a constant place."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: PostOp, rewriter: PatternRewriter, /) -> None:
        known = None if op.index is None else const_evaluate_operand(op.index)
        if known is not None:
            places = [known + offset for offset in op.places]
            rewriter.replace(op, PostOp(list(op.cells), op.buffer, None, places, op.number))


class SimplifyTake(RewritePattern):
    """Takes at a constant place."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: TakeOp, rewriter: PatternRewriter, /) -> None:
        known = None if op.index is None else const_evaluate_operand(op.index)
        if known is not None:
            places, types = [known + offset for offset in op.places], list(op.cells.types)
            rewriter.replace(op, TakeOp(op.buffer, None, places, op.number, types))
