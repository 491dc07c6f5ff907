"""
Views of whole levels (`memref.subview`) as memrefs of their own: casts between layouts go, and
loops carry memrefs without a layout.
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects import memref, scf
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, BlockArgument, SSAValue
from xdsl.rewriter import Rewriter

from timetile.passes.raising.memory import is_alias
from timetile.passes.raising.names import names_in_loop

ACCESSES = (memref.LoadOp, memref.StoreOp, memref.SubviewOp)
"""Operations on memory of any layout."""


def loop_position(value: SSAValue) -> tuple[scf.ForOp, int] | None:
    """The loop and the position of a carried value, or of a result of the loop."""
    if isinstance(value, BlockArgument):
        loop = value.block.parent_op()
        return (loop, value.index - 1) if isinstance(loop, scf.ForOp) and value.index else None
    owner = value.owner
    return (owner, owner.results.index(value)) if isinstance(owner, scf.ForOp) else None


def names_of_views(views: Iterable[SSAValue]) -> list[SSAValue] | None:
    """
    All names of views: results of casts, and values carried by loops. None if another operation
    reads a name, or a loop carries other memory in turn.
    """
    names = list(dict.fromkeys(views))
    for name in names:
        for use in name.uses:
            op = use.operation
            further = [op.dest] if isinstance(op, memref.CastOp) else names_in_loop(use)
            if not further and not is_alias(op) and not isinstance(op, ACCESSES):
                return None
            names += [value for value in further if value not in names]
    for loop, position in dict.fromkeys(filter(None, map(loop_position, names))):
        end = loop.body.block.last_op
        assert isinstance(end, scf.YieldOp)
        if loop.iter_args[position] not in names or end.arguments[position] not in names:
            return None
    return names


def without_layout(names: Iterable[SSAValue], kind: MemRefType[Attribute]) -> None:
    """Give names of views the type of a level."""
    for name in names:
        owner = name.owner
        if isinstance(owner, memref.CastOp):
            Rewriter.replace_op(owner, [], [owner.source])
        elif name.type != kind:
            Rewriter.replace_value_with_new_type(name, kind)
