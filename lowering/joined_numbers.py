"""Numbers of all cells: made of two numbers in the code of a thread, met by the lanes of a warp.

A GPU has no maximum of two FP64 numbers that keeps a NaN: a maximum takes a dozen instructions. The
bits of magnitudes, as signed integers, have the order of the numbers, and NaN is the greatest: four
instructions. -inf is less than all.
"""

from __future__ import annotations

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import f64, i64
from xdsl.ir import SSAValue

from timetile.dialects.simt import ShuffleOp
from timetile.dialects.temporal.reduce import LANES, Reduction
from timetile.lowering.emitter import Emitter

MOST_BITS = 2**63 - 1
"""The bits of a number without the sign's."""


def has_no_sign(value: SSAValue) -> bool:
    """
    Whether a value is known to be a magnitude: the sign's bit is 0, of NaN too. A square of NaN
    may keep a sign.
    """
    match value.owner:
        case math.AbsFOp():
            return True
        case arith.SelectOp(lhs=one, rhs=other):
            return has_no_sign(one) and has_no_sign(other)
        case _:
            return False


def bits_of(emit: Emitter, number: SSAValue) -> SSAValue:
    """
    The bits of a magnitude, or of -inf. A GPU makes a magnitude in FP64 by an addition, and its
    bits without a sign by a logical operation, of which it does four in the time.
    """
    if isinstance(number.owner, math.AbsFOp):
        bits = emit.add(arith.BitcastOp(number.owner.operand, i64)).result
        return emit.binary(arith.AndIOp, bits, emit.int(MOST_BITS, i64))
    return emit.add(arith.BitcastOp(number, i64)).result


def joined(
    emit: Emitter, kind: Reduction, a: SSAValue, b: SSAValue, *, magnitudes: bool = False
) -> SSAValue:
    """The number made of two; `magnitudes`: numbers are magnitudes, or -inf."""
    none = arith.FastMathFlagsAttr("none")
    if magnitudes and kind is Reduction.MAXIMUM and a.type == f64:
        most = emit.binary(arith.MaxSIOp, bits_of(emit, a), bits_of(emit, b))
        return emit.add(arith.BitcastOp(most, f64)).result
    match kind:
        case Reduction.TOTAL:
            return emit.add(arith.AddfOp(a, b, flags=none)).result
        case Reduction.MAXIMUM:
            return emit.add(arith.MaximumfOp(a, b, flags=none)).result
        case Reduction.MINIMUM:
            return emit.add(arith.MinimumfOp(a, b, flags=none)).result


def lanes_met(
    emit: Emitter, kind: Reduction, number: SSAValue, *, magnitudes: bool = False
) -> SSAValue:
    """
    The numbers of all lanes, joined in halves: the number of lane 0. `magnitudes` as for `joined`.
    """
    half = LANES // 2
    while half:
        other = emit.add(ShuffleOp(number, half)).result
        number = joined(emit, kind, number, other, magnitudes=magnitudes)
        half //= 2
    return number
