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
   taken from the last to the first. Loops in a loop, which hand their values around, carry the
   result together or not at all; what the loop around makes in each turn is unknown before it.

The pass is a walk and no rewrite pattern: an operation and its counterpart stand in two turns of a
loop, and a round carries what the round before left.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

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
from timetile.passes.not_raised import BEFORE_THREADS, remark_without_loops

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
    """A loop that carries results to its next turn, in place of computing them there again."""

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
        for op in self.ready_operations():
            later = find(self.made, op, self.moved(op, self.terminator.operands))
            if later is None or later is op:
                continue
            for operand in op.operands:
                if operand in self.places and self.may_carry(op, later, operand):
                    self.carry(op, later, operand)
                    break

    def ready_operations(self) -> Iterator[Operation]:
        """The shared operations whose operands exist at the beginning of a turn."""
        for op in list(self.block.ops):
            if is_shared(op) and all(map(self.is_ready, op.operands)):
                yield op

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
        self.begin_with(place, op, self.moved(op, self.loop.iter_args))
        self.hand_on(op, later, operand)

    def hand_on(self, op: Operation, later: Operation, operand: SSAValue) -> None:
        """Let each turn hand the later operation's result on: the loop's part of `carry`."""
        self.terminator.operands[self.places[operand]] = later.results[0]
        readers = [use.operation for use in op.results[0].uses]
        for known in (op, *readers):
            self.forget(known)
        replace_results(op, operand)
        for reader in readers:
            self.know(reader)

    def begin_with(self, place: int, op: Operation, initial: Sequence[SSAValue]) -> None:
        """
        Begin the carried value of a place with the operation on the `initial` operands, computed
        ahead of the loop; unset for an unset operand.
        """
        for value in initial:
            if isinstance(value.owner, simt.UnsetOp) and not isinstance(op, arith.SelectOp):
                self.loop.operands[FIRST_CARRIED + place] = value
                return
        ahead = copied(op, initial)
        block_of(self.loop).insert_op_before(ahead, self.loop)
        self.loop.operands[FIRST_CARRIED + place] = ahead.results[0]

    def handed_to(self, value: SSAValue) -> SSAValue | None:
        """
        Who takes a carried value behind this loop: a carried value of the next loop, or of the loop
        around. None if another operation reads the value, or several do.
        """
        uses = list(self.loop.results[self.places[value]].uses)
        if len(uses) != 1:
            return None
        reader, place = uses[0].operation, uses[0].index
        if isinstance(reader, scf.ForOp):
            return reader.body.block.args[1 + place - FIRST_CARRIED]
        around = reader.parent_op()
        if isinstance(reader, scf.YieldOp) and isinstance(around, scf.ForOp):
            return around.body.block.args[1 + place]
        return None


@dataclass(frozen=True)
class Carried:
    """An operation in a loop, its counterpart a turn later, and the operand that it replaces."""

    loop: CarryingLoop
    op: Operation
    later: Operation
    operand: SSAValue
    asked: Hashable
    """The key of the operation on the loop's values."""

    @property
    def is_exchanged(self) -> bool:
        """The operation or its counterpart is a difference with exchanged operands."""
        moved = self.loop.moved(self.op, self.loop.terminator.operands)
        keys = key_of(self.op, self.op.operands), key_of(self.later, self.later.operands)
        return keys != (self.asked, key_of(self.op, moved))


class CarryingNest:
    """A loop around other loops, which hand their values to the next, and back to the first."""

    def __init__(self, outer: scf.ForOp, inner: Sequence[scf.ForOp]):
        self.outer = CarryingLoop(outer)
        self.inner = [CarryingLoop(loop) for loop in inner]

    def carry_cells(self) -> None:
        """Carry results in place of operands, in all loops."""
        first = self.inner[0]
        for op in first.ready_operations():
            for operand in filter(first.places.__contains__, op.operands):
                carried = self.carried(op, operand)
                if carried is not None:
                    self.carry(carried)
                    break

    def entered(self, value: SSAValue) -> SSAValue:
        """The outer loop's value that enters the first inner loop as a carried value."""
        first = self.inner[0]
        return first.loop.iter_args[first.places[value]] if value in first.places else value

    def carried(self, op: Operation, operand: SSAValue) -> list[Carried] | None:
        """
        What each loop carries, for an operation and an operand of the first; None if a loop has no
        such operation or another reader of the operand, or an operand is made by the outer loop.
        """
        if not all(self.outer.is_ready(self.entered(value)) for value in op.operands):
            return None
        found: list[Carried] = []
        operands, target = list(op.operands), operand
        for loop in self.inner:
            own = find(loop.made, op, operands)
            if own is None or not all(map(loop.is_ready, own.operands)):
                return None
            later = find(loop.made, own, loop.moved(own, loop.terminator.operands))
            if later in (None, own) or operand.type != own.results[0].type:
                return None
            assert later is not None
            if {use.operation for use in target.uses} != {own}:
                return None
            found.append(Carried(loop, own, later, target, key_of(op, operands)))
            moved = [loop.handed_to(v) if v in loop.places else v for v in operands]
            if None in moved:
                return None
            place = operands.index(target)
            operands = [value for value in moved if value is not None]
            target = operands[place]
        if not self.is_closed(op, operand, operands):
            return None
        return found if keeps_signs(found) else None

    def is_closed(self, op: Operation, operand: SSAValue, operands: Sequence[SSAValue]) -> bool:
        """
        The operands handed to the outer loop are the operation's own of the next turn, and nothing
        else reads the operand there.
        """
        own = self.entered(operand)
        if list(operands) != [self.entered(value) for value in op.operands]:
            return False
        if own not in self.outer.places or not own.has_one_use():
            return False
        return not self.outer.loop.results[self.outer.places[own]].uses

    def carry(self, carried: Sequence[Carried]) -> None:
        """Carry a result through all loops."""
        first = carried[0]
        own = self.entered(first.operand)
        outer = self.outer.loop.iter_args
        initial = [
            outer[self.outer.places[value]] if value in self.outer.places else value
            for value in map(self.entered, first.op.operands)
        ]
        self.outer.begin_with(self.outer.places[own], first.op, initial)
        for each in carried:
            each.loop.hand_on(each.op, each.later, each.operand)


def keeps_signs(carried: Sequence[Carried]) -> bool:
    """Whether no loop carries a difference with exchanged operands, or no sign matters."""
    exchanged = any(each.is_exchanged for each in carried)
    return not exchanged or all(only_magnitudes(each.op.results[0]) for each in carried)


def loops_in(loop: scf.ForOp) -> list[scf.ForOp]:
    """The loops in the body of a loop, in order."""
    return [op for op in loop.body.block.ops if isinstance(op, scf.ForOp)]


def is_nest(loop: scf.ForOp, inner: Sequence[scf.ForOp]) -> bool:
    """Whether inner loops take values carried by a loop."""
    return any(v.owner is loop.body.block for each in inner for v in each.iter_args)


class CarryCellsPass(ModulePass):
    """Carry results common to cells of two turns; see the module's documentation."""

    name = "carry-cells"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        remark_without_loops(self, op, BEFORE_THREADS)
        for function in functions_of(op):
            loops = [inner for inner in function.walk() if isinstance(inner, scf.ForOp)]
            for loop in reversed(loops):
                inner = loops_in(loop)
                around = loop.parent_op()
                if is_nest(loop, inner):
                    CarryingNest(loop, inner).carry_cells()
                elif not (isinstance(around, scf.ForOp) and is_nest(around, loops_in(around))):
                    CarryingLoop(loop).carry_cells()
