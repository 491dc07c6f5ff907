"""join-updates: updates of one box that compute much in common become one update.

Before (a rotated Laplacian of two coupled fields):
```
temporal.loop %n (%u = %U, %v = %V, %p = %P, %q = %Q) rotate [...] {
  temporal.update %p = @first(%u[-1], %u[0], %u[1], %v[0]) in <[1], [63]>
  temporal.update %q = @second(%u[-1], %u[0], %u[1], %v[0]) in <[1], [63]>
}
```
After:
```
temporal.loop %n (%u = %U, %v = %V, %p = %P, %q = %Q) rotate [...] {
  temporal.update %p, %q = @first_and_second(%u[-1], %u[0], %u[1], %v[0]) in <[1], [63]>
}
```
1. An update joins an earlier update of the same box if both read and compute much in common: equal
   values are computed once, and the saved instructions are at least LEAST_PART of the smaller
   cell's. The joining update waits for no update in between.
2. Neither update reads the other's target beside the own cell. A float written by the earlier
   update is handed on as a value.
3. Updates with points or boundaries, and cells of more than MOST_INSTRUCTIONS, stay unchanged.

Machine code of the processor runs an update as one loop over cells, and the joined loop loads every
tap once. Kernels of the GPU compute the stages of a step beside each other in any case. Cells keep
arithmetic and bits. The cost is a copy of two cell functions for each of at most TRIED pairs of an
update.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.transforms.common_subexpression_elimination import cse

from timetile.dialects.boxes import CellBox
from timetile.dialects.syntax import element_type
from timetile.dialects.taps import Tap
from timetile.dialects.temporal import LoopOp, UpdateOp
from timetile.dialects.temporal.footprints import MOST_UPDATES, Footprint
from timetile.passes.analysis.cells.cell_functions import cell_function
from timetile.passes.analysis.cells.cell_operations import FLOATS
from timetile.passes.analysis.cells.instructions import instructions
from timetile.passes.analysis.cells.sums import Allows, FpReassoc, reorders, sums_allow
from timetile.passes.loops.group_updates import has_known_cells
from timetile.passes.rewriting import unique_symbol

LEAST_PART = 0.25
"""The least part of the smaller update's instructions that a joined update saves."""

TRIED = 6
"""The nearest earlier updates of the box that are tried."""

MOST_INSTRUCTIONS = 1000
"""Most instructions of a joined cell: longer cells spill registers."""

CellArgument = tuple[SSAValue, tuple[int, ...]] | SSAValue | int
"""An argument of a cell function: a field at an offset, a scalar, or the axis of a coordinate."""


def arguments_of(update: UpdateOp) -> list[CellArgument]:
    """The arguments of an update's cell function, in order."""
    return [*reads_of(update), *update.scalars, *update.index_axes]


def reads_of(update: UpdateOp) -> list[tuple[SSAValue, tuple[int, ...]]]:
    """The field and the offset of each tap, in order."""
    return [(update.sources[tap.operand], tuple(tap.offset)) for tap in update.tap_list]


def work_of_cell(function: FuncOp) -> int:
    """The instructions of a cell function."""
    return sum(sum(instructions(op)) for op in function.body.block.ops)


def may_join(first: UpdateOp, second: UpdateOp) -> bool:
    """Whether two updates of one box may be computed cell by cell, the first one first."""
    here = (0,) * first.rank
    if CellBox.of(first.box) != CellBox.of(second.box) or set(first.targets) & set(second.targets):
        return False
    handed_on = all(
        source not in first.targets or (at == here and element_type(source) in FLOATS)
        for source, at in reads_of(second)
    )
    return handed_on and all(
        source not in second.targets or at == here for source, at in reads_of(first)
    )


