"""sort-terms: where the order is free, the terms of a sum are taken by planes, then by rows.

Before, for `@cell(%a[1, 0], %a[0, 0], %a[-1, 0])`:   After:
```
%s = arith.addf %next, %prev : f64                       %s = arith.addf %prev, %here : f64
%t = arith.addf %s, %here : f64                          %t = arith.addf %s, %next : f64
```
A sum that takes the planes in order of arrival keeps one partial sum from plane to plane. Any other
order keeps planes until the last of them is here, and `split-sums` cannot cut the sum.

1. A sum is a tree of `arith.addf`, `arith.subf` and `arith.negf`, each inner result with a single
   use. Sums in a term, as in `u + k*(a + b)`, are sums of their own, sorted first.
2. A term's place is the last cell that the term needs: by planes along the first axis, the
   streaming axis of schedules, then by rows, then along the row. Terms without a tap come first.
   Terms of one place keep their order. With `order=columns` the place along the row counts first:
   sums then travel from lane to lane (`ssam`, `split-sums{form=lanes}`).
3. The sum becomes a chain, a term after the other. A negative term with a constant factor becomes a
   positive term with the opposite factor, an exact change.

`fp-reassoc=flags` (the default) sorts sums of operations that all allow a change of order
(`fastmath<reassoc>`); `on` sorts all sums; `off` none. The pass runs before contraction and before
schedules: all schedules and all executors then compute equal bits. Sorted sums differ from the
program's own order in rounding, in the sign of zeros, and where a partial sum overflows.

The pass is a walk and no rewrite pattern: it replaces whole trees. Updates with one function and
different offsets get a function each. The cells of `temporal.sweep` keep their order: a sum that
begins with the cell before would wait for all terms.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp, StringAttr, SymbolRefAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from timetile.dialects.temporal import SweepOp, UpdateOp
from timetile.passes.analysis.cells.cell_functions import cell_function, cell_functions
from timetile.passes.analysis.cells.sums import (
    Allows,
    FpReassoc,
    Offset,
    Sum,
    SumOp,
    Term,
    constant_factor,
    last_cells,
    reorders,
    shared_flags,
    sum_at,
    sums_of,
)
from timetile.passes.cells.simplify_cells import constant
from timetile.passes.rewriting import erase_unused, unique_symbol

TermOrder = Literal["planes", "columns"]
"""What comes one after the other in a sorted sum."""


def without_sign(term: Term, made: list[Operation]) -> Term:
    """A negative product with a constant as a product with the opposite constant."""
    found = constant_factor(term.value)
    if not term.negative or found is None or not term.value.has_one_use():
        return term
    product, other, number = found
    opposite = constant(-number, product.result.type)
    if opposite is None:
        return term
    turned = arith.MulfOp(other, opposite.result, product.fastmath)
    made += [opposite, turned]
    return Term(turned.result, False)


def chain(terms: Sequence[Term], flags: arith.FastMathFlagsAttr) -> list[Operation]:
    """The operations that add two terms or more, one after the other."""
    made: list[Operation] = []
    first, second, *others = (without_sign(term, made) for term in terms)
    if first.negative and not second.negative:
        # A difference has the bits of the sum with a negated first term.
        first, second = second, first
    total = first.value
    if first.negative:
        made.append(opposite := arith.NegfOp(total, flags if flags.data else None))
        total = opposite.result
    for term in (second, *others):
        kind = arith.SubfOp if term.negative else arith.AddfOp
        made.append(added := kind(total, term.value, flags))
        total = added.result
    return made


def replace_sum(old: Sum, made: Sequence[Operation]) -> None:
    """Replace the operations of a sum; the last new operation has the result."""
    root = old.root
    Rewriter.insert_op(made, InsertPoint.before(root))
    (result,) = made[-1].results
    result.name_hint = root.result.name_hint
    root.result.replace_all_uses_with(result)
    for op in old.ops:
        Rewriter.erase_op(op)


@dataclass(frozen=True)
class SortedSum:
    """A sum that changed its order: the cell function, and the operation with the result."""

    function: FuncOp
    root: SumOp

    @property
    def terms(self) -> tuple[Term, ...]:
        """The terms, sorted."""
        return sum_at(self.root, reorders("on")).terms


def sort_function(
    function: FuncOp, offsets: Sequence[Offset], allows: Allows
) -> Iterator[SortedSum]:
    """Sort the sums of a cell function with taps at these offsets: yields changed sums."""
    last = last_cells(function, offsets)
    for found in sums_of(function, allows):
        terms = sorted(found.terms, key=lambda term: last[term.value])
        if found.is_chain and terms == list(found.terms):
            continue
        made = chain(terms, shared_flags(found.ops))
        last[made[-1].results[0]] = last[found.root.result]
        replace_sum(found, made)
        if isinstance(root := made[-1], SumOp):
            yield SortedSum(function, root)
    # Products with the opposite constant have replaced products.
    erase_unused(function.body.block)


def sort_module(module: ModuleOp, allows: Allows, order: TermOrder = "planes") -> list[SortedSum]:
    """Sort the sums of all cell functions. Returns the sums with another order."""
    if not any(has_sums(function, allows) for function in cell_functions(module)):
        return []
    found: list[SortedSum] = []
    for function, offsets in list(functions_by_offsets(module)):
        turned = offsets if order == "planes" else [offset[::-1] for offset in offsets]
        found += sort_function(function, turned, allows)
    return found


def functions_by_offsets(module: ModuleOp) -> Iterator[tuple[FuncOp, Sequence[Offset]]]:
    """
    The cell functions of updates, and the offsets of the taps. Updates with equal functions and
    different offsets get a function each; functions of sweeps stay.
    """
    known: dict[tuple[FuncOp, tuple[Offset, ...]], FuncOp] = {}
    ops = [op for op in module.walk() if isinstance(op, UpdateOp | SweepOp)]
    first = {cell_function(module, op) for op in ops if isinstance(op, SweepOp)}
    for update in [op for op in ops if isinstance(op, UpdateOp)]:
        function = cell_function(module, update)
        offsets = tuple(tap.offset for tap in update.tap_list)
        own = known.get((function, offsets))
        if own is None:
            own = copy_of(function, module) if function in first else function
            first.add(function)
            known[function, offsets] = own
            yield own, offsets
        update.cell = SymbolRefAttr(own.sym_name)


def copy_of(function: FuncOp, module: ModuleOp) -> FuncOp:
    """A copy of a function under a name of its own."""
    copy = function.clone()
    copy.sym_name = StringAttr(unique_symbol(module, function.sym_name.data))
    module.body.block.insert_op_after(copy, function)
    return copy


def has_sums(function: FuncOp, allows: Allows) -> bool:
    """Whether some operation of a sum allows another order."""
    return any(isinstance(op, SumOp) and allows(op) for op in function.body.block.ops)


@dataclass(frozen=True)
class SortTermsPass(ModulePass):
    """Take the terms of sums by planes or columns; see the module's documentation."""

    name = "sort-terms"

    fp_reassoc: FpReassoc = "flags"
    order: TermOrder = "planes"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        sort_module(op, reorders(self.fp_reassoc), self.order)
