"""Canonicalization of the simt dialect: known masks and places of accesses.

A mask that is on is no mask; under a mask that is off nothing is read or written. A constant index
is a part of the offset.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern
from xdsl.transforms.canonicalization_patterns.utils import const_evaluate_operand

from timetile.dialects.simt.accesses import AccessOp, LoadOp, OverrideOp, PrefetchOp, StoreOp
from timetile.dialects.simt.arrivals import SendOp
from timetile.dialects.simt.copies import CopyAsyncOp
from timetile.dialects.simt.messages import PostOp, TakeOp
from timetile.dialects.simt.threads import UnsetOp


def known_mask(mask: SSAValue | None) -> bool | None:
    """Whether a mask is on; None if unknown. True if there is no mask."""
    if mask is None:
        return True
    value = const_evaluate_operand(mask)
    return None if value is None else bool(value)


def folded_place(index: SSAValue | None, offset: IntegerAttr) -> tuple[SSAValue | None, int]:
    """The index and the offset of an access, with a constant index as a part of the offset."""
    known = None if index is None else const_evaluate_operand(index)
    return (index, offset.value.data) if known is None else (None, offset.value.data + known)


def is_plain(op: AccessOp) -> bool:
    """The access has neither a known mask nor a constant index to simplify."""
    mask_known = op.mask is not None and known_mask(op.mask) is not None
    return not mask_known and folded_place(op.index, op.offset)[0] is op.index


def left_mask(op: AccessOp) -> SSAValue | None:
    """The mask of an access unless it is on."""
    return None if known_mask(op.mask) else op.mask


AnyAccess = LoadOp | OverrideOp | StoreOp | PrefetchOp | SendOp
"""The accesses to consecutive cells of a buffer."""


def masked_off(op: AnyAccess, rewriter: PatternRewriter) -> None:
    """Replace an access under a mask that is off: loaded cells are unset, overridden cells stay."""
    match op:
        case LoadOp():
            unset = [UnsetOp(kind) for kind in op.cells.types]
            rewriter.replace(op, unset, [cell.result for cell in unset])
        case OverrideOp():
            rewriter.replace(op, [], list(op.cells))
        case StoreOp() | PrefetchOp() | SendOp():
            rewriter.erase(op)


def moved(op: AnyAccess, index: SSAValue | None, offset: int, mask: SSAValue | None) -> Operation:
    """The access at another index and offset, under another mask. A sure override is a load."""
    match op:
        case LoadOp():
            return LoadOp(op.buffer, index, offset, list(op.cells.types), mask)
        case OverrideOp():
            if mask is None:
                return LoadOp(op.buffer, index, offset, list(op.cells.types))
            return OverrideOp(list(op.cells), op.buffer, index, offset, mask)
        case StoreOp():
            return StoreOp(list(op.cells), op.buffer, index, offset, mask)
        case PrefetchOp():
            return PrefetchOp(op.buffer, index, offset, op.cell, mask)
        case SendOp():
            cells = list(op.cells)
            return SendOp(cells, op.buffer, index, offset, mask, op.arrivals, op.phase)


class SimplifyAccess(RewritePattern):
    """Accesses with a known mask or place."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: AnyAccess, rewriter: PatternRewriter, /) -> None:
        if is_plain(op):
            return
        if known_mask(op.mask) is False:
            masked_off(op, rewriter)
        else:
            rewriter.replace(op, moved(op, *folded_place(op.index, op.offset), left_mask(op)))


class SimplifyCopy(RewritePattern):
    """Asynchronous copies. Under a mask that is off a copy fills the target, and stays."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: CopyAsyncOp, rewriter: PatternRewriter, /) -> None:
        target, target_offset = folded_place(op.target_index, op.target_offset)
        source, source_offset = folded_place(op.source_index, op.source_offset)
        mask = None if known_mask(op.mask) else op.mask
        if (target, source, mask) == (op.target_index, op.source_index, op.mask):
            return
        new = CopyAsyncOp(
            op.target, target, target_offset, op.source, source, source_offset,
            op.bytes.value.data, mask,
        )  # fmt: skip
        rewriter.replace(op, new)


class SimplifyMessage(RewritePattern):
    """Messages at a constant place."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: PostOp | TakeOp, rewriter: PatternRewriter, /) -> None:
        known = None if op.index is None else const_evaluate_operand(op.index)
        if known is None:
            return
        places = [known + offset for offset in op.places]
        if isinstance(op, PostOp):
            rewriter.replace(op, PostOp(list(op.cells), op.buffer, None, places, op.number))
        else:
            types = list(op.cells.types)
            rewriter.replace(op, TakeOp(op.buffer, None, places, op.number, types))
