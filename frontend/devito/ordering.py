"""The order of terms and factors: equal for expressions that differ in place alone.

SymPy orders `u[x, y + 1] + u[x + 1, y]` and `u[x + 1, y + 2] + u[x + 2, y + 1]` by names, and the
order changes from place to place. Values of many places are computed once only if all have one
order.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from timetile.frontend.devito.library import sympy

Key = tuple[tuple[int, str, tuple[int, ...]], ...]
"""Parts of an expression in order: a kind, a text, and distances along the axes."""

NUMBER, INDEXED, OTHER = range(3)


def is_varying(expression: Any) -> bool:
    """The expression reads a function over time."""
    if getattr(expression, "is_Indexed", False):
        dimensions = expression.function.dimensions
        return bool(dimensions) and bool(dimensions[0].is_Time)
    return any(map(is_varying, expression.args))


@dataclass
class Ordering:
    """Sorts expressions. Keys are computed once."""

    known: dict[Any, tuple[bool, Key]] = field(default_factory=dict[Any, tuple[bool, Key]])

    def ordered(self, expressions: Iterable[Any]) -> list[Any]:
        """The expressions in order; expressions constant in time come first."""
        return sorted(expressions, key=self.key)

    def key(self, expression: Any) -> tuple[bool, Key]:
        """Whether the expression is varying, and its parts."""
        if expression not in self.known:
            self.known[expression] = is_varying(expression), self.parts(expression)
        return self.known[expression]

    def form(self, expression: Any) -> Key:
        """The parts of an expression without distances: equal for one expression at two places."""
        return tuple((kind, text, ()) for kind, text, _ in self.key(expression)[1])

    def parts(self, expression: Any) -> Key:
        """The parts of an expression."""
        if getattr(expression, "is_Indexed", False):
            split = [sympy.sympify(index).as_coeff_Add() for index in expression.indices]
            text = f"{expression.name}[{', '.join(str(rest) for _, rest in split)}]"
            whole = tuple(int(added) if added.is_Integer else 0 for added, _ in split)
            return ((INDEXED, text, whole),)
        if not expression.args:
            return ((NUMBER if expression.is_Number else OTHER, str(expression), ()),)
        parts = [self.key(argument)[1] for argument in expression.args]
        if expression.is_Add or expression.is_Mul:
            parts = [part for _, part in sorted(map(self.key, expression.args))]
        head = OTHER, f"{type(expression).__name__} {len(parts)}", ()
        return (head, *(each for part in parts for each in part))
