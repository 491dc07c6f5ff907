"""The operations of a cell, in one table for all levels, executors and the cost model.

`raise-time-loop` refuses an operation that the table lacks. To add an operation, add a row: a test
walks the table and names the missing parts (a meaning by its name in `runtime/arithmetic/cells.py`,
a row of `lowering/cpu/cells.py`, a printer).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from xdsl.dialects import arith
from xdsl.dialects import math as xmath
from xdsl.dialects.builtin import IndexType, f32, i1
from xdsl.ir import Attribute, Operation

from timetile.dialects.cell_types import CELL_TYPES, value_bytes
from timetile.dialects.temporal import RoundOp

Types = tuple[Attribute, ...]

FLOATS: Types = tuple(kind for kind, row in CELL_TYPES.items() if row.is_float)
WORDS: Types = tuple(kind for kind, row in CELL_TYPES.items() if row.in_fields and not row.is_float)
INTEGERS: Types = (*WORDS, IndexType())
BOOLEANS: Types = (i1,)
BITS: Types = (*INTEGERS, *BOOLEANS)
NUMBERS: Types = (*FLOATS, *INTEGERS)
ALL: Types = tuple(CELL_TYPES)

Work = tuple[int, int]
"""Instructions of one cell: on the floating-point pipe, and beside the pipe."""


@dataclass(frozen=True)
class CellOperation:
    """
    One operation of a cell. The operation's verifier says which operands have equal types;
    `operands` and `result` say which types are allowed.

    `meaning` is the name of the NumPy function in `runtime.arithmetic`; empty for operations that
    `expand-powers` and `expand-cells` replace before any executor. `ptx` is the mnemonic, in which
    `{t}` stands for the result's type, `{u}` and `{b}` for the unsigned and the untyped PTX type of
    the result's width, and `{a}` for the first operand's type; empty if `lowering/ptx/values.py`
    has a printer. `library` is the function of C's mathematical library, for FP64. `work` is by
    bytes of the result's type, and (1, 0) if silent. `commutes` is the number of leading operands
    whose order does not matter. `fold` computes the result of constants in FP64. `at_least` is a
    lower bound of all results.
    """

    operands: tuple[Types, ...]
    result: Types
    meaning: str = ""
    ptx: str = ""
    library: str = ""
    work: Mapping[int, Work] = field(default_factory=dict[int, Work])
    flops: int = 0
    commutes: int = 0
    fold: Callable[..., float] | None = None
    at_least: float | None = None


def extremum(meaning: str, ptx: str = "") -> CellOperation:
    """The larger or the smaller of two floats."""
    return CellOperation(TWO_FLOATS, FLOATS, meaning, ptx, flops=1)


def integer(meaning: str, ptx: str, *, commutes: int = 0) -> CellOperation:
    """An operation on two integers of one type."""
    return CellOperation(TWO_INTEGERS, INTEGERS, meaning, ptx, commutes=commutes)


def expanded(operands: tuple[Types, ...], result: Types) -> CellOperation:
    """An operation replaced by a pass before any executor."""
    return CellOperation(operands, result)


def rounded(meaning: str, ptx: str = "") -> CellOperation:
    """The row of a rounding to a whole number."""
    return CellOperation(ONE_FLOAT, FLOATS, meaning, ptx)


def function(
    name: str, double: Work, single: Work, *, operands: int = 1, at_least: float | None = None
) -> CellOperation:
    """A function of the mathematical library, counted as one floating-point operation."""
    return CellOperation(
        (FLOATS,) * operands,
        FLOATS,
        "library",
        library=name,
        work={8: double, 4: single},
        flops=1,
        at_least=at_least,
    )


ONE_FLOAT: tuple[Types, ...] = (FLOATS,)
TWO_FLOATS: tuple[Types, ...] = (FLOATS, FLOATS)
ONE_INTEGER: tuple[Types, ...] = (INTEGERS,)
TWO_INTEGERS: tuple[Types, ...] = (INTEGERS, INTEGERS)

ARITHMETIC: dict[type[Operation], CellOperation] = {
    arith.ConstantOp: CellOperation((), ALL, "constant", work={8: (0, 0), 4: (0, 0), 1: (0, 0)}),
    # Floats.
    arith.AddfOp: CellOperation(
        TWO_FLOATS, FLOATS, "add", "add.rn.{t}", flops=1, commutes=2, fold=float.__add__
    ),
    arith.SubfOp: CellOperation(
        TWO_FLOATS, FLOATS, "subtract", "sub.rn.{t}", flops=1, fold=float.__sub__
    ),
    arith.MulfOp: CellOperation(
        TWO_FLOATS, FLOATS, "multiply", "mul.rn.{t}", flops=1, commutes=2, fold=float.__mul__
    ),
    # Quotients and roots: Newton's method on the floating-point pipe (first number), the first
    # approximation and the tests for special operands beside the pipe (second number).
    arith.DivfOp: CellOperation(
        TWO_FLOATS,
        FLOATS,
        "divide",
        "div.rn.{t}",
        work={8: (8, 6), 4: (7, 5)},
        flops=1,
        fold=float.__truediv__,
    ),
    xmath.SqrtOp: CellOperation(
        ONE_FLOAT,
        FLOATS,
        "sqrt",
        "sqrt.rn.{t}",
        work={8: (9, 3), 4: (4, 3)},
        flops=1,
        fold=math.sqrt,
    ),
    xmath.RsqrtOp: CellOperation(
        ONE_FLOAT, FLOATS, "reciprocal_root", work={8: (11, 4), 4: (7, 3)}, flops=1
    ),
    xmath.FmaOp: CellOperation((FLOATS,) * 3, FLOATS, "fma", "fma.rn.{t}", flops=2, commutes=2),
    arith.NegfOp: CellOperation(ONE_FLOAT, FLOATS, "negative", "neg.{t}", fold=float.__neg__),
    xmath.AbsFOp: CellOperation(
        ONE_FLOAT, FLOATS, "abs", "abs.{t}", fold=float.__abs__, at_least=0.0
    ),
    xmath.CopySignOp: CellOperation(TWO_FLOATS, FLOATS, "copysign"),
    arith.MaximumfOp: extremum("maximum"),
    arith.MinimumfOp: extremum("minimum"),
    arith.MaxnumfOp: extremum("maxnum", "max.{t}"),
    arith.MinnumfOp: extremum("minnum", "min.{t}"),
    xmath.FloorOp: rounded("floor", "cvt.rmi.{t}.{t}"),
    xmath.CeilOp: rounded("ceil", "cvt.rpi.{t}.{t}"),
    xmath.TruncOp: rounded("trunc", "cvt.rzi.{t}.{t}"),
    xmath.RoundEvenOp: rounded("rint", "cvt.rni.{t}.{t}"),
    xmath.RoundOp: rounded("round_away"),
    arith.CmpfOp: CellOperation(TWO_FLOATS, BOOLEANS, "compare_floats"),
    # Integers.
    arith.AddiOp: integer("add", "add.{t}", commutes=2),
    arith.SubiOp: integer("subtract", "sub.{t}"),
    arith.MuliOp: integer("multiply", "mul.lo.{t}", commutes=2),
    arith.DivSIOp: integer("divide_signed", "div.{t}"),
    arith.RemSIOp: integer("remainder_signed", "rem.{t}"),
    arith.DivUIOp: integer("divide_unsigned", "div.{u}"),
    arith.RemUIOp: integer("remainder_unsigned", "rem.{u}"),
    arith.FloorDivSIOp: expanded(TWO_INTEGERS, INTEGERS),
    arith.CeilDivSIOp: expanded(TWO_INTEGERS, INTEGERS),
    arith.CeilDivUIOp: expanded(TWO_INTEGERS, INTEGERS),
    arith.MaxSIOp: integer("max_signed", "max.{t}", commutes=2),
    arith.MinSIOp: integer("min_signed", "min.{t}", commutes=2),
    arith.MaxUIOp: integer("max_unsigned", "max.{u}", commutes=2),
    arith.MinUIOp: integer("min_unsigned", "min.{u}", commutes=2),
    arith.AndIOp: CellOperation((BITS, BITS), BITS, "bitwise_and", "and.{b}", commutes=2),
    arith.OrIOp: CellOperation((BITS, BITS), BITS, "bitwise_or", "or.{b}", commutes=2),
    arith.XOrIOp: CellOperation((BITS, BITS), BITS, "bitwise_xor", "xor.{b}", commutes=2),
    arith.ShLIOp: integer("shift_left", ""),
    arith.ShRUIOp: integer("shift_right_unsigned", ""),
    arith.ShRSIOp: integer("shift_right_signed", ""),
    arith.CmpiOp: CellOperation(TWO_INTEGERS, BOOLEANS, "compare_integers"),
    xmath.AbsIOp: CellOperation(ONE_INTEGER, INTEGERS, "abs", "abs.{t}"),
    xmath.CtPopOp: CellOperation(ONE_INTEGER, INTEGERS, "count_ones"),
    xmath.CountLeadingZerosOp: CellOperation(ONE_INTEGER, INTEGERS, "leading_zeros"),
    xmath.CountTrailingZerosOp: CellOperation(ONE_INTEGER, INTEGERS, "trailing_zeros"),
    xmath.FPowIOp: expanded((FLOATS, INTEGERS), FLOATS),
    xmath.IPowIOp: expanded(TWO_INTEGERS, INTEGERS),
    # Operations on any type, and conversions.
    arith.SelectOp: CellOperation((BOOLEANS, ALL, ALL), ALL, "select"),
    arith.BitcastOp: CellOperation(((*FLOATS, *WORDS),), (*FLOATS, *WORDS), "bitcast"),
    arith.IndexCastOp: CellOperation(ONE_INTEGER, INTEGERS, "convert"),
    arith.ExtSIOp: CellOperation((WORDS,), WORDS, "convert"),
    arith.ExtUIOp: CellOperation(((*WORDS, *BOOLEANS),), WORDS, "convert_unsigned"),
    arith.TruncIOp: CellOperation((WORDS,), WORDS, "convert"),
    arith.SIToFPOp: CellOperation((WORDS,), FLOATS, "convert"),
    arith.UIToFPOp: CellOperation(((*WORDS, *BOOLEANS),), FLOATS, "convert_unsigned"),
    arith.FPToSIOp: CellOperation(ONE_FLOAT, WORDS, "to_signed"),
    arith.FPToUIOp: CellOperation(ONE_FLOAT, WORDS, "to_unsigned"),
    arith.ExtFOp: CellOperation(ONE_FLOAT, FLOATS, "convert", fold=float),
    arith.TruncFOp: CellOperation(ONE_FLOAT, FLOATS, "convert", fold=float),
    RoundOp: CellOperation(((f32,),), (f32,), "round_as_stored", work={4: (0, 2)}),
}
"""Operations of machines, and operations made by a few instructions."""

FUNCTIONS: dict[type[Operation], CellOperation] = {
    xmath.AcosOp: function("acos", (50, 20), (22, 13), at_least=0.0),
    xmath.AcoshOp: function("acosh", (63, 34), (27, 21), at_least=0.0),
    xmath.AsinOp: function("asin", (45, 15), (20, 12)),
    xmath.AsinhOp: function("asinh", (65, 34), (25, 22)),
    xmath.AtanOp: function("atan", (30, 11), (16, 11)),
    xmath.AtanhOp: function("atanh", (55, 28), (23, 19)),
    xmath.Atan2Op: function("atan2", (35, 18), (24, 20), operands=2),
    xmath.CbrtOp: function("cbrt", (15, 30), (12, 10)),
    xmath.CosOp: function("cos", (19, 31), (10, 18)),
    xmath.CoshOp: function("cosh", (22, 14), (11, 11), at_least=0.0),
    xmath.ErfOp: function("erf", (47, 14), (14, 17)),
    xmath.ExpOp: function("exp", (18, 22), (7, 9), at_least=0.0),
    xmath.Exp2Op: function("exp2", (20, 24), (0, 7), at_least=0.0),
    xmath.ExpM1Op: function("expm1", (22, 25), (19, 13)),
    xmath.LogOp: function("log", (33, 23), (17, 15)),
    xmath.Log10Op: function("log10", (35, 23), (18, 15)),
    xmath.Log1pOp: function("log1p", (50, 27), (17, 16)),
    xmath.Log2Op: function("log2", (35, 23), (19, 15)),
    xmath.PowFOp: function("pow", (110, 88), (70, 38), operands=2),
    xmath.SinOp: function("sin", (19, 31), (10, 18)),
    xmath.SinhOp: function("sinh", (32, 24), (18, 13)),
    xmath.TanOp: function("tan", (37, 31), (14, 18)),
    xmath.TanhOp: function("tanh", (38, 18), (12, 11)),
}
"""
Functions of mathematical libraries. Work: instructions of CUDA's functions (NVRTC 13.5), counted in
PTX without moves, for sine, cosine and tangent on the path of arguments below 1e5; and 6
instructions of the call.
"""

CELL_OPERATIONS: dict[type[Operation], CellOperation] = ARITHMETIC | FUNCTIONS
"""All operations of cells."""


def work_of(op: Operation) -> Work:
    """Instructions of an operation of the table, for any operands; (1, 0) for other operations."""
    known = CELL_OPERATIONS.get(type(op))
    if known is None:
        return 1, 0
    return known.work.get(value_bytes(op.results[0].type), (1, 0))
