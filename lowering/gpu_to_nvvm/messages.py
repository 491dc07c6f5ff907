"""Messages between blocks take pointers, also the words in which a tile's blocks count."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from timetile.dialects import simt
from timetile.lowering.gpu_to_nvvm.pointers import FunctionValues
from timetile.passes.patterns import Patterns


@dataclass(frozen=True)
class MessagePattern(RewritePattern):
    """What the patterns for messages share. Without an index, the place is the buffer's pointer."""

    values: FunctionValues


class ConvertPost(MessagePattern):
    """Posts."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: simt.PostOp, rewriter: PatternRewriter, /) -> None:
        if op.index is not None:
            pointer = self.values.pointer(op, op.buffer, op.index, rewriter)
            rewriter.replace(op, simt.PostOp(list(op.cells), pointer, None, op.places, op.number))


class ConvertTake(MessagePattern):
    """Takes."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: simt.TakeOp, rewriter: PatternRewriter, /) -> None:
        if op.index is not None:
            pointer = self.values.pointer(op, op.buffer, op.index, rewriter)
            types = list(op.cells.types)
            rewriter.replace(op, simt.TakeOp(pointer, None, op.places, op.number, types))


class ConvertTileBarrier(MessagePattern):
    """Barriers of a tile."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: simt.TileBarrierOp, rewriter: PatternRewriter, /) -> None:
        if op.index is not None:
            pointer = self.values.pointer(op, op.words, op.index, rewriter)
            blocks = op.blocks.value.data
            rewriter.replace(op, simt.TileBarrierOp(pointer, None, op.number, blocks))


def message_patterns(values: FunctionValues) -> Patterns:
    """The patterns of messages."""
    return {
        simt.PostOp: ConvertPost(values),
        simt.TakeOp: ConvertTake(values),
        simt.TileBarrierOp: ConvertTileBarrier(values),
    }
