"""
Functions of a time loop with points, cut out of the loop.

A function holds copies of operations of the loop's body. `finished` gives the values from outside
as arguments, behind the function's own, and leaves out operations without a use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, i64
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from timetile.dialects.verified import operation_at, terminator_of
from timetile.passes.raising.errors import CannotRaiseError
from timetile.passes.raising.memory import is_pure, may_be_one, memory_of
from timetile.passes.raising.point_accesses import LOOPS, HostAccessOp, LoopAxis, PointAccess

OUTSIDE = 1 << 62
"""The noted place of an access outside the memref: the host refuses such a program."""

ON_WRITTEN_MEMORY = (
    "places or values of points depend on memory that the loop writes; write other memory"
)

Copies = dict[Operation, Operation]
"""The copy of each operation of the loop's body."""


def copied_into(ops: Iterable[Operation], values: dict[SSAValue, SSAValue], into: Block) -> Copies:
    """Copy operations to the end of a block, with some values replaced."""
    made: Copies = {}
    for op in ops:
        copy = op.clone(values)
        into.add_op(copy)
        made.update(zip(op.walk(), copy.walk(), strict=True))
    return made


def index_constant(number: int) -> arith.ConstantOp:
    """A constant index."""
    return arith.ConstantOp(IntegerAttr(number, IndexType()))


