"""The real and imaginary parts of expressions with complex functions and numbers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from timetile.frontend.devito.cells import MOST_FACTORS
from timetile.frontend.devito.library import NotCovered, sympy

RealAndImaginary = tuple[Any, Any]
"""The real and the imaginary part of an expression."""

SUFFIXES = ("__re", "__im")
"""The ends of the names of parts."""


def is_complex(part: Any) -> bool:
    """The function, number or symbol has a complex type."""
    dtype = getattr(part, "dtype", None)
    try:
        return np.dtype(dtype).kind == "c" if dtype is not None else False
    except TypeError:
        return False


def part_names(name: str) -> tuple[str, str]:
    """The names of the parts of a complex function or number."""
    return name + SUFFIXES[0], name + SUFFIXES[1]


def without_suffix(name: str) -> str:
    """Devito's name of a function or a number, given the name of a part."""
    return name[: -len(SUFFIXES[0])] if name.endswith(SUFFIXES) else name


def real_type(dtype: Any) -> Any:
    """The type of the parts of a complex type."""
    parts: Any = np.zeros(1, dtype).real
    return parts.dtype.type


@dataclass
class ComplexParts:
    """The parts of complex functions and numbers, each made once."""

    functions: dict[str, Any] = field(default_factory=dict[str, Any])
    numbers: set[str] = field(default_factory=set[str])

    def function(self, function: Any, name: str) -> Any:
        """The function of one of the parts."""
        if name not in self.functions:
            self.functions[name] = function._rebuild(name=name, dtype=real_type(function.dtype))
        return self.functions[name]

    def of(self, expression: Any) -> RealAndImaginary:
        """The parts of an expression. Raises NotCovered for an unknown complex function."""
        if getattr(expression, "is_Indexed", False):
            if not is_complex(expression.function):
                return expression, sympy.S.Zero
            names = part_names(expression.function.name)
            parts = (self.function(expression.function, name) for name in names)
            first, second = (part.indexed[expression.indices] for part in parts)
            return first, second
        if expression is sympy.I:
            return sympy.S.Zero, sympy.S.One
        if expression.is_Symbol and is_complex(expression):
            self.numbers.add(expression.name)
            first, second = map(sympy.Symbol, part_names(expression.name))
            return first, second
        if not expression.args:
            return expression, sympy.S.Zero
        parts = [self.of(argument) for argument in expression.args]
        if not has_name(expression, PARTS) and all(second == 0 for _, second in parts):
            reals = [first for first, _ in parts]
            changed = any(a is not b for a, b in zip(reals, expression.args, strict=True))
            return expression.func(*reals) if changed else expression, sympy.S.Zero
        return self.computed(expression, parts)

    def computed(self, expression: Any, parts: list[RealAndImaginary]) -> RealAndImaginary:
        """The parts of an expression with parts of its arguments."""
        (first, second), name = parts[0], type(expression).__name__
        if expression.is_Add:
            return sympy.Add(*(a for a, _ in parts)), sympy.Add(*(b for _, b in parts))
        if expression.is_Mul:
            return product_of_parts(parts)
        if expression.is_Pow and parts[1][0].is_Integer and abs(parts[1][0]) <= MOST_FACTORS:
            return power_of_parts((first, second), int(parts[1][0]))
        if name == "Real":
            return first, sympy.S.Zero
        if name == "Imag":
            return second, sympy.S.Zero
        if name == "Conj":
            return first, -second
        if name == "Abs":
            return sympy.sqrt(first**2 + second**2), sympy.S.Zero
        if name == "exp":
            size = sympy.exp(first)
            return size * sympy.cos(second), size * sympy.sin(second)
        raise NotCovered(
            f"it computes {expression} of complex numbers, and timetile has no operation for {name}"
        )


PARTS = ("Real", "Imag", "Conj")
"""Devito's functions of complex numbers, by class."""


def has_name(expression: Any, names: Iterable[str]) -> bool:
    """The expression is of a class with one of the names."""
    return type(expression).__name__ in names


def product_of_parts(parts: Iterable[RealAndImaginary]) -> RealAndImaginary:
    """The parts of a product: real factors multiply both parts."""
    real: Any = sympy.S.One
    found: RealAndImaginary | None = None
    for first, second in parts:
        if second == 0:
            real = real * first
        elif found is None:
            found = first, second
        else:
            a, b = found
            found = a * first - b * second, a * second + b * first
    if found is None:
        return real, sympy.S.Zero
    return real * found[0], real * found[1]


def power_of_parts(base: RealAndImaginary, exponent: int) -> RealAndImaginary:
    """The parts of a whole power."""
    first, second = product_of_parts([base] * abs(exponent))
    if exponent >= 0:
        return first, second
    square = first**2 + second**2
    return first / square, -second / square
