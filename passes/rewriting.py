"""Rewrites of stages and cells shared by several passes."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from timetile.dialects.taps import Tap
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
