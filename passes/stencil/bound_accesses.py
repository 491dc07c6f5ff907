"""bound-accesses: an access at a computed place with few possible offsets becomes a choice of
accesses.

Before:
```
%i = stencil.index 0 <[0]>
%k = arith.addi %i, %shift : index
%v = stencil.dyn_access %x[%k] in <[-1]> : <[1]> : !t
```
After:
```
%d = arith.subi %k, %i : index
%0 = stencil.access %x[-1] : !t
%1 = stencil.access %x[0] : !t
%2 = stencil.access %x[1] : !t
... arith.select of these by %d
```
1. Along each axis the place must be the cell's own coordinate plus an offset. The offset is a sum
   of constants, selects of constants, and values computed from scalars alone.
2. An offset made of constants and selects has a known set of values. A scalar is equal for all
   cells, so the declared extent, valid for the first and the last cell, bounds the scalar.
3. All possible offsets are read, at most `MOST_PLACES`, and the right value is selected.

An access with more places, or at a place that depends on fields, stays unchanged: `gather-cells`
reads memory for it.
"""

from __future__ import annotations

from functools import reduce
from itertools import product

from xdsl.context import Context
from xdsl.dialects import arith, stencil
from xdsl.dialects.builtin import IndexType, IntegerAttr, ModuleOp
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from timetile.passes.analysis.cells.constants import integer_constant
from timetile.passes.patterns import rewrite_once

MOST_PLACES = 64
"""Most places of an access. The registers and selects of more places cost more than a load."""

Offsets = frozenset[int]


def offsets(value: SSAValue, axis: int, low: int, high: int) -> Offsets | None:
    """
    The possible offsets of a value from the cell's own coordinate along an axis; None if unknown.
    """
    owner = value.owner
    match owner:
        case stencil.IndexOp():
            own = owner.dim.value.data == axis
            return frozenset({tuple(owner.offset)[axis]}) if own else None
        case arith.AddiOp():
            for place, shift in ((owner.lhs, owner.rhs), (owner.rhs, owner.lhs)):
                first = offsets(place, axis, low, high)
                second = shifts(shift, low, high)
                if first is not None and second is not None:
                    return frozenset(a + b for a, b in product(first, second))
        case arith.SubiOp():
            first = offsets(owner.lhs, axis, low, high)
            second = shifts(owner.rhs, low, high, negated=True)
            if first is not None and second is not None:
                return frozenset(a + b for a, b in product(first, second))
        case arith.SelectOp():
            first = offsets(owner.lhs, axis, low, high)
            second = offsets(owner.rhs, axis, low, high)
            return None if first is None or second is None else first | second
        case _:
            return None
    return None


def shifts(value: SSAValue, low: int, high: int, *, negated: bool = False) -> Offsets | None:
    """The possible values of a shift. A scalar lies within the declared extent."""
    sign = -1 if negated else 1
    constant = integer_constant(value)
    if constant is not None:
        return frozenset({sign * constant})
    owner = value.owner
    if isinstance(value, BlockArgument):
        return frozenset(range(low, high + 1))
    if isinstance(owner, arith.SelectOp):
        first = shifts(owner.lhs, low, high, negated=negated)
        second = shifts(owner.rhs, low, high, negated=negated)
        return None if first is None or second is None else first | second
    if isinstance(owner, arith.IndexCastOp):
        return shifts(owner.input, low, high, negated=negated)
    return frozenset(range(low, high + 1)) if is_scalar(value) else None


def is_scalar(value: SSAValue) -> bool:
    """Whether a value is computed from scalars alone, and so equal for all cells."""
    owner = value.owner
    if not isinstance(owner, Operation):
        return not isinstance(value.type, stencil.StencilType)
    is_arithmetic = owner.name.startswith(("arith.", "math.")) and not owner.regions
    return is_arithmetic and all(map(is_scalar, owner.operands))


def choice(op: stencil.DynAccessOp) -> list[tuple[int, ...]] | None:
    """The offsets at which an access may read; None if unknown or too many."""
    lower, upper = tuple(op.lb), tuple(op.ub)
    found: list[list[int]] = []
    for axis, place in enumerate(op.offset):
        along = offsets(place, axis, lower[axis], upper[axis])
        if along is None:
            return None
        found.append(sorted(d for d in along if lower[axis] <= d <= upper[axis]))
    places = list(product(*found))
    return places if 0 < len(places) <= MOST_PLACES else None


def index_of(axis: int, rank: int) -> stencil.IndexOp:
    """The cell's coordinate along an axis."""
    return stencil.IndexOp.build(
        properties={
            "dim": IntegerAttr(axis, IndexType()),
            "offset": stencil.IndexAttr.from_indices(*(0 for _ in range(rank))),
        },
        result_types=[IndexType()],
    )


class ChooseAccess(RewritePattern):
    """An access at a computed place becomes a choice of accesses at the few possible offsets."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: stencil.DynAccessOp, rewriter: PatternRewriter, /) -> None:
        places = choice(op)
        if places is None:
            return

        def add(new: Operation) -> SSAValue:
            new.location = op.location
            return rewriter.insert(new).results[0]

        rank = len(op.offset)
        several = [axis for axis in range(rank) if len({place[axis] for place in places}) > 1]
        moved = {
            axis: add(arith.SubiOp(op.offset[axis], add(index_of(axis, rank)))) for axis in several
        }

        def is_at(axis: int, place: int) -> SSAValue:
            constant = add(arith.ConstantOp(IntegerAttr(place, IndexType())))
            return add(arith.CmpiOp(moved[axis], constant, "eq"))

        value = add(stencil.AccessOp(op.temp, places[0]))
        for place in places[1:]:
            along = (is_at(axis, place[axis]) for axis in several)
            here = reduce(lambda a, b: add(arith.AndIOp(a, b)), along)
            value = add(arith.SelectOp(here, add(stencil.AccessOp(op.temp, place)), value))
        rewriter.replace(op, [], [value])


class BoundAccessesPass(ModulePass):
    """Accesses at known offsets; see the module's documentation."""

    name = "bound-accesses"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rewrite_once(list(op.walk()), {stencil.DynAccessOp: ChooseAccess()})
