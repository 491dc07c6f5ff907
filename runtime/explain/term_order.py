"""What the order of a program's terms costs: the prediction for sums with sorted terms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects import math as xmath
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import BlockArgument, SSAValue

from timetile.dialects.temporal import LoopOp, UpdateOp
from timetile.passes.analysis.cells.cell_functions import cell_functions
from timetile.passes.analysis.cells.constants import float_constant
from timetile.passes.analysis.cells.sums import Term, reorders, sum_at
from timetile.passes.cells.contract_cells import ContractCellsPass
from timetile.passes.cells.factor_sums import FactorSumsPass
from timetile.passes.cells.share_subexpressions import ShareSubexpressionsPass
from timetile.passes.cells.sort_terms import SortedSum, SortTermsPass, sort_module
from timetile.passes.rewriting import replace_with
from timetile.passes.scheduling.candidates import Candidate, candidates
from timetile.passes.targets.target import Target
from timetile.runtime.kernels.loops import loops_of

WORTH_SORTING = 1.05
"""Sorted terms are told if predicted to be faster by this factor."""

MOST_SHOWN = 7
"""The most terms of a sum shown in full."""

DEEPEST_SHOWN = 4
"""The most nested operations of a term shown in full."""


@dataclass(frozen=True)
class SortedOrder:
    """The predictions for sorted terms and for the program's own order, and a sorted sum."""

    gcells_per_second: float
    own_gcells_per_second: float
    text: str
    """What is done: sums along axes, or the longest sum with another order, its terms sorted."""

    def __str__(self) -> str:
        return (
            f"--fp-reassoc on, {self.text}: {self.gcells_per_second:.0f} GCells/s predicted in "
            f"place of {self.own_gcells_per_second:.0f}, with other last bits"
        )


def faster_order(
    loop: LoopOp,
    module: ModuleOp,
    target: Target,
    depth: int | None,
    found: Sequence[Candidate],
    running: float = 0.0,
) -> SortedOrder | None:
    """
    The order of terms predicted to be faster than the program's by 5% or more; None without one.
    `found` are the compared schedules of the program's order, and `running` GCells/s of the chosen
    kernels: assembled, some are deeper than all compared. Schedules are compared again only for
    sums of rank 1, and for sums in an order other than the sorted one.
    """
    if not found:
        return None
    number = loops_of(module).index(loop)
    changed = module.clone()
    separate_products(changed)
    text = text_of_change(loops_of(changed)[number], changed)
    separate_products(copy := module.clone())
    for item in (FactorSumsPass("on"), SortTermsPass("on")):
        item.apply(Context(), copy)
    again = loops_of(copy)[number]
    if len(again.updates) > len(loop.updates):
        text = "by sums along one axis after the other"
    if text is None:
        return None
    for item in (ContractCellsPass(), ShareSubexpressionsPass()):
        item.apply(Context(), copy)
    best = candidates(again, copy, target, depth)
    own = max(running, *(each.cost.gcells_per_second for each in found))
    if not best or best[0].cost.gcells_per_second < WORTH_SORTING * own:
        return None
    return SortedOrder(best[0].cost.gcells_per_second, own, text)


def text_of_change(loop: LoopOp, module: ModuleOp) -> str | None:
    """Sort a module, and tell the longest sum of a loop with another order; None without one."""
    changed = [
        (update, each)
        for each in sort_module(module, reorders("on"))
        for update in loop.updates
        if update.cell.string_value() == each.function.sym_name.data
    ]
    if not changed:
        return None
    update, longest = max(changed, key=lambda pair: len(pair[1].terms))
    return f"or terms in the order {text_of_terms(update, longest)}"


def separate_products(module: ModuleOp) -> None:
    """Make products and sums of the fused multiply-adds of a module's cells."""
    for function in cell_functions(module):
        for op in [op for op in function.body.block.ops if isinstance(op, xmath.FmaOp)]:
            product = arith.MulfOp(op.a, op.b)
            replace_with(op, [product, arith.AddfOp(op.c, product.result)])


def text_of_terms(update: UpdateOp, found: SortedSum) -> str:
    """A sorted sum as a formula, without the middle of a long sum."""
    words = [term_text(update, term) for term in found.terms]
    if len(words) > MOST_SHOWN:
        words = [*words[: MOST_SHOWN - 2], "+ ...", words[-1]]
    return " ".join(words).removeprefix("+ ")


def term_text(update: UpdateOp, term: Term) -> str:
    """A term with its sign."""
    return f"{'-' if term.negative else '+'} {value_text(update, term.value, DEEPEST_SHOWN)}"


def value_text(update: UpdateOp, value: SSAValue, deepest: int) -> str:
    """A value of an update's cell as a formula; dots for all but sums, products and cells."""
    if isinstance(value, BlockArgument):
        return argument_text(update, value)
    if (number := float_constant(value)) is not None:
        return f"{number:.4g}"
    op = value.owner
    if not deepest or not isinstance(op, arith.AddfOp | arith.SubfOp | arith.MulfOp):
        return "(...)"
    if not isinstance(op, arith.MulfOp):
        terms = sum_at(op, reorders("on")).terms
        inner = " ".join(term_text(update, term) for term in terms[:MOST_SHOWN])
        return f"({inner.removeprefix('+ ')}{' + ...' if len(terms) > MOST_SHOWN else ''})"
    first, second = (value_text(update, other, deepest - 1) for other in (op.lhs, op.rhs))
    return f"{first} * {second}"


def argument_text(update: UpdateOp, value: BlockArgument) -> str:
    """A cell, a scalar or a coordinate by the program's names."""
    taps = update.tap_list
    if value.index < len(taps):
        tap = taps[value.index]
        return f"{name_in_program(update, update.sources[tap.operand])}{list(tap.offset)}"
    if value.index < len(taps) + len(update.scalars):
        return name_in_program(update, update.scalars[value.index - len(taps)])
    return f"coordinate {update.index_axes[value.index - len(taps) - len(update.scalars)]}"


def name_in_program(update: UpdateOp, value: SSAValue) -> str:
    """The program's name of a field or scalar of an update."""
    loop = update.parent_op()
    if isinstance(loop, LoopOp) and value in loop.body.block.args:
        value = loop.buffers[loop.body.block.args.index(value)]
    return f"%{value.name_hint or '_'}"
