"""Values of a cell during tracing, with Python's operators and NumPy's functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from timetile.frontend.errors import SourcePlace, current_place, error
from timetile.frontend.operations import (
    COMPARISONS,
    FLOATS,
    INTEGERS,
    LOGIC,
    ONE_OPERAND,
    SAME,
    Arithmetic,
    Choice,
    Comparison,
    Constant,
    Conversion,
    Kind,
    Logic,
    Operation,
)
from timetile.runtime.host.arrays import is_numpy_array

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

TRUTH = {
    "add": "bitwise_or",
    "multiply": "bitwise_and",
    "maximum": "bitwise_or",
    "minimum": "bitwise_and",
    "fmax": "bitwise_or",
    "fmin": "bitwise_and",
}
"""What NumPy's arithmetic makes of two truth values."""

MOST_INTEGER = 2**63 - 1
CHOICE = "write timetile.where(condition, a, b)"


class Value:
    """
    A number for every cell: from an index into a field, a scalar argument, a coordinate, or
    operators. Arithmetic, comparisons, `&`, `|`, `^` and `~` work as on NumPy's arrays, and so do
    NumPy's functions of a number (`np.exp(u[0])`). A value has no truth value: `timetile.where`
    chooses.
    """

    __slots__ = ("kind", "operands", "operation", "place")

    def __init__(self, operation: Operation, kind: Kind, operands: Sequence[Value] = ()):
        self.operation, self.kind, self.operands = operation, kind, tuple(operands)
        self.place: SourcePlace = current_place()

    # Operators.

    def __add__(self, other: Value | float) -> Value:
        return made("add", self, other)

    def __radd__(self, other: float) -> Value:
        return made("add", other, self)

    def __sub__(self, other: Value | float) -> Value:
        return made("subtract", self, other)

    def __rsub__(self, other: float) -> Value:
        return made("subtract", other, self)

    def __mul__(self, other: Value | float) -> Value:
        return made("multiply", self, other)

    def __rmul__(self, other: float) -> Value:
        return made("multiply", other, self)

    def __truediv__(self, other: Value | float) -> Value:
        return made("divide", self, other)

    def __rtruediv__(self, other: float) -> Value:
        return made("divide", other, self)

    def __floordiv__(self, other: Value | int) -> Value:
        return made("floor_divide", self, other)

    def __mod__(self, other: int) -> Value:
        return made("remainder", self, other)

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

    def __and__(self, other: Value | bool) -> Value:
        return made("bitwise_and", self, other)

    def __or__(self, other: Value | bool) -> Value:
        return made("bitwise_or", self, other)

    def __xor__(self, other: Value | bool) -> Value:
        return made("bitwise_xor", self, other)

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __invert__(self) -> Value:
        return made("logical_not", self)

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
        return Value(Constant(bool(value)), Kind.BOOLEAN)
    if isinstance(value, int | np.integer):
        if not -MOST_INTEGER - 1 <= int(value) <= MOST_INTEGER:
            raise error(f"{value} has more than 64 bits; write a float")
        return Value(Constant(int(value)), Kind.INTEGER)
    return Value(Constant(float(value)), Kind.FLOAT)


def lifted(value: object) -> Value:
    """An operand as a value."""
    if isinstance(value, Value):
        return value
    if isinstance(value, bool | int | float | np.integer | np.floating | np.bool_):
        return constant(cast("float", value))
    if is_numpy_array(value) and value.ndim == 0:
        return lifted(value[()])
    name = type(value).__name__
    if name in ("Field", "Level", "Next"):
        raise error("a field has a value at each cell; write the cell: u[0, 0] is the cell's own")
    if is_numpy_array(value):
        raise error(
            f"an array of shape {value.shape} is no number of a cell; take one number, as w[0], "
            "or pass different numbers for cells as a timetile.Field"
        )
    raise error(
        f"a {name} is no number of a cell; pass different numbers for cells as a timetile.Field, "
        "and numbers as a float or a timetile.Scalar"
    )


def as_float(value: Value) -> Value:
    """A value as a float."""
    if value.kind is Kind.FLOAT:
        return value
    if isinstance(value.operation, Constant):
        return constant(float(value.operation.number))
    return Value(Conversion(), Kind.FLOAT, (value,))


def number_of(value: Value) -> float | int | None:
    """The number of a constant; None for other values."""
    return value.operation.number if isinstance(value.operation, Constant) else None


