"""
Raises the stores of a block to sweeps: `temporal.loop`s of one step, between the host's operations.

Before:
```
%u = stencil.load %A : !f -> !t
%v = stencil.apply(%x = %u : !t) -> (!t) { ... }
stencil.store %v to %B(<[0], [8]>) : !t to !f
%s = memref.load %series[%t] : memref<9xf64>
```
After:
```
%one = arith.constant 1 : index
%r:2 = temporal.loop %one (%b = %B) rotate [0] sweep {
  temporal.update %b = @step_cell0(%A[-1], ...) in <[0], [8]>
}
%s = memref.load %series[%t] : memref<9xf64>
```
Operations that may read or write memory keep their place: a sweep ends before each such operation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from xdsl.dialects import arith, memref, scf, stencil
from xdsl.dialects.builtin import IndexType, IntegerAttr, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import VerifyException

from timetile.dialects.temporal import BroadcastOp, LoopOp, SweepOp
from timetile.dialects.verified import block_of
from timetile.passes.raising.errors import CannotRaiseError
from timetile.passes.raising.memory import (
    is_memory,
    is_pure,
    may_be_one,
    memory_of,
    name_fields_once,
    written_memory,
)
from timetile.passes.raising.order import Item
from timetile.passes.raising.sequence import (
    Updates,
    build,
    check_aliases,
    check_fields,
    updates_of,
    verify_updates,
)

RAISED = (
    stencil.StoreOp,
    stencil.BufferOp,
    stencil.CombineOp,
    stencil.ApplyOp,
    stencil.LoadOp,
)
"""Operations replaced by updates."""


def stores_fields(block: Block) -> bool:
    """Whether the block itself, without regions of its operations, stores to fields."""
    return any(
        isinstance(op, stencil.StoreOp | SweepOp) or (isinstance(op, stencil.ApplyOp) and op.dest)
        for op in block.ops
    )


def raise_sweeps(block: Block, module: ModuleOp, prefix: str, root: Operation) -> None:
    """Replace the stores of a block. On CannotRaiseError the block is unchanged."""
    if not stores_fields(block):
        return
    name_fields_once(root)
    ops = list(block.ops)
    updates = updates_of(ops)
    for load in (op for op in ops if isinstance(op, stencil.LoadOp)):
        check_fields([load.field], load)
    check_outer_loads(updates, block)
    check_carried(block, root)
    places = breaks(ops, updates)
    groups: list[tuple[Operation, list[Item]]] = []
    for begin, end in zip([None, *places], [*places, ops[-1]]):
        low = -1 if begin is None else updates.order.place[begin]
        high = updates.order.place[end]
        group = [item for item in updates.items if low <= item.at[0] < high]
        # All cells of a loop have an equal number of axes.
        for _, same in groupby(group, lambda item: len(item.box.lb)):
            groups += [(end, part) for part in apart(list(same), updates)]
    made: list[Sweep] = []
    functions: list[FuncOp] = []
    for end, group in groups:
        made.append(loop_of(updates, group, end, module, prefix, functions))
        functions += made[-1].functions
    for (load, _), wide in updates.spread.items():
        check_spread(wide, load)
    emit(updates, made, module, block)


def apart(items: list[Item], updates: Updates) -> list[list[Item]]:
    """The items in one group, or each in its own group if two names may be of one field."""
    names = list(
        dict.fromkeys(
            memory_of(value.owner.field if isinstance(value.owner, stencil.LoadOp) else value)
            for item in items
            for value in (
                *(updates.target(target) for target in item.targets),
                *(value for value, _, _ in item.reads()),
            )
        )
    )
    fields = [name for name in names if is_memory(name.type)]
    picked = any(may_be_one(a, b) for k, a in enumerate(fields) for b in fields[:k])
    return [[item] for item in items] if picked else [items]


def check_spread(wide: BroadcastOp, load: stencil.LoadOp) -> None:
    """Raise CannotRaiseError if a field of fewer axes does not cover the cells read."""
    try:
        wide.verify_()
    except VerifyException as error:
        raise CannotRaiseError(load, str(error)) from None


def breaks(ops: Sequence[Operation], updates: Updates) -> list[Operation]:
    """The operations that must run after all earlier updates, and before all later updates."""
    narrow = {
        value.owner
        for item in updates.items
        for value, offset, access in item.reads()
        if access is not None and len(access.axes) < len(offset)
    }
    written = [memory for op in ops for memory in written_memory(op)]

    def may_move(op: Operation) -> bool:
        return op.name.startswith("stencil.") or is_pure(op) or reads_constant(op, written)

    return [op for op in ops[:-1] if op in narrow or not may_move(op)]


def reads_constant(op: Operation, written: Sequence[SSAValue | None]) -> bool:
    """Whether the operation reads a cell of memory not written in the block."""
    if not isinstance(op, memref.LoadOp) or None in written:
        return False
    return not any(may_be_one(memory_of(op.memref), memory) for memory in written)


def check_outer_loads(updates: Updates, block: Block) -> None:
    """
    Raise CannotRaiseError if a field loaded outside the block changes before the end of the block.
    """
    for item in updates.items:
        for value, _, _ in item.reads():
            load = value.owner
            if not isinstance(load, stencil.LoadOp) or load.parent is block:
                continue
            memory = memory_of(load.field)
            for op in until(block, load):
                if any(may_be_one(written, memory) for written in written_memory(op)):
                    raise CannotRaiseError(
                        item.op if op.is_ancestor(item.op) else op,
                        "the loop writes a field loaded before the loop; load the field inside",
                    )


def until(block: Block, load: stencil.LoadOp) -> list[Operation]:
    """
    The operations after a load, in the load's block, up to the operation around another block.
    """
    ops = list(block_of(load).ops)
    (holder,) = (op for op in ops if op.is_ancestor(block))
    return ops[ops.index(load) + 1 : ops.index(holder) + 1]


@dataclass(frozen=True)
class Sweep:
    """A sweep not yet in the block. The sweep belongs before the operation `end`."""

    end: Operation
    functions: list[FuncOp]
    one: arith.ConstantOp
    loop: LoopOp


def loop_of(
    updates: Updates,
    items: Sequence[Item],
    end: Operation,
    module: ModuleOp,
    prefix: str,
    before: Sequence[FuncOp],
) -> Sweep:
    """The cell functions of a sweep, and the operations of the sweep."""
    written = [updates.target(target) for item in items for target in item.targets]
    buffers = list(dict.fromkeys(written))
    one = arith.ConstantOp(IntegerAttr(1, IndexType()))
    loop = LoopOp(one.result, buffers, range(len(buffers)), sweep=True)
    rename: dict[SSAValue, SSAValue] = dict(zip(buffers, loop.body.block.args))
    functions, made = build(updates, items, rename, module, prefix, before)
    sources = [source for update in made for source in update.sources]
    inner = set(loop.body.block.args)
    others = [source for source in dict.fromkeys(sources) if source not in inner]
    check_fields([*buffers, *others], items[0].op)
    check_aliases(buffers, others, items[0].op)
    loop.body.block.add_ops(made)
    verify_updates(made, items[0].op)
    loop.location = items[0].op.location
    for field, name in rename.items():
        name.name_hint = field.name_hint
    return Sweep(end, functions, one, loop)


def check_carried(block: Block, root: Operation) -> None:
    """
    Raise CannotRaiseError if a loop around the block carries one field twice, or if the block uses
    a carried field by its outer name: two names of one memory.
    """
    memory = {
        memory_of(operand): op
        for op in block.ops
        if op is not block.last_op
        for inner in op.walk()
        for operand in inner.operands
        if is_memory(operand.type)
    }
    last = list(block.ops)[-1]
    while (around := root.parent_op()) is not None:
        args, roots = [], []
        if isinstance(root, scf.ForOp):
            args, roots = list(root.body.block.args), [memory_of(c) for c in root.iter_args]
        user = next((memory[name] for name in roots if name in memory), last)
        fields = [name for name in roots if is_memory(name.type)]
        if len(set(fields)) < len(fields):
            raise CannotRaiseError(
                user, "two buffers of the loop are one field; give each buffer a field"
            )
        if any(name in memory for name in args) and any(name in memory for name in fields):
            raise CannotRaiseError(
                user, "the loop uses a carried field by the outer name; use the loop's argument"
            )
        root = around


def emit(updates: Updates, sweeps: Sequence[Sweep], module: ModuleOp, block: Block) -> None:
    """Put the sweeps into the block, and remove the replaced operations."""
    for sweep in sweeps:
        inner = [operand for update in sweep.loop.updates for operand in update.operands]
        used = {*sweep.loop.buffers, *inner}
        scratch = [op for op in updates.scratch.values() if op.field in used and op.parent is None]
        for function in sweep.functions:
            module.body.block.insert_op_before(function, top_level(block, module))
        Rewriter.insert_op([*scratch, sweep.one, sweep.loop], InsertPoint.before(sweep.end))
    # Spread values come after the sweeps: a sweep may write the spread field.
    for (load, _), wide in updates.spread.items():
        Rewriter.insert_op(wide, InsertPoint.before(load))
    erase_raised(block)


def erase_raised(block: Block) -> None:
    """Erase the stencil operations of a block without a used result."""
    for op in reversed(list(block.ops)):
        if isinstance(op, RAISED) and all(result.first_use is None for result in op.results):
            Rewriter.erase_op(op)


def erase_unused_loads(block: Block) -> None:
    """Erase the loads of a block without readers."""
    for op in list(block.ops):
        if isinstance(op, stencil.LoadOp) and op.res.first_use is None:
            Rewriter.erase_op(op)


def top_level(block: Block, module: ModuleOp) -> Operation:
    """The operation of the module's body around the block."""
    return next(op for op in module.ops if op.is_ancestor(block))
