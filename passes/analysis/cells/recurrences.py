"""
Recurrences that go on in parts: `next = part op before`, or `next = a * before + b`.

The cells between two places make a change of the value before. Changes join: first one, then the
other, is a change again. A line is cut into parts of 16 places, 16 parts are a group, 16 groups a
larger group, and so on. The change of a part is that of its places, joined from the first on; the
change of a group is joined from its parts in the same way. The value before part n is made from the
first value of the line by one change: the change of all larger groups before, joined with that of
the groups before in the same larger group, and so on to the parts before in the same group.

In a part the cell function goes place after place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects import math as xmath
from xdsl.dialects.builtin import FunctionType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from timetile.dialects.temporal import SweepOp
from timetile.dialects.verified import terminator_of
from timetile.passes.diagnostics import refuse
from timetile.passes.rewriting import erase_unused

Binary = type[Operation]

FLOAT_FOLDS: tuple[Binary, ...] = (arith.AddfOp, arith.MulfOp, arith.MinimumfOp, arith.MaximumfOp)
"""Operations on numbers whose order of terms may be changed with permission."""

INTEGER_FOLDS: tuple[Binary, ...] = (arith.AddiOp, arith.MuliOp, arith.MinSIOp, arith.MaxSIOp)
"""Operations on integers that have one result in any order."""


@dataclass(frozen=True)
class Recurrence:
    """
    The change that a cell makes of the value before, as functions. `part` takes the arguments of
    the cell function without the value before, and returns a change, of one number or two; `join`
    takes two changes, the earlier first; `after` takes a change and a value, and returns the value
    behind. `carrier` is the operation of the cell function that takes the value before.
    """

    part: FuncOp
    join: FuncOp
    after: FuncOp
    carrier: Operation

    @property
    def width(self) -> int:
        """The numbers of a change."""
        return len(self.part.function_type.outputs)


def recurrence_of_sweep(op: SweepOp, function: FuncOp) -> Recurrence:
    """The change that a cell of a sweep in parts makes. CompileError if there is none."""
    before = next(k for k, tap in enumerate(op.tap_list) if op.is_result(tap))
    found = recurrence_of(function, before)
    if found is None:
        refuse(
            op,
            "a sweep in parts has a cell that is a sum, product, minimum, maximum or a * before + b "
            "of the value before; leave out parts",
        )
    return found


def recurrence_of(function: FuncOp, before: int) -> Recurrence | None:
    """
    The change made by a cell function of one result, whose argument number `before` is the value
    before; None if the function makes no known change.
    """
    (result,) = terminator_of(function.body.block, ReturnOp).operands
    given = function.body.block.args[before]
    if not given.has_one_use() or not result.has_one_use():
        return None
    root = result.owner
    if isinstance(root, (*FLOAT_FOLDS, *INTEGER_FOLDS)) and given in root.operands:
        other = next(operand for operand in root.operands if operand is not given)
        return folded(function, before, type(root), lambda values, add: [values[other]], root)
    if isinstance(root, xmath.FmaOp):
        return of_fused(function, before, root, given)
    if isinstance(root, arith.AddfOp):
        return of_sum(function, before, root, given)
    return None


def of_fused(
    function: FuncOp, before: int, root: xmath.FmaOp, given: SSAValue
) -> Recurrence | None:
    """The change of `a * before + b`, `a * b + before` or `x * y + a * before`, each fused."""
    if root.c is given:
        a, b = root.a, root.b
        return folded(
            function,
            before,
            arith.AddfOp,
            lambda values, add: [add(arith.MulfOp(values[a], values[b]))],
            root,
        )
    if given in (root.a, root.b):
        factor = root.b if root.a is given else root.a
        last = root.c
        return linear(function, before, lambda values, add: [values[factor], values[last]], root)
    factor = factor_of(root.c, given)
    if factor is None:
        return None
    a, b = root.a, root.b

    def change(values: Values, add: Add) -> list[SSAValue]:
        return [values[factor], add(arith.MulfOp(values[a], values[b]))]

    return linear(function, before, change, root)


def of_sum(function: FuncOp, before: int, root: arith.AddfOp, given: SSAValue) -> Recurrence | None:
    """The change of a sum with `a * before` as a term."""
    for product, other in ((root.lhs, root.rhs), (root.rhs, root.lhs)):
        if (factor := factor_of(product, given)) is not None:
            found = factor

            def change(values: Values, add: Add, found: SSAValue = found, other: SSAValue = other):
                return [values[found], values[other]]

            return linear(function, before, change, root)
    return None


def factor_of(value: SSAValue, given: SSAValue) -> SSAValue | None:
    """The factor of a product with a value, used once; None if there is no such product."""
    product = value.owner
    if not isinstance(product, arith.MulfOp) or given not in product.operands:
        return None
    if not value.has_one_use():
        return None
    return product.rhs if product.lhs is given else product.lhs


Values = dict[SSAValue, SSAValue]
Add = Callable[[Operation], SSAValue]
Change = Callable[[Values, Add], list[SSAValue]]


def folded(
    function: FuncOp, before: int, kind: Binary, change: Change, root: Operation
) -> Recurrence:
    """A recurrence whose change is one number, folded by an operation."""
    part = part_of(function, before, change)
    number = function.function_type.outputs.data[0]
    join = function_of([number] * 2, lambda add, a, b: [add(folding(kind, a, b))])
    after = function_of([number] * 2, lambda add, a, b: [add(folding(kind, b, a))])
    return Recurrence(part, join, after, root)


def folding(kind: Binary, a: SSAValue, b: SSAValue) -> Operation:
    """An operation of two numbers, without permissions."""
    properties: dict[str, Attribute] = {}
    if kind in FLOAT_FOLDS:
        properties = {"fastmath": arith.FastMathFlagsAttr("none")}
    elif kind in (arith.AddiOp, arith.MuliOp):
        properties = {"overflowFlags": arith.IntegerOverflowAttr("none")}
    return kind.create(operands=[a, b], result_types=[a.type], properties=properties)


def linear(function: FuncOp, before: int, change: Change, root: Operation) -> Recurrence:
    """A recurrence `a * before + b`, whose change is a and b."""
    part = part_of(function, before, change)
    number = function.function_type.outputs.data[0]
    is_fused = isinstance(root, xmath.FmaOp)

    def fused(add: Add, a: SSAValue, b: SSAValue, c: SSAValue) -> SSAValue:
        if is_fused:
            return add(xmath.FmaOp(a, b, c))
        return add(arith.AddfOp(add(arith.MulfOp(a, b)), c))

    join = function_of(
        [number] * 4,
        lambda add, a, b, c, d: [add(arith.MulfOp(a, c)), fused(add, c, b, d)],
    )
    after = function_of([number] * 3, lambda add, a, b, c: [fused(add, a, c, b)])
    return Recurrence(part, join, after, root)


def function_of(inputs: Sequence[Attribute], make: Callable[..., list[SSAValue]]) -> FuncOp:
    """A function of a few operations."""
    block = Block(arg_types=inputs)

    def add(op: Operation) -> SSAValue:
        block.add_op(op)
        return op.results[0]

    return closed("change", block, make(add, *block.args))


def part_of(function: FuncOp, before: int, change: Change) -> FuncOp:
    """The function of the change of a cell: the cell function without the value before."""
    copy = function.clone()
    block = copy.body.block
    pairs = zip(function.body.block.args, block.args)
    values: Values = dict(pairs)
    for old, new in zip(function.body.block.ops, block.ops):
        values |= dict(zip(old.results, new.results))
    last = terminator_of(block, ReturnOp)
    last.detach()

    def add(op: Operation) -> SSAValue:
        block.add_op(op)
        return op.results[0]

    made = change(values, add)
    last.erase()
    block.add_op(ReturnOp(*made))
    erase_unused(block)
    block.erase_arg(block.args[before])
    kinds = [argument.type for argument in block.args]
    copy.function_type = FunctionType.from_lists(kinds, [value.type for value in made])
    return copy


def closed(name: str, block: Block, results: Sequence[SSAValue]) -> FuncOp:
    """A function of a block, ended by a return."""
    block.add_op(ReturnOp(*results))
    kinds = [argument.type for argument in block.args]
    return FuncOp(name, (kinds, [value.type for value in results]), Region(block))
