"""Axes named by a program's operations are those of its cells: xDSL verifies other axes, too."""

from __future__ import annotations

from xdsl.dialects import stencil
from xdsl.dialects.func import FuncOp

from timetile.passes.diagnostics import refuse


def check_axes(function: FuncOp) -> None:
    """Raise CompileError for an operation that names an axis, or offsets, of no cells."""
    for op in function.walk():
        if isinstance(op, stencil.IndexOp):
            check_index(op)
        elif isinstance(op, stencil.CombineOp) and op.dim.value.data < 0:
            refuse(op, f"it names axis {op.dim.value.data}; the first is 0")


def check_index(op: stencil.IndexOp) -> None:
    """Raise CompileError for the coordinate along an axis that cells do not have."""
    axis, count, rank = op.dim.value.data, len(op.offset), op.get_apply().get_rank()
    if count != rank:
        refuse(
            op, f"cells have {rank} axes, and its offset has {count}; give a number for each axis"
        )
    if not 0 <= axis < rank:
        refuse(op, f"it names axis {axis} of {rank}; the first is 0")
