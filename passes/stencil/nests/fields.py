"""Memrefs of nests as fields: bounds, casts, and loops that carry memrefs."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import memref, scf, stencil
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, UnrealizedConversionCastOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.hints import isa

from timetile.passes.diagnostics import refuse
from timetile.passes.raising.boxes import box_of
from timetile.passes.raising.memory import is_alias, memory_of
from timetile.passes.stencil.nests.nest import LoopNest
from timetile.passes.stencil.nests.order import Order


def memref_of(value: SSAValue) -> MemRefType[Attribute] | None:
    """The type of a memref; None for another value."""
    kind = value.type
    return kind if isa(kind, MemRefType[Attribute]) else None


class NestFields:
    """The fields of the memrefs of a function's nests."""

    def __init__(self, function: FuncOp, nests: Sequence[tuple[LoopNest, Order]]):
        self.function = function
        self.parent: dict[SSAValue, SSAValue] = {}
        self.loops = [
            op
            for op in function.walk()
            if isinstance(op, scf.ForOp) and any(memref_of(value) for value in op.iter_args)
        ]
        for loop in self.loops:
            self.join_carried(loop)
        self.reached: dict[SSAValue, list[int]] = {}
        """For each memory, the number of cells along each axis, as read or written by nests."""
        self.casts: list[Operation] = []
        for nest, order in nests:
            self.note(nest, order)
        self.known: dict[SSAValue, SSAValue] = {}
        self.check_cells_of_host(nests)

    def root(self, value: SSAValue) -> SSAValue:
        """One value for all memory of one shape: memory carried in turn by loops is joined."""
        value = memory_of(value)
        while (above := self.parent.get(value)) is not None:
            value = above
        return value

    def join(self, first: SSAValue, other: SSAValue) -> None:
        """Note that two values have one shape."""
        mine, theirs = self.root(first), self.root(other)
        if mine is not theirs:
            self.parent[theirs] = mine

    def join_carried(self, loop: scf.ForOp) -> None:
        """Join the memrefs of one position of a loop: taken, carried, yielded and given."""
        end = loop.body.block.last_op
        assert isinstance(end, scf.YieldOp)
        for k, taken in enumerate(loop.iter_args):
            if memref_of(taken):
                for other in (loop.body.block.args[k + 1], end.arguments[k], loop.results[k]):
                    self.join(taken, other)

    def note(self, nest: LoopNest, order: Order) -> None:
        """Note the cells that a nest reads and writes."""
        accesses = [(store.op.memref, store.places) for store in nest.stores]
        accesses += [(read.op.memref, read.places) for read in order.reads.values()]
        for memory, places in accesses:
            ends = [
                place.shift + (1 if place.loop is None else nest.loops[place.loop].high)
                for place in places
            ]
            root = self.root(memory)
            before = self.reached.get(root, ends)
            self.reached[root] = [max(pair) for pair in zip(before, ends)]

    def check_cells_of_host(self, nests: Sequence[tuple[LoopNest, Order]]) -> None:
        """
        Raise CompileError for a cell read or written by the host in a memref of open extents: the
        nests alone tell the extents.
        """
        roots = [nest.root for nest, _ in nests]
        for op in self.function.walk():
            if not isinstance(op, memref.LoadOp | memref.StoreOp):
                continue
            kind = memref_of(op.memref)
            if kind is None or DYNAMIC_INDEX not in kind.get_shape():
                continue
            inside = any(root.is_ancestor(op) for root in roots)
            if not inside and self.is_field(op.memref):
                refuse(
                    op,
                    "the host takes part in a memref of open extents, and nests alone tell the "
                    "extents; give the memref's type all extents",
                )

    def type_of(self, value: SSAValue) -> stencil.FieldType[Attribute]:
        """
        The type of a memref's field: cells from 0 on along each axis. An extent left open by the
        memref is the number of cells reached by nests in memrefs of the type.
        """
        kind = memref_of(value)
        assert kind is not None
        alike = [ends for root, ends in self.reached.items() if root.type == kind]
        ends = [max(many) for many in zip(*alike, strict=True)]
        shape = [
            end if extent == DYNAMIC_INDEX else extent
            for extent, end in zip(kind.get_shape(), ends, strict=True)
        ]
        return stencil.FieldType(box_of([0] * len(shape), shape), kind.element_type)

    def field(self, value: SSAValue) -> SSAValue:
        """The field of a memref, made behind the memref."""
        if isinstance(value.type, stencil.FieldType):
            return value
        if value not in self.known:
            owner = value.owner
            if is_alias(owner):
                assert isinstance(owner, Operation)
                self.known[value] = self.field(owner.operands[0])
                return self.known[value]
            cast = stencil.ExternalLoadOp(value, self.type_of(value))
            cast.result.name_hint = value.name_hint
            if isinstance(owner, Operation):
                Rewriter.insert_op(cast, InsertPoint.after(owner))
            else:
                Rewriter.insert_op(cast, InsertPoint.at_start(owner))
            self.known[value] = cast.result
        return self.known[value]

    def carry(self) -> None:
        """Let the loops carry fields in place of the memrefs of nests, outer loops first."""
        chosen = [
            (loop, [k for k, value in enumerate(loop.iter_args) if self.is_field(value)])
            for loop in self.loops
        ]
        for loop, carried in chosen:
            self.carry_in(loop, carried)

    def is_field(self, value: SSAValue) -> bool:
        """Whether nests read or write a value's memory, or memory carried in turn."""
        return memref_of(value) is not None and self.root(value) in self.reached

    def carry_in(self, loop: scf.ForOp, carried: Sequence[int]) -> None:
        """Let one loop carry fields; its own uses of the memrefs get casts."""
        for k in carried:
            loop.operands[3 + k] = field = self.field(loop.iter_args[k])
            argument = loop.body.block.args[k + 1]
            self.retype(argument, field.type, InsertPoint.at_start(loop.body.block))
            self.retype(loop.results[k], field.type, InsertPoint.after(loop))
        end = loop.body.block.last_op
        assert isinstance(end, scf.YieldOp)
        for k in carried:
            end.operands[k] = self.field(end.operands[k])

    def retype(self, value: SSAValue, kind: Attribute, where: InsertPoint) -> None:
        """Give a value the type of a field, and its users a cast back to the memref."""
        old, hint = value.type, value.name_hint
        new = Rewriter.replace_value_with_new_type(value, kind)
        users = list(new.uses)
        back, made = UnrealizedConversionCastOp.cast_one(new, old)
        made.name_hint = hint
        Rewriter.insert_op(back, where)
        for use in users:
            use.operation.operands[use.index] = made
        self.known[made] = new
        self.casts.append(back)

    def drop_unused_casts(self) -> None:
        """Erase the casts back to memrefs without a user."""
        for cast in self.casts:
            if all(result.first_use is None for result in cast.results):
                Rewriter.erase_op(cast)
