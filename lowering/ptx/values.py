"""Values: constants, arithmetic, comparisons, conversions. One table, with functions for a few
operations.

Rounding is always explicit (`.rn`): ptxas fuses plain products and sums by itself, and leaves
explicit ones alone. So a kernel computes exactly its IR.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import arith
from xdsl.dialects import math as xmath
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, f16, f32, f64, i1, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue

from timetile.dialects import nvvm, simt
from timetile.dialects.cell_types import NARROW_INTEGERS, STORED_TYPES, value_bytes
from timetile.dialects.comparisons import (
    FLOAT_PREDICATES,
    INTEGER_PREDICATES,
    is_unsigned,
    relation,
)
from timetile.dialects.temporal import RoundOp
from timetile.lowering.ptx.text import REGISTERS, bits, float_literal, zero_literal
from timetile.lowering.ptx.writer import Writer
from timetile.passes.analysis.cells.cell_operations import CELL_OPERATIONS
from timetile.passes.diagnostics import refuse

MACHINE: dict[type[Operation], str] = {
    simt.FmaUpOp: "fma.rp.{t}",
    simt.ReciprocalOp: "rcp.approx.ftz.{t}",
    simt.ReciprocalRootOp: "rsqrt.approx.ftz.{t}",
}
"""Mnemonics of operations outside cells. The table of cell operations has the others."""

MNEMONICS = {op: known.ptx for op, known in CELL_OPERATIONS.items() if known.ptx} | MACHINE

CONVERSIONS: dict[type[Operation], str] = {
    arith.IndexCastOp: "",
    arith.ExtSIOp: "",
    arith.TruncIOp: "",
    arith.SIToFPOp: ".rn",
    arith.ExtFOp: "",
    arith.TruncFOp: ".rn",
}
"""How conversions round."""

SHIFTS: dict[type[Operation], tuple[str, str]] = {
    arith.ShLIOp: ("shl", "b"),
    arith.ShRUIOp: ("shr", "u"),
    arith.ShRSIOp: ("shr", "s"),
}
"""Mnemonics of shifts, and the first letter of their types."""

BEFORE_HALF = 0.5 - 2.0**-25
"""The largest number below 0.5 in FP32."""

SPECIAL_REGISTERS: dict[type[Operation], str] = {
    nvvm.ThreadIdXOp: "%tid.x",
    nvvm.BlockIdXOp: "%ctaid.x",
}


def type_of(kind: Attribute) -> str:
    """The PTX type of a value: `f64`, `s32`, `pred`."""
    return REGISTERS[kind][1]


def print_mnemonic(w: Writer, op: Operation) -> None:
    """Print an operation by its mnemonic."""
    result = op.results[0]
    kind = result.type
    words = {"t": type_of(kind)}
    if kind not in (f32, f64):
        words |= {"u": bits("u", kind), "b": bits("b", kind)}
    w.emit(MNEMONICS[type(op)].format_map(words), result, op.operands)


def print_shift(w: Writer, op: arith.ShLIOp | arith.ShRUIOp | arith.ShRSIOp) -> None:
    """PTX shifts by a number of 32 bits without a sign; by the width or more, all bits leave."""
    word, letter = SHIFTS[type(op)]
    amount = w.use(op.rhs)
    if op.rhs.type != i32 and amount.startswith("%"):
        bounded, narrow = w.register(op.rhs.type), w.register(i32)
        w.line(f"min.u64 {bounded}, {amount}, 64")
        w.line(f"cvt.u32.u64 {narrow}, {bounded}")
        amount = narrow
    elif not amount.startswith("%"):
        width = 8 * value_bytes(op.lhs.type)
        amount = str(int(amount) if 0 <= int(amount) <= width else width)
    kind = bits(letter, op.result.type)
    w.line(f"{word}.{kind} {w.define(op.result)}, {w.use(op.lhs)}, {amount}")


def print_special(w: Writer, op: Operation) -> None:
    """Print a read of a special register."""
    w.line(f"mov.u32 {w.define(op.results[0])}, {SPECIAL_REGISTERS[type(op)]}")


def print_constant(w: Writer, op: arith.ConstantOp) -> None:
    """Print a constant, mostly as a literal in its users."""
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
    """Print a conversion."""
    source, target = op.operands[0], op.results[0]
    if isinstance(op, arith.SIToFPOp) and (condition := condition_behind(source)) is not None:
        print_condition_as_float(w, target, condition)
        return
    if {source.type, target.type} & NARROW_INTEGERS:
        # A register of a narrow integer holds the i32 of its number.
        w.names[target] = w.use(source)
        return
    if source.type in STORED_TYPES:
        print_extension(w, target, w.use(source), source.type)
        return
    if target.type in STORED_TYPES:
        if isinstance(source.owner, RoundOp) and source.owner.stored == target.type:
            w.names[target] = w.rounded[source]
            return
        w.line(f"cvt.rn.{target.type}.f32 {w.define(target)}, {w.use(source)}")
        return
    to, of = REGISTERS[target.type][1], REGISTERS[source.type][1]
    if to == of:
        w.names[target] = w.use(source)
        return
    rounding = CONVERSIONS[type(op)]
    w.line(f"cvt{rounding}.{to}.{of} {w.define(target)}, {w.use(source)}")


def print_extension(w: Writer, target: SSAValue, cell: str, kind: Attribute) -> None:
    """
    Print the f32 of a 16-bit float: of a bf16 the upper half, as `cvt` needs sm_90. The assembler
    takes one instruction, for either half of a loaded word.
    """
    if kind == f16:
        w.line(f"cvt.f32.f16 {w.define(target)}, {cell}")
        return
    lower = w.register(kind)
    w.line(f"mov.b16 {lower}, 0")
    w.line(f"mov.b32 {w.define(target)}, {{{lower}, {cell}}}")


def print_rounding(w: Writer, op: RoundOp) -> None:
    """Print a rounding to a 16-bit float, as f32. A store of the number takes the 16 bits."""
    cell = w.rounded[op.result] = w.register(op.stored)
    w.line(f"cvt.rn.{op.stored}.f32 {cell}, {w.use(op.value)}")
    print_extension(w, op.result, cell, op.stored)


def print_extui(w: Writer, op: arith.ExtUIOp) -> None:
    """Print an extension of an unsigned integer."""
    if op.input.type == i1:
        w.line(f"selp.{bits('b', op.result.type)} {w.define(op.result)}, 1, 0, {w.use(op.input)}")
    else:
        w.line(f"cvt.u64.u32 {w.define(op.result)}, {w.use(op.input)}")


def print_unsigned_to_float(w: Writer, op: arith.UIToFPOp) -> None:
    """Print a conversion of an unsigned integer to a float."""
    condition = op.input if op.input.type == i1 else condition_behind(op.input)
    if condition is not None:
        print_condition_as_float(w, op.result, condition)
        return
    kind, source = REGISTERS[op.result.type][1], bits("u", op.input.type)
    w.line(f"cvt.rn.{kind}.{source} {w.define(op.result)}, {w.use(op.input)}")


def condition_behind(value: SSAValue) -> SSAValue | None:
    """The condition whose truth, 0 or 1, is the integer; None for other integers."""
    if isinstance(value.owner, arith.ExtUIOp) and value.owner.input.type == i1:
        return value.owner.input
    return None


def print_condition_as_float(w: Writer, result: SSAValue, condition: SSAValue) -> None:
    """Print 1.0 where a condition holds, else 0.0."""
    one, zero = (float_literal(x, result.type) for x in (1.0, 0.0))
    print_choice(w, result, one, zero, w.use(condition))


def print_choice(w: Writer, result: SSAValue, a: str, b: str, mask: str) -> None:
    """
    Print a selection of numbers. Two literals of FP32 are selected as words: NVIDIA's assembler
    (ptxas and nvJitLink 13) takes -0.0 for 0.0 in a `selp.f32` of 1.0 and -0.0, and where the bits
    of a negated `selp.f32` of 1.0 and 0.0 are compared.
    """
    if result.type == f32 and a.startswith("0f") and b.startswith("0f"):
        word = w.register(i32)
        first, second = (f"0x{literal.removeprefix('0f')}" for literal in (a, b))
        w.line(f"selp.b32 {word}, {first}, {second}, {mask}")
        w.line(f"mov.b32 {w.define(result)}, {word}")
        return
    w.line(f"selp.{REGISTERS[result.type][1]} {w.define(result)}, {a}, {b}, {mask}")


def print_negation(w: Writer, op: arith.NegfOp) -> None:
    """
    Print a negation. A converted number is negated by its sign bit: NVIDIA's assembler (ptxas and
    nvJitLink 13) takes -0.0 for 0.0 where the bits of a negated conversion of 1 or 0 are compared.
    """
    if not isinstance(op.operand.owner, arith.SIToFPOp | arith.UIToFPOp | arith.TruncFOp):
        print_mnemonic(w, op)
        return
    width = 8 * value_bytes(op.result.type)
    word, kind = w.register(i32 if width == 32 else i64), f"b{width}"
    w.line(f"mov.{kind} {word}, {w.use(op.operand)}")
    w.line(f"xor.{kind} {word}, {word}, {1 << (width - 1):#x}")
    w.line(f"mov.{kind} {w.define(op.result)}, {word}")


def print_to_integer(w: Writer, op: arith.FPToSIOp | arith.FPToUIOp) -> None:
    """
    Print a float cut off to the nearest integer in range; 0 for NaN, provided by PTX in 32 bits
    only.
    """
    source, kind = op.operands[0], op.results[0].type
    to = bits("s" if isinstance(op, arith.FPToSIOp) else "u", kind)
    of, value = type_of(source.type), w.use(source)
    if of == "f32" and kind == i32:
        w.line(f"cvt.rzi.{to}.f32 {w.define(op.results[0])}, {value}")
        return
    cut, nan = w.register(kind), w.register(i1)
    w.line(f"cvt.rzi.{to}.{of} {cut}, {value}")
    w.line(f"setp.nan.{of} {nan}, {value}, {value}")
    w.line(f"selp.{bits('b', kind)} {w.define(op.results[0])}, 0, {cut}, {nan}")


def print_round(w: Writer, op: xmath.RoundOp) -> None:
    """
    Print the nearest whole number, of two the one further from zero: add a bit less than a half,
    and cut off.
    """
    kind = type_of(op.result.type)
    half = (
        float_literal(0.49999999999999994, f64)
        if kind == "f64"
        else float_literal(BEFORE_HALF, f32)
    )
    signed, moved, value = w.register(op.result.type), w.register(op.result.type), w.use(op.operand)
    w.line(f"copysign.{kind} {signed}, {value}, {half}")
    w.line(f"add.rn.{kind} {moved}, {value}, {signed}")
    w.line(f"cvt.rzi.{kind}.{kind} {w.define(op.result)}, {moved}")


def print_count(
    w: Writer, op: xmath.CtPopOp | xmath.CountLeadingZerosOp | xmath.CountTrailingZerosOp
) -> None:
    """Print counts of bits: PTX gives them in 32 bits."""
    kind, value = bits("b", op.result.type), w.use(op.operand)
    if isinstance(op, xmath.CountTrailingZerosOp):
        reverse = w.register(op.operand.type)
        w.line(f"brev.{kind} {reverse}, {value}")
        value = reverse
    word = "popc" if isinstance(op, xmath.CtPopOp) else "clz"
    if kind == "b32":
        w.line(f"{word}.b32 {w.define(op.result)}, {value}")
        return
    count = w.register(i32)
    w.line(f"{word}.b64 {count}, {value}")
    w.line(f"cvt.u64.u32 {w.define(op.result)}, {count}")


def print_compare_integers(w: Writer, op: arith.CmpiOp) -> None:
    """Print a comparison of integers."""
    number = op.predicate.value.data
    word = relation(INTEGER_PREDICATES[number])
    kind = bits("u" if is_unsigned(number) else "s", op.lhs.type)
    if word in ("eq", "ne"):
        kind = bits("b", op.lhs.type)
    w.emit(f"setp.{word}.{kind}", op.result, op.operands)


def print_compare_floats(w: Writer, op: arith.CmpfOp) -> None:
    """Print a comparison of floats."""
    predicate = FLOAT_PREDICATES[op.predicate.value.data]
    if predicate in ("true", "false"):
        truth = int(predicate == "true")
        w.line(f"setp.ne.u32 {w.define(op.result)}, {truth}, 0")
        return
    word = {"ord": "num", "uno": "nan"}.get(predicate) or relation(predicate)
    if predicate.startswith("u") and predicate != "uno":
        word += "u"
    w.emit(f"setp.{word}.{REGISTERS[op.lhs.type][1]}", op.result, op.operands)


def print_select(w: Writer, op: arith.SelectOp) -> None:
    """Print a selection."""
    mask, a, b = (w.use(operand) for operand in op.operands)
    if op.result.type == i1:
        kept, other = w.register(i1), w.register(i1)
        w.line(f"and.pred {kept}, {a}, {mask}")
        w.line(f"not.pred {other}, {mask}")
        w.line(f"and.pred {other}, {b}, {other}")
        w.line(f"or.pred {w.define(op.result)}, {kept}, {other}")
        return
    print_choice(w, op.result, a, b, mask)


def print_propagating(w: Writer, op: arith.MaximumfOp | arith.MinimumfOp) -> None:
    """Print a maximum or minimum that is NaN for a NaN operand: PTX has it for f32 only."""
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
    """Print the reciprocal of the square root, both rounded: PTX's own is approximate."""
    kind = REGISTERS[op.result.type][1]
    root = w.register(op.result.type)
    w.line(f"sqrt.rn.{kind} {root}, {w.use(op.operand)}")
    w.line(f"rcp.rn.{kind} {w.define(op.result)}, {root}")


