"""Joining terms of a sum with equal weights: `c * a + c * b` becomes `c * (a + b)`."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import isfinite

from xdsl.dialects import arith
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from timetile.passes.analysis.cells.sums import (
    Allows,
    LastCells,
    Offset,
    Term,
    constant_factor,
    last_cells,
    shared_flags,
    sums_of,
)
from timetile.passes.cells.simplify_cells import constant
from timetile.passes.cells.sort_terms import chain, replace_sum
from timetile.passes.rewriting import erase_unused


@dataclass(frozen=True)
class WeightedPart:
    """A term, the product of a weight free of cells and a factor read from cells."""

    plane: int
    weight: Hashable
    """A constant without sign, or a value."""
    part: Term
    product: arith.MulfOp


def weighted_part(term: Term, last: LastCells, allows: Allows) -> WeightedPart | None:
    """A term as a weighted part; None for a term without a weight, or with a fixed product."""
    product = term.value.owner
    if not isinstance(product, arith.MulfOp) or not term.value.has_one_use() or not allows(product):
        return None
    if (found := constant_factor(term.value)) is not None:
        _, other, number = found
        if not isfinite(number) or not last[other]:
            return None
        part = Term(other, term.negative != (number < 0.0))
        return WeightedPart(last[other][0], abs(number), part, product)
    for factor, other in ((product.lhs, product.rhs), (product.rhs, product.lhs)):
        if not last[factor] and last[other]:
            return WeightedPart(last[other][0], factor, Term(other, term.negative), product)
    return None


def joined(
    terms: Sequence[Term], last: LastCells, allows: Allows, made: list[Operation]
) -> list[Term]:
    """Terms, joined by plane and weight; new operations are added to `made`."""
    groups: dict[Hashable, list[WeightedPart]] = {}
    for term in terms:
        if (found := weighted_part(term, last, allows)) is not None:
            groups.setdefault((found.plane, found.weight), []).append(found)
    several = {key: group for key, group in groups.items() if len(group) > 1}
    done: set[SSAValue] = {each.product.result for group in several.values() for each in group}
    left = [term for term in terms if term.value not in done]
    return [*left, *(joined_group(group, last, made) for group in several.values())]


def joined_group(group: Sequence[WeightedPart], last: LastCells, made: list[Operation]) -> Term:
    """Parts of equal weight as a single product."""
    # No negation is needed if the sum begins with a positive part.
    turned = all(each.part.negative for each in group)
    parts = [Term(each.part.value, each.part.negative != turned) for each in group]
    parts.sort(key=lambda part: part.negative)
    first, flags = group[0].product, shared_flags([each.product for each in group])
    added = chain(parts, flags)
    weight = free_factor(first, last)
    if (found := constant_factor(first.result)) is not None:
        number = constant(abs(found[2]), first.result.type)
        assert number is not None, "the weight is finite"
        weight = number.result
        made.append(number)
    made += [*added, product := arith.MulfOp(weight, added[-1].results[0], flags)]
    last[product.result] = max(last[part.value] for part in parts)
    return Term(product.result, turned)


def free_factor(product: arith.MulfOp, last: LastCells) -> SSAValue:
    """The factor of a product, free of cells."""
    return product.rhs if last[product.lhs] else product.lhs


def join_weights(function: FuncOp, offsets: Sequence[Offset], allows: Allows) -> None:
    """Join the terms of a cell function's sums by planes and weights."""
    last = last_cells(function, offsets)
    for found in sums_of(function, allows):
        made: list[Operation] = []
        terms = joined(found.terms, last, allows, made)
        if len(terms) == len(found.terms):
            continue
        if len(terms) > 1:
            made += chain(terms, shared_flags(found.ops))
        elif terms[0].negative:
            made.append(arith.NegfOp(terms[0].value))
        last[made[-1].results[0]] = last[found.root.result]
        replace_sum(found, made)
    erase_unused(function.body.block)
