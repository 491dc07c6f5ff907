"""Remarks on applies that read their own target beside the cell: old values are read."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import stencil
from xdsl.ir import Operation

from timetile.passes.diagnostics import remark
from timetile.passes.raising.boxes import moved, overlap
from timetile.passes.raising.demand import accesses, pieces, unbuffered
from timetile.passes.raising.memory import memory_of

SNAPSHOT = "timetile.snapshot"
"""The attribute of a `stencil.load` of a frontend whose programs mean old values: no remark."""


def remark_recurrences(ops: Sequence[Operation]) -> None:
    """Remark on each apply that reads cells of a field written by the apply at other cells."""
    told: set[Operation] = set()
    for op in ops:
        if not isinstance(op, stencil.StoreOp):
            continue
        for piece in pieces(op.temp, op.bounds, op):
            apply = piece.source
            if isinstance(apply, stencil.LoadOp) or apply in told:
                continue
            if reads_own(apply, piece.box, op):
                told.add(apply)
                remark(
                    apply,
                    "the apply reads its target field beside the cell: old values are read, as a "
                    "stencil.load is a snapshot; write a recurrence along an axis as "
                    "temporal.sweep",
                )


def reads_own(
    apply: stencil.ApplyOp, box: stencil.StencilBoundsAttr, store: stencil.StoreOp
) -> bool:
    """Whether an access with an offset reads a cell written by the store."""
    for access in accesses(apply):
        load = unbuffered(access.operand).owner
        if not isinstance(load, stencil.LoadOp) or not any(access.offset):
            continue
        if SNAPSHOT in load.attributes:
            continue
        same = memory_of(load.field) is memory_of(store.field)
        if same and overlap(moved(box, access.offset), box):
            return True
    return False
