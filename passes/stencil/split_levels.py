"""
split-levels: a memref of time levels, used in turn by the number of the step, becomes a memref for
each level.

Before:
```
func.func @wave(%U: memref<2x10xf64>, %n: index) {
  scf.for %t = %c0 to %n step %c1 {
    %now = arith.remui %t, %c2 : index
    %t1 = arith.addi %t, %c1 : index
    %next = arith.remui %t1, %c2 : index
    ... memref.load %U[%now, %i] ... memref.store %v, %U[%next, %i] ...
  }
```
After:
```
func.func @wave(%U0: memref<10xf64>, %U1: memref<10xf64>, %n: index) {
  scf.for %t = %c0 to %n step %c1 iter_args(%a = %U0, %b = %U1) -> (!m, !m) {
    ... memref.load %a[%i] ... memref.store %v, %b[%i] ...
    scf.yield %b, %a : !m, !m
  }
```
1. Every use of the memref is a load, a store, or a view of a whole level (`memref.subview`). The
   first index is a constant, or the number of the step of one time loop plus a constant, modulo the
   number of levels. The loop counts from a constant in steps of 1.
2. Constants are used outside the time loop: inside, the level of a constant changes its name.
   Without a time loop over levels, views at constant levels, as of fields that a loop carries in
   turn, are split alone.
3. A view becomes its level, and loops that carry views carry levels, without a layout.
4. An argument of the function becomes an argument for each level, and an allocation an allocation.
   An open extent (`memref<?x10xf64>`) is the number by which the remainders are taken.

Memrefs with other uses stay as they are, and so do memrefs with loads and stores in functions of
the stencil dialect.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    MemRefType,
    ModuleOp,
    NoneAttr,
    StringAttr,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.hints import isa

from timetile.dialects.syntax import ARGUMENT_NAMES
from timetile.passes.analysis.cells.constants import integer_constant
from timetile.passes.raising.memory import erase_dead
from timetile.passes.stencil.fold_subviews import offsets_of
from timetile.passes.stencil.level_views import names_of_views, without_layout
from timetile.passes.stencil.nests.nest import is_of_stencils
from timetile.passes.stencil.nests.places import NumberCast, keeps_number, place_of

MOST_LEVELS = 4
"""The most levels taken for time levels: more are an axis of the domain."""

LevelAccess = memref.LoadOp | memref.StoreOp | memref.SubviewOp


@dataclass(frozen=True)
class TimeLevel:
    """
    The level of an access: `at` counted from the number of the step of `loop`; without a loop, the
    level `at` of the memory.
    """

    loop: scf.ForOp | None
    at: int


@dataclass
class LevelledMemory:
    """A memref of `count` levels, its accesses with their levels, and its `dealloc`s."""

    memory: SSAValue
    kind: MemRefType[Attribute]
    count: int
    accesses: list[tuple[LevelAccess, TimeLevel]] = field(
        default_factory=list[tuple[LevelAccess, TimeLevel]]
    )
    freed: list[memref.DeallocOp] = field(default_factory=list[memref.DeallocOp])
    view_names: list[SSAValue] = field(default_factory=list[SSAValue])
    """All names that views of levels have."""

    @property
    def loops(self) -> list[scf.ForOp]:
        """The time loops whose number of the step picks levels."""
        found = (level.loop for _, level in self.accesses)
        return list(dict.fromkeys(loop for loop in found if loop is not None))

    @property
    def is_viewed(self) -> bool:
        """Whether each access is a view of a level."""
        return all(isinstance(op, memref.SubviewOp) for op, _ in self.accesses)

    @property
    def level_type(self) -> MemRefType[Attribute]:
        """The type of a memref with one level."""
        return MemRefType(self.kind.element_type, self.kind.get_shape()[1:])


def loops_around(op: Operation) -> list[scf.ForOp]:
    """The loops around an operation, from the inside out."""
    found: list[scf.ForOp] = []
    around = op.parent_op()
    while around is not None:
        if isinstance(around, scf.ForOp):
            found.append(around)
        around = around.parent_op()
    return found


def behind_casts(value: SSAValue) -> SSAValue:
    """A number before its casts between integers and indices."""
    while isinstance(owner := value.owner, NumberCast) and keeps_number(owner):
        value = owner.input
    return value


def time_level(index: SSAValue, count: int, loops: Sequence[scf.ForOp]) -> TimeLevel | None:
    """The level of an index in a memref of `count` levels; None for another index."""
    constant = integer_constant(index)
    if constant is not None:
        return TimeLevel(None, constant) if 0 <= constant < count else None
    owner = behind_casts(index).owner
    if isinstance(owner, arith.SubiOp) and count == 2 and integer_constant(owner.lhs) == 1:
        other = time_level(owner.rhs, count, loops)
        return None if other is None else TimeLevel(other.loop, (other.at + 1) % count)
    if isinstance(owner, arith.AndIOp):
        is_modulo = count == 2 and integer_constant(owner.rhs) == 1
    elif isinstance(owner, arith.RemUIOp | arith.RemSIOp):
        is_modulo = integer_constant(owner.rhs) == count
    else:
        return None
    for loop in loops if is_modulo else ():
        place = place_of(behind_casts(owner.operands[0]), [loop.body.block.args[0]])
        # A remainder of a negative number is negative: the first number is known, and is not.
        first = integer_constant(loop.lb)
        if place is not None and place.loop is not None and first is not None:
            return TimeLevel(loop, place.shift % count) if first + place.shift >= 0 else None
    return None


def level_of_view(
    view: memref.SubviewOp, kind: MemRefType[Attribute], count: int
) -> TimeLevel | None:
    """The level seen by a view of a memref of `count` levels; None for a view of other cells."""
    shape, seen = kind.get_shape(), view.result.type
    sizes = view.static_sizes.get_values()
    assert isa(seen, MemRefType[Attribute])
    at, *rest = offsets_of(view)
    is_whole = sizes == (1, *shape[1:]) and seen.get_shape() == shape[1:] and not any(rest)
    if not is_whole or DYNAMIC_INDEX in sizes or set(view.static_strides.get_values()) != {1}:
        return None
    if isinstance(at, int):
        return TimeLevel(None, at) if 0 <= at < count else None
    return time_level(at, count, loops_around(view))


def levelled(memory: SSAValue) -> LevelledMemory | None:
    """The levels of a memref; None for a memref with other uses."""
    kind = memory.type
    if not isa(kind, MemRefType[Attribute]) or not isinstance(kind.layout, NoneAttr):
        return None
    shape = kind.get_shape()
    if len(shape) < 2:
        return None
    is_open = shape[0] == DYNAMIC_INDEX and isinstance(memory, BlockArgument)
    for count in range(2, MOST_LEVELS + 1):
        if shape[0] == count or is_open:
            found = levels_in(memory, kind, count)
            if found is not None:
                return found
    return None


def levels_in(memory: SSAValue, kind: MemRefType[Attribute], count: int) -> LevelledMemory | None:
    """All accesses of a memref with `count` levels; None if one has no level."""
    found = LevelledMemory(memory, kind, count)
    for use in memory.uses:
        op = use.operation
        if isinstance(op, memref.DeallocOp):
            found.freed.append(op)
            continue
        if isinstance(op, memref.SubviewOp):
            level = level_of_view(op, kind, count)
        elif isinstance(op, memref.LoadOp | memref.StoreOp) and op.memref is memory:
            level = time_level(op.indices[0], count, loops_around(op))
        else:
            return None
        if level is None:
            return None
        found.accesses.append((op, level))
    views = [op.result for op, _ in found.accesses if isinstance(op, memref.SubviewOp)]
    names = names_of_views(views)
    if names is None:
        return None
    found.view_names = names
    return found if is_taking_turns(found) else None


def is_taking_turns(found: LevelledMemory) -> bool:
    """Whether levels change places in one time loop, and have fixed places outside."""
    loops = found.loops
    if not loops:
        return bool(found.view_names)
    if len(loops) != 1 or integer_constant(loops[0].step) != 1:
        return False
    inside = [level for op, level in found.accesses if loops[0].is_ancestor(op)]
    return all(level.loop is not None for level in inside)


def replace_memory(found: LevelledMemory) -> list[SSAValue]:
    """A memref for each level, in place of an argument or an allocation."""
    memory, kind = found.memory, found.level_type
    hint = memory.name_hint
    if isinstance(memory, BlockArgument):
        block = memory.block
        made = [block.insert_arg(kind, memory.index + k) for k in range(found.count)]
        function = block.parent_op()
        assert isinstance(function, FuncOp)
        names = function.attributes.get(ARGUMENT_NAMES)
        if isa(names, ArrayAttr[StringAttr]):
            kept = list(names.data)
            at = made[0].index
            own = [StringAttr(f"{kept[at].data}{k}") for k in range(found.count)]
            function.attributes[ARGUMENT_NAMES] = ArrayAttr([*kept[:at], *own, *kept[at + 1 :]])
        values: list[SSAValue] = list(made)
    else:
        owner = memory.owner
        assert isinstance(owner, memref.AllocOp | memref.AllocaOp)
        shape = kind.get_shape()
        ops = [type(owner).get(kind.element_type, None, shape) for _ in range(found.count)]
        Rewriter.insert_op(ops, InsertPoint.before(owner))
        values = [op.memref for op in ops]
    for k, value in enumerate(values):
        value.name_hint = None if hint is None else f"{hint}{k}"
    return values


def carry_levels(loop: scf.ForOp, levels: Sequence[SSAValue]) -> list[SSAValue]:
    """
    Let a time loop carry levels in turn: the loop's names of the levels, the level of the step's
    own number first.
    """
    first = integer_constant(loop.lb)
    assert first is not None
    begin = [levels[(first + k) % len(levels)] for k in range(len(levels))]
    body = loop.detach_region(loop.body)
    own = [body.block.insert_arg(value.type, len(body.block.args)) for value in begin]
    for name, value in zip(own, begin):
        name.name_hint = value.name_hint
    end = body.block.last_op
    assert isinstance(end, scf.YieldOp)
    Rewriter.replace_op(end, scf.YieldOp(*end.arguments, *own[1:], own[0]))
    new = scf.ForOp(loop.lb, loop.ub, loop.step, [*loop.iter_args, *begin], body)
    new.attributes.update(loop.attributes)
    new.location = loop.location
    Rewriter.replace_op(loop, new, new.results[: len(loop.results)])
    return list(own)


def replace_access(op: LevelAccess, level: SSAValue) -> None:
    """Replace an access by one to its level's own memref; a view becomes the level itself."""
    if isinstance(op, memref.SubviewOp):
        Rewriter.replace_op(op, [], [level])
        return
    rest = list(op.indices)[1:]
    new: Operation
    if isinstance(op, memref.LoadOp):
        new = memref.LoadOp.get(level, rest)
    else:
        new = memref.StoreOp.get(op.value, level, rest)
    new.location = op.location
    Rewriter.replace_op(op, new)