class JoinedUpdate:
    """Two updates as one, with a cell function of its own."""

    def __init__(self, first: UpdateOp, second: UpdateOp, module: ModuleOp):
        self.pair = (first, second)
        self.module = module
        self.functions = [cell_function(module, each) for each in self.pair]
        one, other = (function.sym_name.data for function in self.functions)
        self.name = unique_symbol(module, f"{one}_and_{other}")
        here = (0,) * first.rank
        handed_on = {(target, here) for target in first.targets}
        later = (each for each in arguments_of(second) if each not in handed_on)
        every = dict.fromkeys([*arguments_of(first), *later])
        self.reads = [each for each in every if isinstance(each, tuple)]
        self.scalars = [each for each in every if isinstance(each, SSAValue)]
        self.axes = [each for each in every if isinstance(each, int)]
        self.function = self.cell()

    def cell(self) -> FuncOp:
        """The cell function of both, with equal values computed once."""
        kinds = {
            each: argument.type
            for function, update in zip(self.functions, self.pair, strict=True)
            for each, argument in zip(arguments_of(update), function.body.block.args, strict=True)
        }
        order: list[CellArgument] = [*self.reads, *self.scalars, *self.axes]
        block = Block(arg_types=[kinds[each] for each in order])
        known: dict[CellArgument, SSAValue] = dict(zip(order, block.args, strict=True))
        results: list[SSAValue] = []
        for function, update in zip(self.functions, self.pair, strict=True):
            given = map(known.__getitem__, arguments_of(update))
            old = function.body.block
            values: dict[SSAValue, SSAValue] = dict(zip(old.args, given, strict=True))
            for op in old.ops:
                if not isinstance(op, ReturnOp):
                    block.add_op(op.clone(values))
                    continue
                returned = [values[value] for value in op.operands]
                known |= {(t, (0,) * update.rank): v for t, v in zip(update.targets, returned)}
                results += returned
        block.add_op(ReturnOp(*results))
        types = [argument.type for argument in block.args], [value.type for value in results]
        made = FuncOp(self.name, types, Region(block), visibility="private")
        cse(made.body)
        return made

    @property
    def saves(self) -> bool:
        """Whether one update for both saves enough instructions."""
        apart, joined = list(map(work_of_cell, self.functions)), work_of_cell(self.function)
        saved = sum(apart) - joined
        return joined <= MOST_INSTRUCTIONS and saved >= max(1, LEAST_PART * min(apart))

    def replace(self) -> UpdateOp:
        """The update for both, in place of the first."""
        first, second = self.pair
        sources = list(dict.fromkeys(source for source, _ in self.reads))
        taps = [Tap(sources.index(source), at) for source, at in self.reads]
        self.module.body.block.insert_op_before(self.function, self.functions[0])
        joined = UpdateOp(
            [*first.targets, *second.targets],
            self.name, sources, taps, first.box, self.scalars, self.axes,
        )  # fmt: skip
        joined.location = first.location
        Rewriter.insert_op(joined, InsertPoint.before(first))
        Rewriter.erase_op(second)
        Rewriter.erase_op(first)
        return joined


def join_updates(loop: LoopOp, module: ModuleOp, allows: Allows | None = None) -> None:
    """Join the updates of a loop: all, or those whose sums are allowed another order."""
    done: list[Footprint] = []
    for update in list(loop.updates):
        own = Footprint(update)
        if allows is not None and not sums_allow(cell_function(module, update), allows):
            done.append(own)
            continue
        for k in range(len(done) - 1, max(-1, len(done) - 1 - TRIED), -1):
            if may_join(done[k].update, update):
                made = JoinedUpdate(done[k].update, update, module)
                if made.saves and (allows is None or sums_allow(made.function, allows)):
                    done[k] = Footprint(made.replace())
                    break
            if own.waits_for(done[k]):
                done.append(own)
                break
        else:
            done.append(own)


@dataclass(frozen=True)
class JoinUpdatesPass(ModulePass):
    """Join updates that compute much in common; see the module's documentation."""

    name = "join-updates"

    fp_reassoc: FpReassoc | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        allows = None if self.fp_reassoc is None else reorders(self.fp_reassoc)
        if self.fp_reassoc == "off":
            return
        for loop in [inner for inner in op.walk() if isinstance(inner, LoopOp)]:
            if 1 < len(loop.updates) <= MOST_UPDATES and has_known_cells(loop):
                join_updates(loop, op, allows)
