"""Operations of a cell in a step function, and the MLIR operations of NumPy's names."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from xdsl.dialects import arith, math
from xdsl.irdl import IRDLOperation


class Time(StrEnum):
    """
    The time level of a field: at the beginning of the step, a step earlier, or a step later; of a
    temporary: inside the step; in a sweep, a step later at a place before.
    """

    NOW = "now"
    PREV = "prev"
    NEXT = "next"
    INSIDE = "inside"
    SWEPT = "swept"


Offset = tuple[int | None, ...]
"""The distance from the cell along each axis; None along an axis missing in the field."""


@dataclass(frozen=True)
class Constant:
    """A number of Python: a float, an integer, or a truth value."""

    number: float | int | bool


@dataclass(frozen=True)
class Argument:
    """A scalar argument of the step."""

    name: str


@dataclass(frozen=True)
class Access:
    """
    The number of a field, or of a temporary, at an offset. `version` counts the assignments to the
    new values before the read.
    """

    field: str
    time: Time
    offsets: Offset
    version: int = 0


@dataclass(frozen=True)
class Coordinate:
    """The cell's place along an axis."""

    axis: int


@dataclass(frozen=True)
class Extent:
    """The cells of the arrays along an axis."""

    axis: int


@dataclass(frozen=True)
class NamedCall:
    """A function of the operands by NumPy's name, before types are known."""

    name: str


@dataclass(frozen=True)
class Cast:
    """The operand as a number of a type, asked for by its name: `uint8`."""

    dtype: str


@dataclass(frozen=True)
class Conversion:
    """The operand as a number of the value's type."""


@dataclass(frozen=True)
class Choice:
    """The second operand where the first, a condition, holds; else the third."""


@dataclass(frozen=True)
class Comparison:
    """A truth value: a name of COMPARISONS."""

    name: str


@dataclass(frozen=True)
class Logic:
    """An operation of truth values: a name of LOGIC."""

    name: str


@dataclass(frozen=True)
class Arithmetic:
    """A number: a name of FLOATS or INTEGERS, by the type of the result."""

    name: str


Computed = (
    Constant | Access | Coordinate | Extent | Conversion | Choice | Comparison | Logic | Arithmetic
)
"""Operations that compute a value of a cell from its operands."""

Operation = Argument | Computed
"""What a value of a cell is."""

Traced = Argument | Constant | Access | Coordinate | Extent | Choice | NamedCall | Cast
"""What a value of a cell is while the step is traced."""


FLOATS: dict[str, type[IRDLOperation]] = {
    "add": arith.AddfOp,
    "subtract": arith.SubfOp,
    "multiply": arith.MulfOp,
    "divide": arith.DivfOp,
    "negative": arith.NegfOp,
    "absolute": math.AbsFOp,
    "fabs": math.AbsFOp,
    "maximum": arith.MaximumfOp,
    "minimum": arith.MinimumfOp,
    "fmax": arith.MaxnumfOp,
    "fmin": arith.MinnumfOp,
    "floor": math.FloorOp,
    "ceil": math.CeilOp,
    "trunc": math.TruncOp,
    "rint": math.RoundEvenOp,
    "copysign": math.CopySignOp,
    "sqrt": math.SqrtOp,
    "cbrt": math.CbrtOp,
    "power": math.PowFOp,
    "exp": math.ExpOp,
    "exp2": math.Exp2Op,
    "expm1": math.ExpM1Op,
    "log": math.LogOp,
    "log2": math.Log2Op,
    "log10": math.Log10Op,
    "log1p": math.Log1pOp,
    "sin": math.SinOp,
    "cos": math.CosOp,
    "tan": math.TanOp,
    "arcsin": math.AsinOp,
    "arccos": math.AcosOp,
    "arctan": math.AtanOp,
    "arctan2": math.Atan2Op,
    "sinh": math.SinhOp,
    "cosh": math.CoshOp,
    "tanh": math.TanhOp,
    "arcsinh": math.AsinhOp,
    "arccosh": math.AcoshOp,
    "arctanh": math.AtanhOp,
}
"""Operations of floats, by the names of NumPy's functions."""

INTEGERS: dict[str, type[IRDLOperation]] = {
    "add": arith.AddiOp,
    "subtract": arith.SubiOp,
    "multiply": arith.MuliOp,
    "absolute": math.AbsIOp,
    "maximum": arith.MaxSIOp,
    "minimum": arith.MinSIOp,
    "floor_divide": arith.FloorDivSIOp,
    "fmod": arith.RemSIOp,
    "left_shift": arith.ShLIOp,
    "right_shift": arith.ShRSIOp,
    "bitwise_and": arith.AndIOp,
    "bitwise_or": arith.OrIOp,
    "bitwise_xor": arith.XOrIOp,
}
"""Operations with an integer result if all operands are integers."""

UNSIGNED: dict[str, type[IRDLOperation]] = {
    **INTEGERS,
    "maximum": arith.MaxUIOp,
    "minimum": arith.MinUIOp,
    "floor_divide": arith.DivUIOp,
    "fmod": arith.RemUIOp,
    "right_shift": arith.ShRUIOp,
}
"""Operations of integers without a sign, by the names of INTEGERS."""

WHOLE = frozenset({*INTEGERS, "remainder", "invert"}) - {"fmod"}
"""NumPy's names of functions of integers."""

COMPARISONS: dict[str, tuple[str, str]] = {
    "less": ("olt", "slt"),
    "less_equal": ("ole", "sle"),
    "greater": ("ogt", "sgt"),
    "greater_equal": ("oge", "sge"),
    "equal": ("oeq", "eq"),
    "not_equal": ("une", "ne"),
}
"""The predicates of `arith.cmpf` and `arith.cmpi`."""

LOGIC: dict[str, type[IRDLOperation]] = {
    "bitwise_and": arith.AndIOp,
    "bitwise_or": arith.OrIOp,
    "bitwise_xor": arith.XOrIOp,
}
"""Operations of truth values."""

SAME = {"logical_and": "bitwise_and", "logical_or": "bitwise_or", "logical_xor": "bitwise_xor"}
"""Other names of NumPy's for operations of truth values."""

ONE_OPERAND = frozenset(
    name for name, op in FLOATS.items() if len(op.get_irdl_definition().operands) == 1
)
