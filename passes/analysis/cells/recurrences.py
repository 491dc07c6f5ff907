"""
Recurrences that go on in parts: `next = part op before`, or `next = a * before + b`.

Each place changes the value before it, and the changes of neighbouring places join to one change. A
line is cut into parts of 16 places; 16 parts are a group, 16 groups a larger group, and on. A part
joins the changes of its places in order, and a group those of its parts. A single change makes the
value before part n from the line's first value: it joins all larger groups before, then the groups
before in the same larger group, and on down to the parts before in the same group.

In a part the cell function goes place after place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects import math as xmath
from xdsl.dialects.builtin import FunctionType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from timetile.dialects.temporal import SweepOp
from timetile.dialects.verified import terminator_of
from timetile.passes.diagnostics import refuse

FLOAT_FOLDS = (arith.AddfOp, arith.MulfOp, arith.MinimumfOp, arith.MaximumfOp)
"""Operations on numbers whose order of terms may be changed with permission."""

INTEGER_FOLDS = (arith.AddiOp, arith.MuliOp, arith.MinSIOp, arith.MaxSIOp)
"""Operations on integers with equal results in any order."""

Factors = tuple[SSAValue, ...]
"""A number of a change: a value of the cell function, or the product of two values."""


@dataclass(frozen=True)
class Recurrence:
    """
    The change made by a cell, as functions. `part` takes the arguments of the cell function without
    the value before, and returns a change of 1 or 2 numbers; `join` takes two changes, the earlier
    first; `after` takes a change and a value, and returns the value behind. `carrier` is the
    operation of the cell function with the result.
    """

    part: FuncOp
    join: FuncOp
    after: FuncOp
    carrier: Operation


@dataclass(frozen=True)
class Found:
    """
    A cell function by its result: `fold` of the value before and a number, or for None
    `number * value + number`. `root` makes the result.
    """

    root: Operation
    fold: type[Operation] | None
    numbers: tuple[Factors, ...]


def recurrence_of_sweep(op: SweepOp, function: FuncOp) -> Recurrence:
    """The change made by a cell of a sweep in parts. CompileError for other cells."""
    before = next(k for k, tap in enumerate(op.tap_list) if op.is_result(tap))
    found = recurrence_of(function, before)
    if found is None:
        refuse(
            op,
            "a sweep in parts has a cell that is a sum, product, minimum, maximum or "
            "a * before + b of the value before; leave out parts",
        )
    return found


def recurrence_of(function: FuncOp, before: int) -> Recurrence | None:
    """
    The change made by a cell function of a single result, with the value before as argument number
    `before`; None if the function makes no known change.
    """
    found = found_in(function, before)
    if found is None:
        return None
    number, part = (
        function.function_type.outputs.data[0],
        change_of_cell(function, before, found.numbers),
    )
    if found.fold is not None:
        join, after = Body([number] * 2), Body([number] * 2)
        a, b = join.arguments
        first, value = after.arguments
        joined, behind = [join.folded(found.fold, a, b)], after.folded(found.fold, value, first)
        return Recurrence(part, join.closed(joined), after.closed([behind]), found.root)
    is_fused = isinstance(found.root, xmath.FmaOp)
    join, after = Body([number] * 4, is_fused), Body([number] * 3, is_fused)
    a, b, c, d = join.arguments
    joined = [join.product(c, a), join.product_and_sum(c, b, d)]
    a, b, value = after.arguments
    behind = after.product_and_sum(a, value, b)
    return Recurrence(part, join.closed(joined), after.closed([behind]), found.root)


def found_in(function: FuncOp, before: int) -> Found | None:
    """A cell function by its result; None for other results."""
    (result,) = terminator_of(function.body.block, ReturnOp).operands
    given, root = function.body.block.args[before], result.owner
    if not given.has_one_use() or not result.has_one_use():
        return None
    match root:
        case xmath.FmaOp(a=a, b=b, c=c) if c is given:
            return Found(root, arith.AddfOp, ((a, b),))
        case xmath.FmaOp(a=a, b=b, c=c) if given in (a, b):
            return Found(root, None, ((b if a is given else a,), (c,)))
        case xmath.FmaOp(a=a, b=b, c=c) if (factor := factor_of(c, given)) is not None:
            return Found(root, None, ((factor,), (a, b)))
        case arith.AddfOp(lhs=a, rhs=b) if (factor := factor_of(a, given)) is not None:
            return Found(root, None, ((factor,), (b,)))
        case arith.AddfOp(lhs=a, rhs=b) if (factor := factor_of(b, given)) is not None:
            return Found(root, None, ((factor,), (a,)))
        case Operation() if isinstance(root, (*FLOAT_FOLDS, *INTEGER_FOLDS)):
            others = [operand for operand in root.operands if operand is not given]
            return Found(root, type(root), ((others[0],),)) if len(others) == 1 else None
        case _:
            return None


def factor_of(value: SSAValue, given: SSAValue) -> SSAValue | None:
    """The factor of a product with a value, used once; None for other values."""
    product = value.owner
    if not isinstance(product, arith.MulfOp) or not value.has_one_use():
        return None
    others = [operand for operand in product.operands if operand is not given]
    return others[0] if len(others) == 1 else None


class Body:
    """The body of a function of a few operations, with fused products and sums or without."""

    def __init__(self, inputs: Sequence[Attribute], is_fused: bool = False):
        self.block, self.is_fused = Block(arg_types=inputs), is_fused

    @property
    def arguments(self) -> tuple[SSAValue, ...]:
        """The arguments of the function."""
        return self.block.args

    def add(self, op: Operation) -> SSAValue:
        """Append an operation of a single result."""
        self.block.add_op(op)
        return op.results[0]

    def folded(self, kind: type[Operation], a: SSAValue, b: SSAValue) -> SSAValue:
        """An operation of two numbers, without permissions."""
        properties: dict[str, Attribute] = {}
        if kind in FLOAT_FOLDS:
            properties = {"fastmath": arith.FastMathFlagsAttr("none")}
        elif kind in (arith.AddiOp, arith.MuliOp):
            properties = {"overflowFlags": arith.IntegerOverflowAttr("none")}
        return self.add(kind.create(operands=[a, b], result_types=[a.type], properties=properties))

    def product(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """a * b."""
        return self.add(arith.MulfOp(a, b))

    def product_and_sum(self, a: SSAValue, b: SSAValue, c: SSAValue) -> SSAValue:
        """a * b + c."""
        if self.is_fused:
            return self.add(xmath.FmaOp(a, b, c))
        return self.add(arith.AddfOp(self.product(a, b), c))

    def closed(self, results: Sequence[SSAValue]) -> FuncOp:
        """The function with some results."""
        self.block.add_op(ReturnOp(*results))
        kinds = [argument.type for argument in self.block.args]
        return FuncOp("change", (kinds, [v.type for v in results]), Region(self.block))


def drop(op: Operation) -> None:
    """Take an operation without a used result out of its block."""
    op.detach()
    op.erase()


def change_of_cell(function: FuncOp, before: int, numbers: Sequence[Factors]) -> FuncOp:
    """The function of the change of a cell: the cell function without the value before."""
    copy = function.clone()
    block, old = copy.body.block, function.body.block
    values: dict[SSAValue, SSAValue] = dict(zip(old.args, block.args))
    for theirs, own in zip(old.ops, block.ops):
        values |= dict(zip(theirs.results, own.results))
    drop(terminator_of(block, ReturnOp))
    made: list[SSAValue] = []
    for first, *others in numbers:
        made.append(values[first])
        if others:
            block.add_op(product := arith.MulfOp(values[first], values[others[0]]))
            made[-1] = product.result
    block.add_op(ReturnOp(*made))
    for op in reversed(list(block.ops)[:-1]):
        if all(result.first_use is None for result in op.results):
            drop(op)
    block.erase_arg(block.args[before])
    kinds = [argument.type for argument in block.args]
    copy.function_type = FunctionType.from_lists(kinds, [value.type for value in made])
    return copy
