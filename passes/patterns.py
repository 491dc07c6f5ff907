"""How passes apply rewrite patterns: each operation meets the pattern of its type, once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import Operation
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern
from xdsl.rewriter import InsertPoint

Patterns = Mapping[type[Operation], RewritePattern]
"""Patterns by the type of the operation that each rewrites."""


def rewrite_once(ops: Sequence[Operation], patterns: Patterns) -> None:
    """
    Apply patterns to operations in order, mostly the order of the text. No pattern sees an
    operation made by a pattern.

    A kernel has ten thousand operations, and most have no pattern: the walk looks up an operation's
    type, and does nothing else for an operation without a pattern. xDSL's `PatternRewriteWalker`
    takes a fifth longer for a kernel, as it prepares a rewriter for every operation.
    """
    matched = [(op, patterns[type(op)]) for op in ops if type(op) in patterns]
    if not matched:
        return
    rewriter = PatternRewriter(matched[0][0])
    for op, pattern in matched:
        # An operation erased by an earlier pattern stands in no block.
        if op.parent is not None:
            rewriter.insertion_point = InsertPoint.before(op)
            pattern.match_and_rewrite(op, rewriter)
