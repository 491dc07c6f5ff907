"""Rewrites of stages and cells shared by several passes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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


def replace_with(op: Operation, new: Sequence[Operation]) -> None:
    """Replace an operation by several. The last takes the old result's users and name."""
    Rewriter.insert_op(new, InsertPoint.before(op))
    old, result = op.results[0], new[-1].results[0]
    result.name_hint = old.name_hint
    old.replace_all_uses_with(result)
    Rewriter.erase_op(op)


def erase_unread(values: Iterable[SSAValue], *kinds: type[Operation]) -> None:
    """Erase the operations of these kinds among the makers of values without a user."""
    for value in dict.fromkeys(values):
        if value.first_use is None and isinstance(value.owner, kinds):
            Rewriter.erase_op(value.owner)
