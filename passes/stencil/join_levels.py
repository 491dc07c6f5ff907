"""
join-levels: a solver printed level by level becomes a sweep along the axis of the levels.

Before:
```
%u1 = stencil.load %u : !f -> !t
%v1 = stencil.apply(%x = %u1 : !t) -> (!t) { ... stencil.access %x[0, -1] ... }
stencil.store %v1 to %u(<[0, 1], [16, 2]>) : !t to !f
%u2 = stencil.load %u : !f -> !t
%v2 = stencil.apply(%x = %u2 : !t) -> (!t) { ... stencil.access %x[0, -1] ... }
stencil.store %v2 to %u(<[0, 2], [16, 3]>) : !t to !f
...
```
After:
```
func.func private @solve_levels(%0: f64, ...) -> f64 { ... }
temporal.sweep %u = @solve_levels(%u[0, -1], ...) along 1 ascending in <[0, 1], [16, 80]>
```
1. A level is an apply of loaded fields whose results are stored once, over a box with a single
   place along an axis. Levels are alike if cells are equal functions of equal fields and numbers,
   and boxes move by a place.
2. Six or more levels in a row become a sweep if each reads a stored cell of the level before, and
   no stored field beside the line along the axis. Lines are then independent, and the sweep has the
   order of the levels.
3. Between the load of a field and the first level, and between the levels, no other operation
   writes a field read or written by the levels.

Other stores stay unchanged: an update for each level. A sweep has a single kernel and cell function
for any number of levels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import stencil
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.dialects.stencil import StencilBoundsAttr
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import VerifyException

from timetile.dialects.temporal import SweepOp
from timetile.dialects.temporal.sweep import Direction
from timetile.passes.raising.cells import KEPT, OutlinedCell, outline
from timetile.passes.raising.demand import ApplyRead, unbuffered
from timetile.passes.raising.errors import CannotRaiseError
from timetile.passes.raising.memory import is_pure, may_be_one, memory_of, written_memory
from timetile.passes.rewriting import unique_symbol

FEWEST_LEVELS = 6
"""Fewer levels stay updates: a kernel holds several, and fuses steps of a time loop."""


@dataclass(frozen=True)
class PrintedLevel:
    """An apply over a single place along some axis, with stores in the order of results."""

    apply: stencil.ApplyOp
    loads: list[stencil.LoadOp]
    stores: list[stencil.StoreOp]
    cell: OutlinedCell
    function: FuncOp

    @property
    def box(self) -> StencilBoundsAttr:
        """The box of all stores."""
        return self.stores[0].bounds

    @property
    def targets(self) -> list[SSAValue]:
        """The memory of the stored fields, in the order of the results."""
        return [memory_of(store.field) for store in self.stores]

    def moved_to(self, other: PrintedLevel) -> tuple[int, int] | None:
        """The axis along which the box of `other` is a place on, and the direction, 1 or -1."""
        lower = list(zip(self.box.lb, other.box.lb))
        upper = list(zip(self.box.ub, other.box.ub))
        moves = [b - a for a, b in lower]
        axes = [axis for axis, move in enumerate(moves) if move]
        if [b - a for a, b in upper] != moves or len(axes) != 1 or abs(moves[axes[0]]) != 1:
            return None
        axis = axes[0]
        is_place = upper[axis][0] - lower[axis][0] == 1
        return (axis, moves[axis]) if is_place else None

    def is_like(self, other: PrintedLevel) -> bool:
        """Whether both levels have the same cell, of the same fields and numbers."""
        mine, theirs = self.cell, other.cell
        alike = mine.taps == theirs.taps and mine.indices == theirs.indices
        same = mine.sources == theirs.sources and mine.scalars == theirs.scalars
        stored = self.targets == other.targets
        return (
            alike and same and stored and self.function.is_structurally_equivalent(other.function)
        )


@dataclass
class FieldNames:
    """A single name for every field of a block, by memory."""

    names: dict[SSAValue, SSAValue]

    def name(self, field: SSAValue) -> SSAValue | None:
        """The first name of the memory of a field; None if another name has another type."""
        first = self.names.setdefault(memory_of(field), field)
        return first if first.type == field.type else None


def is_thin(box: StencilBoundsAttr) -> bool:
    """Whether a box is a single place along some axis."""
    return any(high - low == 1 for low, high in zip(box.lb, box.ub))


def printed_level(apply: stencil.ApplyOp, fields: FieldNames) -> PrintedLevel | None:
    """The level of an apply; None for another apply."""
    stores: list[stencil.StoreOp] = []
    for result in apply.results:
        use = result.get_user_of_unique_use()
        if not isinstance(use, stencil.StoreOp) or use.parent is not apply.parent:
            return None
        stores.append(use)
    loads: list[stencil.LoadOp] = []
    for operand in apply.args:
        if isinstance(operand.type, stencil.StencilType):
            load = unbuffered(operand).owner
            if not isinstance(load, stencil.LoadOp) or load.parent is not apply.parent:
                return None
            loads.append(load)
    touched = [*(store.field for store in stores), *(load.field for load in loads)]
    if not stores or any(fields.name(field) is None for field in touched):
        return None
    boxes = {store.bounds for store in stores}
    targets = {memory_of(store.field) for store in stores}
    if len(boxes) > 1 or len(targets) < len(stores) or not is_thin(stores[0].bounds):
        return None

    def source_of(read: ApplyRead) -> SSAValue:
        load = unbuffered(read.operand).owner
        assert isinstance(load, stencil.LoadOp)
        return fields.names[memory_of(load.field)]

    try:
        cell = outline(apply, source_of)
    except CannotRaiseError:
        # Raising tells the reason.
        return None
    if any(beyond != KEPT for beyond in cell.beyond):
        return None
    return PrintedLevel(
        apply, loads, stores, cell, cell.function("levels", list(range(len(stores))))
    )


def rows_of_levels(block: Block, fields: FieldNames) -> list[list[PrintedLevel]]:
    """The rows of alike levels of a block, each moved by a place from the level before."""
    rows: list[list[PrintedLevel]] = []
    way: tuple[int, int] | None = None
    for apply in [op for op in block.ops if isinstance(op, stencil.ApplyOp)]:
        level = None if apply.dest else printed_level(apply, fields)
        if level is None:
            rows.append([])
            continue
        last = rows[-1] if rows else []
        move = last[-1].moved_to(level) if last and last[-1].is_like(level) else None
        if move is None or (len(last) > 1 and move != way):
            rows.append([level])
        else:
            last.append(level)
            way = move
    return [row for row in rows if len(row) >= FEWEST_LEVELS]


def is_recurrence(row: Sequence[PrintedLevel]) -> bool:
    """
    Whether levels read a stored cell of the level before, and no stored field beside the line.
    """
    move, cell = row[0].moved_to(row[1]), row[0].cell
    assert move is not None
    axis, step = move
    reads = [tap for tap in cell.taps if memory_of(cell.sources[tap.operand]) in row[0].targets]
    on_line = all(not any(tap.offset[:axis] + tap.offset[axis + 1 :]) for tap in reads)
    return on_line and any(tap.offset[axis] == -step for tap in reads)


def memory_names(row: Sequence[PrintedLevel]) -> list[SSAValue]:
    """The memory that levels read and write."""
    return [*row[0].targets, *(memory_of(source) for source in row[0].cell.sources)]


def is_undisturbed(row: Sequence[PrintedLevel], place: dict[Operation, int]) -> bool:
    """
    Whether every level sees the fields as left by the levels before, and no other operation reads
    or writes memory from the first store on.
    """
    ops, touched = list(place), list(dict.fromkeys(memory_names(row)))
    if any(may_be_one(a, b) for k, a in enumerate(touched) for b in touched[:k]):
        return False
    own = {store for level in row for store in level.stores}
    first, last = min(place[op] for op in own), max(place[op] for op in own)
    before = first
    for level in row:
        begin = min(place[store] for store in level.stores)
        for load in level.loads:
            memory = memory_of(load.field)
            if memory in level.targets and level is not row[0] and place[load] < before:
                return False
            for op in ops[place[load] + 1 : begin]:
                if op not in own and any(may_be_one(w, memory) for w in written_memory(op)):
                    return False
        before = max(place[store] for store in level.stores)
        if any(place[load] > begin for load in level.loads):
            return False
    between = (op for op in ops[first:last] if op not in own)
    quiet = (stencil.LoadOp, stencil.ApplyOp, stencil.BufferOp)
    return all(isinstance(op, quiet) or is_pure(op) for op in between)


def join_levels(
    row: Sequence[PrintedLevel], fields: FieldNames, function: FuncOp, module: ModuleOp
) -> bool:
    """Replace levels by a sweep; False, and no change, if the dialect has no such sweep."""
    move, cell = row[0].moved_to(row[1]), row[0].cell
    assert move is not None
    axis, step = move
    boxes = [level.box for level in row]
    box = boxes[0] | boxes[-1]
    cells = row[0].function
    cells.sym_name = type(cells.sym_name)(unique_symbol(module, f"{function.sym_name.data}_levels"))
    direction = Direction.ASCENDING if step > 0 else Direction.DESCENDING
    targets = [fields.names[target] for target in row[0].targets]
    sweep = SweepOp(
        targets, cells.sym_name.data, cell.sources, cell.taps, axis, direction, box,
        cell.scalars, cell.indices,
    )  # fmt: skip
    sweep.location = row[0].apply.location
    module.body.block.insert_op_before(cells, function)
    Rewriter.insert_op(sweep, InsertPoint.before(row[-1].stores[-1]))
    try:
        sweep.verify_()
    except VerifyException:
        Rewriter.erase_op(sweep)
        Rewriter.erase_op(cells)
        return False
    for level in row:
        for store in level.stores:
            Rewriter.erase_op(store)
        Rewriter.erase_op(level.apply)
    return True


class JoinLevelsPass(ModulePass):
    """Levels of a solver become a sweep; see the module's documentation."""

    name = "join-levels"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in [each for each in op.ops if isinstance(each, FuncOp)]:
            holders = {
                inner.parent for inner in function.walk() if isinstance(inner, stencil.StoreOp)
            }
            for block in [
                b for region in function.walk() for r in region.regions for b in r.blocks
            ]:
                if block not in holders:
                    continue
                fields = FieldNames({})
                place = {each: k for k, each in enumerate(block.ops)}
                for row in rows_of_levels(block, fields):
                    if is_recurrence(row) and is_undisturbed(row, place):
                        join_levels(row, fields, function, op)
