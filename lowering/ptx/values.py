"""Values: constants, arithmetic, comparisons, conversions. One table an operation, functions for the few that need one.

Rounding is always explicit (`.rn`): ptxas fuses plain products and sums by itself, and leaves these
alone, so that a kernel computes what its IR says.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import arith
from xdsl.dialects import math as xmath
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, f32, f64, i1
from xdsl.ir import Operation

from timetile.dialects import nvvm, simt
from timetile.lowering.ptx.text import REGISTERS, bits, float_literal
from timetile.lowering.ptx.writer import Writer
from timetile.passes.diagnostics import refuse

# Operation -> mnemonic, followed by the type of the result.
SAME_TYPE: dict[type[Operation], str] = {
    arith.AddfOp: "add.rn",
    arith.SubfOp: "sub.rn",
    arith.MulfOp: "mul.rn",
    arith.DivfOp: "div.rn",
    arith.NegfOp: "neg",
    arith.MaxnumfOp: "max",
    arith.MinnumfOp: "min",
    xmath.FmaOp: "fma.rn",
    simt.FmaUpOp: "fma.rp",
    xmath.AbsFOp: "abs",
    xmath.SqrtOp: "sqrt.rn",
    simt.ReciprocalOp: "rcp.approx.ftz",
    simt.ReciprocalRootOp: "rsqrt.approx.ftz",
    arith.AddiOp: "add",
    arith.SubiOp: "sub",
    arith.MuliOp: "mul.lo",
    arith.DivSIOp: "div",
    arith.RemSIOp: "rem",
    arith.MaxSIOp: "max",
    arith.MinSIOp: "min",
}

# Operation -> mnemonic, followed by u32 or u64.
UNSIGNED: dict[type[Operation], str] = {
    arith.DivUIOp: "div",
    arith.RemUIOp: "rem",
    arith.ShRUIOp: "shr",
    arith.MaxUIOp: "max",
    arith.MinUIOp: "min",
}

# Operation -> mnemonic, followed by b32, b64 or pred.
BITWISE: dict[type[Operation], str] = {
    arith.AndIOp: "and",
    arith.OrIOp: "or",
    arith.XOrIOp: "xor",
    arith.ShLIOp: "shl",
}

# Conversions: rounding, then result type and operand type.
CONVERSIONS: dict[type[Operation], str] = {
    arith.IndexCastOp: "",
    arith.ExtSIOp: "",
    arith.TruncIOp: "",
    arith.SIToFPOp: ".rn",
    arith.FPToSIOp: ".rzi",
    arith.ExtFOp: "",
    arith.TruncFOp: ".rn",
}


INTEGER_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge", "lt", "le", "gt", "ge")
FIRST_UNSIGNED = 6

# arith.cmpf's predicates in order; the first and the last are constant.
FLOAT_COMPARISONS = (
    None, "eq", "gt", "ge", "lt", "le", "ne", "num",
    "equ", "gtu", "geu", "ltu", "leu", "neu", "nan", None,
)  # fmt: skip

SPECIAL_REGISTERS: dict[type[Operation], str] = {
    nvvm.ThreadIdXOp: "%tid.x",
    nvvm.BlockIdXOp: "%ctaid.x",
    nvvm.LaneIdOp: "%laneid",
}


def print_same_type(w: Writer, op: Operation) -> None:
    result = op.results[0]
    w.emit(f"{SAME_TYPE[type(op)]}.{REGISTERS[result.type][1]}", result, op.operands)


def print_unsigned(w: Writer, op: Operation) -> None:
    result = op.results[0]
    w.emit(f"{UNSIGNED[type(op)]}.{bits('u', result.type)}", result, op.operands)


def print_bitwise(w: Writer, op: Operation) -> None:
    result = op.results[0]
    w.emit(f"{BITWISE[type(op)]}.{bits('b', result.type)}", result, op.operands)


def print_special(w: Writer, op: Operation) -> None:
    w.line(f"mov.u32 {w.define(op.results[0])}, {SPECIAL_REGISTERS[type(op)]}")


def print_constant(w: Writer, op: arith.ConstantOp) -> None:
    match op.value:
        case FloatAttr():
            w.names[op.result] = float_literal(op.value.value.data, op.result.type)
        case IntegerAttr() if op.result.type == i1:
            register = w.define(op.result)
            w.line(f"setp.ne.u32 {register}, {abs(op.value.value.data)}, 0")
        case IntegerAttr():
            w.names[op.result] = str(op.value.value.data)
        case _:
            refuse(op, "constants are integers and floats")


def print_conversion(w: Writer, op: Operation) -> None:
    source, target = op.operands[0], op.results[0]
    to, of = REGISTERS[target.type][1], REGISTERS[source.type][1]
    if to == of:
        w.names[target] = w.use(source)
        return
    rounding = CONVERSIONS[type(op)]
    w.line(f"cvt{rounding}.{to}.{of} {w.define(target)}, {w.use(source)}")


def print_extui(w: Writer, op: arith.ExtUIOp) -> None:
    if op.input.type == i1:
        w.line(f"selp.{bits('b', op.result.type)} {w.define(op.result)}, 1, 0, {w.use(op.input)}")
    else:
        w.line(f"cvt.u64.u32 {w.define(op.result)}, {w.use(op.input)}")


def print_unsigned_to_float(w: Writer, op: arith.UIToFPOp) -> None:
    kind = REGISTERS[op.result.type][1]
    if op.input.type == i1:
        one, zero = (float_literal(x, op.result.type) for x in (1.0, 0.0))
        w.line(f"selp.{kind} {w.define(op.result)}, {one}, {zero}, {w.use(op.input)}")
    else:
        source = bits("u", op.input.type)
        w.line(f"cvt.rn.{kind}.{source} {w.define(op.result)}, {w.use(op.input)}")


def print_compare_integers(w: Writer, op: arith.CmpiOp) -> None:
    number = op.predicate.value.data
    kind = bits("u" if number >= FIRST_UNSIGNED else "s", op.lhs.type)
    if number < 2:
        kind = bits("b", op.lhs.type)
    w.emit(f"setp.{INTEGER_COMPARISONS[number]}.{kind}", op.result, op.operands)


def print_compare_floats(w: Writer, op: arith.CmpfOp) -> None:
    number = op.predicate.value.data
    word = FLOAT_COMPARISONS[number]
    if word is None:
        truth = int(number != 0)
        w.line(f"setp.ne.u32 {w.define(op.result)}, {truth}, 0")
        return
    w.emit(f"setp.{word}.{REGISTERS[op.lhs.type][1]}", op.result, op.operands)


def print_select(w: Writer, op: arith.SelectOp) -> None:
    mask, a, b = (w.use(operand) for operand in op.operands)
    if op.result.type == i1:
        kept, other = w.register(i1), w.register(i1)
        w.line(f"and.pred {kept}, {a}, {mask}")
        w.line(f"not.pred {other}, {mask}")
        w.line(f"and.pred {other}, {b}, {other}")
        w.line(f"or.pred {w.define(op.result)}, {kept}, {other}")
        return
    kind = REGISTERS[op.result.type][1]
    w.line(f"selp.{kind} {w.define(op.result)}, {a}, {b}, {mask}")


def print_propagating(w: Writer, op: arith.MaximumfOp | arith.MinimumfOp) -> None:
    """A maximum or minimum that is NaN where an operand is: PTX has it for f32 only."""
    word = "max" if isinstance(op, arith.MaximumfOp) else "min"
    kind = op.result.type
    if kind == f32:
        w.emit(f"{word}.NaN.f32", op.result, op.operands)
        return
    a, b = w.use(op.lhs), w.use(op.rhs)
    unordered, larger, nan = w.register(i1), w.register(kind), w.register(kind)
    w.line(f"setp.nan.f64 {unordered}, {a}, {b}")
    w.line(f"{word}.f64 {larger}, {a}, {b}")
    w.line(f"add.rn.f64 {nan}, {a}, {b}")
    w.line(f"selp.f64 {w.define(op.result)}, {nan}, {larger}, {unordered}")


def print_rsqrt(w: Writer, op: xmath.RsqrtOp) -> None:
    """The reciprocal of the square root, both rounded: PTX's own is approximate."""
    kind = REGISTERS[op.result.type][1]
    root = w.register(op.result.type)
    w.line(f"sqrt.rn.{kind} {root}, {w.use(op.operand)}")
    w.line(f"rcp.rn.{kind} {w.define(op.result)}, {root}")


