"""
Where branches of a cell are taken: a cell of a box at which conditions on coordinates hold.

Over a box an integer of a cell has a least and a greatest number, and a condition is true, false or
unknown. A conjunction with a false part is false, whatever is unknown: of values of fields and
scalars nothing is known. A box with an unknown condition is halved along an axis of a coordinate
behind the conditions, down to a cell.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.dialects import arith, scf, stencil
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType, i1
from xdsl.dialects.stencil import StencilBoundsAttr
from xdsl.ir import Attribute, Operation, OpResult, SSAValue
from xdsl.utils.hints import isa

from timetile.passes.raising.boxes import above, below

Truth = bool | None
"""Whether a condition holds at all cells of a box, or at none; None if unknown."""


@dataclass(frozen=True)
class IntegerSpan:
    """The integers from `least` to `greatest`."""

    least: int
    greatest: int

    def __or__(self, other: IntegerSpan) -> IntegerSpan:
        return IntegerSpan(min(self.least, other.least), max(self.greatest, other.greatest))

    @staticmethod
    def around(numbers: list[int]) -> IntegerSpan:
        """The least span with some numbers."""
        return IntegerSpan(min(numbers), max(numbers))


def opposite(truth: Truth) -> Truth:
    """The opposite."""
    return None if truth is None else not truth


def both(one: Truth, other: Truth) -> Truth:
    """Whether both hold."""
    if one is False or other is False:
        return False
    return True if one and other else None


def holds_either(one: Truth, other: Truth) -> Truth:
    """Whether one of two holds."""
    return opposite(both(opposite(one), opposite(other)))


def unlike(one: Truth, other: Truth) -> Truth:
    """Whether one of two holds, and the other does not."""
    return None if one is None or other is None else one != other


def cell_taking_branch(op: Operation, box: StencilBoundsAttr) -> tuple[int, ...] | None:
    """A cell of a box at which all branches around an operation are taken; None if none is known"""
    axes = sorted(coordinates_behind(op))
    waiting = [box]
    while waiting:
        part = waiting.pop()
        low, high = tuple(part.lb), tuple(part.ub)
        taken = Conditions(part).taken(op)
        if taken:
            return low
        size, axis = max(((high[axis] - low[axis], axis) for axis in axes), default=(1, 0))
        if taken is None and size > 1:
            middle = low[axis] + size // 2
            halves = above(part, axis, middle), below(part, axis, middle)
            waiting += [half for half in halves if half is not None]
    return None


def parents_in_cell(op: Operation) -> Iterator[tuple[Operation, bool]]:
    """The operations of an apply around one of its operations, and whether in the first region."""
    block = op.parent_block()
    while block is not None and (parent := block.parent_op()) is not None:
        if isinstance(parent, stencil.ApplyOp):
            return
        yield parent, block.parent_region() is parent.regions[0]
        block = parent.parent_block()


def coordinates_behind(op: Operation) -> set[int]:
    """The axes of coordinates from which the conditions of branches around an operation come."""
    branches = [parent for parent, _ in parents_in_cell(op) if isinstance(parent, scf.IfOp)]
    return coordinates_of(*(branch.cond for branch in branches))


def coordinates_of(*values: SSAValue) -> set[int]:
    """The axes of the coordinates from which values are computed."""
    axes, done, waiting = set[int](), set[SSAValue](), [*values]
    while waiting:
        value = waiting.pop()
        if value in done or not isinstance(value.owner, Operation):
            continue
        done.add(value)
        if isinstance(value.owner, stencil.IndexOp):
            axes.add(value.owner.dim.value.data)
        waiting += value.owner.operands
        if isinstance(value.owner, scf.IfOp) and isinstance(value, OpResult):
            waiting += yielded(value.owner, value)
    return axes


def yielded(branch: scf.IfOp, value: OpResult) -> tuple[SSAValue, SSAValue]:
    """The values of a result of a branch: where the condition holds, and elsewhere."""
    one, other = (region.block.last_op for region in branch.regions)
    assert isinstance(one, scf.YieldOp) and isinstance(other, scf.YieldOp)
    return one.operands[value.index], other.operands[value.index]


@dataclass(frozen=True)
class Conditions:
    """Conditions and integers of an apply over a box of cells."""

    box: StencilBoundsAttr

    def taken(self, op: Operation) -> Truth:
        """Whether all branches around an operation are taken."""
        taken: Truth = True
        for parent, is_first in parents_in_cell(op):
            condition = self.truth(parent.cond) if isinstance(parent, scf.IfOp) else None
            taken = both(taken, condition if is_first else opposite(condition))
        return taken

    def truth(self, value: SSAValue) -> Truth:
        """Whether a truth value holds."""
        match owner := value.owner:
            case arith.ConstantOp(value=IntegerAttr(value=number)):
                return number.data != 0
            case arith.CmpiOp():
                return self.compared(owner)
            case arith.AndIOp():
                return both(self.truth(owner.lhs), self.truth(owner.rhs))
            case arith.OrIOp():
                return holds_either(self.truth(owner.lhs), self.truth(owner.rhs))
            case arith.XOrIOp():
                return unlike(self.truth(owner.lhs), self.truth(owner.rhs))
            case arith.SelectOp():
                return self.chosen(owner.cond, owner.lhs, owner.rhs)
            case scf.IfOp() if isinstance(value, OpResult):
                return self.chosen(owner.cond, *yielded(owner, value))
            case _:
                return None

    def chosen(self, condition: SSAValue, one: SSAValue, other: SSAValue) -> Truth:
        """Whether the chosen one of two truth values holds."""
        chosen, first, second = map(self.truth, (condition, one, other))
        if chosen is None:
            return first if first is second else None
        return first if chosen else second

    def compared(self, op: arith.CmpiOp) -> Truth:
        """Whether a comparison of integers holds."""
        word = arith.CMPI_COMPARISON_OPERATIONS[op.predicate.value.data]
        if op.lhs.type == i1:
            differ = unlike(self.truth(op.lhs), self.truth(op.rhs))
            return {"ne": differ, "eq": opposite(differ)}.get(word)
        left, right = self.span(op.lhs), self.span(op.rhs)
        if left is None or right is None:
            return None
        if word.startswith("u") and min(left.least, right.least) < 0:
            return None
        match word[-2:]:
            case "lt":
                return less(left, right)
            case "ge":
                return opposite(less(left, right))
            case "gt":
                return less(right, left)
            case "le":
                return opposite(less(right, left))
            case _:
                apart = less(left, right) or less(right, left)
                same = left == right and left.least == left.greatest
                equal = True if same else False if apart else None
                return equal if word == "eq" else opposite(equal)

    def span(self, value: SSAValue) -> IntegerSpan | None:
        """The span of an integer; None if unknown."""
        match owner := value.owner:
            case arith.ConstantOp(value=IntegerAttr(value=number)):
                return IntegerSpan(number.data, number.data)
            case stencil.IndexOp():
                axis = owner.dim.value.data
                low, high = tuple(self.box.lb)[axis], tuple(self.box.ub)[axis]
                shift = tuple(owner.offset)[axis]
                return IntegerSpan(low + shift, high - 1 + shift)
            case arith.IndexCastOp() | arith.TruncIOp() | arith.ExtSIOp() | arith.ExtUIOp():
                return self.cast(owner)
            case arith.SelectOp():
                return self.selected(owner.cond, owner.lhs, owner.rhs)
            case scf.IfOp() if isinstance(value, OpResult):
                return self.selected(owner.cond, *yielded(owner, value))
            case Operation() if len(owner.operands) == 2:
                left, right = map(self.span, owner.operands)
                if left is None or right is None:
                    return None
                found = operated(owner, left, right)
                return found if found is not None and lies_in_type(found, value.type) else None
            case _:
                return None

    def cast(
        self, op: arith.IndexCastOp | arith.TruncIOp | arith.ExtSIOp | arith.ExtUIOp
    ) -> IntegerSpan | None:
        """An integer in another type, if the number stays."""
        if op.input.type == i1:
            truth, one = self.truth(op.input), -1 if isinstance(op, arith.ExtSIOp) else 1
            ends = [one] if truth else [0] if truth is False else [one, 0]
            return IntegerSpan.around(ends)
        found = self.span(op.input)
        if found is None or (isinstance(op, arith.ExtUIOp) and found.least < 0):
            return None
        return found if lies_in_type(found, op.result.type) else None

    def selected(self, condition: SSAValue, one: SSAValue, other: SSAValue) -> IntegerSpan | None:
        """The chosen one of two integers, or either."""
        chosen, first, second = self.truth(condition), self.span(one), self.span(other)
        if chosen is not None:
            return first if chosen else second
        return None if first is None or second is None else first | second


def less(one: IntegerSpan, other: IntegerSpan) -> Truth:
    """Whether an integer is less than another."""
    if one.greatest < other.least:
        return True
    return False if one.least >= other.greatest else None


def lies_in_type(span: IntegerSpan, kind: Attribute) -> bool:
    """Whether a type holds the integers of a span, with a sign."""
    if isinstance(kind, IndexType) or not isa(kind, IntegerType):
        return True
    half = 1 << (kind.width.data - 1)
    return -half <= span.least and span.greatest < half


def operated(op: Operation, left: IntegerSpan, right: IntegerSpan) -> IntegerSpan | None:
    """The span of an operation on two integers; None for other operations."""
    match op:
        case arith.AddiOp():
            return IntegerSpan(left.least + right.least, left.greatest + right.greatest)
        case arith.SubiOp():
            return IntegerSpan(left.least - right.greatest, left.greatest - right.least)
        case arith.MuliOp():
            ends = (left.least, left.greatest), (right.least, right.greatest)
            return IntegerSpan.around([a * b for a in ends[0] for b in ends[1]])
        case arith.MinSIOp():
            return IntegerSpan(min(left.least, right.least), min(left.greatest, right.greatest))
        case arith.MaxSIOp():
            return IntegerSpan(max(left.least, right.least), max(left.greatest, right.greatest))
        case _:
            return divided_by_constant(op, left, right)


def divided_by_constant(op: Operation, left: IntegerSpan, right: IntegerSpan) -> IntegerSpan | None:
    """The quotient or the remainder of a number and a positive constant; None for others."""
    divisor = right.least
    if divisor != right.greatest or divisor <= 0:
        return None
    match op:
        case arith.FloorDivSIOp():
            return IntegerSpan(left.least // divisor, left.greatest // divisor)
        case arith.DivSIOp() | arith.DivUIOp() if left.least >= 0:
            return IntegerSpan(left.least // divisor, left.greatest // divisor)
        case arith.RemSIOp() | arith.RemUIOp() if left.least >= 0:
            if left.least // divisor == left.greatest // divisor:
                return IntegerSpan(left.least % divisor, left.greatest % divisor)
            return IntegerSpan(0, divisor - 1)
        case _:
            return None
