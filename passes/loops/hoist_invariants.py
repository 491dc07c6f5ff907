"""hoist-invariants: library functions of values constant in time are computed once a run.

Before:
```
func.func private @cell0(%u: f64, %tilt: f64) -> f64 {
  %s = math.sin %tilt; %r = arith.mulf %u, %s; return %r }
temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
  temporal.update %b = @cell0(%a[0], %T[0]) in <[0], [64]>
}
```
After:
```
func.func private @cell0_once(%tilt: f64) -> f64 { %s = math.sin %tilt; return %s }
func.func private @cell0(%u: f64, %s: f64) -> f64 { %r = arith.mulf %u, %s; return %r }
%S = temporal.scratch : !stencil.field<[0,64]xf64>
temporal.loop %one (%s = %S) rotate [0] sweep {
  temporal.update %s = @cell0_once(%T[0]) in <[0], [64]>
}
temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
  temporal.update %b = @cell0(%a[0], %S[0]) in <[0], [64]>
}
```
1. A value of a cell is constant in time if computed from constants, scalars, coordinates, and taps
   of fields not written by the loop.
2. Of the floats made with a library function (`exp`, `sin`, `pow`), the last constant ones are
   computed by a sweep before the loop, each into a scratch field over the update's box. Integers
   and conditions made of such floats are computed in every step.
3. Values that differ by their place alone (`sin(T[0])`, `sin(T[1])`), in any updates of the loop,
   become cells of one field, over the box around all places.
4. Of more than MOST_FIELDS fields for an update, the functions themselves are made instead of the
   last values: several values often need a function of a field at many places.
5. Taps without another reader are removed: a coefficient gives its place to the value computed from
   the coefficient.

6. The values of sweeps in a time loop of the host are computed before the time loop, if neither
   scalars nor memory behind them change in the time loop.

Other sweeps and loops of one step gain nothing, and stay unchanged. Results have equal bits on
every executor.
The pass is a walk and no rewrite pattern: it splits cell functions, and rewrites the loop around
the updates together with the functions.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr, ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from timetile.dialects.series import is_series
from timetile.dialects.temporal import LoopOp, ScratchOp, UpdateOp
from timetile.passes.analysis.cells.cell_functions import cell_function
from timetile.passes.analysis.cells.cell_operations import FLOATS, FUNCTIONS
from timetile.passes.analysis.cells.constants import integer_constant
from timetile.passes.analysis.cells.places import Place, Shapes
from timetile.passes.loops.placed_values import (
    PlacedValue,
    cell_of_its_own,
    field_of_places,
    let_read,
    update_of_field,
)
from timetile.passes.raising.memory import may_be_one, written_memory
from timetile.passes.raising.raise_time_loop import outermost_time_loop

MOST_FIELDS = 8
"""Most scratch fields of an update: each field is read in every step."""


class Constants:
    """Tells values that are equal in all steps of a loop, or of the host's time loop around it."""

    def __init__(self, loop: LoopOp):
        self.own = set(loop.body.block.args)
        self.host = outermost_time_loop(loop)
        self.written = written_memory(self.host) if self.host is not loop else []

    def has(self, value: SSAValue) -> bool:
        """Whether a scalar, or every cell of a field, is equal in all steps."""
        if is_series(value) or value in self.own:
            return False
        block = value.owner if isinstance(value.owner, Block) else value.owner.parent
        if block is not None and self.host.is_ancestor(block):
            return False
        return not any(may_be_one(memory, value) for memory in self.written)


