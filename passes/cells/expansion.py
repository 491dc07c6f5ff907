"""Replaces one operation by several, made in order."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter

from timetile.dialects.syntax import integer_type
from timetile.passes.patterns import erase_unread


class CellExpansion:
    """The operations replacing an operation that a pattern matched."""

    def __init__(self, op: Operation, rewriter: PatternRewriter):
        self.op, self.rewriter = op, rewriter

    def add(self, new: Operation) -> SSAValue:
        """Put an operation before the replaced operation, and return the result."""
        return self.rewriter.insert(new).results[0]

    def int(self, value: int, like: SSAValue) -> SSAValue:
        """An integer constant, in the type of another value."""
        return self.add(arith.ConstantOp(IntegerAttr(value, integer_type(like))))

    def select(self, condition: SSAValue, yes: SSAValue, no: SSAValue) -> SSAValue:
        """`yes` if the condition holds, otherwise `no`."""
        return self.add(arith.SelectOp(condition, yes, no))

    def compare(self, predicate: str, a: SSAValue, b: SSAValue) -> SSAValue:
        """A comparison of integers."""
        return self.add(arith.CmpiOp(a, b, predicate))

    def is_nan(self, value: SSAValue) -> SSAValue:
        """Whether a float is no number."""
        return self.add(arith.CmpfOp(value, value, "uno"))

    def finish(self, result: SSAValue) -> None:
        """
        Replace the operation's result, and erase the operation, with constants needed for the
        operation only.
        """
        result.name_hint = self.op.results[0].name_hint
        operands = list(self.op.operands)
        self.rewriter.replace(self.op, [], [result])
        erase_unread(operands, self.rewriter, arith.ConstantOp)
