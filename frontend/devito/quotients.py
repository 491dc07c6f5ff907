"""
Cancels coefficients in quotients: a numerator with the divisor as a factor is not divided at all.

`solve(m * u.dt2 - u.laplace, u.forward)` is `dt**2 * (L - m * (u.backward - 2 * u) / dt**2) / m`.
As `dt**2 * L / m + 2 * u - u.backward` the step neither reads m beside the reciprocal nor divides
twice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from timetile.frontend.devito.library import sympy

IsOutside = Callable[[Any], bool]
"""An expression has one value for all cells."""


def cancelled(expression: Any, is_outside: IsOutside) -> Any:
    """
    The expression, with each coefficient cancelled below a sum with the coefficient as a factor.
    """
    if expression.is_Add:
        return sympy.Add(*(cancelled(term, is_outside) for term in expression.args))
    if not expression.is_Mul:
        return expression
    sums = [factor for factor in expression.args if factor.is_Add and not is_outside(factor)]
    if len(sums) != 1:
        return expression
    rest = [factor for factor in expression.args if factor is not sums[0]]
    for factor in rest:
        if not (factor.is_Pow and factor.args[1] == -1):
            continue
        base = factor.args[0]
        inside = [term for term in sums[0].args if term.is_Mul and base in term.args]
        others = [other for other in rest if other is not factor]
        if not inside or not all(other.is_Number or is_outside(other) for other in others):
            continue
        outside = [term for term in sums[0].args if term not in inside]
        scalar = sympy.Mul(*others)
        found = [distributed(scalar, without(term, base), is_outside) for term in inside]
        if outside:
            found.append(sympy.Mul(scalar, factor, sympy.Add(*outside)))
        return sympy.Add(*found)
    return expression


def without(product: Any, base: Any) -> Any:
    """A product without one of its factors."""
    factors = list(product.args)
    factors.remove(base)
    return sympy.Mul(*factors)


def distributed(scalar: Any, expression: Any, is_outside: IsOutside) -> Any:
    """
    A scalar times an expression, in each term of a sum, where powers of the scalar may cancel.
    """
    if expression.is_Add:
        return sympy.Add(*(distributed(scalar, term, is_outside) for term in expression.args))
    if expression.is_Mul:
        inner = [f for f in expression.args if not (f.is_Number or is_outside(f))]
        if len(inner) == 1 and inner[0].is_Add:
            outer = [factor for factor in expression.args if factor is not inner[0]]
            return distributed(sympy.Mul(scalar, *outer), inner[0], is_outside)
    return sympy.Mul(scalar, expression)
