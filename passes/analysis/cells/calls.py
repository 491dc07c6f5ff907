"""Functions called by cells, and whether a body can replace its calls."""

from __future__ import annotations

from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Operation
from xdsl.traits import SymbolTable, is_side_effect_free


def callee_of(call: CallOp) -> Operation | None:
    """The operation named by a call; None if the module has no operation of this name."""
    return SymbolTable.lookup_symbol(call, call.callee)


def why_not_inlined(call: CallOp, callers: tuple[FuncOp, ...] = ()) -> str | None:
    """
    Why the body of the called function cannot replace a call, and the way out; None if the body
    can.
    """
    function, name = callee_of(call), call.callee.string_value()
    if not isinstance(function, FuncOp) or function.is_declaration:
        return f"it calls @{name}, which has no body; define it in the module"
    if function in callers:
        return f"it calls @{name}, which calls itself; write its steps one after the other"
    if len(function.body.blocks) > 1:
        return f"it calls @{name}, which has several blocks; use arith.select or scf.if"
    for op in function.body.block.ops:
        if isinstance(op, CallOp):
            if (reason := why_not_inlined(op, (*callers, function))) is not None:
                return reason
        elif not isinstance(op, ReturnOp) and not is_side_effect_free(op):
            return (
                f"it calls @{name}, in which {op.name} does more than compute; use arith and math"
            )
    return None
