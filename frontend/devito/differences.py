"""
Weighted differences in sums: `w*(a - b)` for `w*a - w*b` where a and b are one expression at two
places, as in a first derivative. The number of operations is equal, the difference of equal cells
is 0, and Devito's own C has the difference, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from timetile.frontend.devito.library import sympy
from timetile.frontend.devito.ordering import Key, Ordering


@dataclass(frozen=True)
class WeightedDifference:
    """`weight * (plus - minus)`, and the two terms of the sum."""

    weight: Any
    plus: Any
    minus: Any
    terms: tuple[Any, Any]


@dataclass(frozen=True)
class SumTerm:
    """A term of a sum: `number * scale * rest`, where number and scale are equal for all cells."""

    number: Any
    scale: Any
    rest: Any
    term: Any


def term_of_sum(term: Any, is_scalar: Callable[[Any], bool]) -> SumTerm:
    """A term as a weight and the rest."""
    factors = sympy.Mul.make_args(term)
    scalars = [factor for factor in factors if is_scalar(factor)]
    rest = [factor for factor in factors if factor not in scalars]
    flat = [part for scalar in scalars for part in sympy.Mul.make_args(scalar)]
    number, scale = sympy.Mul(*flat).as_coeff_Mul()
    return SumTerm(number, scale, sympy.Mul(*rest, evaluate=False), term)


def weighted_differences(
    terms: Sequence[Any], is_scalar: Callable[[Any], bool], ordering: Ordering
) -> list[WeightedDifference]:
    """
    The weighted differences among the terms of a sum, least weights first: of each weight and
    expression that occur at two places, once added and once subtracted.
    """
    groups: dict[tuple[Any, Any, Key], list[SumTerm]] = {}
    for term in terms:
        each = term_of_sum(term, is_scalar)
        if each.rest == 1 or (each.scale == 1 and abs(each.number) == 1):
            continue
        groups.setdefault((abs(each.number), each.scale, ordering.form(each.rest)), []).append(each)
    found: list[tuple[Any, WeightedDifference]] = []
    for (number, scale, _), group in groups.items():
        if len(group) != 2 or group[0].number != -group[1].number:
            continue
        minus, plus = sorted(group, key=lambda each: each.number)
        made = WeightedDifference(number * scale, plus.rest, minus.rest, (plus.term, minus.term))
        found.append(((float(number), str(scale), ordering.key(plus.rest)), made))
    return [made for _, made in sorted(found, key=lambda pair: pair[0])]
