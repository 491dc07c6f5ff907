"""How passes apply rewrite patterns: each operation meets the pattern of its type, once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern
from xdsl.rewriter import InsertPoint

from timetile.passes.analysis.cells.cell_functions import cell_functions

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
        # An operation erased by an earlier pattern has no parent block.
        if op.parent is not None:
            rewriter.insertion_point = InsertPoint.before(op)
            rewriter.has_done_action = False
            pattern.match_and_rewrite(op, rewriter)


def rewrite_cells(module: ModuleOp, patterns: Patterns) -> None:
    """Apply patterns once to the operations of each cell function, in the order of the text."""
    for function in cell_functions(module):
        rewrite_once(list(function.body.block.ops), patterns)


def erase_unread(
    values: Iterable[SSAValue], rewriter: PatternRewriter, *kinds: type[Operation]
) -> None:
    """Erase the operations of these kinds among the makers of values without a user."""
    for value in dict.fromkeys(values):
        if value.first_use is None and isinstance(value.owner, kinds):
            rewriter.erase(value.owner)
