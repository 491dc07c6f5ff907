"""Operations of a cell in a step function, and the MLIR operations of NumPy's names."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, StrEnum, auto

from xdsl.dialects import arith, math
from xdsl.irdl import IRDLOperation


class Kind(Enum):
    """
    The kind of a cell's value: a float of the fields' type, an integer of 64 bits, or a truth
    value.
    """

    FLOAT = auto()
    INTEGER = auto()
    BOOLEAN = auto()


class Time(StrEnum):
    """
    The time level of a field: at the beginning of the step, a step earlier, or a step later; of a
    temporary: inside the step.
    """

    NOW = "now"
    PREV = "prev"
    NEXT = "next"
    INSIDE = "inside"


Offset = tuple[int | None, ...]
"""The distance from the cell along each axis; None along an axis missing in the field."""


@dataclass(frozen=True)
class Constant:
    """A number of Python: a float, an integer of 64 bits, or a truth value."""

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
class Conversion:
    """The operand as a float."""


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
    """A number: a name of FLOATS or INTEGERS, by the kind of the result."""

    name: str


Computed = (
    Constant | Access | Coordinate | Extent | Conversion | Choice | Comparison | Logic | Arithmetic
)
"""Operations that compute a value of a cell from its operands."""

Operation = Argument | Computed
"""What a value of a cell is."""


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
}
"""Operations with an integer result if all operands are integers: those of coordinates."""

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
