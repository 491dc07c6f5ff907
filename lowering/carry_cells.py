"""carry-cells: what one turn of a loop computes for the next comes along in place of the plane that it is made of.

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
`share-cells` lets both cells of a face compute it once within a turn; the face between two turns is computed at the end
of one and again at the start of the next. This is predictive commoning (K. O'Brien, 1990), where it takes no register.

1. An operation on what a loop carries has a counterpart: the same on what the loop hands on. It is looked for by the
   rules of `share-cells`, so that differences may be the other way round where only squares are made of them.
2. The counterpart's result is carried in place of an operand that nothing else reads; if there is none, the operation
   stays, as it would take a register more. What reads the result may follow in the same way.
3. Before the loop the operation is done once. Loops that follow each other hand it on, as they are taken from the last
   to the first.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from timetile.dialects import simt
from timetile.lowering.rewriting import functions_of, replace
from timetile.lowering.tile_to_gpu.cells import copied
from timetile.passes.analysis.cells.sharing import find, is_magnitude_use, is_shared, key_of

FIRST_CARRIED = 3
"""A loop's operands before the values that it carries: its bounds and its step."""


def only_magnitudes(value: SSAValue) -> bool:
    """Nothing but squares and magnitudes are made of a value, in loops that it is handed to neither."""
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
    """A loop, and what its operations are a turn later, before it and after it."""

    def __init__(self, loop: scf.ForOp):
        self.loop, self.block = loop, loop.body.block
        terminator = self.block.last_op
        assert isinstance(terminator, scf.YieldOp)
        self.terminator = terminator
        self.places: dict[SSAValue, int] = {
            value: place for place, value in enumerate(self.block.args[1:])
        }
        self.made: dict[Hashable, Operation] = {}
        for op in self.block.ops:
            self.know(op)

    def know(self, op: Operation) -> None:
        """An operation of the loop may be another one's, a turn later."""
        if is_shared(op) and op.parent is self.block:
            self.made.setdefault(key_of(op, op.operands), op)

    def forget(self, op: Operation) -> None:
        """Its operands change, or it goes."""
        key = key_of(op, op.operands)
        if self.made.get(key) is op:
            del self.made[key]

    def carry_cells(self) -> None:
        """Carry what may be carried in place of an operand."""
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
        """The value is there when a turn begins."""
        owner = value.owner
        inside = owner if isinstance(owner, Block) else owner.parent
        return value in self.places or inside is not self.block

    def moved(self, op: Operation, to: Sequence[SSAValue]) -> list[SSAValue]:
        """The operands of an operation, with other values in place of those that the loop carries."""
        return [to[self.places[v]] if v in self.places else v for v in op.operands]

    def may_carry(self, op: Operation, later: Operation, operand: SSAValue) -> bool:
        """
        The operation alone reads the operand, and after the loop its last value enters nothing but the same operation,
        whose sign matters no more than here if the difference that is carried is the other way round.
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
        """What reads the last value of a carried operand, after the loop."""
        return list({use.operation: None for use in self.loop.results[self.places[operand]].uses})

    def carry(self, op: Operation, later: Operation, operand: SSAValue) -> None:
        """Carry the later operation's result, and read it in place of the operation's own."""
        place = self.places[operand]
        for after in self.after(operand):
            replace(after, self.loop.results[place])
        self.loop.operands[FIRST_CARRIED + place] = self.first(op)
        self.terminator.operands[place] = later.results[0]
        readers = [use.operation for use in op.results[0].uses]
        for known in (op, *readers):
            self.forget(known)
        replace(op, operand)
        for reader in readers:
            self.know(reader)

    def first(self, op: Operation) -> SSAValue:
        """The operation's result in the first turn, computed ahead of the loop; what is not set gives nothing that is."""
        initial = self.moved(op, self.loop.iter_args)
        for value in initial:
            if isinstance(value.owner, simt.UnsetOp) and not isinstance(op, arith.SelectOp):
                return value
        ahead = copied(op, initial)
        assert self.loop.parent is not None
        self.loop.parent.insert_op_before(ahead, self.loop)
        return ahead.results[0]


class CarryCellsPass(ModulePass):
    """Carry what cells of two turns have in common; see the module's documentation."""

    name = "carry-cells"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions_of(op):
            loops = [inner for inner in function.walk() if isinstance(inner, scf.ForOp)]
            for loop in reversed(loops):
                CarryingLoop(loop).carry_cells()
