"""Known lower bounds of values, for any computation."""

from __future__ import annotations

from math import inf, nan

import pytest
from xdsl.dialects import arith
from xdsl.dialects import math as xmath
from xdsl.dialects.builtin import Float64Type, FloatAttr, f64
from xdsl.ir import Block, SSAValue

from timetile.passes.analysis.cells.bounds import Bounds

TERMS = 3000
"""Nested sums, deeper than Python's recursion limit."""


class Values:
    """Values of a block with one unknown argument."""

    def __init__(self) -> None:
        self.block = Block(arg_types=[f64])
        self.unknown: SSAValue = self.block.args[0]

    def constant(self, value: float) -> SSAValue:
        op = arith.ConstantOp(FloatAttr[Float64Type](value, f64))
        self.block.add_op(op)
        return op.result

    def sum(self, a: SSAValue, b: SSAValue) -> SSAValue:
        op = arith.AddfOp(a, b)
        self.block.add_op(op)
        return op.result

    def product(self, a: SSAValue, b: SSAValue) -> SSAValue:
        op = arith.MulfOp(a, b)
        self.block.add_op(op)
        return op.result

    def fma(self, a: SSAValue, b: SSAValue, c: SSAValue) -> SSAValue:
        op = xmath.FmaOp(a, b, c)
        self.block.add_op(op)
        return op.result

    def magnitude(self, a: SSAValue) -> SSAValue:
        op = xmath.AbsFOp(a)
        self.block.add_op(op)
        return op.result


@pytest.mark.parametrize("operation", [xmath.ExpOp, xmath.Exp2Op, xmath.CoshOp, xmath.AcosOp])
def test_some_functions_are_not_negative(operation: type[xmath.ExpOp]):
    v = Values()
    op = operation(v.unknown)
    v.block.add_op(op)
    bounds = Bounds()
    assert bounds.at_least(op.result) == 0
    assert bounds.at_least(v.sum(op.result, v.constant(1.0))) == 1


def test_a_sine_may_be_negative():
    v = Values()
    op = xmath.SinOp(v.unknown)
    v.block.add_op(op)
    assert Bounds().at_least(op.result) is None


def test_squares_and_magnitudes_are_not_negative():
    v = Values()
    x = v.unknown
    square, magnitude = v.product(x, x), v.magnitude(x)
    bounds = Bounds()
    assert bounds.at_least(x) is None
    assert bounds.at_least(square) == bounds.at_least(magnitude) == 0
    assert bounds.at_least(v.product(square, magnitude)) == 0
    assert bounds.at_least(v.product(x, magnitude)) is None


@pytest.mark.parametrize(
    ("value", "known"),
    [(0.25, 0.25), (0.0, 0.0), (-0.0, 0.0), (inf, inf), (-0.25, None), (nan, None)],
)
def test_a_sum_is_not_below_its_larger_part(value: float, known: float | None):
    """Where neither is negative."""
    v = Values()
    x, c = v.unknown, v.constant(value)
    bounds = Bounds()
    assert bounds.at_least(v.fma(x, x, c)) == known
    assert bounds.at_least(v.sum(c, v.product(x, x))) == known
    assert bounds.at_least(v.sum(c, x)) is None
    assert bounds.at_least(v.fma(x, v.magnitude(x), c)) is None


def test_sums_may_have_any_number_of_terms():
    v = Values()
    square, total = v.product(v.unknown, v.unknown), v.constant(2.0)
    for _ in range(TERMS):
        total = v.sum(total, square)
    other = v.unknown
    for _ in range(TERMS):
        other = v.sum(square, other)
    bounds = Bounds()
    assert bounds.at_least(total) == 2
    assert bounds.at_least(other) is None
