"""The arguments of the code of an update or a sweep."""

from __future__ import annotations

from xdsl.ir import SSAValue

from timetile.dialects.temporal import SweepOp, UpdateOp


def fields_of(op: UpdateOp | SweepOp) -> tuple[SSAValue, ...]:
    """The fields of an update or a sweep, each once: sources, then targets, then of points."""
    points = op.points[1:] if isinstance(op, UpdateOp) else ()
    return tuple(dict.fromkeys((*op.sources, *op.targets, *points)))


def scalars_of(op: UpdateOp | SweepOp) -> tuple[SSAValue, ...]:
    """The scalars of an update or a sweep, each once: of an update, also the row of its points."""
    rows = op.points[:1] if isinstance(op, UpdateOp) else ()
    return tuple(dict.fromkeys((*op.scalars, *rows)))
