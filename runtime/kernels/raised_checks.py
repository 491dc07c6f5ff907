"""What passes must have made of a program before it can run: time loops, and stores of fields."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.func import FuncOp

from timetile.dialects.temporal import ReduceOp
from timetile.passes.diagnostics import CompileError, Remark
from timetile.passes.raising.memory import ANY_MEMORY, written_memory

LEFT = "left unchanged: "
"""The words of remarks on stencil operations run neither by a kernel nor by the host."""


def check_raised(function: FuncOp, remarks: Sequence[Remark]) -> None:
    """
    Raise CompileError if a raised function stores no field, or if remarks tell of operations left
    unchanged.
    """
    left = [remark for remark in remarks if LEFT in remark.reason]
    if left:
        error = left[0].error()
        for other in left[1:]:
            error.add_note(str(other))
        raise error
    reduces = any(isinstance(op, ReduceOp) for op in function.walk())
    if not reduces and all(memory is ANY_MEMORY for memory in written_memory(function)):
        raise CompileError(
            f"@{function.sym_name.data} stores no field: timetile compiles stencil.store "
            "operations, and nests of loops over memrefs, in scf.for loops over time or outside "
            "them; name another function, or store a result"
        )
