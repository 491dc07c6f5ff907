"""Quotients and remainders of integers with a result on every machine.

Machines differ for a divisor of 0, and for -1 under the least integer: some end the process.
`expand-cells` replaces such divisors by 1. Lowerings emit a machine's plain quotient, and refuse
cells with a divisor that may be rare.
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from timetile.dialects.comparisons import INTEGER_NUMBERS
from timetile.passes.analysis.cells.cell_functions import cell_functions
from timetile.passes.analysis.cells.constants import integer_constant
from timetile.passes.diagnostics import refuse

Quotient = arith.DivSIOp | arith.DivUIOp
Remainder = arith.RemSIOp | arith.RemUIOp


def has_sign(op: Quotient | Remainder) -> bool:
    """Whether the operands have a sign."""
    return isinstance(op, arith.DivSIOp | arith.RemSIOp)


def is_rare(divisor: int, *, signed: bool) -> bool:
    """A divisor without a result on some machine: 0, and -1 for numbers with a sign."""
    return divisor == 0 or (signed and divisor == -1)


def has_safe_divisor(op: Quotient | Remainder) -> bool:
    """The divisor is a constant that is not rare, or the select made by `expand-cells`."""
    known = integer_constant(op.rhs)
    if known is not None:
        return not is_rare(known, signed=has_sign(op))
    select = op.rhs.owner
    if not isinstance(select, arith.SelectOp) or integer_constant(select.lhs) != 1:
        return False
    return tests_rare(select.cond, select.rhs, signed=has_sign(op))


def tests_rare(condition: SSAValue, divisor: SSAValue, *, signed: bool) -> bool:
    """The condition holds for rare divisors: `b == 0`, or `b + 1 < 2` without a sign."""
    test = condition.owner
    if not isinstance(test, arith.CmpiOp):
        return False
    predicate, bound = test.predicate.value.data, integer_constant(test.rhs)
    if not signed:
        return test.lhs == divisor and (predicate, bound) == (INTEGER_NUMBERS["eq"], 0)
    above = test.lhs.owner
    return (
        isinstance(above, arith.AddiOp)
        and above.lhs == divisor
        and integer_constant(above.rhs) == 1
        and (predicate, bound) == (INTEGER_NUMBERS["ult"], 2)
    )


def check_quotient(op: Operation) -> None:
    """Refuse a quotient or a remainder with a divisor that may be rare."""
    if isinstance(op, Quotient | Remainder) and not has_safe_divisor(op):
        rare = "0 or -1" if has_sign(op) else "0"
        refuse(
            op,
            f"its divisor may be {rare}, and processors and GPUs differ in the result; run "
            "expand-cells before",
        )


def check_quotients(module: ModuleOp) -> None:
    """Refuse cell functions with a divisor that may be rare."""
    for function in cell_functions(module):
        for op in function.body.block.ops:
            check_quotient(op)