def print_copysign(w: Writer, op: xmath.CopySignOp) -> None:
    """Print a copysign. PTX names the operand with the sign first."""
    kind = REGISTERS[op.result.type][1]
    magnitude, sign = w.use(op.lhs), w.use(op.rhs)
    w.line(f"copysign.{kind} {w.define(op.result)}, {sign}, {magnitude}")


def print_bitcast(w: Writer, op: arith.BitcastOp) -> None:
    """Print a bitcast."""
    w.emit(f"mov.b{8 * value_bytes(op.result.type)}", op.result, op.operands)


def print_split(w: Writer, op: simt.SplitOp) -> None:
    """Print a split of a 64-bit value."""
    low, high = w.define(op.low), w.define(op.high)
    w.line(f"mov.b64 {{{low}, {high}}}, {w.use(op.value)}")


def print_join(w: Writer, op: simt.JoinOp) -> None:
    """Print a join of two halves."""
    low, high = w.use(op.low), w.use(op.high)
    w.line(f"mov.b64 {w.define(op.result)}, {{{low}, {high}}}")


def print_unset(w: Writer, op: simt.UnsetOp) -> None:
    """Give an unset value the literal 0."""
    w.names[op.result] = zero_literal(op.result.type)


VALUES: dict[type[Operation], Callable[..., None]] = {
    **dict.fromkeys(MNEMONICS, print_mnemonic),
    **dict.fromkeys(SHIFTS, print_shift),
    **dict.fromkeys(CONVERSIONS, print_conversion),
    **dict.fromkeys(SPECIAL_REGISTERS, print_special),
    arith.FPToSIOp: print_to_integer,
    arith.FPToUIOp: print_to_integer,
    xmath.RoundOp: print_round,
    RoundOp: print_rounding,
    xmath.CtPopOp: print_count,
    xmath.CountLeadingZerosOp: print_count,
    xmath.CountTrailingZerosOp: print_count,
    arith.ConstantOp: print_constant,
    arith.ExtUIOp: print_extui,
    arith.UIToFPOp: print_unsigned_to_float,
    arith.CmpiOp: print_compare_integers,
    arith.CmpfOp: print_compare_floats,
    arith.SelectOp: print_select,
    arith.BitcastOp: print_bitcast,
    arith.NegfOp: print_negation,
    arith.MaximumfOp: print_propagating,
    arith.MinimumfOp: print_propagating,
    xmath.RsqrtOp: print_rsqrt,
    xmath.CopySignOp: print_copysign,
    simt.UnsetOp: print_unset,
    simt.SplitOp: print_split,
    simt.JoinOp: print_join,
}
