"""Values of a cell during tracing, with Python's operators and NumPy's functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, cast, overload

import numpy as np

from timetile.frontend.errors import SourcePlace, current_place, error
from timetile.frontend.operations import (
    COMPARISONS,
    FLOATS,
    LOGIC,
    ONE_OPERAND,
    SAME,
    WHOLE,
    Cast,
    Choice,
    Constant,
    NamedCall,
    Traced,
)
from timetile.runtime.host.arrays import is_numpy_array

if TYPE_CHECKING:
    from timetile.frontend.complex_fields import ComplexValue

NUMPY_FUNCTIONS = sorted({*FLOATS, *SAME} - {"negative"})
HINTS = {
    "where": "timetile.where(condition, a, b)",
    "clip": "np.clip(a, low, high)",
    "gradient": "(u[1] - u[-1]) / 2",
    "diff": "u[1] - u[0]",
    "roll": "u[-1] for np.roll(u, 1)",
    "isnan": "a != a",
    "hypot": "np.sqrt(a**2 + b**2)",
    "sign": "timetile.where(a > 0, 1.0, timetile.where(a < 0, -1.0, 0.0))",
    "mod": "a - b * np.floor(a / b)",
    "remainder": "a - b * np.floor(a / b)",
    "reciprocal": "1 / a",
    "deg2rad": "a * (np.pi / 180)",
    "round": "np.rint(a)",
}
"""Corrections for functions of NumPy missing in steps."""

MOST_INTEGER = 2**63 - 1
CHOICE = "write timetile.where(condition, a, b)"


class NotReal:
    """A value of a cell that is no real number, with operators of its own."""

    __slots__ = ()

    kinds: ClassVar[list[Callable[[float, float], Any]]] = []
    """The subclass that makes a value of a real and an imaginary part."""

    def __init_subclass__(cls) -> None:
        NotReal.kinds.append(cls)


class Value:
    """
    A number for every cell: from an index into a field, a scalar argument, a coordinate, or
    operators. Arithmetic, comparisons, `&`, `|`, `^` and `~` work as on NumPy's arrays, and so do
    NumPy's functions of a number (`np.exp(u[0])`). A value has no truth value: `timetile.where`
    chooses.
    """

    __slots__ = ("operands", "operation", "place")

    def __init__(self, operation: Traced, operands: Sequence[Value] = ()):
        self.operation, self.operands = operation, tuple(operands)
        self.place: SourcePlace = current_place()

    @staticmethod
    def at(place: SourcePlace, operation: Traced, operands: Sequence[Value]) -> Value:
        """A value made from another value, at the place of that value."""
        made = object.__new__(Value)
        made.operation, made.operands, made.place = operation, tuple(operands), place
        return made

    # Operators.

    @overload
    def __add__(self, other: Value | float) -> Value: ...
    @overload
    def __add__(self, other: complex) -> ComplexValue: ...
    def __add__(self, other: Any) -> Any:
        return made("add", self, other)

    @overload
    def __radd__(self, other: Value | float) -> Value: ...
    @overload
    def __radd__(self, other: complex) -> ComplexValue: ...
    def __radd__(self, other: Any) -> Any:
        return made("add", other, self)

    @overload
    def __sub__(self, other: Value | float) -> Value: ...
    @overload
    def __sub__(self, other: complex) -> ComplexValue: ...
    def __sub__(self, other: Any) -> Any:
        return made("subtract", self, other)

    @overload
    def __rsub__(self, other: Value | float) -> Value: ...
    @overload
    def __rsub__(self, other: complex) -> ComplexValue: ...
    def __rsub__(self, other: Any) -> Any:
        return made("subtract", other, self)

    @overload
    def __mul__(self, other: Value | float) -> Value: ...
    @overload
    def __mul__(self, other: complex) -> ComplexValue: ...
    def __mul__(self, other: Any) -> Any:
        return made("multiply", self, other)

    @overload
    def __rmul__(self, other: Value | float) -> Value: ...
    @overload
    def __rmul__(self, other: complex) -> ComplexValue: ...
    def __rmul__(self, other: Any) -> Any:
        return made("multiply", other, self)

    @overload
    def __truediv__(self, other: Value | float) -> Value: ...
    @overload
    def __truediv__(self, other: complex) -> ComplexValue: ...
    def __truediv__(self, other: Any) -> Any:
        return made("divide", self, other)

    @overload
    def __rtruediv__(self, other: Value | float) -> Value: ...
    @overload
    def __rtruediv__(self, other: complex) -> ComplexValue: ...
    def __rtruediv__(self, other: Any) -> Any:
        return made("divide", other, self)

    def __floordiv__(self, other: Value | int) -> Value:
        return made("floor_divide", self, other)

    def __rfloordiv__(self, other: int) -> Value:
        return made("floor_divide", other, self)

    def __mod__(self, other: Value | int) -> Value:
        return made("remainder", self, other)

    def __rmod__(self, other: int) -> Value:
        return made("remainder", other, self)

    def __lshift__(self, other: Value | int) -> Value:
        return made("left_shift", self, other)

    def __rlshift__(self, other: int) -> Value:
        return made("left_shift", other, self)

    def __rshift__(self, other: Value | int) -> Value:
        return made("right_shift", self, other)

    def __rrshift__(self, other: int) -> Value:
        return made("right_shift", other, self)

    def __pow__(self, other: Value | float) -> Value:
        return made("power", self, other)

    def __rpow__(self, other: float) -> Value:
        return made("power", other, self)

    def __neg__(self) -> Value:
        return made("negative", self)

    def __pos__(self) -> Value:
        return self

    def __abs__(self) -> Value:
        return made("absolute", self)

    def __lt__(self, other: Value | float) -> Value:
        return made("less", self, other)

    def __le__(self, other: Value | float) -> Value:
        return made("less_equal", self, other)

    def __gt__(self, other: Value | float) -> Value:
        return made("greater", self, other)

    def __ge__(self, other: Value | float) -> Value:
        return made("greater_equal", self, other)

    def __eq__(self, other: object) -> Any:
        return made("equal", self, other)

    def __ne__(self, other: object) -> Any:
        return made("not_equal", self, other)

    def __hash__(self) -> int:
        return id(self)

    def __and__(self, other: Value | int) -> Value:
        return made("bitwise_and", self, other)

    def __or__(self, other: Value | int) -> Value:
        return made("bitwise_or", self, other)

    def __xor__(self, other: Value | int) -> Value:
        return made("bitwise_xor", self, other)

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __invert__(self) -> Value:
        return made("invert", self)

    def astype(self, dtype: Any) -> Value:
        """
        The value as a number of another type, as NumPy converts: `u[0].astype(np.int32)`. Raises
        StencilError for a type that no value of a cell has.
        """
        return cast_of(self, dtype)

    # NumPy's functions.

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Value:
        if method != "__call__" or options:
            raise error(
                f"np.{ufunc.__name__} takes values of a cell only by itself; write "
                f"np.{ufunc.__name__}(a)"
            )
        return made(ufunc.__name__, *inputs)

    def __array_function__(
        self, function: Any, types: Any, arguments: Sequence[Any], options: Any
    ) -> Value:
        if function is np.where and len(arguments) == 3:
            return choice(*arguments)
        if function is np.clip:
            return clipped(*arguments, **options)
        name = function.__name__
        if name in HINTS:
            raise error(f"np.{name} is not a function of one cell; write {HINTS[name]}")
        raise error(
            f"np.{function.__name__} is not a function of one cell; write it with "
            f"{', '.join(NUMPY_FUNCTIONS)}, or timetile.where"
        )

    # Conversions that a value of a cell refuses.

    def __bool__(self) -> bool:
        raise error(
            f"a value of a cell has no truth value while the step is traced; {CHOICE} for `if`, "
            "(a < b) & (b < c) for `and`, np.minimum(a, b) for min"
        )

    def __float__(self) -> float:
        raise error(
            "a value of a cell is no Python number; write NumPy's function, as np.sin(u[0]) for "
            "math.sin"
        )

    def __index__(self) -> int:
        raise error(
            "a value of a cell is no Python integer, as needed by a loop or an index of the step; "
            f"take a number known at tracing, or {CHOICE}"
        )

    def __iter__(self) -> Any:
        raise error("a value of a cell is one number, and has no parts; write the value alone")

    def __repr__(self) -> str:
        return f"<a value of every cell: {self.operation}>"


def constant(value: float | int | bool) -> Value:
    """A number of Python or NumPy as a value."""
    if isinstance(value, bool | np.bool_):
        return Value(Constant(bool(value)))
    if isinstance(value, int | np.integer):
        if not -MOST_INTEGER - 1 <= int(value) <= MOST_INTEGER:
            raise error(f"{value} has more than 64 bits; write a float")
        return Value(Constant(int(value)))
    return Value(Constant(float(value)))


def lifted(value: object) -> Value:
    """An operand as a value."""
    if isinstance(value, Value):
        return value
    if isinstance(value, bool | int | float | np.integer | np.floating | np.bool_):
        return constant(cast("float", value))
    if is_numpy_array(value) and value.ndim == 0:
        return lifted(value[()])
    if isinstance(value, NotReal | complex | np.complexfloating):
        raise error(
            "the value is complex, and a real number is needed here; take a.real or a.imag, "
            "declare an assigned field as timetile.Complex, and write a complex number beside a "
            "complex value"
        )
    name = type(value).__name__
    if name in ("Field", "Level", "Next"):
        raise error("a field has a value at each cell; write the cell: u[0, 0] is the cell's own")
    if name == "Series":
        raise error("a Series has a number for each step; write the present step's, as s[0]")
    if is_numpy_array(value):
        raise error(
            f"an array of shape {value.shape} is no number of a cell; take one number, as w[0], "
            "or pass different numbers for cells as a timetile.Field"
        )
    raise error(
        f"a {name} is no number of a cell; pass different numbers for cells as a timetile.Field, "
        "and numbers as a float or a timetile.Scalar"
    )


CAST_TYPES = (
    "float64", "float32", "int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8",
    "bool",
)  # fmt: skip
"""The types of a cell's values, by NumPy's names."""


def cast_of(value: Value, dtype: Any) -> Value:
    """A value as a number of another type. Raises StencilError for an unknown type."""
    try:
        name = np.dtype(dtype).name
    except TypeError:
        name = repr(dtype)
    if name not in CAST_TYPES:
        raise error(
            f"a value of a cell has no type {name}; write astype with one of "
            f"{', '.join(CAST_TYPES)}"
        )
    return Value(Cast(name), (value,))


KNOWN = {*FLOATS, *COMPARISONS, *LOGIC, *SAME, *WHOLE, "logical_not", "power", "square"}
"""NumPy's names of functions in steps."""

