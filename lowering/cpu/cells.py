"""Operations of a cell in the llvm dialect: a table, with the bits of every executor.

No operation carries fast-math flags: LLVM neither contracts nor reorders. Where LLVM leaves a
result open (a shift by the width, a float without an integer) the lowering selects it; divisors
without a result were replaced by expand-cells.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import arith, llvm, math
from xdsl.dialects.builtin import (
    FloatAttr,
    IntegerAttr,
    IntegerType,
    f64,
    i1,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue

from timetile.dialects.cell_types import CELL_TYPES
from timetile.dialects.comparisons import FLOAT_PREDICATES
from timetile.dialects.temporal import RoundOp
from timetile.dialects.verified import float_type
from timetile.lowering.cpu.builder import Builder, is_true, llvm_type, width
from timetile.lowering.cpu.stored_cells import round_cell
from timetile.passes.analysis.cells.library import LIBRARY, PREFIX, library_name
from timetile.passes.analysis.cells.quotients import check_quotient
from timetile.passes.diagnostics import refuse

Operands = Sequence[SSAValue]
Lowering = Callable[..., SSAValue]
"""Appends an operation on some operands with a builder, and returns the result."""

BITS = {kind: IntegerType(row.bits) for kind, row in CELL_TYPES.items() if row.is_float}
"""The integers with the bits of a float."""


def result_type(op: Operation) -> Attribute:
    """The type of an operation's result in the llvm dialect."""
    return llvm_type(op.results[0].type)


Binary = (
    llvm.ArithmeticBinOperation
    | llvm.ArithmeticBinOpOverflow
    | llvm.ArithmeticBinOpDisjoint
    | llvm.AbstractFloatArithOp
)
"""Operations of the llvm dialect with two operands of equal type."""


def plain(kind: type[Binary]) -> Lowering:
    """The llvm operation of the same meaning."""

    def lower(build: Builder, op: Operation, operands: Operands) -> SSAValue:
        return build.binary(kind, operands[0], operands[1])

    return lower


def intrinsic(name: str, *flags: int) -> Lowering:
    """An intrinsic of the operands' type; `flags` are further arguments of type i1."""

    def lower(build: Builder, op: Operation, operands: Operands) -> SSAValue:
        kind = result_type(op)
        arguments = [*operands, *(build.int(flag, 1) for flag in flags)]
        return build.intrinsic(f"{name}.{CELL_TYPES[kind].llvm}", arguments, kind)

    return lower


def chosen(predicate: str) -> Lowering:
    """The first integer where the comparison holds, else the second: extrema."""

    def lower(build: Builder, op: Operation, operands: Operands) -> SSAValue:
        a, b = operands
        return build.select(build.compare(predicate, a, b), a, b)

    return lower


# Extrema of floats.


def ordered_extremum(build: Builder, a: SSAValue, b: SSAValue, *, largest: bool) -> SSAValue:
    """The extremum of two numbers; +0 is larger than -0."""
    kind = BITS[a.type]
    # Equal numbers differ in bits only if both are zeros of opposite sign.
    join = llvm.AndOp if largest else llvm.OrOp
    joined = build.binary(join, build.bits(a, kind), build.bits(b, kind))
    better = build.select(build.compare_floats("ogt" if largest else "olt", a, b), a, b)
    return build.select(build.compare_floats("oeq", a, b), build.bits(joined, a.type), better)


def propagated_extremum(build: Builder, a: SSAValue, b: SSAValue, *, largest: bool) -> SSAValue:
    """The extremum of two numbers; NaN if an operand is NaN."""
    found = ordered_extremum(build, a, b, largest=largest)
    unordered = build.compare_floats("uno", a, b)
    return build.select(unordered, build.binary(llvm.FAddOp, a, b), found)


def propagating(*, largest: bool) -> Lowering:
    """An extremum; NaN if an operand is NaN."""

    def lower(build: Builder, op: Operation, operands: Operands) -> SSAValue:
        return propagated_extremum(build, operands[0], operands[1], largest=largest)

    return lower


def ignoring(*, largest: bool) -> Lowering:
    """An extremum; if an operand is NaN, the other operand."""

    def lower(build: Builder, op: Operation, operands: Operands) -> SSAValue:
        a, b = operands
        # If `a` is NaN, no comparison holds, and the result is `b`.
        found = ordered_extremum(build, a, b, largest=largest)
        return build.select(build.compare_floats("uno", b, b), a, found)

    return lower


def reciprocal_root(build: Builder, op: Operation, operands: Operands) -> SSAValue:
    """1 / sqrt(a), both rounded."""
    kind = result_type(op)
    root = build.intrinsic(f"llvm.sqrt.{CELL_TYPES[kind].llvm}", operands, kind)
    return build.binary(llvm.FDivOp, build.constant(FloatAttr(1.0, float_type(kind)), kind), root)