def made(name: str, *given: object) -> Value:
    """The result of an operation on operands. Raises StencilError for an unknown operation."""
    operands = [lifted(value) for value in given]
    name = SAME.get(name, name)
    if name in COMPARISONS:
        kinds = {value.kind for value in operands}
        same = operands if kinds == {Kind.INTEGER} else [as_float(value) for value in operands]
        return Value(Comparison(name), Kind.BOOLEAN, same)
    if name in LOGIC or name == "logical_not":
        return logical(name, operands)
    if name in ("floor_divide", "remainder"):
        return whole_division(name, operands)
    if name == "power":
        return power(*operands)
    if name == "square":
        return made("multiply", *[as_integer(operands[0])] * 2)
    if all(value.kind is Kind.BOOLEAN for value in operands):
        joined = of_truth_values(name, operands)
        if joined is not None:
            return joined
    elif name in INTEGERS and any(map(is_varying_integer, operands)):
        operands = [as_integer(value) for value in operands]
    integers = all(value.kind is Kind.INTEGER for value in operands)
    if integers and name == "negative":
        return made("subtract", 0, operands[0])
    if integers and name in INTEGERS:
        return Value(Arithmetic(name), Kind.INTEGER, operands)
    if name not in FLOATS or (name in ONE_OPERAND) != (len(operands) == 1):
        way_out = HINTS.get(name, f"it with {', '.join(NUMPY_FUNCTIONS)}")
        raise error(f"np.{name} is not supported in a step; write {way_out}")
    return Value(Arithmetic(name), Kind.FLOAT, [as_float(value) for value in operands])


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


def of_truth_values(name: str, operands: Sequence[Value]) -> Value | None:
    """
    Arithmetic on truth values alone, with NumPy's results: a sum is `|`, and a product is `&`. None
    for operations whose result is no truth value. Raises StencilError for differences.
    """
    if name in ("subtract", "negative"):
        raise error(
            "conditions have no difference, as in NumPy; write a ^ b for conditions that differ, "
            "~a for the opposite, or timetile.where(a, 1.0, 0.0) for a number"
        )
    if name == "absolute":
        return operands[0]
    joined = TRUTH.get(name)
    return None if joined is None else Value(Logic(joined), Kind.BOOLEAN, operands)


def is_varying_integer(value: Value) -> bool:
    """An integer of the cell, as a coordinate. Constants beside truth values become floats."""
    return value.kind is Kind.INTEGER and number_of(value) is None


def as_integer(value: Value) -> Value:
    """A truth value as 1 or 0; other values as they are."""
    if value.kind is not Kind.BOOLEAN:
        return value
    return Value(Choice(), Kind.INTEGER, (value, constant(1), constant(0)))


def logical(name: str, operands: Sequence[Value]) -> Value:
    """An operation of truth values."""
    if any(value.kind is not Kind.BOOLEAN for value in operands):
        raise error(
            "`&`, `|`, `^` and `~` join conditions; write (a < b) & (b < c), in parentheses"
        )
    if name == "logical_not":
        return Value(Logic("bitwise_xor"), Kind.BOOLEAN, (operands[0], constant(True)))
    return Value(Logic(name), Kind.BOOLEAN, operands)


def whole_division(name: str, operands: Sequence[Value]) -> Value:
    """`//` and `%` of a coordinate by a positive integer, rounded down as in Python."""
    value, divisor = operands
    number = number_of(divisor)
    if value.kind is not Kind.INTEGER or not isinstance(number, int) or number <= 0:
        raise error(
            "`//` and `%` are of a coordinate and a positive int; write np.floor(a / b) for floats"
        )
    quotient = Value(Arithmetic("floor_divide"), Kind.INTEGER, operands)
    return quotient if name == "floor_divide" else value - quotient * number


def power(base: Value, exponent: Value) -> Value:
    """
    A power: products for a small whole exponent, a root for an exponent of a half. As in NumPy, an
    integer to the power of a float is a float.
    """
    if exponent.kind is Kind.FLOAT:
        base = as_float(base)
    base = as_integer(base)
    number = number_of(exponent)
    if number == 0.5:
        return made("sqrt", base)
    if number is None or number not in range(1, 9):
        return Value(Arithmetic("power"), Kind.FLOAT, (as_float(base), as_float(exponent)))
    # In the order of the pass expand-powers: from the highest bit of the exponent down.
    result = base
    for bit in f"{int(number):b}"[1:]:
        result = result * result
        if bit == "1":
            result = result * base
    return result


def choice(condition: object, if_true: object, if_false: object) -> Value:
    """One of two values, by a condition; both are computed."""
    chosen, values = lifted(condition), [lifted(if_true), lifted(if_false)]
    if chosen.kind is not Kind.BOOLEAN:
        raise error("where takes a condition first; compare, as timetile.where(u[0] > 0, a, b)")
    kinds = {value.kind for value in values}
    if len(kinds) > 1:
        values = [as_float(value) for value in values]
    return Value(Choice(), values[0].kind, (chosen, *values))
