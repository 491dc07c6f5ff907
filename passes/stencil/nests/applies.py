"""The applies of a nest: one for each group of stores, with loads before and stores behind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import arith, memref, stencil
from xdsl.dialects.builtin import IndexType, IntAttr, IntegerAttr, UnitAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import IsTerminator

from timetile.dialects.syntax import element_type, field_type
from timetile.passes.raising.boxes import box_of
from timetile.passes.raising.memory import memory_of
from timetile.passes.raising.recurrences import SNAPSHOT
from timetile.passes.stencil.nests.nest import LoopNest, Written
from timetile.passes.stencil.nests.order import NestRead, Order, offset_of, operations_behind

FieldOf = Callable[[SSAValue], SSAValue]
"""The field of a memref."""


@dataclass
class NestApplies:
    """
    Makes the operations of one nest. `invariant`: operations of the nest with one value for all
    cells, which move in front of the nest.
    """

    nest: LoopNest
    order: Order
    field_of: FieldOf
    made: list[Operation] = field(default_factory=list[Operation])
    loaded: dict[tuple[SSAValue, Written | None], SSAValue] = field(
        default_factory=dict[tuple[SSAValue, Written | None], SSAValue]
    )
    invariant: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])

    def build(self) -> None:
        """Make all operations, and put them in place of the nest."""
        self.hoist()
        # Cells from before the nest are loaded before its first store.
        for read in self.order.reads.values():
            if read.new is None:
                self.load(read)
        for group in self.order.groups:
            self.add(group)
        Rewriter.insert_op(self.made, InsertPoint.before(self.nest.root))
        Rewriter.erase_op(self.nest.root)

    def hoist(self) -> None:
        """Copy the operations with one value for all cells to the front."""
        numbers = set(self.nest.numbers)
        for op in self.nest.body:
            if op.regions or op in self.order.reads or isinstance(op, memref.StoreOp):
                continue
            inner = [value for value in op.operands if self.nest.is_inside(value)]
            if numbers.isdisjoint(inner) and all(value in self.invariant for value in inner):
                copy = op.clone(self.invariant)
                copy.location = op.location
                self.made.append(copy)
                self.invariant.update(zip(op.results, copy.results))

    def load(self, read: NestRead) -> SSAValue:
        """The values of a field, as the read needs them."""
        key = memory_of(read.op.memref), read.new
        if key not in self.loaded:
            source = self.field_of(read.op.memref)
            kind = field_type(source)
            temp = stencil.TempType(IntAttr(kind.get_num_dims()), element_type(source))
            load = stencil.LoadOp.build(operands=[source], result_types=[temp])
            load.location = read.op.location
            load.attributes[SNAPSHOT] = UnitAttr()
            self.made.append(load)
            self.loaded[key] = load.res
        return self.loaded[key]

    def add(self, group: Sequence[Written]) -> None:
        """Make the apply and the stores of a group."""
        body = CellBody(self, group)
        region = body.region()
        targets = [self.field_of(store.op.memref) for store in group]
        kinds = [
            stencil.TempType(IntAttr(len(group[0].places)), element_type(target))
            for target in targets
        ]
        apply = stencil.ApplyOp(list(body.operands), region, kinds)
        apply.location = self.nest.root.location
        self.made.append(apply)
        loops = self.nest.loops
        low = [p.shift + (0 if p.loop is None else loops[p.loop].low) for p in group[0].places]
        high = [p.shift + (1 if p.loop is None else loops[p.loop].high) for p in group[0].places]
        for store, target, result in zip(group, targets, apply.res):
            stored = stencil.StoreOp(result, target, box_of(low, high))
            stored.location = store.op.location
            self.made.append(stored)


class CellBody:
    """The body and the operands of the apply that a group of stores becomes."""

    def __init__(self, around: NestApplies, group: Sequence[Written]):
        self.around, self.group = around, group
        self.places = group[0].places
        self.block = Block()
        self.operands: dict[SSAValue, SSAValue] = {}
        """The argument of the block for each operand."""
        self.mapping: dict[SSAValue, SSAValue] = {}

    def region(self) -> Region:
        """The copied operations of the nest, with accesses in place of loads."""
        nest = self.around.nest
        self.add_numbers()
        for value, outside in self.around.invariant.items():
            self.mapping[value] = self.outer(outside)
        # Operations of other groups stay out: a load there may come after a store here.
        stored = [store.op.value for store in self.group]
        needed = operations_behind(stored, nest, self.around.order, self.group)
        for op in nest.body:
            if op not in needed or any(value in self.around.invariant for value in op.results):
                continue
            if op in self.around.order.reads:
                assert isinstance(op, memref.LoadOp)
                self.mapping[op.res] = self.value_of(op, self.block)
                continue
            self.copy(op)
        values = [self.inner(store.op.value) for store in self.group]
        self.block.add_op(stencil.ReturnOp(values))
        self.drop_unused()
        return Region(self.block)

    def add_numbers(self) -> None:
        """Add the numbers of the loops, computed from the coordinates of the cell."""
        for axis, place in enumerate(self.places):
            if place.loop is None:
                continue
            offset = [-place.shift if k == axis else 0 for k in range(len(self.places))]
            coordinate = stencil.IndexOp.build(
                properties={
                    "dim": IntegerAttr(axis, IndexType()),
                    "offset": stencil.IndexAttr.from_indices(*offset),
                },
                result_types=[IndexType()],
            )
            self.block.add_op(coordinate)
            number = self.around.nest.loops[place.loop].number
            value: SSAValue = coordinate.idx
            if number.type != IndexType():
                self.block.add_op(cast := arith.IndexCastOp(value, number.type))
                value = cast.result
            self.mapping[number] = value

    def copy(self, op: Operation) -> None:
        """Copy an operation, and replace the loads of its branches."""
        for inner in op.walk():
            for operand in inner.operands:
                if operand not in self.mapping and not self.around.nest.is_inside(operand):
                    self.mapping[operand] = self.outer(operand)
        copied = op.clone(self.mapping)
        copied.location = op.location
        self.block.add_op(copied)
        for mine, theirs in zip(list(op.walk()), list(copied.walk()), strict=True):
            if mine is op or not isinstance(mine, memref.LoadOp):
                continue
            assert isinstance(theirs, memref.LoadOp)
            made = Block()
            value = self.value_of(mine, made)
            ops = list(made.ops)
            for each in ops:
                each.detach()
            Rewriter.replace_op(theirs, ops, [value])

    def inner(self, value: SSAValue) -> SSAValue:
        """A value of the nest or from outside, in the apply."""
        if value not in self.mapping:
            self.mapping[value] = self.outer(value)
        return self.mapping[value]

    def outer(self, value: SSAValue) -> SSAValue:
        """A value made before the nest: a copy of a constant, or an argument."""
        if isinstance(owner := value.owner, arith.ConstantOp):
            copy = owner.clone()
            first = self.block.first_op
            if first is None:
                self.block.add_op(copy)
            else:
                self.block.insert_op_before(copy, first)
            copy.result.name_hint = value.name_hint
            return copy.result
        return self.argument(value)

    def argument(self, operand: SSAValue) -> SSAValue:
        """The argument of the block for an operand of the apply."""
        if operand not in self.operands:
            argument = self.block.insert_arg(operand.type, len(self.block.args))
            argument.name_hint = operand.name_hint
            self.operands[operand] = argument
        return self.operands[operand]

    def value_of(self, load: memref.LoadOp, block: Block) -> SSAValue:
        """The cell that a load reads: an access, or the value stored at this turn of the loops."""
        read = self.around.order.reads[load]
        if read.same_turn and read.new in self.group:
            assert read.new is not None
            return self.inner(read.new.op.value)
        temp = self.argument(self.around.load(read))
        offset, axes = offset_of(read, self.group[0])
        fewer = None if len(axes) == len(self.places) else axes
        access = stencil.AccessOp(temp, offset, fewer)
        access.location = load.location
        access.res.name_hint = load.res.name_hint
        block.add_op(access)
        return access.res

    def drop_unused(self) -> None:
        """Erase operations without a reader: each access counts as a read of its field."""
        for op in reversed(list(self.block.ops)):
            unused = all(result.first_use is None for result in op.results)
            if unused and not op.has_trait(IsTerminator):
                Rewriter.erase_op(op)
        unread = [k for k, argument in enumerate(self.block.args) if argument.first_use is None]
        for k in reversed(unread):
            self.block.erase_arg(self.block.args[k])
            del self.operands[list(self.operands)[k]]