def invariants(
    update: UpdateOp, function: FuncOp, constants: Constants
) -> tuple[list[SSAValue], list[SSAValue]]:
    """
    The last values of a cell that are constant in time and need a library function, and the
    functions themselves.
    """
    block = function.body.block
    others = block.args[len(update.tap_list) :]
    given = [*map(constants.has, update.scalars), *(True for _ in update.index_axes)]
    fixed: set[SSAValue] = {value for value, stays in zip(others, given) if stays}
    for argument, tap in zip(block.args, update.tap_list):
        if constants.has(update.sources[tap.operand]):
            fixed.add(argument)
    costly: set[SSAValue] = set()
    functions: set[SSAValue] = set()
    for op in block.ops:
        if isinstance(op, ReturnOp) or not all(operand in fixed for operand in op.operands):
            continue
        fixed |= set(op.results)
        if isinstance(op, tuple(FUNCTIONS)):
            functions |= set(op.results)
        if isinstance(op, tuple(FUNCTIONS)) or any(v in costly for v in op.operands):
            costly |= set(op.results)
    last = costly & needed_in_steps(block, fixed)
    every = [value for op in block.ops for value in op.results]
    placed = values_of_places(block)
    places = [v for v in every if v.type in FLOATS and v in placed]
    return [v for v in places if v in last], [v for v in places if v in functions]


def needed_in_steps(block: Block, fixed: set[SSAValue]) -> set[SSAValue]:
    """
    The values read by the cell's result, by values changing in time, and by integers and conditions
    needed in every step.
    """
    needed: set[SSAValue] = set()
    for op in reversed(block.ops):
        kept = any(value in needed and value.type not in FLOATS for value in op.results)
        if kept or isinstance(op, ReturnOp) or not set(op.results) <= fixed:
            needed |= set(op.operands)
    return needed


def values_of_places(block: Block) -> set[SSAValue]:
    """The values computed from some argument of the cell, and the arguments."""
    placed: set[SSAValue] = set(block.args)
    for op in block.ops:
        if any(operand in placed for operand in op.operands):
            placed |= set(op.results)
    return placed


class Hoist:
    """Rewrites the updates of one loop."""

    def __init__(self, loop: LoopOp, module: ModuleOp):
        self.loop, self.module = loop, module
        self.constants = Constants(loop)
        self.shapes = Shapes()

    def run(self) -> None:
        """Hoist the invariant values of all updates, each value once."""
        groups: dict[int, list[PlacedValue]] = {}
        for update in self.loop.updates:
            for number, member in self.members(update):
                groups.setdefault(number, []).append(member)
        values: list[tuple[PlacedValue, SSAValue, Place]] = []
        for members in groups.values():
            made = self.made_once(members)
            values += [(member, made, members[0].place) for member in members]
        let_read(values)

    def members(self, update: UpdateOp) -> list[tuple[int, PlacedValue]]:
        """The hoisted values of an update, with the numbers of their fields."""
        if not any(invariants(update, cell_function(self.module, update), self.constants)):
            return []
        function = cell_of_its_own(self.module, update)
        self.shapes.read(update, function.body.block)
        here = (0,) * update.rank
        for values in invariants(update, function, self.constants):
            numbered = [(*self.shapes.known[value], value) for value in values]
            if len({number for number, _, _ in numbered}) <= MOST_FIELDS:
                return [
                    (number, PlacedValue(update, function, value, place or here))
                    for number, place, value in numbered
                ]
        return []

    def made_once(self, members: Sequence[PlacedValue]) -> SSAValue:
        """
        A scratch field with the values of all members, and the sweep before the loop filling the
        field.
        """
        value = members[0].value
        scratch = ScratchOp(field_of_places(members))
        scratch.field.name_hint = value.name_hint
        one = arith.ConstantOp(IntegerAttr(1, IndexType()))
        sweep = LoopOp(one.result, [scratch.field], [0], sweep=True)
        once = update_of_field(members, sweep.body.block.args[0], self.module)
        sweep.location = once.location
        sweep.body.block.add_op(once)
        Rewriter.insert_op([scratch, one, sweep], InsertPoint.before(self.constants.host))
        return scratch.field


class HoistInvariantsPass(ModulePass):
    """Compute values constant in time once a run; see the module's documentation."""

    name = "hoist-invariants"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for loop in [inner for inner in op.walk() if isinstance(inner, LoopOp)]:
            is_repeated = loop.sweep is None and integer_constant(loop.steps) not in (0, 1)
            if is_repeated or outermost_time_loop(loop) is not loop:
                Hoist(loop, op).run()
