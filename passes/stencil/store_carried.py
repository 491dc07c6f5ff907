"""
store-carried: a value of the stencil dialect that a loop carries is stored in a field.

Before:
```
%u = stencil.load %A : !field -> !t
%r = scf.for %i = %c0 to %n step %c1 iter_args(%x = %u) -> (!t) {
  %v = stencil.apply(%y = %x : !t) -> (!t) {...}
  scf.yield %v : !t
}
```
After:
```
%F = stencil.alloc : !field
%S = stencil.alloc : !field
stencil.store %u to %F(<[0], [8]>) : !t to !field
%r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%f = %F, %s = %S) -> (!field, !field) {
  %x = stencil.load %f : !field -> !t
  %v = stencil.apply(%y = %x : !t) -> (!t) {...}
  stencil.store %v to %s(<[0], [8]>) : !t to !field
  scf.yield %s, %f : !field, !field
}
%r_1 = stencil.load %r#0 : !field -> !t
```
1. If the value is always the load of one field, or of the field at one position of the loop, the
   loads move: to the beginning of each step, and behind the loop. Nothing is stored.
2. Otherwise the cells of the value are those of its type. With open bounds, and each step reading
   the cell's own place alone, the cells are those stored in and behind the loop. All carried values
   have one type, and a step yields each value once.
3. A loop with other values and few iterations is unrolled: the cells then shrink from step to step.

Other loops stay unchanged: raising names the value.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects import arith, scf, stencil
from xdsl.dialects.builtin import IndexType, IntegerAttr, ModuleOp
from xdsl.dialects.stencil import FieldType, StencilBoundsAttr, TempType
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.hints import isa

from timetile.passes.analysis.cells.constants import integer_constant
from timetile.passes.raising.demand import accesses
from timetile.passes.raising.memory import may_be_one, written_memory

MOST_STEPS = 32
"""The most iterations of a loop that is unrolled."""


def load_of(value: SSAValue, block: Block | None) -> stencil.LoadOp | None:
    """The load of a value in a block; None for another value."""
    owner = value.owner
    return owner if isinstance(owner, stencil.LoadOp) and owner.parent is block else None


def is_unwritten_since(load: stencil.LoadOp, end: Operation) -> bool:
    """Whether no operation between a load and a later one of its block may write the field."""
    op = load.next_op
    while op is not None and op is not end:
        if any(may_be_one(memory, load.field) for memory in written_memory(op)):
            return False
        op = op.next_op
    return True


def loaded_position(loop: scf.ForOp, position: int) -> SSAValue | int | None:
    """
    The field whose cells are the carried value in every step, or the position in the loop of the
    field; None for another value.
    """
    end = loop.body.block.last_op
    assert isinstance(end, scf.YieldOp)
    first = load_of(loop.iter_args[position], loop.parent)
    again = load_of(end.arguments[position], loop.body.block)
    if first is None or again is None:
        return None
    if not is_unwritten_since(first, loop) or not is_unwritten_since(again, end):
        return None
    if first.field is again.field:
        return first.field
    pairs = zip(loop.iter_args, end.arguments)
    return next((k for k, pair in enumerate(pairs) if pair == (first.field, again.field)), None)


def loaded(field: SSAValue, value: SSAValue, where: InsertPoint) -> None:
    """Load a field in place of a value."""
    load = stencil.LoadOp.build(operands=[field], result_types=[value.type])
    load.res.name_hint = value.name_hint
    Rewriter.insert_op(load, where)
    value.replace_all_uses_with(load.res)


def load_in_steps(loop: scf.ForOp, position: int, found: SSAValue | int) -> None:
    """Load a value in each step, and behind the loop; the loop's own value is then unused."""
    body = loop.body.block
    is_fixed = isinstance(found, SSAValue)
    inside = found if is_fixed else body.args[found + 1]
    behind = found if is_fixed else loop.results[found]
    loaded(inside, body.args[position + 1], InsertPoint.at_start(body))
    loaded(behind, loop.results[position], InsertPoint.after(loop))


def carrying(
    loop: scf.ForOp, dropped: Sequence[int], added: Sequence[SSAValue], after: Sequence[SSAValue]
) -> scf.ForOp:
    """
    A loop without the unused values at some positions and with further values; `after` are the
    further values after a step.
    """
    body = loop.detach_region(loop.body)
    end = body.block.last_op
    assert isinstance(end, scf.YieldOp)
    kept = [k for k in range(len(loop.iter_args)) if k not in dropped]
    Rewriter.replace_op(end, scf.YieldOp(*(end.arguments[k] for k in kept), *after))
    for k in sorted(dropped, reverse=True):
        body.block.erase_arg(body.block.args[k + 1])
    begin = [*(loop.iter_args[k] for k in kept), *added]
    new = scf.ForOp(loop.lb, loop.ub, loop.step, begin, body)
    new.attributes.update(loop.attributes)
    new.location = loop.location
    results: list[SSAValue | None] = [None] * len(loop.results)
    for place, k in enumerate(kept):
        results[k] = new.results[place]
    Rewriter.replace_op(loop, new, results)
    return new


def stored_cells(loop: scf.ForOp, positions: Sequence[int]) -> StencilBoundsAttr | None:
    """The cells of all carried values; None if values differ, or cells are unknown."""
    kinds = {loop.iter_args[k].type for k in positions}
    kind = kinds.pop()
    if kinds or not isa(kind, TempType[Attribute]):
        return None
    if isinstance(kind.bounds, StencilBoundsAttr):
        return kind.bounds
    boxes: list[StencilBoundsAttr] = []
    for use in (use for k in positions for use in loop.results[k].uses):
        if not isinstance(use.operation, stencil.StoreOp):
            return None
        boxes.append(use.operation.bounds)
    if not boxes or not reads_own_places(loop):
        return None
    boxes += [op.bounds for op in loop.walk() if isinstance(op, stencil.StoreOp)]
    whole = boxes[0]
    for box in boxes[1:]:
        whole = whole | box
    return whole


