"""Value numbering of cells: equal operations on equal operands are computed once.

`share-cells` and the cost model use one set of rules. `share-cells` replaces operations in the code
of a thread; the model counts them before such code exists, by numbering the cells of a thread.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeVar, get_args

from xdsl.dialects import arith
from xdsl.dialects import math as xmath
from xdsl.dialects.builtin import AnyFloat, Float32Type, Float64Type, IndexType, IntegerType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Operation, SSAValue, Use

from timetile.passes.analysis.cells.cell_operations import CELL_OPERATIONS, Work
from timetile.passes.analysis.cells.instructions import instructions
from timetile.passes.analysis.cells.pressure import value_words

T = TypeVar("T")

FLOATS = get_args(AnyFloat)

index = IndexType()


def is_shared(op: Operation) -> bool:
    """The operation computes from numbers, and nothing else."""
    if op.regions or not op.name.startswith(("arith.", "math.")):
        return False
    return any(isinstance(value.type, FLOATS) for value in op.operands)


def key_of(op: Operation, operands: Sequence[Hashable]) -> Hashable:
    """A key equal for two operations exactly if both compute equal bits from equal operands."""
    known = CELL_OPERATIONS.get(type(op))
    factors = 0 if known is None else known.commutes
    # The order of the first `commutes` operands does not change the bits.
    return (
        op.name,
        *(said(result.type) for result in op.results),
        frozenset(operands[:factors]),
        *operands[factors:],
        *map(said, op.properties.values()),
    )


def said(attribute: Attribute) -> Hashable:
    """
    An attribute as a simple Python value where possible. Kernels have many attributes, and simple
    values are hashed fast.
    """
    match attribute:
        case Float32Type() | Float64Type():
            return type(attribute)
        case arith.FastMathFlagsAttr():
            return attribute.data
        case IntegerType():
            return attribute.width.data
        case _:
            return attribute


def reversed_difference(op: Operation, operands: Sequence[Hashable]) -> Hashable | None:
    """
    The key of the difference with exchanged operands, if the sign does not matter: all users square
    the difference or take its magnitude. Otherwise None.
    """
    if not isinstance(op, arith.SubfOp) or not is_magnitude(op.result):
        return None
    return key_of(op, operands[::-1])


def find(found: Mapping[Hashable, T], op: Operation, operands: Sequence[Hashable]) -> T | None:
    """The entry of an operation's key, or of the key of the difference with exchanged operands."""
    if (known := found.get(key_of(op, operands))) is not None:
        return known
    other = reversed_difference(op, operands)
    return None if other is None else found.get(other)


def is_magnitude(value: SSAValue) -> bool:
    """Whether all users of a value give equal results for the opposite value."""
    return all(map(is_magnitude_use, value.uses))


def is_magnitude_use(use: Use) -> bool:
    """A square or a magnitude is made of the number."""
    match use.operation:
        case xmath.AbsFOp():
            return True
        case arith.MulfOp(lhs=a, rhs=b) | xmath.FmaOp(a=a, b=b):
            return use.index < 2 and a is b
        case _:
            return False


@dataclass(frozen=True)
class Numbered:
    """
    An operation of a cell: its number, and the numbers of the operations that make its operands.
    Equal operations on equal operands have one number; only the first of them is `new`, and is
    computed.
    """

    op: Operation
    makers: tuple[int, ...]
    number: int
    is_new: bool


def numbered_cells(
    function: FuncOp, taps: Sequence[tuple[Hashable, tuple[int, ...]]], patch: Sequence[int]
) -> Iterator[Numbered]:
    """
    The operations of all cells of a patch, in the order of a thread's code. `patch` is the number
    of cells along each axis. `taps` are the queue and the offset of each argument of the function;
    other arguments are equal for all cells.
    """
    block = function.body.block
    numbers: dict[Hashable, int] = {}
    for cell in product(*map(range, patch)):
        values: dict[SSAValue, Hashable] = {}
        makers: dict[SSAValue, int] = {}
        for k, argument in enumerate(block.args):
            if k < len(taps):
                queue, offset = taps[k]
                values[argument] = (queue, *(at + moved for at, moved in zip(cell, offset)))
            else:
                # The argument is a scalar or a coordinate.
                values[argument] = (argument, cell) if argument.type == index else argument
        for op in block.ops:
            operands = tuple(values[operand] for operand in op.operands)
            alike = is_shared(op) or not operands
            found = find(numbers, op, operands) if alike else None
            is_new = found is None
            if found is None:
                key = key_of(op, operands) if alike else (op, cell)
                found = numbers[key] = len(numbers)
            made = tuple(makers[value] for value in op.operands if value in makers)
            yield Numbered(op, made, found, is_new)
            for result in op.results:
                values[result], makers[result] = (found, result.index), found


class SharedCells:
    """
    The work and the registers of the cells of a thread, if each shared value is computed once, and
    kept from its first use to its last. Questions name the patch: cells along the stream and every
    in-plane axis.
    """

    def __init__(self, function: FuncOp, taps: Sequence[tuple[Hashable, tuple[int, ...]]]) -> None:
        self.function, self.taps = function, taps
        self.known_work: dict[tuple[int, ...], Work] = {}
        self.known_words: dict[tuple[int, ...], int] = {}

    def work(self, patch: tuple[int, ...]) -> Work:
        """Instructions on the floating-point pipe, and beside the pipe."""
        if patch not in self.known_work:
            self.known_work[patch] = all_work(numbered_cells(self.function, self.taps, patch))
        return self.known_work[patch]

    def words(self, patch: tuple[int, ...]) -> int:
        """
        The most 32-bit registers taken at once by values made by the cells. Cells of planes,
        scalars and constants do not count.
        """
        if patch not in self.known_words:
            made = list(numbered_cells(self.function, self.taps, patch))
            self.known_words[patch] = most_words(made)
            # The model asks for the work of most of these patches, too.
            self.known_work[patch] = all_work(made)
        return self.known_words[patch]


def all_work(made: Iterable[Numbered]) -> Work:
    """Instructions of numbered operations, on the floating-point pipe, and beside the pipe."""
    pipe, beside = 0, 0
    for each in made:
        if each.is_new and not isinstance(each.op, ReturnOp):
            work = instructions(each.op)
            pipe, beside = pipe + work[0], beside + work[1]
    return pipe, beside


def most_words(made: Sequence[Numbered]) -> int:
    """The most 32-bit registers taken at once by the results of numbered operations."""
    words = {
        each.number: sum(map(value_words, each.op.results))
        for each in made
        if each.is_new and not isinstance(each.op, arith.ConstantOp)
    }
    last = {
        number: place
        for place, each in enumerate(made)
        for number in each.makers
        if number in words
    }
    ends: dict[int, int] = {}
    for number, place in last.items():
        ends[place] = ends.get(place, 0) + words[number]
    alive = most = 0
    for place, each in enumerate(made):
        alive -= ends.get(place, 0)
        if each.is_new and each.number in last:
            alive += words[each.number]
        most = max(most, alive)
    return most