def fused(build: Builder, op: Operation, operands: Operands) -> SSAValue:
    """a * b + c, rounded once."""
    return build.add(llvm.FMAOp(operands[0], operands[1], operands[2])).res


def negated(build: Builder, op: Operation, operands: Operands) -> SSAValue:
    """The float with the other sign."""
    return build.add(llvm.FNegOp(operands[0])).res


def library_call(build: Builder, op: Operation, operands: Operands) -> SSAValue:
    """A function of C's mathematical library."""
    return build.library(PREFIX + library_name(op), operands, result_type(op))


# Integers.


def divided(kind: type[llvm.ArithmeticBinOperation | llvm.ArithmeticBinOpExact]) -> Lowering:
    """A quotient or a remainder; CompileError if the divisor may have no result on a processor."""

    def lower(build: Builder, op: Operation, operands: Operands) -> SSAValue:
        check_quotient(op)
        return build.binary(kind, operands[0], operands[1])

    return lower


def shifted(kind: type[llvm.ArithmeticBinOpOverflow | llvm.ArithmeticBinOpExact]) -> Lowering:
    """A shift. A shift by the width or more is a series of small shifts: zeros, or signs."""

    def lower(build: Builder, op: Operation, operands: Operands) -> SSAValue:
        a, count = operands
        last = build.like(width(a) - 1, a)
        known = build.compare("ule", count, last)
        result = build.binary(kind, a, build.select(known, count, last))
        if kind is llvm.AShrOp:
            return result
        return build.select(known, result, build.like(0, a))

    return lower


def compared_integers(build: Builder, op: arith.CmpiOp, operands: Operands) -> SSAValue:
    """arith.cmpi: both dialects number the predicates alike."""
    number = IntegerAttr(op.predicate.value.data, i64)
    return build.add(llvm.ICmpOp(operands[0], operands[1], number)).res


def compared_floats(build: Builder, op: arith.CmpfOp, operands: Operands) -> SSAValue:
    """
    arith.cmpf: both dialects number the predicates alike, the first and the last are constant.
    """
    number = op.predicate.value.data
    predicate = FLOAT_PREDICATES[number]
    if predicate in ("true", "false"):
        return build.int(int(predicate == "true"), 1)
    return build.add(llvm.FCmpOp(operands[0], operands[1], IntegerAttr(number, i64))).res


def selected(build: Builder, op: Operation, operands: Operands) -> SSAValue:
    """arith.select."""
    return build.select(operands[0], operands[1], operands[2])


# Constants and conversions.


def constant(build: Builder, op: arith.ConstantOp, operands: Operands) -> SSAValue:
    """A number."""
    kind = result_type(op)
    if isinstance(op.value, FloatAttr):
        return build.constant(op.value, kind)
    assert isinstance(op.value, IntegerAttr), "a cell's constants are integers and floats"
    if kind == i1:
        return build.int(int(is_true(op.value)), 1)
    return build.int(op.value.value.data, CELL_TYPES[kind].bits)


def resized(build: Builder, op: Operation, operands: Operands) -> SSAValue:
    """An integer in another width: cut off, or extended by its sign."""
    return with_width(build, operands[0], result_type(op), llvm.SExtOp)


def extended(build: Builder, op: Operation, operands: Operands) -> SSAValue:
    """A wider integer, extended by zeros."""
    return with_width(build, operands[0], result_type(op), llvm.ZExtOp)


def with_width(
    build: Builder, value: SSAValue, kind: Attribute, extend: type[llvm.SExtOp | llvm.ZExtOp]
) -> SSAValue:
    """An integer in another type."""
    if value.type == kind:
        return value
    if CELL_TYPES[kind].bits < width(value):
        return build.add(llvm.TruncOp(value, kind)).res
    return build.add(extend(value, kind)).res


def from_signed(build: Builder, op: Operation, operands: Operands) -> SSAValue:
    """The nearest float of a signed integer."""
    return build.add(llvm.SIToFPOp(operands[0], result_type(op))).result


def from_unsigned(build: Builder, op: Operation, operands: Operands) -> SSAValue:
    """The nearest float of an integer without a sign."""
    kind, value = result_type(op), operands[0]
    if width(value) < 64:
        return build.add(llvm.SIToFPOp(with_width(build, value, i64, llvm.ZExtOp), kind)).result
    # Numbers above the signed range are halved; the last bit keeps the bits lost, for rounding.
    one = build.int(1)
    half = build.binary(
        llvm.OrOp, build.binary(llvm.LShrOp, value, one), build.binary(llvm.AndOp, value, one)
    )
    large = build.compare("slt", value, build.int(0))
    near = build.add(llvm.SIToFPOp(build.select(large, half, value), kind)).result
    return build.select(large, build.binary(llvm.FAddOp, near, near), near)


