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
3. Taps without another reader are removed: a coefficient gives its place to the value computed from
   the coefficient.

Loops of one step and sweeps gain nothing, and stay unchanged. Results have equal bits on every
executor.
The pass is a walk and no rewrite pattern: it splits a cell function, and rewrites the loop around
the update together with the function.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr, ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.dialects.stencil import FieldType
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from timetile.dialects.series import is_series
from timetile.dialects.taps import Tap
from timetile.dialects.temporal import LoopOp, ScratchOp, UpdateOp
from timetile.dialects.temporal.boundary import BoundaryAttr, Kind
from timetile.dialects.verified import block_of
from timetile.passes.analysis.cells.cell_functions import cell_function
from timetile.passes.analysis.cells.cell_operations import FLOATS, FUNCTIONS
from timetile.passes.analysis.cells.constants import integer_constant
from timetile.passes.rewriting import unique_symbol

MOST_FIELDS = 4
"""Most scratch fields of an update: each field is read in every step."""


def invariants(update: UpdateOp, function: FuncOp, loop: LoopOp) -> list[SSAValue]:
    """The last values of a cell that are constant in time and need a library function."""
    own = set(loop.body.block.args)
    block = function.body.block
    others = block.args[len(update.tap_list) :]
    given = [*map(is_series, update.scalars), *(False for _ in update.index_axes)]
    fixed: set[SSAValue] = {value for value, changes in zip(others, given) if not changes}
    for argument, tap in zip(block.args, update.tap_list):
        if update.sources[tap.operand] not in own:
            fixed.add(argument)
    costly: set[SSAValue] = set()
    for op in block.ops:
        if isinstance(op, ReturnOp) or not all(operand in fixed for operand in op.operands):
            continue
        fixed |= set(op.results)
        if isinstance(op, tuple(FUNCTIONS)) or any(v in costly for v in op.operands):
            costly |= set(op.results)
    last = costly & needed_in_steps(block, fixed)
    return [
        value
        for op in block.ops
        for value in op.results
        if value in last and value.type in FLOATS and depends_on_place(value)
    ]


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


def depends_on_place(value: SSAValue) -> bool:
    """The value is computed from some argument of the cell."""
    owner = value.owner
    return not isinstance(owner, Operation) or any(map(depends_on_place, owner.operands))


def function_of(value: SSAValue, name: str) -> tuple[FuncOp, list[int]]:
    """A cell function of one value, and the positions of its arguments among the old arguments."""
    needed: dict[Operation, None] = {}
    arguments: set[SSAValue] = set()
    waiting = [value]
    while waiting:
        owner = (found := waiting.pop()).owner
        if isinstance(owner, Operation):
            needed[owner] = None
            waiting += owner.operands
        else:
            arguments.add(found)
    old = value_block(value).args
    places = [k for k, argument in enumerate(old) if argument in arguments]
    block = Block(arg_types=[old[k].type for k in places])
    mapping: dict[SSAValue, SSAValue] = {old[k]: new for k, new in zip(places, block.args)}
    for op in value_block(value).ops:
        if op in needed:
            block.add_op(op.clone(mapping))
    block.add_op(ReturnOp(mapping[value]))
    kinds = block.arg_types, [value.type]
    return FuncOp(name, kinds, Region(block), visibility="private"), places


def value_block(value: SSAValue) -> Block:
    """The block of the cell function around a value."""
    owner = value.owner
    return block_of(owner) if isinstance(owner, Operation) else owner


def parts(update: UpdateOp, places: Sequence[int]) -> tuple[list[Tap], list[SSAValue], list[int]]:
    """The taps, scalars and axes of some of a cell's arguments."""
    taps, scalars, axes = update.tap_list, update.scalars, update.index_axes
    first, second = len(taps), len(taps) + len(scalars)
    return (
        [taps[k] for k in places if k < first],
        [scalars[k - first] for k in places if first <= k < second],
        [axes[k - second] for k in places if k >= second],
    )


