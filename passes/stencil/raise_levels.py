"""
raise-levels: levels of a memref as fields become levels of one field.

Before (a level of a column at a time; `!part` is a memref of 24 x 20 with an offset):
```
scf.for %k = %c1 to %c12 step %c1 {
  %below = arith.subi %k, %c1 : index
  %dk = memref.subview %d[%k, 0, 0] [1, 24, 20] [1, 1, 1] : memref<12x24x20xf64> to !part
  %db = memref.subview %d[%below, 0, 0] [1, 24, 20] [1, 1, 1] : memref<12x24x20xf64> to !part
  %fk = stencil.external_load %dk : !part -> !level
  %fb = stencil.external_load %db : !part -> !level
  %x = stencil.load %fk : !level -> !t
  %y = stencil.load %fb : !level -> !t
  %r = stencil.apply(%a = %x : !t, %b = %y : !t) -> (!t) {
    ... stencil.access %a[0, 0] ... stencil.access %b[0, 1] ...
  }
  stencil.store %r to %fk(<[0, 0], [24, 20]>) : !t to !level
}
```
After (the level 1 of 11; `!field` is `!stencil.field<[0,12]x[0,24]x[0,20]xf64>`):
```
%f = stencil.external_load %d : memref<12x24x20xf64> -> !field
%x = stencil.load %f : !field -> !t3
%y = stencil.load %f : !field -> !t3
%r = stencil.apply(%a = %x : !t3, %b = %y : !t3) -> (!t3) {
  ... stencil.access %a[0, 0, 0] ... stencil.access %b[-1, 0, 1] ...
}
stencil.store %r to %f(<[1, 0, 0], [2, 24, 20]>) : !t3 to !field
```
1. Every use of the memref is a view of a whole level (`memref.subview`) as a field. The level is a
   constant, or computed from the numbers of loops with constant bounds.
2. Loops whose number picks levels are unrolled, up to MOST_UNROLLED operations.
3. An apply with levels is moved to the level of its stores: reads of other levels get a distance.
   Fields without levels have an axis less than the apply.

`join-levels` then makes a sweep of levels in a row. Memrefs with other uses stay as they are. If an
apply stores several levels, or hands values to another apply, levels stay views, and loops are
unrolled.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import memref, scf, stencil
from xdsl.dialects.builtin import (
    IntAttr,
    IntegerAttr,
    MemRefType,
    ModuleOp,
)
from xdsl.dialects.stencil import FieldType, IndexAttr, TempType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.hints import isa

from timetile.dialects.boxes import CellBox
from timetile.dialects.syntax import field_bounds
from timetile.passes.analysis.cells.constants import integer_constant
from timetile.passes.raising.cells import MOST_UNROLLED
from timetile.passes.raising.memory import erase_dead
from timetile.passes.stencil.fold_subviews import offsets_of
from timetile.passes.stencil.level_fields import LevelFields, known_number, level_fields
from timetile.passes.stencil.unroll_loops import constant

Temp = TempType[Attribute]


def numbers_to_unroll(loop: scf.ForOp) -> range | None:
    """The numbers of a loop that may be unrolled; None for another loop."""
    bounds = [integer_constant(bound) for bound in (loop.lb, loop.ub, loop.step)]
    known = [bound for bound in bounds if bound is not None]
    if len(known) < 3 or known[2] < 1 or loop.iter_args:
        return None
    numbers = range(*known)
    operations = sum(1 for _ in loop.body.walk())
    return numbers if len(numbers) * operations <= MOST_UNROLLED else None


def iterations_in_place(loop: scf.ForOp, numbers: range) -> None:
    """Put the iterations of a loop in place of the loop."""
    (number,) = loop.body.block.args
    for each in numbers:
        at = constant(each, number.type)
        made: list[Operation] = [at]
        names: dict[SSAValue, SSAValue] = {number: at.result}
        made += [op.clone(names) for op in loop.body.block.ops if not isinstance(op, scf.YieldOp)]
        Rewriter.insert_op(made, InsertPoint.before(loop))
    Rewriter.erase_op(loop)


def innermost(loops: Iterable[scf.ForOp]) -> list[scf.ForOp]:
    """The loops with no other of the loops inside, each once."""
    every = list(dict.fromkeys(loops))
    return [
        loop
        for loop in every
        if not any(other is not loop and loop.is_ancestor(other) for other in every)
    ]


@dataclass
class LevelledApply:
    """An apply at a level: for each operand with levels, the memref and the level."""

    apply: stencil.ApplyOp
    level: int
    operands: dict[int, tuple[SSAValue, int]]


class RaisedLevels:
    """Makes each memref with levels one field."""

    def __init__(self, memories: Sequence[LevelFields]):
        self.known: dict[SSAValue, tuple[SSAValue, int]] = {}
        """The memref and the level of each field of a level."""
        for each in memories:
            for name, view in each.fields.items():
                self.known[name] = each.memory, known_number(offsets_of(view)[0])
        self.whole: dict[SSAValue, SSAValue] = {}
        """The field of each memref."""

    def applies(self) -> list[LevelledApply] | None:
        """The applies that read or store levels; None if one does not stay at a level."""
        found: dict[stencil.ApplyOp, LevelledApply] = {}
        for name in self.known:
            for use in name.uses:
                op = use.operation
                users = [op]
                if isinstance(op, stencil.LoadOp):
                    users = [inner.operation for inner in op.res.uses]
                elif isinstance(op, stencil.StoreOp):
                    users = [op.temp.owner] if isinstance(op.temp.owner, Operation) else []
                for user in users:
                    if not isinstance(user, stencil.ApplyOp):
                        return None
                    made = found.get(user) or self.apply_at_level(user)
                    if made is None:
                        return None
                    found[user] = made
        return list(found.values())

    def apply_at_level(self, apply: stencil.ApplyOp) -> LevelledApply | None:
        """An apply whose results are stored to fields of one level alone; None for another."""
        levels: set[int] = set()
        for result in apply.results:
            for use in result.uses:
                store = use.operation
                if not isinstance(store, stencil.StoreOp) or store.field not in self.known:
                    return None
                levels.add(self.known[store.field][1])
        if len(levels) != 1 or any(isinstance(op, stencil.DynAccessOp) for op in apply.walk()):
            return None
        operands: dict[int, tuple[SSAValue, int]] = {}
        for number, operand in enumerate(apply.args):
            if not isinstance(operand.type, TempType):
                continue
            load = operand.owner
            if not isinstance(load, stencil.LoadOp):
                return None
            if load.field in self.known:
                operands[number] = self.known[load.field]
        return LevelledApply(apply, levels.pop(), operands)

    def field(self, memory: SSAValue, level: SSAValue) -> SSAValue:
        """The whole field for a memref, made once; `level` shows its bounds."""
        if memory not in self.whole:
            kind, bounds = memory.type, field_bounds(level)
            assert isa(kind, MemRefType[Attribute])
            low, high = (0, *bounds.lb), (kind.get_shape()[0], *bounds.ub)
            box = CellBox(low, high).bounds()
            load = stencil.ExternalLoadOp(memory, FieldType(box, kind.element_type))
            owner = memory.owner
            is_made = isinstance(owner, Operation)
            at = InsertPoint.after(owner) if is_made else InsertPoint.at_start(owner)
            Rewriter.insert_op(load, at)
            load.result.name_hint = memory.name_hint
            self.whole[memory] = load.result
        return self.whole[memory]

    def replace(self, found: LevelledApply) -> None:
        """Move an apply, its loads and its stores to the level of its stores."""
        old, block = found.apply, found.apply.region.block
        for number, argument in enumerate(list(block.args)):
            accesses = [use.operation for use in argument.uses]
            levels: list[int] = []
            if number in found.operands:
                memory, level = found.operands[number]
                levels = [level - found.level]
                self.read_whole(old, number, memory)
            for access in accesses:
                if isinstance(access, stencil.AccessOp):
                    move_access(access, levels)
        for op in block.walk():
            if isinstance(op, stencil.IndexOp):
                op.dim = IntegerAttr.from_index_int_value(op.dim.value.data + 1)
                op.offset = IndexAttr.from_indices(0, *op.offset)
        for result in list(old.results):
            kind = result.type
            assert isa(kind, Temp)
            whole = TempType(IntAttr(kind.get_num_dims() + 1), kind.element_type)
            made = Rewriter.replace_value_with_new_type(result, whole)
            for use in list(made.uses):
                assert isinstance(use.operation, stencil.StoreOp)
                self.store_whole(use.operation, found.level)

    def read_whole(self, apply: stencil.ApplyOp, number: int, memory: SSAValue) -> None:
        """Let an operand of an apply be the whole field, loaded at the load of a level."""
        load = apply.args[number].owner
        assert isinstance(load, stencil.LoadOp)
        made = stencil.LoadOp(self.field(memory, load.field))
        made.location, made.res.name_hint = load.location, load.res.name_hint
        Rewriter.insert_op(made, InsertPoint.before(load))
        apply.operands[number] = made.res
        Rewriter.replace_value_with_new_type(apply.region.block.args[number], made.res.type)

    def store_whole(self, store: stencil.StoreOp, level: int) -> None:
        """Store a level of the whole field."""
        memory, _ = self.known[store.field]
        low, high = (level, *store.bounds.lb), (level + 1, *store.bounds.ub)
        box = CellBox(low, high).bounds()
        made = stencil.StoreOp(store.temp, self.field(memory, store.field), box)
        made.location = store.location
        Rewriter.replace_op(store, made)


def move_access(access: stencil.AccessOp, levels: Sequence[int]) -> None:
    """
    Give an access an axis of levels in front: a distance in levels, or none for a field without
    levels.
    """
    axes = access.offset_mapping or range(len(access.offset))
    mapping = [*(0 for _ in levels), *(axis + 1 for axis in axes)]
    access.attributes["offset"] = IndexAttr.from_indices(*levels, *access.offset)
    access.attributes["offset_mapping"] = IndexAttr.from_indices(*mapping)


def raise_levels(module: ModuleOp) -> None:
    """Raise the levels of all memrefs of a module, if all of them can be raised."""
    memories = {op.source: None for op in module.walk() if isinstance(op, memref.SubviewOp)}
    found = [each for memory in memories if (each := level_fields(memory)) is not None]
    loops = innermost(loop for each in found for loop in each.loops)
    numbers = [numbers_to_unroll(loop) for loop in loops]
    known = [each for each in numbers if each is not None]
    if not found or len(known) < len(loops):
        return
    if loops:
        for loop, each in zip(loops, known, strict=True):
            iterations_in_place(loop, each)
        raise_levels(module)
        return
    raised = RaisedLevels(found)
    applies = raised.applies()
    if applies is None:
        return
    for each in applies:
        raised.replace(each)
    for name in raised.known:
        for use in list(name.uses):
            if isinstance(use.operation, stencil.LoadOp) and not use.operation.res.uses:
                Rewriter.erase_op(use.operation)
        erase_dead([name])


class RaiseLevelsPass(ModulePass):
    """Levels held by memrefs become levels held by fields; see the module's documentation."""

    name = "raise-levels"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if any(isinstance(inner, memref.SubviewOp) for inner in op.walk()):
            raise_levels(op)