def split_memory(found: LevelledMemory) -> None:
    """Replace a memref of levels."""
    levels = replace_memory(found)
    without_layout(found.view_names, found.level_type)
    carried = {loop: carry_levels(loop, levels) for loop in found.loops}
    for op, level in found.accesses:
        numbers = list(op.operands)
        source = (levels if level.loop is None else carried[level.loop])[level.at]
        replace_access(op, source)
        erase_dead(numbers)
    for op in found.freed:
        Rewriter.insert_op([memref.DeallocOp.get(each) for each in levels], InsertPoint.before(op))
        Rewriter.erase_op(op)
    if isinstance(found.memory, BlockArgument):
        block = found.memory.block
        block.erase_arg(found.memory)
        function = block.parent_op()
        assert isinstance(function, FuncOp)
        function.update_function_type()
    elif isinstance(found.memory.owner, Operation):
        Rewriter.erase_op(found.memory.owner)


def memrefs_of(function: FuncOp) -> list[SSAValue]:
    """The arguments and allocations of a function."""
    block: Block = function.body.blocks[0]
    allocated = [
        op.memref for op in function.walk() if isinstance(op, memref.AllocOp | memref.AllocaOp)
    ]
    return [*block.args, *allocated]


class SplitLevelsPass(ModulePass):
    """A memref of time levels becomes several; see the module's documentation."""

    name = "split-levels"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in [each for each in op.ops if isinstance(each, FuncOp)]:
            if function.is_declaration:
                continue
            has_stencils = is_of_stencils(function)
            for memory in memrefs_of(function):
                # A loop that carries another memref's levels by now is a new loop.
                found = levelled(memory)
                if found is not None and (found.is_viewed or not has_stencils):
                    split_memory(found)
