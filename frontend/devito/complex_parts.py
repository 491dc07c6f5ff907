"""The real and imaginary parts of expressions with complex functions and numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
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
    """The real type of a complex type: float32 for complex64."""
    parts: Any = np.zeros(1, dtype).real
    return parts.dtype.type


@dataclass
class ComplexParts:
    """The parts of complex functions and numbers, each made once."""

    functions: dict[str, Any] = field(default_factory=dict[str, Any])
    numbers: set[str] = field(default_factory=set[str])

    def function(self, function: Any, name: str) -> Any:
        """The real function with the real or the imaginary part."""
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
        is_part = type(expression).__name__ in PARTS
        if not is_part and all(second == 0 for _, second in parts):
            reals = [first for first, _ in parts]
            changed = any(a is not b for a, b in zip(reals, expression.args, strict=True))
            return expression.func(*reals) if changed else expression, sympy.S.Zero
        return self.computed(expression, parts)

    def computed(self, expression: Any, parts: list[RealAndImaginary]) -> RealAndImaginary:
        """The real and imaginary part of an expression, from its arguments' parts."""
        (first, second), name = parts[0], type(expression).__name__
        if expression.is_Add:
            return sympy.Add(*(a for a, _ in parts)), sympy.Add(*(b for _, b in parts))
        if expression.is_Mul:
            return product_of_parts(parts)
        if expression.is_Pow and parts[1][0].is_Integer and abs(parts[1][0]) <= MOST_FACTORS:
            return power_of_parts((first, second), int(parts[1][0]))
        if expression.is_Pow and parts[1][0].is_Number and parts[1][1] == 0:
            return polar_power((first, second), parts[1][0])
        if name in FUNCTIONS_OF_PARTS:
            return FUNCTIONS_OF_PARTS[name](first, second)
        raise NotCovered(
            f"it computes {expression} of complex numbers, and timetile has no operation for {name}"
        )


PARTS = ("Real", "Imag", "Conj")
"""Devito's functions of complex numbers, by class."""


def polar_power(base: RealAndImaginary, exponent: Any) -> RealAndImaginary:
    """The parts of a power with a real exponent, by the absolute value and the angle."""
    first, second = base
    size = (first**2 + second**2) ** (exponent / 2)
    angle = exponent * sympy.atan2(second, first)
    return size * sympy.cos(angle), size * sympy.sin(angle)


def exponential(a: Any, b: Any) -> RealAndImaginary:
    """The parts of exp."""
    size = sympy.exp(a)
    return size * sympy.cos(b), size * sympy.sin(b)


def hyperbolic_tangent(a: Any, b: Any) -> RealAndImaginary:
    """The parts of tanh, by functions that do not overflow."""
    h, t = sympy.tanh(a), sympy.tan(b)
    below = 1 + h**2 * t**2
    return h * (1 + t**2) / below, t * (1 - h**2) / below


def of_turned_number(
    function: Callable[[Any, Any], RealAndImaginary],
) -> Callable[..., RealAndImaginary]:
    """The function g(z) = -i f(iz): sin of sinh, and tan of tanh."""

    def of_parts(a: Any, b: Any) -> RealAndImaginary:
        first, second = function(-b, a)
        return second, -first

    return of_parts


def hyperbolic_sine(a: Any, b: Any) -> RealAndImaginary:
    """The parts of sinh."""
    return sympy.sinh(a) * sympy.cos(b), sympy.cosh(a) * sympy.sin(b)


def hyperbolic_cosine(a: Any, b: Any) -> RealAndImaginary:
    """The parts of cosh."""
    return sympy.cosh(a) * sympy.cos(b), sympy.sinh(a) * sympy.sin(b)


FUNCTIONS_OF_PARTS: dict[str, Callable[[Any, Any], RealAndImaginary]] = {
    "Real": lambda a, b: (a, sympy.S.Zero),
    "Imag": lambda a, b: (b, sympy.S.Zero),
    "Conj": lambda a, b: (a, -b),
    "Abs": lambda a, b: (sympy.sqrt(a**2 + b**2), sympy.S.Zero),
    "cos": lambda a, b: hyperbolic_cosine(-b, a),
    "cosh": hyperbolic_cosine,
    "exp": exponential,
    "log": lambda a, b: (sympy.log(a**2 + b**2) / 2, sympy.atan2(b, a)),
    "sin": of_turned_number(hyperbolic_sine),
    "sinh": hyperbolic_sine,
    "tan": of_turned_number(hyperbolic_tangent),
    "tanh": hyperbolic_tangent,
}
"""Functions of a complex number, by class: both parts of the number to both parts of the result."""


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
