"""Numbers of all cells: made of two numbers in the code of a thread, met by the lanes of a warp."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from timetile.dialects.simt import ShuffleOp
from timetile.dialects.temporal.reduce import LANES, Reduction
from timetile.lowering.emitter import Emitter


def joined(emit: Emitter, kind: Reduction, a: SSAValue, b: SSAValue) -> SSAValue:
    """The number made of two."""
    none = arith.FastMathFlagsAttr("none")
    match kind:
        case Reduction.TOTAL:
            return emit.add(arith.AddfOp(a, b, flags=none)).result
        case Reduction.MAXIMUM:
            return emit.add(arith.MaximumfOp(a, b, flags=none)).result
        case Reduction.MINIMUM:
            return emit.add(arith.MinimumfOp(a, b, flags=none)).result


def lanes_met(emit: Emitter, kind: Reduction, number: SSAValue) -> SSAValue:
    """The numbers of all lanes, joined in halves: the number of lane 0."""
    half = LANES // 2
    while half:
        other = emit.add(ShuffleOp(number, half)).result
        number = joined(emit, kind, number, other)
        half //= 2
    return number
