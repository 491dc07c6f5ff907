"""Rewrites of stages that several passes need."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from timetile.dialects.taps import Tap
from timetile.dialects.tile import ApplyOp, queue_type


def replace_apply(
    old: ApplyOp,
    *,
    queues: Sequence[SSAValue] | None = None,
    taps: Sequence[Tap] | None = None,
    otherwise: Sequence[SSAValue] | None = None,
) -> ApplyOp:
    """Put a copy of the stage in its place, with the given operands; operands cannot be assigned."""
    new = ApplyOp(
        old.cell,
        old.queues if queues is None else queues,
        old.tap_list if taps is None else taps,
        old.kernel.rank,
        [queue_type(result) for result in old.res],
        old.otherwise if otherwise is None else otherwise,
        old.scalars,
        old.index_axes,
        old.box,
    )
    if old.home is not None:
        new.home = old.home
    Rewriter.replace_op(old, new)
    return new
