"""The floating-point pipe's bound of a program."""

from __future__ import annotations

import numpy as np
from fields import ELEMENTS
from xdsl.dialects import arith
from xdsl.dialects import math as xmath
from xdsl.ir import Operation

from timetile.passes.analysis.cells.cell_functions import named_function
from timetile.passes.analysis.cells.constants import float_constant
from timetile.passes.analysis.cells.instructions import instructions, is_approximate
from timetile.runtime.explain.figures import flops_of
from timetile.runtime.kernels.loops import loops_of
from timetile.runtime.program.compiled_program import CompiledProgram

ROUNDED: dict[type[Operation], dict[str, int]] = {
    xmath.SqrtOp: {"f64": 8, "f32": 4},
    xmath.RsqrtOp: {"f64": 13, "f32": 6},
    arith.DivfOp: {"f64": 8, "f32": 7},
}
"""
Instructions on the floating-point pipe of rounded roots and quotients, in the assembler's expansion
of `sqrt.rn` and `div.rn`: the price for the peers' programs.
"""

ONE_BY: dict[str, int] = {"f64": 5, "f32": 2}
"""Instructions on the floating-point pipe of `rcp.rn`, for quotients with the numerator 1."""


def pipe_operations(op: Operation, element: str) -> int:
    """
    Slots of the floating-point pipe for an operation of a program: one, except for roots and
    quotients.
    """
    if type(op) not in ROUNDED or is_approximate(op):
        return instructions(op)[0]
    if isinstance(op, arith.DivfOp) and float_constant(op.lhs) == 1.0:
        return ONE_BY[element]
    return ROUNDED[type(op)][element]


def fma_bound(compiled: CompiledProgram, element: str) -> float:
    """
    GCells/s of a full floating-point pipe with a step's operations: a slot each, fused or not; a
    rounded quotient or root counts with the assembler's own sequence, for any expansion of ours.
    """
    functions = [named_function(update) for update in loops_of(compiled.module)[0].updates]
    operations = sum(
        pipe_operations(op, element)
        for function in functions
        for op in function.walk()
        if flops_of(op)
    )
    target = compiled.kernels.options.target
    per_cycle = target.isa.fma_per_cycle[np.dtype(ELEMENTS[element]).itemsize]
    per_second = per_cycle * target.multiprocessors * target.part.clock_ghz
    return round(per_second / operations, 1)
