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

FLOATS: frozenset[type[Attribute]] = frozenset(get_args(AnyFloat))

WHOLE_TYPES: frozenset[type[Attribute]] = frozenset({Float32Type, Float64Type})
"""Types without parameters, told by their class alone."""

index = IndexType()


def is_shared(op: Operation) -> bool:
    """The operation computes from numbers, and nothing else."""
    if op.regions or not op.name.startswith(("arith.", "math.")):
        return False
    return any(type(value.type) in FLOATS for value in op.operands)


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
    kind = type(attribute)
    if kind in WHOLE_TYPES:
        return kind
    match attribute:
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
    return find_key(found, key_of(op, operands), op, operands)


def find_key(
    found: Mapping[Hashable, T], key: Hashable, op: Operation, operands: Sequence[Hashable]
) -> T | None:
    """The entry of a key of an operation, or of the difference with exchanged operands."""
    if (known := found.get(key)) is not None:
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


RESULTS = 8
"""More results than an operation of a cell has: a value's number tells operation and result."""


@dataclass(frozen=True)
class CellOperationFacts:
    """What numbering needs of an operation of a cell function, found once for all cells."""

    head: int
    """The number of the operation's key without operands; -1 if equal ones are not shared."""
    operands: tuple[int, ...]
    """The places of the operands among the function's values."""
    results: tuple[int, ...]
    """The places of the results among the function's values."""
    commutes: int
    """The order of so many first operands does not change the bits."""
    turns: bool
    """The difference with exchanged operands serves as well."""
    work: Work
    words: int
    """32-bit registers of the results; none of constants, which are no values made by cells."""

    def key(self, operands: Sequence[int]) -> tuple[int, ...]:
        """A key equal for two operations exactly if both compute equal bits."""
        if self.commutes == 2:
            first, second, *others = operands
            low, high = (first, second) if first <= second else (second, first)
            return self.head, low, high, *others
        return self.head, *sorted(operands[: self.commutes]), *operands[self.commutes :]


Numbered = tuple[CellOperationFacts, tuple[int, ...], int, bool]
"""
An operation of a cell: its facts, the numbers of its operands, its number, and whether the number
is new. Equal operations on equal operands have one number; only the first of them is computed. A
value's number is `RESULTS` times its operation's number and the result's; of values that no
operation makes, the number is negative.
"""


def cell_operation_facts(function: FuncOp) -> list[CellOperationFacts]:
    """The facts of the operations of a cell function, in order."""
    block = function.body.block
    heads: dict[Hashable, int] = {}
    places: dict[SSAValue, int] = {value: k for k, value in enumerate(block.args)}
    found: list[CellOperationFacts] = []
    for op in block.ops:
        alike = is_shared(op) or not op.operands
        known = CELL_OPERATIONS.get(type(op))
        for result in op.results:
            places[result] = len(places)
        found.append(
            CellOperationFacts(
                heads.setdefault(key_of(op, ()), len(heads)) if alike else -1,
                tuple(places[operand] for operand in op.operands),
                tuple(places[result] for result in op.results),
                0 if known is None else known.commutes,
                isinstance(op, arith.SubfOp) and is_magnitude(op.result),
                (0, 0) if isinstance(op, ReturnOp) else instructions(op),
                0 if isinstance(op, arith.ConstantOp) else sum(map(value_words, op.results)),
            )
        )
    return found


class SharedCells:
    """
    The work and the registers of the cells of a thread, if each shared value is computed once, and
    kept from its first use to its last. Questions name the patch: cells along the stream and every
    in-plane axis. `taps` are the queue and the offset of each argument of the function; other
    arguments are equal for all cells.
    """

    def __init__(self, function: FuncOp, taps: Sequence[tuple[Hashable, tuple[int, ...]]]) -> None:
        self.arguments = function.body.block.args
        self.taps = taps
        self.operations = cell_operation_facts(function)
        self.known_work: dict[tuple[int, ...], Work] = {}
        self.known_words: dict[tuple[int, ...], int] = {}

    def numbered(self, patch: Sequence[int]) -> list[Numbered]:
        """The operations of all cells of a patch, in the order of a thread's code."""
        numbers: dict[tuple[int, ...], int] = {}
        leaves: dict[Hashable, int] = {}
        found: list[Numbered] = []
        count = 0
        for cell in product(*map(range, patch)):
            values = [-1 - leaves.setdefault(leaf, len(leaves)) for leaf in self.leaves(cell)]
            for op in self.operations:
                operands = tuple([values[place] for place in op.operands])
                number = None
                key = op.key(operands) if op.head >= 0 else ()
                if op.head >= 0:
                    number = numbers.get(key)
                    if number is None and op.turns:
                        number = numbers.get(op.key(operands[::-1]))
                is_new = number is None
                if number is None:
                    number = count
                    count += 1
                    if op.head >= 0:
                        numbers[key] = number
                found.append((op, operands, number, is_new))
                values.extend([RESULTS * number + k for k in range(len(op.results))])
        return found

    def leaves(self, cell: tuple[int, ...]) -> Iterator[Hashable]:
        """What each argument of the function is, for a cell."""
        for k, argument in enumerate(self.arguments):
            if k < len(self.taps):
                queue, offset = self.taps[k]
                yield queue, *(at + moved for at, moved in zip(cell, offset))
            else:
                # The argument is a scalar or a coordinate.
                yield (argument, cell) if argument.type == index else argument

    def work(self, patch: tuple[int, ...]) -> Work:
        """Instructions on the floating-point pipe, and beside the pipe."""
        if patch not in self.known_work:
            self.known_work[patch] = all_work(self.numbered(patch))
        return self.known_work[patch]

    def words(self, patch: tuple[int, ...]) -> int:
        """
        The most 32-bit registers taken at once by values made by the cells. Cells of planes,
        scalars and constants do not count.
        """
        if patch not in self.known_words:
            made = self.numbered(patch)
            self.known_words[patch] = most_words(made)
            # The model asks for the work of most of these patches, too.
            self.known_work[patch] = all_work(made)
        return self.known_words[patch]


def all_work(made: Iterable[Numbered]) -> Work:
    """Instructions of numbered operations, on the floating-point pipe, and beside the pipe."""
    pipe, beside = 0, 0
    for op, _, _, is_new in made:
        if is_new:
            pipe, beside = pipe + op.work[0], beside + op.work[1]
    return pipe, beside


def most_words(made: Sequence[Numbered]) -> int:
    """The most 32-bit registers taken at once by the results of numbered operations."""
    words = {number: op.words for op, _, number, is_new in made if is_new and op.words}
    last: dict[int, int] = {}
    for place, (_, operands, _, _) in enumerate(made):
        for value in operands:
            if value >= 0:
                last[value // RESULTS] = place
    ends: dict[int, int] = {}
    for number, place in last.items():
        ends[place] = ends.get(place, 0) + words.get(number, 0)
    alive = most = 0
    for place, (_, _, number, is_new) in enumerate(made):
        alive -= ends.get(place, 0)
        if is_new and number in last:
            alive += words.get(number, 0)
        most = max(most, alive)
    return most
