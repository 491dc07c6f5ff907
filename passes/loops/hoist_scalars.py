"""hoist-scalars: quotients, roots and divisors of scalars alone are computed once, by the host.

Before:
```
func.func private @cell0(%u: f64, %k: f64, %h: f64) -> f64 {
  %s = arith.mulf %h, %h; %q = arith.divf %k, %s; %r = arith.mulf %u, %q; return %r }
temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
  temporal.update %b = @cell0(%a[0]) scalars(%k, %h) in <[0], [64]>
}
```
After:
```
func.func private @cell0(%u: f64, %q: f64) -> f64 { %r = arith.mulf %u, %q; return %r }
%s = arith.mulf %h, %h
%q = arith.divf %k, %s
temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
  temporal.update %b = @cell0(%a[0]) scalars(%q) in <[0], [64]>
}
```
1. A cell's value depends on scalars alone if operations of `EXACT` make it from constants and
   scalars known before the outermost loop around the update; series change from step to step.
2. Of the values with a quotient or a root, and of divisors, the last ones become operations of the
   host function, each once for all updates, and scalars of the updates: `u / (h * h)` divides by a
   scalar.
3. Scalars without another reader are removed. A cell function of several updates is changed if the
   values are known for all of them, and stays if a sweep applies it, too.

All operations of `EXACT` have one result on every machine: bits are those computed in every
cell. Library functions (`exp`) differ between machines, and stay where the GPU computes them, as do
quotients with permission to be approximate. The pass runs after contraction, so that operations
fused with others in a cell stay fused.
The pass is a walk and no rewrite pattern: it rewrites cell functions together with all updates that
apply the functions.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from timetile.dialects.series import is_series
from timetile.dialects.temporal import SweepOp, UpdateOp
from timetile.passes.analysis.cells.cell_functions import cell_function, cell_functions
from timetile.passes.analysis.cells.cell_operations import FLOATS
from timetile.passes.analysis.cells.instructions import is_approximate
from timetile.passes.rewriting import erase_unused
from timetile.passes.update_reads import replace_update

SLOW = (arith.DivfOp, math.SqrtOp, math.RsqrtOp)
"""Operations worth a scalar of their own."""

EXACT = (
    *SLOW, arith.ConstantOp, arith.AddfOp, arith.SubfOp, arith.MulfOp, arith.NegfOp, math.FmaOp,
    math.AbsFOp, arith.ExtFOp, arith.TruncFOp, arith.SIToFPOp,
)  # fmt: skip
"""Operations on numbers with equal bits on the host, in cells, and in the C of a bundle."""


def block_of_host(update: UpdateOp) -> Block | None:
    """The body of the host function around an update; None without a function."""
    op: Operation | None = update
    while op is not None and not isinstance(op, FuncOp):
        op = op.parent_op()
    return None if op is None else op.body.block


def is_known_before(scalar: SSAValue, update: UpdateOp) -> bool:
    """Whether a scalar is a number known before the outermost loop around an update."""
    host, owner = block_of_host(update), scalar.owner
    if host is None or is_series(scalar):
        return False
    return host is (owner.parent if isinstance(owner, Operation) else owner)


def is_made_to_divide(op: Operation) -> bool:
    """Whether an operation computes a divisor."""
    uses = () if isinstance(op, arith.ConstantOp) else op.results[0].uses
    return any(isinstance(use.operation, arith.DivfOp) and use.index == 1 for use in uses)


def last_slow_values(block: Block, known: set[SSAValue]) -> list[SSAValue]:
    """
    The values of a cell, in order, made of known arguments alone with a slow operation or for a
    quotient, and read by other operations.
    """
    alone, slow = set(known), set[SSAValue]()
    for op in block.ops:
        if not isinstance(op, EXACT) or is_approximate(op) or not alone.issuperset(op.operands):
            continue
        (value,) = op.results
        if value.type not in FLOATS and not isinstance(op, arith.ConstantOp):
            continue
        alone.add(value)
        if isinstance(op, SLOW) or is_made_to_divide(op) or not slow.isdisjoint(op.operands):
            slow.add(value)
    values = [value for op in block.ops for value in op.results if value in slow]
    return [v for v in values if any(alone.isdisjoint(use.operation.results) for use in v.uses)]


class HostNumbers:
    """The numbers computed by host functions, each once."""

    def __init__(self):
        self.made: dict[tuple[object, ...], SSAValue] = {}

    def of(self, value: SSAValue, given: dict[SSAValue, SSAValue], block: Block) -> SSAValue:
        """
        The number of the host for a value of a cell, with numbers `given` for the cell's arguments.
        A new operation stands in the host function right behind its operands.
        """
        if value in given:
            return given[value]
        op = value.owner
        assert isinstance(op, Operation)
        operands = [self.of(operand, given, block) for operand in op.operands]
        facts = (*op.properties.items(), *op.attributes.items())
        key = (block, op.name, value.type, *operands, *facts)
        if key not in self.made:
            made = op.clone(dict(zip(op.operands, operands)))
            Rewriter.insert_op(made, behind(operands, block))
            made.results[0].name_hint = value.name_hint
            self.made[key] = made.results[0]
        given[value] = self.made[key]
        return given[value]


def behind(values: Sequence[SSAValue], block: Block) -> InsertPoint:
    """The place behind the last of some values in a block; the block's start for arguments."""
    last: Operation | None = None
    for owner in (value.owner for value in values):
        if isinstance(owner, Operation) and (last is None or last.is_before_in_block(owner)):
            last = owner
    return InsertPoint.at_start(block) if last is None else InsertPoint.after(last)