def print_copysign(w: Writer, op: xmath.CopySignOp) -> None:
    """PTX names the operand that gives the sign first."""
    kind = REGISTERS[op.result.type][1]
    magnitude, sign = w.use(op.lhs), w.use(op.rhs)
    w.line(f"copysign.{kind} {w.define(op.result)}, {sign}, {magnitude}")


def print_bitcast(w: Writer, op: arith.BitcastOp) -> None:
    w.emit(f"mov.{bits('b', op.result.type)}", op.result, op.operands)


def print_split(w: Writer, op: simt.SplitOp) -> None:
    low, high = w.define(op.low), w.define(op.high)
    w.line(f"mov.b64 {{{low}, {high}}}, {w.use(op.value)}")


def print_join(w: Writer, op: simt.JoinOp) -> None:
    low, high = w.use(op.low), w.use(op.high)
    w.line(f"mov.b64 {w.define(op.result)}, {{{low}, {high}}}")


def print_unset(w: Writer, op: simt.UnsetOp) -> None:
    zero = op.result.type in (f32, f64)
    w.names[op.result] = float_literal(0.0, op.result.type) if zero else "0"


VALUES: dict[type[Operation], Callable[..., None]] = {
    **dict.fromkeys(SAME_TYPE, print_same_type),
    **dict.fromkeys(UNSIGNED, print_unsigned),
    **dict.fromkeys(BITWISE, print_bitwise),
    **dict.fromkeys(CONVERSIONS, print_conversion),
    **dict.fromkeys(SPECIAL_REGISTERS, print_special),
    arith.ConstantOp: print_constant,
    arith.ExtUIOp: print_extui,
    arith.UIToFPOp: print_unsigned_to_float,
    arith.CmpiOp: print_compare_integers,
    arith.CmpfOp: print_compare_floats,
    arith.SelectOp: print_select,
    arith.BitcastOp: print_bitcast,
    arith.MaximumfOp: print_propagating,
    arith.MinimumfOp: print_propagating,
    xmath.RsqrtOp: print_rsqrt,
    xmath.CopySignOp: print_copysign,
    simt.UnsetOp: print_unset,
    simt.SplitOp: print_split,
    simt.JoinOp: print_join,
}
