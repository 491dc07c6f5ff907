"""Evaluates expressions without fields of the grid: for all points at once, with NumPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from timetile.frontend.devito.library import NotCovered, sympy

Array = NDArray[Any]


def int_divide(a: Any, b: Any) -> Any:
    """The quotient of integers in C: rounded towards zero."""
    return np.trunc(np.divide(a, b)).astype(np.int64)


def whole(a: Any) -> Any:
    """An integer from a number as by C's cast: rounded towards zero."""
    return np.trunc(a).astype(np.int64)


def product_of(*values: Any) -> Any:
    """The product of any number of values."""
    result = values[0]
    for value in values[1:]:
        result = result * value
    return result


def sum_of(*values: Any) -> Any:
    """The sum of any number of values."""
    result = values[0]
    for value in values[1:]:
        result = result + value
    return result


def all_of(*values: Any) -> Any:
    """Whether all values are true."""
    return np.logical_and.reduce(np.broadcast_arrays(*values))


def any_of(*values: Any) -> Any:
    """Whether any value is true."""
    return np.logical_or.reduce(np.broadcast_arrays(*values))


def least_divisor(dtype: Any) -> Any:
    """The number below which Devito's safe reciprocal of a type of floats is 0."""
    resolution: Any = np.finfo(dtype).resolution
    return resolution**2


def safe_reciprocal(base: Any, guard: Any) -> Array:
    """The reciprocal of the base, or 0 where the base or a guard is less than the least divisor."""
    least = least_divisor(np.result_type(guard, np.float32))
    inverse: Array = np.asarray(1 / base)
    inverse[(base < least) | (guard < least)] = 0
    return inverse


def power(base: Any, exponent: Any) -> Any:
    """A power; for a whole exponent by products, as in the generated C."""
    if np.ndim(exponent) == 0 and float(exponent).is_integer() and abs(exponent) <= 8:
        result = product_of(*[base] * int(abs(exponent))) if exponent else base * 0 + 1
        return result if exponent >= 0 else 1 / result
    return np.power(base, exponent)


MEANINGS: dict[str, Callable[..., Any]] = {
    "Abs": np.abs,
    "Add": sum_of,
    "And": all_of,
    "CondEq": np.equal,
    "CondNe": np.not_equal,
    "Equality": np.equal,
    "FLOOR": np.floor,
    "GreaterThan": np.greater_equal,
    "GuardFactorNe": np.not_equal,
    "INT": whole,
    "IntDiv": int_divide,
    "LessThan": np.less_equal,
    "Max": np.maximum,
    "Min": np.minimum,
    "Mod": np.mod,
    "Mul": product_of,
    "Not": np.logical_not,
    "Or": any_of,
    "Pow": power,
    "SafeInv": safe_reciprocal,
    "StrictGreaterThan": np.greater,
    "StrictLessThan": np.less,
    "Unequality": np.not_equal,
    "atan2": np.arctan2,
    "ceiling": np.ceil,
    "cos": np.cos,
    "cosh": np.cosh,
    "exp": np.exp,
    "floor": np.floor,
    "log": np.log,
    "sin": np.sin,
    "sinh": np.sinh,
    "sqrt": np.sqrt,
    "tan": np.tan,
    "tanh": np.tanh,
}
"""The meanings of functions and operators of SymPy and Devito, by class name."""


def meaning_of(expression: Any) -> Callable[..., Any] | None:
    """The meaning of a function or an operator, by class or base class; None if unknown."""
    names = (kind.__name__ for kind in type(expression).__mro__)
    return next((MEANINGS[name] for name in names if name in MEANINGS), None)


def number_of(expression: Any) -> float:
    """
    A number as printed in the generated C, with no more digits than the number has: Devito's
    weights of derivatives have nine digits.
    """
    return float(str(expression)) if expression.is_Float else float(expression)


def is_known(expression: Any) -> bool:
    """Whether the expression has a value once its symbols have values."""
    if expression.is_Symbol or expression.is_Number or expression.is_NumberSymbol:
        return True
    if expression in (sympy.true, sympy.false):
        return True
    if getattr(expression, "is_Indexed", False):
        return all(map(is_known, expression.indices))
    return meaning_of(expression) is not None and all(map(is_known, expression.args))


def evaluate(expression: Any, values: Mapping[str, Any], kind: type[Any] = np.float64) -> Any:
    """
    The value of an expression. `values` are the values of symbols and arrays, by name. Numbers
    other than integers are of `kind`. Raises NotCovered for a symbol without a value, or a function
    without a meaning.
    """
    known: dict[Any, Any] = {}

    def value_of(part: Any) -> Any:
        if part not in known:
            known[part] = compute(part)
        return known[part]

    def compute(part: Any) -> Any:
        if part.is_Integer:
            return int(part)
        if part.is_Number or part.is_NumberSymbol:
            return kind(number_of(part))
        if part in (sympy.true, sympy.false):
            return part is sympy.true
        if getattr(part, "is_Indexed", False):
            if part.name not in values:
                raise NotCovered(f"{part.name} has no values")
            return values[part.name][tuple(np.asarray(value_of(i)) for i in part.indices)]
        if part.is_Symbol:
            if part.name not in values:
                raise NotCovered(f"{part.name} has no value")
            return values[part.name]
        meaning = meaning_of(part)
        if meaning is None:
            raise NotCovered(f"{type(part).__name__} is no function that timetile computes")
        return meaning(*map(value_of, part.args))

    with np.errstate(all="ignore"):
        return value_of(expression)


def index_values(expression: Any, values: Mapping[str, Any], count: int) -> Array:
    """The values of an index in `count` steps. Raises NotCovered if a value is no integer."""
    found = evaluate(sympy.sympify(expression), values)
    whole_numbers = np.asarray(found).astype(np.int64)
    if np.any(whole_numbers != found):
        raise NotCovered(f"the index {expression} is no integer")
    return np.broadcast_to(whole_numbers, count)


def integer(expression: Any, values: Mapping[str, Any]) -> int:
    """The value of an index. Raises NotCovered if the value is no integer."""
    found = evaluate(sympy.sympify(expression), values)
    if np.ndim(found) or int(found) != found:
        raise NotCovered(f"the index {expression} is no integer")
    return int(found)


def flat_place(indices: Sequence[Any], shape: Sequence[int]) -> Any:
    """The place of cells in an array, in row-major order; NotCovered where one lies outside."""
    place: Any = 0
    for index, size in zip(indices, shape):
        if np.any(np.asarray(index) < 0) or np.any(np.asarray(index) >= size):
            raise NotCovered("a point's neighbour lies outside the array; give it a wider halo")
        place = place * size + index
    return place
