"""
Expressions that pickle as they are. SymPy evaluates an expression anew when the expression is
loaded: products are multiplied out, and results would have other bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from timetile.frontend.devito.equations import Equation


@dataclass(frozen=True)
class ExpressionParts:
    """An expression as its kind and its arguments."""

    kind: Any
    arguments: tuple[Any, ...]


def unevaluated(kind: Any, arguments: Sequence[Any]) -> Any:
    """The expression of a kind with these arguments, not evaluated."""
    return kind(*arguments, evaluate=False)


def is_made_of_parts(expression: Any) -> bool:
    """Whether the expression is a sum, product, power or derivative, made again from its parts."""
    if not any(getattr(expression, name, False) for name in ("is_Add", "is_Mul", "is_Pow")):
        return False
    return unevaluated(expression.func, expression.args).args == expression.args


def taken_apart(expression: Any) -> Any:
    """The parts of an expression, down to functions, symbols and numbers."""
    if not is_made_of_parts(expression):
        return expression
    return ExpressionParts(expression.func, tuple(map(taken_apart, expression.args)))


def put_together(parts: Any) -> Any:
    """The expression of parts."""
    if not isinstance(parts, ExpressionParts):
        return parts
    return unevaluated(parts.kind, [put_together(each) for each in parts.arguments])


def equations_apart(equations: Sequence[Equation]) -> list[Equation]:
    """Equations with their values as parts."""
    return [replace(each, value=taken_apart(each.value)) for each in equations]


def equations_together(equations: Sequence[Equation]) -> list[Equation]:
    """Equations of values as parts."""
    return [replace(each, value=put_together(each.value)) for each in equations]