class IndexNumbers:
    """Arithmetic of indices before an operation."""

    def __init__(self, before: Operation):
        self.point = InsertPoint.before(before)

    def add(self, op: Operation) -> SSAValue:
        """The result of a new operation."""
        Rewriter.insert_op(op, self.point)
        return op.results[0]

    def int(self, number: int) -> SSAValue:
        """A constant."""
        return self.add(index_constant(number))

    def plus(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """A sum."""
        return self.add(arith.AddiOp(a, b))

    def times(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """A product."""
        return self.add(arith.MuliOp(a, b))

    def entry(self, axes: Sequence[LoopAxis], copies: dict[SSAValue, SSAValue]) -> SSAValue:
        """The number of the entry for the present values of the counters, in row-major order."""
        found = self.int(0)
        for axis in axes:
            counter, low, step = (copies.get(v, v) for v in (axis.counter, axis.low, axis.step))
            turn = self.add(arith.DivUIOp(self.add(arith.SubiOp(counter, low)), step))
            found = self.plus(self.times(found, self.int(axis.most)), turn)
        return found

    def flat(self, shape: Sequence[int], indices: Sequence[SSAValue]) -> SSAValue:
        """The place of a cell in row-major order."""
        found = self.int(0)
        for extent, index in zip(shape, indices, strict=True):
            found = self.plus(self.times(found, self.int(extent)), index)
        return found


@dataclass
class PointFunction:
    """A private function in the making, with arguments of its own."""

    name: str
    kinds: Sequence[Attribute]
    block: Block = field(init=False)

    def __post_init__(self) -> None:
        self.block = Block(arg_types=self.kinds)
        self.function: FuncOp | None = None

    def op(self) -> FuncOp:
        """The function; made once, behind the last operation."""
        if self.function is None:
            end = terminator_of(self.block, ReturnOp)
            types = list(self.block.arg_types), [value.type for value in end.arguments]
            self.function = FuncOp(self.name, types, Region(self.block), visibility="private")
        return self.function

    def forget(self) -> None:
        """Erase the function, and its uses of values from outside."""
        for op in self.block.walk():
            op.drop_all_references()
        if self.function is not None and self.function.parent is not None:
            self.function.detach()

    def returns(self, values: Sequence[SSAValue] = ()) -> None:
        """End the function."""
        self.block.add_op(ReturnOp(*values))


def drop_unused(ops: Iterable[Operation]) -> None:
    """Leave out operations without a use or an effect, and loops and branches around nothing."""
    for op in reversed(list(ops)):
        if op.parent is None or any(result.first_use is not None for result in op.results):
            continue
        nothing = isinstance(op, (*LOOPS, scf.IfOp)) and all(
            len(list(block.ops)) <= 1 for region in op.regions for block in region.blocks
        )
        if nothing or (op.results and (is_pure(op) or isinstance(op, memref.LoadOp))):
            Rewriter.erase_op(op)


def outside_values(function: FuncOp) -> list[SSAValue]:
    """The values used in a function from outside, each once, in order."""
    found: dict[SSAValue, None] = {}
    for op in function.walk():
        for value in op.operands:
            if not is_within(value, function):
                found[value] = None
    return list(found)


def is_within(value: SSAValue, function: FuncOp) -> bool:
    """Whether a value is made in a function."""
    around: Operation | None = operation_at(value)
    while around is not None and around is not function:
        around = around.parent_op()
    return around is function


def operation_of(value: SSAValue) -> Operation | None:
    """The operation with a value as result."""
    return value.owner if isinstance(value.owner, Operation) else None


def take_constants(function: FuncOp) -> None:
    """Copy constants from outside, and arithmetic on constants, into a function."""
    block = function.body.block
    known: dict[SSAValue, SSAValue] = {}

    def copy_of(value: SSAValue) -> SSAValue | None:
        owner = operation_of(value)
        if value in known or owner is None or not owner.name.startswith("arith."):
            return known.get(value)
        operands = [copy_of(operand) for operand in owner.operands]
        if any(operand is None for operand in operands):
            return None
        new = owner.clone(dict(zip(owner.operands, [o for o in operands if o is not None])))
        first = block.first_op
        assert first is not None
        place = InsertPoint.before(first)
        if known:
            last = operation_of(list(known.values())[-1])
            assert last is not None
            place = InsertPoint.after(last)
        Rewriter.insert_op(new, place)
        known.update(zip(owner.results, new.results))
        return known[value]

    for value in outside_values(function):
        made = copy_of(value)
        if made is not None:
            replace_in_function(function, value, made)


def replace_in_function(function: FuncOp, old: SSAValue, new: SSAValue) -> None:
    """Let operations of a function use another value."""
    for op in function.walk():
        for place, value in enumerate(op.operands):
            if value is old:
                op.operands[place] = new


def give_outside_values(functions: Sequence[FuncOp], loop: scf.ForOp) -> list[SSAValue]:
    """
    Give all functions the values from outside, each behind its own arguments. Returns the values.
    Raises CannotRaiseError for a value made by the loop itself.
    """
    for function in functions:
        take_constants(function)
    given = list(dict.fromkeys(v for function in functions for v in outside_values(function)))
    for value in given:
        around = operation_at(value)
        if around is loop or loop.is_ancestor(around):
            raise CannotRaiseError(
                around,
                "places of points depend on cells or on the number of the step; keep places",
            )
    for function in functions:
        block = function.body.block
        arguments = [block.insert_arg(value.type, len(block.args)) for value in given]
        for value, argument in zip(given, arguments):
            argument.name_hint = value.name_hint
            replace_in_function(function, value, argument)
        function.update_function_type()
    return given


@dataclass
class StepsOfHost:
    """
    A loop over some steps in a function, with arguments `first`, `stride` and `count`: `body`
    fills the block of a step, given the number among these steps and the number of the step.
    """

    loop: scf.ForOp
    function: PointFunction

    def make(self, body: Callable[[Block, SSAValue, SSAValue], None]) -> None:
        """Add the loop."""
        first, stride, count = self.function.block.args[:3]
        zero, one = (index_constant(n) for n in (0, 1))
        block = Block(arg_types=[IndexType()])
        number = block.args[0]
        here = number
        if first.type != IndexType():
            cast = arith.IndexCastOp(number, first.type)
            block.add_op(cast)
            here = cast.result
        moved = arith.MuliOp(here, stride)
        now = arith.AddiOp(first, moved)
        block.add_ops([moved, now])
        self.function.block.add_ops([zero, one, scf.ForOp(zero, count, one, [], block)])
        body(block, number, now.result)
        block.add_op(scf.YieldOp())


def copies_of_values(copies: Copies) -> dict[SSAValue, SSAValue]:
    """The copy of each result and block argument."""
    found: dict[SSAValue, SSAValue] = {}
    for old, new in copies.items():
        found.update(zip(old.results, new.results))
        for a, b in zip(old.regions, new.regions):
            for x, y in zip(a.blocks, b.blocks):
                found.update(zip(x.args, y.args))
    return found


def place_of_entry(access: PointAccess, copies: Copies, row: SSAValue | None) -> SSAValue:
    """The place of an access's entry in memory with a row of all entries for each step."""
    numbers = IndexNumbers(copies[access.op])
    entry = numbers.entry(access.axes, copies_of_values(copies))
    if row is None:
        return entry
    return numbers.plus(numbers.times(row, numbers.int(access.entries)), entry)


def note_place(access: PointAccess, copies: Copies, cells: SSAValue, shape: Sequence[int]) -> None:
    """
    In a copy of a unit, note the place of an access's cell in place of the access: row-major, or
    OUTSIDE.
    """
    op = copies[access.op]
    assert isinstance(op, HostAccessOp)
    entry = place_of_entry(access, copies, None)
    numbers = IndexNumbers(op)
    found = numbers.flat(shape, list(op.indices))
    for extent, index in zip(shape, op.indices):
        inside = numbers.add(arith.CmpiOp(index, numbers.int(extent), "ult"))
        found = numbers.add(arith.SelectOp(inside, found, numbers.int(OUTSIDE)))
    place = numbers.add(arith.IndexCastOp(found, i64))
    Rewriter.insert_op(memref.StoreOp.get(place, cells, [entry]), InsertPoint.before(op))


def note_value(access: PointAccess, copies: Copies, row: SSAValue, table: SSAValue) -> None:
    """In a copy of a unit, store the value added to a cell in a table, in place of the change."""
    op = copies[access.op]
    assert access.value is not None
    value = copies_of_values(copies).get(access.value, access.value)
    place = place_of_entry(access, copies, row)
    if access.is_less:
        value = IndexNumbers(op).add(arith.NegfOp(value))
    Rewriter.insert_op(memref.StoreOp.get(value, table, [place]), InsertPoint.before(op))


def use_note(access: PointAccess, copies: Copies, row: SSAValue, notes: SSAValue) -> None:
    """In a copy of a unit, read a noted cell in place of the field."""
    op = copies[access.op]
    place = place_of_entry(access, copies, row)
    new = memref.LoadOp.get(notes, [place])
    Rewriter.insert_op(new, InsertPoint.before(op))
    op.results[0].replace_all_uses_with(new.res)
    Rewriter.erase_op(op)


def drop_writes(copies: Copies) -> None:
    """Leave out all writes to memory in copied units."""
    for op in copies.values():
        if isinstance(op, memref.StoreOp | memref.AtomicRMWOp) and op.parent is not None:
            if any(result.first_use is not None for result in op.results):
                raise CannotRaiseError(op, ON_WRITTEN_MEMORY)
            Rewriter.erase_op(op)


def read_memory(function: FuncOp) -> list[memref.LoadOp]:
    """The reads of memory in a function."""
    return [op for op in function.walk() if isinstance(op, memref.LoadOp)]


def check_known_reads(
    function: FuncOp, written: Sequence[SSAValue], own: Sequence[SSAValue]
) -> None:
    """
    Raise CannotRaiseError for a function that reads memory written by the loop, other than the
    function's own.
    """
    for op in read_memory(function):
        memory = memory_of(op.memref)
        if memory not in own and any(may_be_one(memory, other) for other in written):
            raise CannotRaiseError(op, ON_WRITTEN_MEMORY)