def compact(
    sources: Sequence[SSAValue], taps: Sequence[Tap], continued: Sequence[BoundaryAttr]
) -> tuple[list[SSAValue], list[Tap], list[BoundaryAttr]]:
    """
    The sources of the remaining taps, the taps by new positions of sources, and the boundaries of
    the sources, if any.
    """
    used = list(dict.fromkeys(tap.operand for tap in taps))
    left = [Tap(used.index(tap.operand), tap.offset) for tap in taps]
    return [sources[k] for k in used], left, [continued[k] for k in used] if continued else []


class Hoist:
    """Rewrites the updates of one loop."""

    def __init__(self, loop: LoopOp, module: ModuleOp):
        self.loop, self.module = loop, module

    def update(self, update: UpdateOp) -> None:
        """Hoist the invariant values of one update."""
        function = cell_function(self.module, update)
        values = invariants(update, function, self.loop)
        if not 0 < len(values) <= MOST_FIELDS:
            return
        fields = [self.made_once(value, update, function) for value in values]
        self.read_instead(values, fields, update, function)

    def made_once(self, value: SSAValue, update: UpdateOp, function: FuncOp) -> SSAValue:
        """
        A scratch field with a value for every cell, and the sweep before the loop filling the
        field.
        """
        name = unique_symbol(self.module, f"{function.sym_name.data}_once")
        made, places = function_of(value, name)
        self.module.body.block.insert_op_before(made, function)
        scratch = ScratchOp(FieldType(update.box, value.type))
        scratch.field.name_hint = value.name_hint
        taps, scalars, axes = parts(update, places)
        continued = update.continued if update.beyond is not None else ()
        sources, taps, continued = compact(update.sources, taps, continued)
        one = arith.ConstantOp(IntegerAttr(1, IndexType()))
        sweep = LoopOp(one.result, [scratch.field], [0], sweep=True)
        target = sweep.body.block.args[0]
        once = UpdateOp([target], name, sources, taps, update.box, scalars, axes, beyond=continued)
        once.location = sweep.location = update.location
        sweep.body.block.add_op(once)
        Rewriter.insert_op([scratch, one, sweep], InsertPoint.before(self.loop))
        return scratch.field

    def read_instead(
        self,
        values: Sequence[SSAValue],
        fields: Sequence[SSAValue],
        update: UpdateOp,
        function: FuncOp,
    ) -> None:
        """Let the update read fields in place of values, and remove taps without a reader."""
        block, taps = function.body.block, list(update.tap_list)
        here = (0,) * update.rank
        for number, value in enumerate(values):
            argument = block.insert_arg(value.type, len(taps) + number)
            argument.name_hint = value.name_hint
            value.replace_all_uses_with(argument)
        sources = [*update.sources, *fields]
        taps += [Tap(len(update.sources) + k, here) for k in range(len(fields))]
        for op in reversed(list(block.ops)):
            if op.results and all(result.first_use is None for result in op.results):
                Rewriter.erase_op(op)
        # Only block arguments with a reader keep their taps.
        kept = [k for k in range(len(taps)) if block.args[k].first_use is not None]
        for k in reversed(range(len(taps))):
            if k not in kept:
                block.erase_arg(block.args[k])
        continued: Sequence[BoundaryAttr] = ()
        if update.beyond is not None:
            continued = [*update.beyond.data, *(BoundaryAttr(Kind.KEEP) for _ in fields)]
        sources, taps, continued = compact(sources, [taps[k] for k in kept], continued)
        outputs = function.function_type.outputs.data
        function.function_type = function.function_type.from_lists(block.arg_types, outputs)
        new = UpdateOp(
            list(update.targets), update.cell, sources, taps, update.box,
            list(update.scalars), update.index_axes, update.outside, continued,
        )  # fmt: skip
        new.location = update.location
        Rewriter.replace_op(update, new)


class HoistInvariantsPass(ModulePass):
    """Compute values constant in time once a run; see the module's documentation."""

    name = "hoist-invariants"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for loop in [inner for inner in op.walk() if isinstance(inner, LoopOp)]:
            if loop.sweep is not None or integer_constant(loop.steps) in (0, 1):
                continue
            for update in loop.updates:
                Hoist(loop, op).update(update)