class CellRewrite:
    """Rewrites one cell function, and the updates that apply it."""

    def __init__(self, function: FuncOp, updates: Sequence[UpdateOp], numbers: HostNumbers):
        self.block, self.function, self.updates = function.body.block, function, updates
        self.numbers = numbers
        self.first = len(updates[0].tap_list)
        self.count = len(updates[0].scalars)

    def run(self) -> None:
        """Rewrite the values, if any."""
        arguments = self.block.args[self.first : self.first + self.count]
        known: set[SSAValue] = {
            argument
            for k, argument in enumerate(arguments)
            if all(is_known_before(update.scalars[k], update) for update in self.updates)
        }
        values = last_slow_values(self.block, known)
        if not values:
            return
        scalars: list[list[SSAValue]] = []
        for update in self.updates:
            given: dict[SSAValue, SSAValue] = dict(zip(arguments, update.scalars))
            host = block_of_host(update)
            assert host is not None
            made = [self.numbers.of(value, given, host) for value in values]
            scalars.append([*update.scalars, *made])
        self.read_instead(values)
        kept = self.kept_scalars(len(scalars[0]))
        kinds = self.function.function_type
        self.function.function_type = kinds.from_lists(self.block.arg_types, kinds.outputs.data)
        for update, numbers in zip(self.updates, scalars):
            replace_update(update, scalars=[numbers[k] for k in kept])

    def read_instead(self, values: Sequence[SSAValue]) -> None:
        """Let the cell take values as arguments, behind its scalars."""
        for k, value in enumerate(values):
            argument = self.block.insert_arg(value.type, self.first + self.count + k)
            argument.name_hint = value.name_hint
            value.replace_all_uses_with(argument)
        erase_unused(self.block)

    def kept_scalars(self, count: int) -> list[int]:
        """The positions of scalars with a reader; the others are no arguments any more."""
        arguments = self.block.args[self.first : self.first + count]
        kept = [k for k, argument in enumerate(arguments) if argument.first_use is not None]
        for k in reversed(range(count)):
            if k not in kept:
                self.block.erase_arg(self.block.args[self.first + k])
        return kept


class HoistScalarsPass(ModulePass):
    """Compute quotients of scalars once; see the module's documentation."""

    name = "hoist-scalars"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        updates: dict[FuncOp, list[UpdateOp]] = {f: [] for f in cell_functions(op)}
        for inner in list(op.walk()):
            if isinstance(inner, SweepOp):
                updates.pop(cell_function(op, inner), None)
            elif isinstance(inner, UpdateOp) and cell_function(op, inner) in updates:
                updates[cell_function(op, inner)].append(inner)
        numbers = HostNumbers()
        for function, own in updates.items():
            if own:
                CellRewrite(function, own, numbers).run()