def reads_own_places(loop: scf.ForOp) -> bool:
    """Whether applies of a loop read values that are not loaded at the cell's own place alone."""
    for apply in (op for op in loop.walk() if isinstance(op, stencil.ApplyOp)):
        reads = [*accesses(apply)]
        if any(isinstance(op, stencil.DynAccessOp) for op in apply.walk()):
            return False
        for read in reads:
            is_loaded = isinstance(read.operand.owner, stencil.LoadOp)
            if any(read.offset) and not is_loaded:
                return False
    return True


def put_before(op: Operation, made: Sequence[Operation]) -> None:
    """Insert operations before one, with its location."""
    for each in made:
        each.location = op.location
    Rewriter.insert_op(made, InsertPoint.before(op))


def fields_after_step(own: Sequence[SSAValue], yielded: Sequence[SSAValue]) -> list[int]:
    """
    For each carried value the number of the field with the value after a step: fields of the
    carried values first, then a field for each value made in the step.
    """
    made = [value for value in yielded if value not in own]
    return [own.index(value) if value in own else len(own) + made.index(value) for value in yielded]


def store_values(loop: scf.ForOp, positions: Sequence[int], box: StencilBoundsAttr) -> None:
    """Let a loop carry fields of its values, and spare fields for values made in a step."""
    body, end = loop.body.block, loop.body.block.last_op
    assert isinstance(end, scf.YieldOp)
    own = [body.args[k + 1] for k in positions]
    turns = fields_after_step(own, yielded := [end.arguments[k] for k in positions])
    kind = own[0].type
    assert isa(kind, TempType[Attribute])
    whole = FieldType(box, kind.element_type)
    free = [k for k in range(len(own)) if k not in turns]
    made = [stencil.AllocOp(result_types=[whole]) for _ in (*own, *free)]
    given = [loop.iter_args[k] for k in positions]
    begin = [op.results[0] for op in made]
    put_before(loop, [*made, *(stencil.StoreOp(*each, box) for each in zip(given, begin))])
    fields = [body.insert_arg(whole, len(body.args)) for _ in begin]
    new = [(value, fields[turn]) for value, turn in zip(yielded, turns) if turn >= len(own)]
    put_before(end, [stencil.StoreOp(*each, box) for each in new])
    for value, field in zip(own, fields):
        field.name_hint = value.name_hint
        loaded(field, value, InsertPoint.at_start(body))
    after = [fields[turn] for turn in (*turns, *free)]
    unused = [stencil.LoadOp.build(operands=[begin[0]], result_types=[kind]) for _ in own]
    put_before(loop, unused)
    for k, op in zip(positions, unused):
        loop.results[k].replace_all_uses_with(op.res)
    loop = carrying(loop, positions, begin, after)
    results = loop.results[len(loop.results) - len(begin) :]
    for op, result in zip(unused, results):
        loaded(result, op.res, InsertPoint.after(loop))
        Rewriter.erase_op(op)


def unroll_steps(loop: scf.ForOp, steps: range) -> list[Operation]:
    """Replace a loop by its iterations, and return the operations of all iterations."""
    number, *carried = loop.body.block.args
    values: Sequence[SSAValue] = loop.iter_args
    made: list[Operation] = []
    for step in steps:
        at = arith.ConstantOp(IntegerAttr(step, IndexType()))
        names: dict[SSAValue, SSAValue] = {number: at.result, **dict(zip(carried, values))}
        copies: list[Operation] = [at]
        for op in loop.body.block.ops:
            if isinstance(op, scf.YieldOp):
                values = [names.get(value, value) for value in op.arguments]
            else:
                copies.append(op.clone(names))
        Rewriter.insert_op(copies, InsertPoint.before(loop))
        made += copies
    Rewriter.replace_op(loop, [], values)
    return made


def rewrite(loop: scf.ForOp) -> None:
    """Let a loop carry no value of the stencil dialect, if possible."""
    positions = [k for k, v in enumerate(loop.iter_args) if isinstance(v.type, TempType)]
    found = {k: at for k in positions if (at := loaded_position(loop, k)) is not None}
    for k, at in found.items():
        load_in_steps(loop, k, at)
    if found:
        loop = carrying(loop, [*found], [], [])
        positions = [k for k, v in enumerate(loop.iter_args) if isinstance(v.type, TempType)]
    if not positions:
        return
    end = loop.body.block.last_op
    assert isinstance(end, scf.YieldOp)
    yielded = [end.arguments[k] for k in positions]
    box = stored_cells(loop, positions)
    if box is not None and len(set(yielded)) == len(yielded):
        store_values(loop, positions, box)
        return
    first, last, step = (integer_constant(value) for value in (loop.lb, loop.ub, loop.step))
    if first is None or last is None or step is None or step < 1:
        return
    steps = range(first, last, step)
    if len(steps) <= MOST_STEPS:
        for copy in unroll_steps(loop, steps):
            store_carried(copy)


def store_carried(root: Operation) -> None:
    """Rewrite an operation and the loops inside, from the outside in."""
    for loop in [inner for inner in root.walk() if isinstance(inner, scf.ForOp)]:
        # A loop inside an unrolled loop has no parent: its copies are rewritten.
        carries = any(isinstance(value.type, TempType) for value in loop.results)
        if carries and loop.parent is not None:
            rewrite(loop)


class StoreCarriedPass(ModulePass):
    """Carried values are stored in fields; see the module's documentation."""

    name = "store-carried"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        store_carried(op)
