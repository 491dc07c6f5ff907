"""The types of expressions, as in the C that Devito generates.

C computes with the wider type of two operands: integers of less than 32 bits as `int`, integers
beside floats as floats, and a quotient of integers as an integer. A number with a point has the
narrowest type of floats that holds all numbers of the equation's target.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from timetile.frontend.devito.library import NotCovered

ORDER = ("i32", "i64", "f32", "f64")
"""The types of values, from the narrowest."""

STORED = {
    "int8": "i8", "uint8": "i8", "int16": "i16", "uint16": "i16", "int32": "i32", "int64": "i64",
    "float32": "f32", "float64": "f64",
}  # fmt: skip
"""The types of cells in memory, by the names of NumPy's."""

NARROW = {"i8": "i32", "i16": "i32"}
"""The types of values read from narrow cells."""

WHOLE = ("Abs", "Add", "Max", "Min", "Mul", "ceiling", "floor")
"""Classes with a result of the type of the arguments."""


def is_integer_kind(kind: str) -> bool:
    """The type is a type of integers."""
    return kind.startswith("i")


def widest_kind(*kinds: str) -> str:
    """The type in which C computes with values of some types."""
    return max(kinds, key=ORDER.index, default="i32")


def stored_kind(function: Any) -> str:
    """
    The type of a function's cells in memory. Raises NotCovered for cells without a translation.
    """
    name = str(function.dtype.__name__)
    if name not in STORED:
        raise NotCovered(
            f"{function.name} has cells of {name}; use float32, float64, or integers from int8 "
            "to int64, uint8 or uint16"
        )
    return STORED[name]


def is_signed_function(function: Any) -> bool:
    """Whether the cells of a function have a sign."""
    return not str(function.dtype.__name__).startswith("u")


def loaded_kind(function: Any) -> str:
    """The type of a value read from a function."""
    kind = stored_kind(function)
    return NARROW.get(kind, kind)


def is_divisor(factor: Any) -> bool:
    """The factor stands below the line of a quotient."""
    return bool(factor.is_Pow and factor.args[1].is_Number and factor.args[1] < 0)


@dataclass
class Kinds:
    """
    The types of an equation's values: `point` for numbers with a point, `ratio` for a quotient of
    two written integers.
    """

    point: str
    ratio: str
    known: dict[Any, str] = field(default_factory=dict[Any, str])

    @staticmethod
    def of_equation(target: Any) -> Kinds:
        """The types in an equation that writes a function."""
        point = STORED[np.promote_types(target.function.dtype, np.float32).name]
        return Kinds(point, "f64" if is_integer_kind(stored_kind(target.function)) else point)

    def of(self, expression: Any) -> str:
        """The type of an expression's value."""
        if expression not in self.known:
            self.known[expression] = self.found(expression)
        return self.known[expression]

    def found(self, expression: Any) -> str:
        """The type by the parts of an expression."""
        if getattr(expression, "is_Indexed", False):
            return loaded_kind(expression.function)
        if expression.is_Integer:
            return "i32" if abs(int(expression)) < 2**31 else "i64"
        if expression.is_Rational:
            return self.ratio
        if expression.is_Number or expression.is_NumberSymbol:
            return self.point
        if expression.is_Symbol:
            return self.of_symbol(expression)
        name = type(expression).__name__
        if name in ("IntDiv", "INT"):
            return "i32" if name == "INT" else widest_kind(*map(self.of, expression.args))
        if name == "Piecewise":
            return widest_kind(*(self.of(piece.args[0]) for piece in expression.args))
        if expression.is_Mul:
            return self.of_product(expression.args)
        if expression.is_Pow:
            return self.of_power(*expression.args)
        kind = widest_kind(*map(self.of, expression.args))
        names = {each.__name__ for each in type(expression).__mro__}
        if is_integer_kind(kind) and not names & {*WHOLE, "Mod"}:
            return "f64"
        return kind

    def of_product(self, factors: Any) -> str:
        """The type of a product. A quotient of integers is an integer in C."""
        below = [factor for factor in factors if is_divisor(factor)]
        if len(below) == len(factors):
            return widest_kind(*map(self.of, factors))
        parts = [self.of(each.args[0]) if each in below else self.of(each) for each in factors]
        return widest_kind(*parts)

    def of_power(self, base: Any, exponent: Any) -> str:
        """The type of a power: a product, a quotient, or a function of floats."""
        kind = self.of(base)
        if exponent.is_Integer:
            return kind if exponent >= 0 else widest_kind(kind, self.point)
        return "f64" if is_integer_kind(kind) else kind

    def of_symbol(self, symbol: Any) -> str:
        """The type of a dimension, a constant, or a spacing."""
        dtype = getattr(symbol, "dtype", None)
        name = str(getattr(dtype, "__name__", dtype))
        if symbol.is_integer or name.startswith(("int", "uint")):
            return "i64" if name.endswith("64") else "i32"
        return STORED.get(name, self.point)
