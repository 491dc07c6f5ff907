"""What a cell may compute with: numbers of a few types, and of booleans what means the same everywhere."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, f32, f64, i1, i32, i64
from xdsl.ir import Operation

CELL_TYPES = (f64, f32, i64, i32, i1, IndexType())

OF_BOOLEANS = (
    arith.AndIOp,
    arith.OrIOp,
    arith.XOrIOp,
    arith.SelectOp,
    arith.ExtUIOp,
    arith.UIToFPOp,
)
TO_BOOLEANS = (arith.CmpiOp, arith.CmpfOp, arith.ConstantOp)


def why_not_in_cell(op: Operation) -> str | None:
    """What is wrong with an operation of a cell and what to use instead; None where nothing is."""
    for value in (*op.operands, *op.results):
        if value.type not in CELL_TYPES:
            return f"a cell has no values of {value.type}; use f64, f32, i64, i32, i1 or index"
    if isinstance(op, OF_BOOLEANS):
        return None
    if any(result.type == i1 for result in op.results) and not isinstance(op, TO_BOOLEANS):
        return "it makes an i1 of a number; use arith.cmpi or arith.cmpf"
    if any(operand.type == i1 for operand in op.operands):
        # As a signed number true is -1.
        return "it takes i1 for a number; use arith.andi, ori, xori, select, extui or uitofp"
    return None