def to_integer(name: str) -> Lowering:
    """A float cut off to an integer; beyond all integers the nearest integer, 0 for NaN."""

    def lower(build: Builder, op: Operation, operands: Operands) -> SSAValue:
        kind = result_type(op)
        full = f"{name}.{CELL_TYPES[kind].llvm}.{CELL_TYPES[operands[0].type].llvm}"
        return build.intrinsic(full, operands, kind)

    return lower


def refloated(build: Builder, op: Operation, operands: Operands) -> SSAValue:
    """The nearest float in the result's type."""
    kind, value = result_type(op), operands[0]
    if value.type == kind:
        return value
    convert = llvm.FPExtOp if kind == f64 else llvm.FPTruncOp
    return build.add(convert(value, kind)).result


def same_bits(build: Builder, op: Operation, operands: Operands) -> SSAValue:
    """The bits as another type."""
    kind = result_type(op)
    return operands[0] if operands[0].type == kind else build.bits(operands[0], kind)


LOWERINGS: dict[type[Operation], Lowering] = {
    arith.ConstantOp: constant,
    # Floats.
    arith.AddfOp: plain(llvm.FAddOp),
    arith.SubfOp: plain(llvm.FSubOp),
    arith.MulfOp: plain(llvm.FMulOp),
    arith.DivfOp: plain(llvm.FDivOp),
    arith.NegfOp: negated,
    arith.MaximumfOp: propagating(largest=True),
    arith.MinimumfOp: propagating(largest=False),
    arith.MaxnumfOp: ignoring(largest=True),
    arith.MinnumfOp: ignoring(largest=False),
    arith.CmpfOp: compared_floats,
    math.FmaOp: fused,
    math.AbsFOp: intrinsic("llvm.fabs"),
    math.SqrtOp: intrinsic("llvm.sqrt"),
    math.RsqrtOp: reciprocal_root,
    math.CopySignOp: intrinsic("llvm.copysign"),
    math.FloorOp: intrinsic("llvm.floor"),
    math.CeilOp: intrinsic("llvm.ceil"),
    math.TruncOp: intrinsic("llvm.trunc"),
    math.RoundOp: intrinsic("llvm.round"),
    # Round halves to the even neighbour: the default rounding mode of processors.
    math.RoundEvenOp: intrinsic("llvm.rint"),
    # Integers.
    arith.AddiOp: plain(llvm.AddOp),
    arith.SubiOp: plain(llvm.SubOp),
    arith.MuliOp: plain(llvm.MulOp),
    arith.DivSIOp: divided(llvm.SDivOp),
    arith.RemSIOp: divided(llvm.SRemOp),
    arith.DivUIOp: divided(llvm.UDivOp),
    arith.RemUIOp: divided(llvm.URemOp),
    arith.MaxSIOp: chosen("sgt"),
    arith.MinSIOp: chosen("slt"),
    arith.MaxUIOp: chosen("ugt"),
    arith.MinUIOp: chosen("ult"),
    arith.AndIOp: plain(llvm.AndOp),
    arith.OrIOp: plain(llvm.OrOp),
    arith.XOrIOp: plain(llvm.XOrOp),
    arith.ShLIOp: shifted(llvm.ShlOp),
    arith.ShRUIOp: shifted(llvm.LShrOp),
    arith.ShRSIOp: shifted(llvm.AShrOp),
    arith.CmpiOp: compared_integers,
    math.AbsIOp: intrinsic("llvm.abs", 0),
    math.CtPopOp: intrinsic("llvm.ctpop"),
    math.CountLeadingZerosOp: intrinsic("llvm.ctlz", 0),
    math.CountTrailingZerosOp: intrinsic("llvm.cttz", 0),
    # Any type.
    arith.SelectOp: selected,
    arith.BitcastOp: same_bits,
    arith.IndexCastOp: resized,
    arith.ExtSIOp: resized,
    arith.TruncIOp: resized,
    arith.ExtUIOp: extended,
    arith.SIToFPOp: from_signed,
    arith.UIToFPOp: from_unsigned,
    arith.FPToSIOp: to_integer("llvm.fptosi.sat"),
    arith.FPToUIOp: to_integer("llvm.fptoui.sat"),
    arith.ExtFOp: refloated,
    arith.TruncFOp: refloated,
    RoundOp: round_cell,
    **dict.fromkeys(LIBRARY, library_call),
}
"""Every operation of a cell on a CPU."""


def lower_operation(build: Builder, op: Operation, operands: Operands) -> SSAValue:
    """Append an operation of a cell; CompileError if the operation has no meaning on a CPU."""
    lowering = LOWERINGS.get(type(op))
    if lowering is None:
        refuse(
            op,
            "the operation cannot be executed on a CPU; use operations of arith and math on "
            "numbers",
        )
    return lowering(build, op, operands)
