"""Instructions of the operations of a cell: on the floating-point pipe, and beside the pipe."""

from __future__ import annotations

import struct
from collections.abc import Iterable

from xdsl.dialects import arith
from xdsl.dialects import math as xmath
from xdsl.dialects.builtin import FloatAttr, ModuleOp, f64
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Operation, SSAValue

from timetile.dialects.cell_types import CELL_BYTES, value_bytes
from timetile.dialects.temporal import UpdateOp
from timetile.dialects.tile import ApplyOp
from timetile.dialects.verified import terminator_of
from timetile.passes.analysis.cells.cell_functions import cell_function
from timetile.passes.analysis.cells.cell_operations import work_of
from timetile.passes.analysis.cells.constants import float_constant
from timetile.passes.analysis.cells.known_divisors import is_considered

DIVIDING = (arith.DivfOp, xmath.SqrtOp, xmath.RsqrtOp)
"""Quotients and roots, slow for special operands."""

RECIPROCAL: dict[int, tuple[int, int]] = {8: (5, 3), 4: (2, 3)}
"""
Instructions of a quotient with numerator 1, by bytes of the element: on the pipe, and beside the
pipe.
"""

KNOWN_DIVISOR: dict[int, tuple[int, int]] = {8: (2, 4), 4: (2, 2)}
"""Instructions of a quotient by a known number, by bytes of the element."""

KNOWN_RECIPROCAL: dict[int, tuple[int, int]] = {8: (-3, -2), 4: (1, -3)}
"""
More instructions for a quotient by a root, by bytes of the element. The approximation behind the
root is nearly the reciprocal: no first guess is needed.
"""

APPROXIMATIONS: dict[type[Operation], dict[int, tuple[int, int]]] = {
    arith.DivfOp: {8: (4, 6), 4: (1, 1)},
    xmath.RsqrtOp: {8: (5, 6), 4: (0, 1)},
}
"""
Instructions of approximate quotients and roots, by bytes of the element: on the pipe, and beside
the pipe.
"""

APPROXIMATE_RECIPROCAL: dict[int, tuple[int, int]] = {8: (3, 6), 4: (0, 1)}
"""Instructions of an approximate quotient with numerator 1, by bytes of the element."""


def is_approximate(op: Operation) -> bool:
    """
    Whether the operation is a quotient or a reciprocal root with permission to be approximate
    (`fastmath<afn>`).
    """
    if not isinstance(op, arith.DivfOp | xmath.RsqrtOp):
        return False
    return op.result.type in CELL_BYTES and FastMathFlag.APPROX_FUNC in op.fastmath.data


def is_dividing(op: Operation) -> bool:
    """Whether the operation is a quotient or a root, slow for special operands."""
    return isinstance(op, DIVIDING) and not is_approximate(op)


def only_divides(value: SSAValue) -> bool:
    """
    Whether the value is used as a divisor only. The value may then be special if the divisor is 0.
    """
    return all(isinstance(use.operation, arith.DivfOp) and use.index == 1 for use in value.uses)


def is_known_reciprocal(divisor: SSAValue) -> bool:
    """
    Whether the divisor is a root used by quotients only: ordinary quotients have ordinary roots.
    (Root and quotient must share a branch, as always unless the numerator is made from another
    root.)
    """
    return isinstance(divisor.owner, xmath.SqrtOp) and only_divides(divisor)


def instructions(op: Operation) -> tuple[int, int]:
    """
    Instructions of an operation of a cell function: on the floating-point pipe, and beside the
    pipe.
    """
    if isinstance(op, ReturnOp | arith.ConstantOp):
        return 0, 0
    if not isinstance(op, DIVIDING):
        return work_of(op)
    size = value_bytes(op.result.type)
    approximate = is_approximate(op)
    pipe, beside = APPROXIMATIONS[type(op)][size] if approximate else work_of(op)
    if isinstance(op, arith.DivfOp):
        if float_constant(op.lhs) == 1.0:
            pipe, beside = (APPROXIMATE_RECIPROCAL if approximate else RECIPROCAL)[size]
        if not approximate and is_known_reciprocal(op.rhs):
            more = KNOWN_RECIPROCAL[size]
            pipe, beside = pipe + more[0], beside + more[1]
        elif not approximate and is_considered(float_constant(op.rhs), op.result.type):
            pipe, beside = KNOWN_DIVISOR[size]
    return pipe, beside


def operations(function: FuncOp) -> tuple[int, int]:
    """Instructions of a cell function: on the floating-point pipe, and beside the pipe."""
    counts = [instructions(op) for op in function.body.block.ops]
    return sum(pipe for pipe, _ in counts), sum(beside for _, beside in counts)


def divides(module: ModuleOp, apply: ApplyOp) -> bool:
    """Whether a stage has quotients or roots, slow for special operands."""
    return any(map(is_dividing, cell_function(module, apply).body.block.ops))


def ends_in_quotient(module: ModuleOp, apply: ApplyOp) -> bool:
    """Whether the last operation of a stage is a quotient or a root, slow for special operands."""
    block = cell_function(module, apply).body.block
    results = terminator_of(block, ReturnOp).operands
    return any(isinstance(v.owner, Operation) and is_dividing(v.owner) for v in results)


def quotients(module: ModuleOp, op: UpdateOp | ApplyOp) -> int:
    """The number of quotients and roots of a cell, slow for special operands."""
    return sum(map(is_dividing, cell_function(module, op).body.block.ops))


def long_constants(module: ModuleOp, stages: Iterable[ApplyOp]) -> int:
    """
    The number of different FP64 constants in some stages with more digits than an instruction has
    room for.
    """
    cells = {stage.cell: stage for stage in stages}.values()
    ops = (op for stage in cells for op in cell_function(module, stage).body.block.ops)
    found = {
        struct.pack("<d", op.value.value.data)
        for op in ops
        if isinstance(op, arith.ConstantOp)
        and isinstance(op.value, FloatAttr)
        and op.result.type == f64
    }
    return sum(any(bits[:4]) for bits in found)
