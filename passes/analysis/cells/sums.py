"""Sums in cell functions: the terms of nested additions, and each term's last cell."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from xdsl.dialects import arith
from xdsl.dialects.func import FuncOp
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import SSAValue

from timetile.dialects.cell_types import CELL_BYTES
from timetile.passes.analysis.cells.constants import float_constant

Offset = tuple[int, ...]
"""A distance from the own cell, in cells, by axis; empty for a value that needs no tap."""

SumOp = arith.AddfOp | arith.SubfOp | arith.NegfOp
"""An operation of a sum."""

Allows = Callable[[SumOp | arith.MulfOp], bool]
"""Whether an operation may take part in a change of order."""


FpReassoc = Literal["on", "flags", "off"]
"""Which sums may change their order: all, those with `fastmath<reassoc>`, or none."""


def reorders(fp_reassoc: FpReassoc) -> Allows:
    """Whether an operation allows another order of terms, under an option."""
    match fp_reassoc:
        case "on":
            return lambda op: True
        case "flags":
            return lambda op: FastMathFlag.REASSOC in op.fastmath.data
        case "off":
            return lambda op: False


@dataclass(frozen=True)
class Term:
    """A term of a sum. A negative term is subtracted."""

    value: SSAValue
    negative: bool


@dataclass(frozen=True)
class Sum:
    """Terms in the order of the text, and the operations of the sum, the last one first."""

    terms: tuple[Term, ...]
    ops: tuple[SumOp, ...]

    @property
    def root(self) -> SumOp:
        """The operation with the sum's result."""
        return self.ops[0]

    @property
    def is_chain(self) -> bool:
        """Each operation adds one term to the terms before."""
        inner = {op.result for op in self.ops}
        return all(not isinstance(op, arith.NegfOp) and op.rhs not in inner for op in self.ops)


def is_allowed_sum(op: object, allows: Allows) -> bool:
    """The operation is an addition, difference or negation free to change the order of terms."""
    return isinstance(op, SumOp) and op.result.type in CELL_BYTES and allows(op)


def sums_allow(function: FuncOp, allows: Allows) -> bool:
    """Whether all sums and products of a cell function may change their order."""
    return all(allows(op) for op in function.body.block.ops if isinstance(op, SumOp | arith.MulfOp))


def is_inner(op: SumOp, allows: Allows) -> bool:
    """Only another operation of a sum reads the result."""
    if not op.result.has_one_use():
        return False
    (use,) = op.result.uses
    return is_allowed_sum(use.operation, allows)


def sum_at(root: SumOp, allows: Allows) -> Sum:
    """The sum with an operation's result."""
    terms: list[Term] = []
    ops: list[SumOp] = [root]
    waiting = operand_terms(root, False)
    while waiting:
        term = waiting.pop()
        op = term.value.owner
        if isinstance(op, SumOp) and is_allowed_sum(op, allows) and is_inner(op, allows):
            ops.append(op)
            waiting += operand_terms(op, term.negative)
        else:
            terms.append(term)
    return Sum(tuple(terms), tuple(ops))


def operand_terms(op: SumOp, negative: bool) -> list[Term]:
    """The operands of an operation as terms, the last one first."""
    match op:
        case arith.NegfOp():
            return [Term(op.operand, not negative)]
        case arith.SubfOp():
            return [Term(op.rhs, not negative), Term(op.lhs, negative)]
        case arith.AddfOp():
            return [Term(op.rhs, negative), Term(op.lhs, negative)]


def sums_of(function: FuncOp, allows: Allows) -> Iterator[Sum]:
    """
    The sums of a cell function, each after the sums in the terms. A sum found later sees changes
    made to sums found before.
    """
    for op in list(function.body.block.ops):
        # Operations of sums found before are gone.
        if op.parent is None or not isinstance(op, SumOp) or not is_allowed_sum(op, allows):
            continue
        if not is_inner(op, allows) and len((found := sum_at(op, allows)).terms) > 1:
            yield found


LastCells = dict[SSAValue, Offset]
"""
The last cell needed by each value of a function, by planes, then by rows; empty for constants,
scalars, coordinates and values made from constants, scalars and coordinates alone.
"""


def last_cells(function: FuncOp, offsets: Sequence[Offset]) -> LastCells:
    """The last cells of a function with taps at these offsets."""
    known: LastCells = dict.fromkeys(function.body.block.args, ())
    known.update(zip(function.body.block.args, offsets))
    for op in function.body.block.ops:
        last = max((known[operand] for operand in op.operands), default=())
        known.update(dict.fromkeys(op.results, last))
    return known


def constant_factor(value: SSAValue) -> tuple[arith.MulfOp, SSAValue, float] | None:
    """A product with a constant, its other factor, and the constant; None for another value."""
    product = value.owner
    if not isinstance(product, arith.MulfOp):
        return None
    for factor, other in ((product.lhs, product.rhs), (product.rhs, product.lhs)):
        if (number := float_constant(factor)) is not None:
            return product, other, number
    return None


def shared_flags(ops: Sequence[SumOp | arith.MulfOp]) -> arith.FastMathFlagsAttr:
    """The permissions given by all of some operations."""
    flags = [flag for flag in FastMathFlag if all(flag in op.fastmath.data for op in ops)]
    return arith.FastMathFlagsAttr(flags)
