"""
carry-cells: a result computed by one turn of a loop for the next is carried in place of the plane
behind the result.

Before:                                                   After:
```
scf.for ... iter_args(%u = %a, %v = %b) {                 %e = arith.subf %b, %a : f64
  %d = arith.subf %v, %u : f64                            scf.for ... iter_args(%d = %e, %v = %b) {
  %p = math.fma %d, %d, %c : f64                            %p = math.fma %d, %d, %c : f64
  ...                                                       ...
  %f = arith.subf %v, %w : f64                              %f = arith.subf %v, %w : f64
  scf.yield %v, %w : f64, f64                               scf.yield %f, %w : f64, f64
}                                                         }
```
`share-cells` lets both cells of a face compute a common value once within a turn. The face between
two turns is computed at the end of one turn and again at the start of the next. The pass is
predictive commoning (K. O'Brien, 1990), restricted to cases without an additional register.

1. An operation on carried values has a counterpart: the operation on the values handed on. The
   rules of `share-cells` find the counterpart: differences may have exchanged operands if only
   squares are made of them.
2. The counterpart's result is carried in place of an operand without another reader. Without such
   an operand the operation stays, to save a register. Readers of the result may follow in the next
   round.
3. Before the loop the operation is done once. Consecutive loops hand the result on, as loops are
   taken from the last to the first.

The pass is a walk and no rewrite pattern: an operation and its counterpart stand in two turns of a
loop, and a round carries what the round before left.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from timetile.dialects import simt
from timetile.dialects.verified import block_of, terminator_of
from timetile.lowering.threads.rewriting import functions_of, replace_results
from timetile.lowering.tile_to_gpu.cells import copied
from timetile.passes.analysis.cells.sharing import find, is_magnitude_use, is_shared, key_of

FIRST_CARRIED = 3
"""The number of a loop's operands before the carried values: bounds and step."""


def only_magnitudes(value: SSAValue) -> bool:
    """Whether only squares and magnitudes are made of a value, in all loops carrying the value."""
    for use in value.uses:
        loop, place = use.operation, use.index - FIRST_CARRIED
        if isinstance(loop, scf.ForOp) and place >= 0:
            passed_on = (loop.body.block.args[1 + place], loop.results[place])
            if not all(map(only_magnitudes, passed_on)):
                return False
        elif not is_magnitude_use(use):
            return False
    return True


class CarryingLoop:
    """A loop, and its operations a turn later, before the loop and after the loop."""

    def __init__(self, loop: scf.ForOp):
        self.loop, self.block = loop, loop.body.block
        self.terminator = terminator_of(self.block, scf.YieldOp)
        self.places: dict[SSAValue, int] = {
            value: place for place, value in enumerate(self.block.args[1:])
        }
        self.made: dict[Hashable, Operation] = {}
        for op in self.block.ops:
            self.know(op)

    def know(self, op: Operation) -> None:
        """Note an operation of the loop, possibly equal to another operation a turn later."""
        if is_shared(op) and op.parent is self.block:
            self.made.setdefault(key_of(op, op.operands), op)

    def forget(self, op: Operation) -> None:
        """Forget an operation before a change of operands or a removal."""
        key = key_of(op, op.operands)
        if self.made.get(key) is op:
            del self.made[key]

    def carry_cells(self) -> None:
        """Carry results in place of operands."""
        for op in list(self.block.ops):
            if not is_shared(op) or not all(map(self.is_ready, op.operands)):
                continue
            later = find(self.made, op, self.moved(op, self.terminator.operands))
            if later is None or later is op:
                continue
            for operand in op.operands:
                if operand in self.places and self.may_carry(op, later, operand):
                    self.carry(op, later, operand)
                    break

    def is_ready(self, value: SSAValue) -> bool:
        """Whether the value exists at the beginning of a turn."""
        owner = value.owner
        inside = owner if isinstance(owner, Block) else owner.parent
        return value in self.places or inside is not self.block

    def moved(self, op: Operation, to: Sequence[SSAValue]) -> list[SSAValue]:
        """The operands of an operation, with other values in place of carried ones."""
        return [to[self.places[v]] if v in self.places else v for v in op.operands]

    def may_carry(self, op: Operation, later: Operation, operand: SSAValue) -> bool:
        """
        Whether only the operation reads the operand, and after the loop the operand's last value
        enters only an equal operation. If the carried difference has exchanged operands, the sign
        must not matter there either.
        """
        if operand.type != later.results[0].type or {use.operation for use in operand.uses} != {op}:
            return False
        last = key_of(op, self.moved(op, self.loop.results))
        turned = key_of(later, later.operands) != key_of(
            op, self.moved(op, self.terminator.operands)
        )
        return all(
            is_shared(after)
            and key_of(after, after.operands) == last
            and (not turned or only_magnitudes(after.results[0]))
            for after in self.after(operand)
        )

    def after(self, operand: SSAValue) -> list[Operation]:
        """The readers of a carried operand's last value, after the loop."""
        return list({use.operation: None for use in self.loop.results[self.places[operand]].uses})

    def carry(self, op: Operation, later: Operation, operand: SSAValue) -> None:
        """
        Carry the later operation's result, and read the carried value in place of the operation's
        own.
        """
        place = self.places[operand]
        for after in self.after(operand):
            replace_results(after, self.loop.results[place])
        self.loop.operands[FIRST_CARRIED + place] = self.first(op)
        self.terminator.operands[place] = later.results[0]
        readers = [use.operation for use in op.results[0].uses]
        for known in (op, *readers):
            self.forget(known)
        replace_results(op, operand)
        for reader in readers:
            self.know(reader)

    def first(self, op: Operation) -> SSAValue:
        """
        The operation's result in the first turn, computed ahead of the loop; unset for an unset
        operand.
        """
        initial = self.moved(op, self.loop.iter_args)
        for value in initial:
            if isinstance(value.owner, simt.UnsetOp) and not isinstance(op, arith.SelectOp):
                return value
        ahead = copied(op, initial)
        block_of(self.loop).insert_op_before(ahead, self.loop)
        return ahead.results[0]


class CarryCellsPass(ModulePass):
    """Carry results common to cells of two turns; see the module's documentation."""

    name = "carry-cells"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions_of(op):
            loops = [inner for inner in function.walk() if isinstance(inner, scf.ForOp)]
            for loop in reversed(loops):
                CarryingLoop(loop).carry_cells()
