"""
Weights of sums are spread over planes: `c * (a + b)` becomes `c * a + c * b` where `a` and `b` lie
in different planes. Terms of a plane with a common factor form a sum: `k * a + (2 * k) * b` becomes
`k * (a + 2 * b)`.

A weighted difference of two planes keeps a value of the early plane until the late plane is here,
and ten such differences keep ten. After spreading, planes enter a sum on arrival.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from timetile.passes.analysis.cells.constants import float_constant
from timetile.passes.analysis.cells.sums import (
    Allows,
    LastCells,
    Offset,
    Sum,
    SumOp,
    Term,
    constant_factor,
    is_allowed_sum,
    last_cells,
    shared_flags,
    sum_at,
    sums_of,
)
from timetile.passes.cells.simplify_cells import constant
from timetile.passes.cells.sort_terms import chain, replace_sum
from timetile.passes.rewriting import erase_unused


@dataclass(frozen=True)
class Weighted:
    """A term of a sum: a value times a constant with the sign."""

    value: SSAValue
    weight: float


@dataclass(frozen=True)
class Product:
    """A term: a constant times other factors."""

    term: Weighted
    weight: float
    factors: tuple[SSAValue, ...]


class WeightSpreader:
    """Spreads weights over the terms of a function's sums, outer sums first."""

    def __init__(self, function: FuncOp, offsets: Sequence[Offset], allows: Allows):
        self.function, self.allows = function, allows
        self.last: LastCells = last_cells(function, offsets)

    def run(self) -> None:
        """Rewrite all sums of the function."""
        waiting = [found.root for found in sums_of(self.function, self.allows)]
        while waiting:
            root = waiting.pop()
            if root.parent is not None and root.result.first_use is not None:
                waiting += self.rewrite(sum_at(root, self.allows))

    def rewrite(self, found: Sum) -> list[SumOp]:
        """Rewrite a sum. Returns the new sums in the terms."""
        terms = [each for term in found.terms for each in self.spread(term)]
        made: list[Operation] = []
        groups, left = self.common_factors(terms, made)
        if not groups and len(terms) == len(found.terms):
            return []
        flags = shared_flags(found.ops)
        inner: list[SumOp] = []
        parts = [self.part(each, made) for each in left]
        for factor, group in groups:
            # No negation is needed if the sum begins with a positive part.
            turned = all(each.weight < 0.0 for each in group)
            own = self.chained([self.part(each, made, turned) for each in group], flags, made)
            if isinstance(own.owner, SumOp):
                inner.append(own.owner)
            made.append(product := arith.MulfOp(factor, own, flags))
            parts.append(Term(product.result, turned))
        total = self.chained(parts, flags, made)
        self.note(made)
        assert total.owner is made[-1]
        replace_sum(found, made)
        # Dead operations would count as readers of their operands.
        erase_unused(self.function.body.block)
        return inner

    def note(self, made: Sequence[Operation]) -> None:
        """Note the last cells of new values."""
        for op in made:
            last = max((self.last.get(value, ()) for value in op.operands), default=())
            self.last.update(dict.fromkeys(op.results, last))

    @staticmethod
    def chained(
        parts: Sequence[Term], flags: arith.FastMathFlagsAttr, made: list[Operation]
    ) -> SSAValue:
        """The sum of terms."""
        if len(parts) == 1:
            if not parts[0].negative:
                return parts[0].value
            made.append(arith.NegfOp(parts[0].value, flags if flags.data else None))
        else:
            made += chain(parts, flags)
        return made[-1].results[0]

    @staticmethod
    def part(term: Weighted, made: list[Operation], turned: bool = False) -> Term:
        """The operations of a weighted value, or, `turned`, of the opposite value."""
        if turned:
            term = Weighted(term.value, -term.weight)
        if abs(term.weight) == 1.0:
            return Term(term.value, term.weight < 0.0)
        number = constant(term.weight, term.value.type)
        assert number is not None, "products of finite weights were checked"
        made += [number, product := arith.MulfOp(number.result, term.value)]
        return Term(product.result, False)

    def planes(self, value: SSAValue) -> set[int]:
        """The last planes of the terms of a sum."""
        if not isinstance(value.owner, SumOp):
            return set()
        terms = sum_at(value.owner, self.allows).terms
        return {self.last[term.value][0] for term in terms if self.last[term.value]}

    def spread(self, term: Term, weight: float = 1.0) -> Iterator[Weighted]:
        """A term times a weight; sums of several planes are taken apart."""
        own = -weight if term.negative else weight
        found, value = constant_factor(term.value), term.value
        if found is not None and value.has_one_use() and self.allows(found[0]):
            _, inner, number = found
            own, value = own * number, inner
        is_sum = is_allowed_sum(value.owner, self.allows) and value.has_one_use()
        if isinstance(value.owner, SumOp) and is_sum and len(self.planes(value)) > 1:
            for each in sum_at(value.owner, self.allows).terms:
                yield from self.spread(each, own)
        elif constant(own, value.type) is None:
            # The weights' product is no finite number of the type: the inner product stays.
            yield Weighted(term.value, -weight if term.negative else weight)
        else:
            yield Weighted(value, own)

    def product(self, term: Weighted) -> Product | None:
        """A term of two factors or more, taken apart; None for other terms."""
        weight, factors, waiting = term.weight, list[SSAValue](), [term.value]
        while waiting:
            value = waiting.pop()
            op = value.owner
            number = float_constant(value)
            if number is not None:
                weight *= number
            elif self.is_open(value) and isinstance(op, arith.MulfOp):
                waiting += [op.rhs, op.lhs]
            else:
                factors.append(value)
        if len(factors) < 2 or constant(weight, term.value.type) is None:
            return None
        return Product(term, weight, tuple(factors))

    def is_open(self, value: SSAValue) -> bool:
        """Whether a value is a product with a constant, or a product with a single reader."""
        op = value.owner
        if not isinstance(op, arith.MulfOp) or not self.allows(op):
            return False
        return value.has_one_use() or constant_factor(value) is not None

    def common_factors(
        self, terms: Sequence[Weighted], made: list[Operation]
    ) -> tuple[list[tuple[SSAValue, list[Weighted]]], list[Weighted]]:
        """Groups of terms of one plane with a common factor, and the terms left."""
        groups: list[tuple[SSAValue, list[Weighted]]] = []
        left, known = list(terms), dict[Weighted, Product]()
        for term in terms:
            if (found := self.product(term)) is not None:
                known[term] = found
        while True:
            counts: Counter[tuple[int, SSAValue]] = Counter()
            for term in left:
                if term in known:
                    plane = self.last[term.value][0] if self.last[term.value] else None
                    if plane is not None:
                        counts.update((plane, f) for f in dict.fromkeys(known[term].factors))
            key, count = max(counts.items(), key=lambda item: item[1], default=((0, None), 0))
            if count < 2 or key[1] is None:
                return groups, left
            plane, factor = key
            own = [
                term
                for term in left
                if term in known
                and factor in known[term].factors
                and self.last[term.value][:1] == (plane,)
            ]
            left = [term for term in left if term not in own]
            groups.append((factor, [self.without(known[term], factor, made) for term in own]))

    @staticmethod
    def without(product: Product, factor: SSAValue, made: list[Operation]) -> Weighted:
        """A product without a factor."""
        others = list(product.factors)
        others.remove(factor)
        first, *more = others
        for value in more:
            made.append(joined := arith.MulfOp(first, value))
            first = joined.result
        return Weighted(first, product.weight)


def spread_weights(function: FuncOp, offsets: Sequence[Offset], allows: Allows) -> None:
    """Spread the weights of a cell function's sums over the terms."""
    WeightSpreader(function, offsets, allows).run()
