"""Register pressure of a cell function: how many values are alive at once."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import OpResult, SSAValue

from timetile.dialects.cell_types import CELL_BYTES


def value_words(value: SSAValue) -> int:
    """32-bit registers of a value; predicates and integers count as one."""
    return CELL_BYTES.get(value.type, 4) // 4


def live_words(function: FuncOp) -> int:
    """
    The most 32-bit registers taken at once by the values of a body, in the order of the body.
    Arguments have registers anyway, and instructions hold constants: neither counts.
    """
    block = function.body.block
    operations = list(block.ops)
    last: dict[SSAValue, int] = {}
    for place, op in enumerate(operations):
        last |= dict.fromkeys(op.operands, place)
    alive = most = 0
    for place, op in enumerate(operations):
        if isinstance(op, arith.ConstantOp | ReturnOp):
            continue
        ends = {value for value in op.operands if last[value] == place and is_counted(value)}
        alive -= sum(map(value_words, ends))
        alive += sum(value_words(result) for result in op.results if result in last)
        most = max(most, alive)
    return most


def is_counted(value: SSAValue) -> bool:
    """The value is made in the body, and not a constant."""
    return isinstance(value, OpResult) and not isinstance(value.op, arith.ConstantOp)
