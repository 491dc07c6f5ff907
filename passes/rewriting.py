"""Rewrites of stages, loops, cells and cell functions shared by several passes."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import IsTerminator, SymbolTable

from timetile.dialects.taps import Tap
from timetile.dialects.temporal import LoopOp, ScratchOp
from timetile.dialects.tile import ApplyOp, queue_type


def replace_apply(
    old: ApplyOp,
    *,
    queues: Sequence[SSAValue] | None = None,
    taps: Sequence[Tap] | None = None,
    outside: Sequence[SSAValue] | None = None,
) -> ApplyOp:
    """Replace the stage by a copy with the given operands, as operands cannot be assigned."""
    new = ApplyOp(
        old.cell,
        old.queues if queues is None else queues,
        old.tap_list if taps is None else taps,
        old.kernel.rank,
        [queue_type(result) for result in old.res],
        old.outside if outside is None else outside,
        old.scalars,
        old.index_axes,
        old.box,
        old.points,
        old.point_uses,
    )
    if old.home is not None:
        new.home = old.home
    Rewriter.replace_op(old, new)
    return new


def replace_with(
    op: Operation, new: Sequence[Operation], values: Sequence[SSAValue] | None = None
) -> None:
    """
    Replace an operation by several. Each value, by default each result of the last operation, takes
    the users and the name of one old result.
    """
    Rewriter.insert_op(new, InsertPoint.before(op))
    for old, value in zip(op.results, new[-1].results if values is None else values):
        old.replace_all_uses_with(value)
        value.name_hint = old.name_hint
    Rewriter.erase_op(op)


def carry_scratch(
    loop: LoopOp, scratch: Sequence[ScratchOp], rotation: Sequence[int] | None = None
) -> LoopOp:
    """
    Let a loop carry scratch fields, made before it: the body has their arguments already, behind
    those of the buffers. Without the rotation of the whole loop, scratch fields do not rotate.
    Returns the loop in place of the old one.
    """
    if rotation is None:
        count = len(loop.buffers)
        rotation = [*loop.rotation, *range(count, count + len(scratch))]
    new = LoopOp(
        loop.steps,
        [*loop.buffers, *(each.field for each in scratch)],
        rotation,
        loop.detach_region(loop.body),
    )
    new.properties.update({n: p for n, p in loop.properties.items() if n != "rotate"})
    new.attributes.update(loop.attributes)
    new.location = loop.location
    for result, kept in zip(loop.res, new.res):
        kept.name_hint = result.name_hint
        result.replace_all_uses_with(kept)
    Rewriter.insert_op([*scratch, new], InsertPoint.before(loop))
    Rewriter.erase_op(loop)
    return new


def erase_unused(block: Block) -> None:
    """Erase operations of a block of pure operations without a used result."""
    for op in reversed(list(block.ops)):
        is_unused = all(result.first_use is None for result in op.results)
        if is_unused and not op.has_trait(IsTerminator):
            Rewriter.erase_op(op)


def unique_symbol(module: ModuleOp, name: str, functions: Sequence[FuncOp] = ()) -> str:
    """A symbol defined neither in the module nor by the functions."""
    taken = {function.sym_name.data for function in functions}
    candidate, number = name, 0
    while (
        candidate in taken or SymbolTable.lookup_symbol(module, StringAttr(candidate)) is not None
    ):
        number += 1
        candidate = f"{name}_{number}"
    return candidate


def name_function(module: ModuleOp, function: FuncOp) -> bool:
    """
    Name a function that is not yet in a module as the equal function of the module, or by a free
    name. Returns whether the name is free: the function is then to be inserted.
    """
    name, number = function.sym_name.data, 0
    while (known := SymbolTable.lookup_symbol(module, function.sym_name)) is not None:
        if known.is_structurally_equivalent(function):
            return False
        number += 1
        function.sym_name = StringAttr(f"{name}_{number}")
    return True


def copied_with_module(loop: LoopOp) -> LoopOp:
    """A time loop in a copy of its module."""
    module = loop.get_toplevel_object()
    assert isinstance(module, ModuleOp)
    number = [op for op in module.walk() if isinstance(op, LoopOp)].index(loop)
    return [op for op in module.clone().walk() if isinstance(op, LoopOp)][number]