TWO_OPERANDS = {*COMPARISONS, *LOGIC, *SAME, *WHOLE, *FLOATS} - ONE_OPERAND - {"invert"}


BESIDE_COMPLEX = {"add": "add", "subtract": "sub", "multiply": "mul", "divide": "truediv"}
"""Operations of a real value and a complex number, by the name of Python's method."""


def is_complex_number(value: object) -> bool:
    """Whether a value is a number with an imaginary part."""
    kinds: Any = complex | np.complexfloating
    return isinstance(value, kinds) and cast("complex", value).imag != 0


def beside_complex(method: str, first: object, second: object) -> Any:
    """The complex value of an operation on a real value and a complex number."""
    (kind,) = NotReal.kinds

    def pair(number: Any) -> Any:
        value = complex(number)
        return kind(value.real, value.imag)

    if is_complex_number(first):
        return getattr(pair(first), f"__{method}__")(second)
    return getattr(pair(second), f"__r{method}__")(first)


def made(name: str, *given: object) -> Value:
    """
    The result of an operation on operands; NotImplemented beside a complex value, which has the
    operation. Raises StencilError for an unknown operation.
    """
    if any(isinstance(value, NotReal) for value in given):
        return cast("Value", NotImplemented)
    if name in BESIDE_COMPLEX and any(is_complex_number(value) for value in given):
        return beside_complex(BESIDE_COMPLEX[name], *given)
    operands = [lifted(value) for value in given]
    if name not in KNOWN or (name in TWO_OPERANDS) != (len(operands) == 2):
        way_out = HINTS.get(name, f"it with {', '.join(NUMPY_FUNCTIONS)}")
        raise error(f"np.{name} is not supported in a step; write {way_out}")
    return Value(NamedCall(name), operands)


def clipped(a: object, a_min: object = None, a_max: object = None, **options: object) -> Value:
    """NumPy's `clip`: bounds by position, as `a_min` and `a_max`, or as `min` and `max`."""
    low, high = options.pop("min", a_min), options.pop("max", a_max)
    if options:
        raise error(
            f"np.clip takes no {', '.join(options)} in a step, only a value and two bounds; write "
            "np.clip(a, low, high)"
        )
    above = lifted(a) if low is None else made("maximum", a, low)
    return above if high is None else made("minimum", above, high)


def choice(condition: object, if_true: object, if_false: object) -> Value:
    """One of two values, by a condition; both are computed."""
    return Value(Choice(), (lifted(condition), lifted(if_true), lifted(if_false)))
