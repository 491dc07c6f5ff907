"""Why an operation has no place in a cell: asked of every operation where a time loop is raised."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import i1
from xdsl.dialects.func import CallOp
from xdsl.ir import Operation

from timetile.dialects.cell_types import CELL_TYPES, value_bytes
from timetile.passes.analysis.cells.calls import why_not_inlined
from timetile.passes.analysis.cells.cell_operations import CELL_OPERATIONS


def why_not_in_cell(op: Operation) -> str | None:
    """The reason why a cell cannot have an operation, with a replacement; None if a cell can."""
    if isinstance(op, CallOp):
        return why_not_inlined(op) or "it calls a function; run inline-calls before"
    for value in (*op.operands, *op.results):
        if value.type not in CELL_TYPES:
            return f"a cell has no values of {value.type}; use f64, f32, i64, i32, i1 or index"
    known = CELL_OPERATIONS.get(type(op))
    if known is None:
        return "a cell has no such operation; use operations of arith and math on single numbers"
    if op.results[0].type == i1 and i1 not in known.result:
        return "it makes an i1 of a number; use arith.cmpi or arith.cmpf"
    if isinstance(op, arith.CmpiOp | arith.CmpfOp) and op.lhs.type != op.rhs.type:
        return f"it compares {op.lhs.type} with {op.rhs.type}; cast one to the other's type"
    if isinstance(op, arith.ExtFOp | arith.TruncFOp):
        wider, narrower = value_bytes(op.result.type), value_bytes(op.input.type)
        if isinstance(op, arith.TruncFOp):
            wider, narrower = narrower, wider
        if wider <= narrower:
            return (
                f"it makes {op.result.type} of {op.input.type}; use extf from f32 to f64 and "
                "truncf back"
            )
    for operand, allowed in zip(op.operands, known.operands, strict=True):
        if operand.type == i1 and i1 not in allowed:
            # As a signed number, true would be -1.
            return "it takes i1 for a number; use arith.andi, ori, xori, select, extui or uitofp"
    return None
