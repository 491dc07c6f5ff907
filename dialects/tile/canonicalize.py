"""Canonicalization of the tile dialect."""

from __future__ import annotations

from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from timetile.dialects.tile.launches import CopyOp


class EraseSelfCopy(RewritePattern):
    """A copy of a field onto itself."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: CopyOp, rewriter: PatternRewriter, /) -> None:
        if op.source is op.target:
            rewriter.erase(op)
