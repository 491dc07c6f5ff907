"""The functions of C's mathematical library that cells call, and how compiled code names them.

Compiled code calls them by names of our own, which are bound to their addresses when the code is loaded.
LLVM knows nothing of such a name: it neither evaluates the function itself nor replaces it by another one.
"""

from __future__ import annotations

from xdsl.dialects import math
from xdsl.dialects.builtin import f32, f64
from xdsl.ir import Attribute, Operation

LIBRARY: dict[type[Operation], str] = {
    math.AcosOp: "acos",
    math.AcoshOp: "acosh",
    math.AsinOp: "asin",
    math.AsinhOp: "asinh",
    math.AtanOp: "atan",
    math.AtanhOp: "atanh",
    math.Atan2Op: "atan2",
    math.CbrtOp: "cbrt",
    math.CosOp: "cos",
    math.CoshOp: "cosh",
    math.ErfOp: "erf",
    math.ExpOp: "exp",
    math.Exp2Op: "exp2",
    math.ExpM1Op: "expm1",
    math.LogOp: "log",
    math.Log10Op: "log10",
    math.Log1pOp: "log1p",
    math.Log2Op: "log2",
    math.PowFOp: "pow",
    math.SinOp: "sin",
    math.SinhOp: "sinh",
    math.TanOp: "tan",
    math.TanhOp: "tanh",
}
"""The library's name of each operation, for FP64."""

SUFFIXES: dict[Attribute, str] = {f64: "", f32: "f"}
"""What follows the name, by the type."""

PREFIX = "timetile."

BARRIER = f"{PREFIX}barrier"
"""Waits at a barrier, whose address it takes, for the other threads of a team."""


def library_name(op: Operation) -> str:
    """The library's name of an operation, for its type: `expf`."""
    return LIBRARY[type(op)] + SUFFIXES[op.results[0].type]


def library_names() -> list[str]:
    """All functions, in every type."""
    return [name + suffix for name in LIBRARY.values() for suffix in SUFFIXES.values()]
