"""
Numbers that the host of a bundle computes before launches, as data and as C with the bits of cells.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, math
from xdsl.ir import Operation

from timetile.dialects.cell_types import CELL_TYPES
from timetile.passes.loops.hoist_scalars import EXACT

NumberSource = dict[str, int | float]
"""`{"scalar": k}` (argument k), `{"constant": number}` or `{"computed": k}` (computed number k)."""

EXPRESSIONS: dict[type[Operation], str] = {
    arith.AddfOp: "{0} + {1}",
    arith.SubfOp: "{0} - {1}",
    arith.MulfOp: "{0} * {1}",
    arith.DivfOp: "{0} / {1}",
    arith.NegfOp: "-{0}",
    math.FmaOp: "fma{f}({0}, {1}, {2})",
    math.AbsFOp: "fabs{f}({0})",
    math.SqrtOp: "sqrt{f}({0})",
    math.RsqrtOp: "1 / sqrt{f}({0})",
    arith.ExtFOp: "({type}){0}",
    arith.TruncFOp: "({type}){0}",
    arith.SIToFPOp: "({type}){0}",
}
"""The C of each operation of `EXACT` but constants."""


@dataclass(frozen=True)
class ComputedNumber:
    """A number made by one operation: `name` without dialect, the result's type, the operands."""

    name: str
    type: str
    operands: tuple[NumberSource, ...]


def is_number_of_c(op: object) -> bool:
    """Whether C computes the result of an operation with the bits of cells."""
    return isinstance(op, EXACT) and not isinstance(op, arith.ConstantOp)


def computed_lines(
    numbers: Sequence[ComputedNumber], text_of_source: Callable[[NumberSource, str], str]
) -> list[str]:
    """
    C declarations of the numbers. Each is volatile, so that no compiler fuses two operations, or
    keeps more digits than the type has.
    """
    forms = {kind.name.partition(".")[2]: form for kind, form in EXPRESSIONS.items()}
    c_types = {str(kind): row.c for kind, row in CELL_TYPES.items()}
    lines: list[str] = []
    for k, number in enumerate(numbers):
        c_type = c_types[number.type]
        operands = [text_of_source(source, c_type) for source in number.operands]
        form = forms[number.name].format(
            *operands, type=c_type, f="f" if number.type == "f32" else ""
        )
        lines.append(f"  const volatile {c_type} computed{k} = {form};")
    return lines
