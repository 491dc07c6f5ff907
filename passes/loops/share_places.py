"""share-places: values computed at several places around a cell are computed once for each place.

Before (a derivative of a derivative; four of the taps of `@cell0`'s inner sums):
```
func.func private @cell0(%a: f64, %b: f64, %c: f64, %d: f64, ...) -> f64 {
  %left = math.fma %a, %w, %b;  ...;  %right = math.fma %c, %w, %d;  ...  return %r }
temporal.loop %n (%u = %U, %v = %V) rotate [1, 0] {
  temporal.update %v = @cell0(%u[-2], %u[-1], %u[0], %u[1], ...) in <[0], [64]>
}
```
After:
```
func.func private @cell0_once(%a: f64, %b: f64) -> f64 { %s = math.fma %a, %w, %b; return %s }
func.func private @cell0(%left: f64, %right: f64, ...) -> f64 { ... return %r }
%S = temporal.scratch : !stencil.field<[-1,64]xf64>
temporal.loop %n (%u = %U, %v = %V, %s = %S) rotate [1, 0, 2] {
  temporal.update %s = @cell0_once(%u[-1], %u[0]) in <[-1], [64]>
  temporal.update %v = @cell0(%s[-1], %s[1], ...) in <[0], [64]>
}
```
1. Values of the loop's updates that differ in place alone, and read equal versions of the buffers,
   form a group.
2. The group that saves most instructions becomes cells of a scratch field over the box around the
   places, made by an update of each step. The next group follows, up to MOST_FIELDS.
3. A group counts if the values have LEAST_PLACES or more, and save a LEAST_PART of all instructions
   and LEAST_SAVED or more: a field costs a store and several reads. A quotient is a dozen.

Sweeps in time loops of the host share values in the same way, and sweeps outside of time loops stay
unchanged.

The cost is a walk over the cells of a loop for each field and for each of the TRIED likeliest
groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from timetile.dialects.temporal import LoopOp, ScratchOp
from timetile.passes.analysis.cells.cell_functions import cell_function
from timetile.passes.analysis.cells.cell_operations import FLOATS
from timetile.passes.analysis.cells.instructions import instructions
from timetile.passes.analysis.cells.places import Place, Shapes
from timetile.passes.loops.placed_values import (
    PlacedValue,
    cell_of_its_own,
    field_of_places,
    let_read,
    update_of_field,
)
from timetile.passes.raising.raise_time_loop import outermost_time_loop
from timetile.passes.rewriting import carry_scratch

MOST_FIELDS = 4
"""Most scratch fields of a loop."""

LEAST_PLACES, LEAST_SAVED, LEAST_PART = 3, 32, 0.1
"""The fewest places worth sharing, and the fewest saved instructions, also as a part of all."""

TRIED = 12
"""Groups whose savings are counted exactly."""


Costs = dict[SSAValue, int]
"""The instructions of the operation of each value of a loop's cells."""


def work(values: Iterable[SSAValue], stop: Set[SSAValue], shapes: Shapes, costs: Costs) -> int:
    """
    The instructions from which values are computed, without those behind `stop`: equal
    instructions on equal places once.
    """
    found, total, known = set[tuple[int, Place | None]](), 0, shapes.known
    waiting = [value for value in values if value not in stop]
    while waiting:
        value = waiting.pop()
        if value in costs and known[value] not in found:
            found.add(known[value])
            total += costs[value]
            owner = value.owner
            assert isinstance(owner, Operation)
            waiting += [operand for operand in owner.operands if operand not in stop]
    return total


class Sharing:
    """Rewrites one loop."""

    def __init__(self, loop: LoopOp, module: ModuleOp):
        self.loop, self.module = loop, module

    def run(self) -> None:
        """Make fields while a field saves enough."""
        if self.best_group() is None:
            return
        for update in self.loop.updates:
            cell_of_its_own(self.module, update)
        for _ in range(MOST_FIELDS):
            members = self.best_group()
            if members is None:
                return
            self.share(members)

    def groups(self, shapes: Shapes, costs: Costs) -> list[list[PlacedValue]]:
        """The groups with enough places, the likeliest first; adds the costs of all values."""
        groups: dict[int, list[PlacedValue]] = {}
        sizes: dict[SSAValue, int] = {}
        for update in self.loop.updates:
            function = cell_function(self.module, update)
            shapes.read(update, function.body.block)
            for op in function.body.block.ops:
                cost = sum(instructions(op))
                for value in op.results:
                    number, place = shapes.known[value]
                    costs[value] = cost
                    sizes[value] = cost + sum(sizes.get(v, 0) for v in op.operands)
                    if place is not None and value.type in FLOATS:
                        member = PlacedValue(update, function, value, place)
                        groups.setdefault(number, []).append(member)
        many = [g for g in groups.values() if len({m.place for m in g}) >= LEAST_PLACES]
        return sorted(many, key=lambda g: -sizes[g[0].value] * (len(g) - 1))

    def work(self, stop: Set[SSAValue], shapes: Shapes, costs: Costs) -> int:
        """The instructions of a step's cells, without those behind `stop`."""
        found = 0
        for update in self.loop.updates:
            last = cell_function(self.module, update).body.block.last_op
            assert last is not None
            found += work(last.operands, stop, shapes, costs)
        return found

    def best_group(self) -> list[PlacedValue] | None:
        """The group that saves most; None if no group saves enough."""
        shapes, costs = Shapes(), Costs()
        groups = self.groups(shapes, costs)
        nothing: frozenset[SSAValue] = frozenset()
        total = self.work(nothing, shapes, costs) if groups else 0
        best, most = None, max(LEAST_SAVED, LEAST_PART * total)
        for members in groups[:TRIED] if total > most else ():
            values = frozenset(member.value for member in members)
            made = work([members[0].value], nothing, shapes, costs)
            saved = total - self.work(values, shapes, costs) - made
            if saved >= most:
                best, most = members, saved
        return best

    def share(self, members: Sequence[PlacedValue]) -> None:
        """Let updates read a field of the group's values, made by an update before."""
        first = members[0]
        scratch = ScratchOp(field_of_places(members))
        scratch.field.name_hint = first.value.name_hint
        field = self.add_buffer(scratch)
        once = update_of_field(members, field, self.module)
        Rewriter.insert_op(once, InsertPoint.before(first.update))
        let_read([(member, field, first.place) for member in members])

    def add_buffer(self, scratch: ScratchOp) -> SSAValue:
        """Let the loop carry a scratch field, and return the loop's name of the field."""
        block = self.loop.body.block
        field = block.insert_arg(scratch.field.type, len(block.args))
        self.loop = carry_scratch(self.loop, [scratch])
        scratch.detach()
        Rewriter.insert_op(scratch, InsertPoint.before(outermost_time_loop(self.loop)))
        return field


class SharePlacesPass(ModulePass):
    """Compute values of several places once for each place; see the module's documentation."""

    name = "share-places"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for loop in [inner for inner in op.walk() if isinstance(inner, LoopOp)]:
            if loop.sweep is None or outermost_time_loop(loop) is not loop:
                Sharing(loop, op).run()
