"""expand-powers: powers with constant integer exponents become products.

Before: `%p = math.fpowi %x, %c3 : f64, i32`
After:  `%s = arith.mulf %x, %x : f64   %p = arith.mulf %s, %x : f64`

GPUs have no instruction for powers, and a library's result would differ in its last bits from one
executor to the next. Products by repeated squaring are the same everywhere; a negative exponent is the
reciprocal of the positive power. An exponent that is no constant is left, and refused later.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects import math as math_dialect
from xdsl.dialects.builtin import AnyFloat, FloatAttr, ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.hints import isa

from timetile.passes.analysis.constants import integer_constant
from timetile.passes.analysis.rewriting import erase_unread
from timetile.passes.contract_cells import cell_functions


def expand(op: math_dialect.FPowIOp, exponent: int) -> None:
    """Replace one power by products, from the highest bit of the exponent down."""
    kind = op.result.type
    assert isa(kind, AnyFloat)
    new: list[Operation] = []

    def add(operation: Operation) -> SSAValue:
        new.append(operation)
        return operation.results[0]

    if exponent == 0:
        result = add(arith.ConstantOp(FloatAttr(1.0, kind)))
    else:
        result = op.lhs
        for bit in bin(abs(exponent))[3:]:
            result = add(arith.MulfOp(result, result))
            if bit == "1":
                result = add(arith.MulfOp(result, op.lhs))
    if exponent < 0:
        result = add(arith.DivfOp(add(arith.ConstantOp(FloatAttr(1.0, kind))), result))
    Rewriter.insert_op(new, InsertPoint.before(op))
    op.result.replace_all_uses_with(result)
    exponent_value = op.rhs
    Rewriter.erase_op(op)
    erase_unread([exponent_value], arith.ConstantOp)


class ExpandPowersPass(ModulePass):
    """Expand the powers in all cell functions; see the module's documentation."""

    name = "expand-powers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in cell_functions(op):
            for inner in list(function.body.block.ops):
                if isinstance(inner, math_dialect.FPowIOp):
                    exponent = integer_constant(inner.rhs)
                    if exponent is not None:
                        expand(inner, exponent)
