"""roll-returns: an apply with several neighbouring cells a turn computes one cell again.

Before:
```
%a = stencil.access %x[-1, 0] : !temp
%b = stencil.access %x[-1, 1] : !temp
%p = arith.mulf %a, %a : f64
%q = arith.mulf %b, %b : f64
stencil.return %p, %q unroll <[1, 2]> : f64, f64
```
After, where `%b` and `%q` have no reader:
```
%a = stencil.access %x[-1, 0] : !temp
%p = arith.mulf %a, %a : f64
stencil.return %p : f64
```

1. The value for the cell at offset k of the unrolled cells is moved by -k: every access and every
   coordinate behind the value.
2. If the moved values are equal expressions, the apply was unrolled by `stencil-unroll`, and the
   first value is kept. Values of several results are listed by result, or by cell as in
   `stencil-unroll`.
3. Otherwise each cell selects its value by the remainder of its coordinate, counted from the start
   of the stores: all values are computed, moved.

An apply with stores that start at several places, or with a reader apply, stays unrolled, with a
remark.
"""

from __future__ import annotations

from functools import reduce
from itertools import product

from xdsl.context import Context
from xdsl.dialects import arith, stencil
from xdsl.dialects.builtin import IndexType, IntegerAttr, ModuleOp
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from timetile.dialects.verified import parent_of
from timetile.passes.diagnostics import remark
from timetile.passes.patterns import rewrite_once

Offset = tuple[int, ...]


def shifted(offset: stencil.IndexAttr, axes: Offset, by: Offset) -> Offset:
    """An offset of some axes, moved back."""
    return tuple(d - by[axis] for d, axis in zip(offset, axes))


def place_of(value: SSAValue) -> int | None:
    """The position of a value among the results of its operation."""
    return value.index if isinstance(value, OpResult) else None


def same_cell(a: SSAValue, b: SSAValue, by: Offset) -> bool:
    """Whether `b` is the expression of `a`, computed `by` cells further."""
    first, second = a.owner, b.owner
    if not (isinstance(first, Operation) and isinstance(second, Operation)):
        return a is b
    if first.name != second.name or a.type != b.type:
        return False
    if isinstance(first, stencil.AccessOp) and isinstance(second, stencil.AccessOp):
        axes = tuple(second.offset_mapping or range(len(second.offset)))
        return (
            first.temp is second.temp
            and first.offset_mapping == second.offset_mapping
            and tuple(first.offset) == shifted(second.offset, axes, by)
        )
    if isinstance(first, stencil.IndexOp) and isinstance(second, stencil.IndexOp):
        axes = tuple(range(len(by)))
        return first.dim == second.dim and tuple(first.offset) == shifted(second.offset, axes, by)
    if first.regions or second.regions or first.properties != second.properties:
        return False
    return (
        first.attributes == second.attributes
        and len(first.operands) == len(second.operands)
        and place_of(a) == place_of(b)
        and all(same_cell(x, y, by) for x, y in zip(first.operands, second.operands))
    )


def first_cells(groups: list[list[SSAValue]], places: list[Offset]) -> list[SSAValue] | None:
    """
    The value of each group at the first place, if all other values are the first value, moved;
    otherwise None.
    """
    for group in groups:
        if not all(same_cell(group[0], value, by) for value, by in zip(group, places)):
            return None
    return [group[0] for group in groups]


def places_of(factors: Offset) -> list[Offset]:
    """The places of the cells returned by an apply, from their number along each axis."""
    return list(product(*(range(n) for n in factors)))


def roll(op: stencil.ReturnOp, factors: Offset, rewriter: PatternRewriter) -> bool:
    """Keep the first cell's values; False where the others are not the first's, moved."""
    places = places_of(factors)
    values, count = list(op.arg), len(places)
    results = len(values) // count
    by_result = [values[k * count : (k + 1) * count] for k in range(results)]
    by_cell = [values[k::results] for k in range(results)]
    kept = first_cells(by_result, places) or first_cells(by_cell, places)
    if kept is None:
        return False
    rewriter.replace(op, stencil.ReturnOp(kept))
    return True


def beginning(apply: stencil.ApplyOp) -> Offset | None:
    """
    The start of all stores of the results; None if starts differ, or if another operation reads a
    result.
    """
    found: set[Offset] = set()
    for result in apply.res:
        for use in result.uses:
            if not isinstance(use.operation, stencil.StoreOp):
                return None
            found.add(tuple(use.operation.bounds.lb))
    return found.pop() if len(found) == 1 else None


class Selection:
    """The operations that select the value of a cell among the values of neighbours."""

    def __init__(
        self, op: stencil.ReturnOp, factors: Offset, begin: Offset, rewriter: PatternRewriter
    ):
        self.op, self.factors, self.begin = op, factors, begin
        self.rewriter = rewriter
        self.moved: dict[tuple[SSAValue, Offset], SSAValue] = {}

    def add(self, new: Operation) -> SSAValue:
        """Insert an operation before the return."""
        new.location = self.op.location
        return self.rewriter.insert(new).results[0]

    def number(self, value: int) -> SSAValue:
        """A coordinate."""
        return self.add(arith.ConstantOp(IntegerAttr(value, IndexType())))

    def move(self, value: SSAValue, by: Offset) -> SSAValue:
        """The value of the cell `by` cells before."""
        owner = value.owner
        if not isinstance(owner, Operation) or not any(by):
            return value
        if (value, by) not in self.moved:
            copy = owner.clone({v: self.move(v, by) for v in owner.operands})
            if isinstance(copy, stencil.AccessOp | stencil.IndexOp):
                axes = tuple(range(len(by)))
                if isinstance(copy, stencil.AccessOp) and copy.offset_mapping is not None:
                    axes = tuple(copy.offset_mapping)
                copy.offset = stencil.IndexAttr.from_indices(*shifted(copy.offset, axes, by))
            if isinstance(copy, stencil.DynAccessOp):
                # Extents of a dynamic access are relative to the cell, along every axis.
                axes = tuple(range(len(by)))
                copy.lb = stencil.IndexAttr.from_indices(*shifted(copy.lb, axes, by))
                copy.ub = stencil.IndexAttr.from_indices(*shifted(copy.ub, axes, by))
            self.add(copy)
            self.moved[value, by] = copy.results[place_of(value) or 0]
        return self.moved[value, by]

    def is_at(self, place: Offset) -> SSAValue:
        """Whether the cell is at this place among its neighbours, as a value of type i1."""
        several = [axis for axis, factor in enumerate(self.factors) if factor > 1]
        along = (self.is_at_along(axis, place[axis]) for axis in several)
        return reduce(lambda a, b: self.add(arith.AndIOp(a, b)), along)

    def is_at_along(self, axis: int, place: int) -> SSAValue:
        """Whether the cell is at this place along an axis, as a value of type i1."""
        start = [-b if a == axis else 0 for a, b in enumerate(self.begin)]
        own = self.add(coordinate(axis, start))
        rest = self.add(arith.RemUIOp(own, self.number(self.factors[axis])))
        return self.add(arith.CmpiOp(rest, self.number(place), "eq"))

    def chosen(self, values: list[SSAValue], places: list[Offset]) -> SSAValue:
        """The value of a cell, selected by the cell's place."""
        result = values[0]
        for value, place in zip(values[1:], places[1:]):
            result = self.add(arith.SelectOp(self.is_at(place), self.move(value, place), result))
        return result


def coordinate(axis: int, start: list[int]) -> stencil.IndexOp:
    """The cell's coordinate along an axis, counted from a start."""
    offset = stencil.IndexAttr.from_indices(*start)
    return stencil.IndexOp.build(
        properties={"dim": IntegerAttr(axis, IndexType()), "offset": offset},
        result_types=[IndexType()],
    )


def select(op: stencil.ReturnOp, factors: Offset, rewriter: PatternRewriter) -> bool:
    """Select each cell's value. Returns False if the stores do not say which cell is first."""
    begin = beginning(parent_of(op, stencil.ApplyOp))
    if begin is None:
        return False
    places, selection = places_of(factors), Selection(op, factors, begin, rewriter)
    values, count = list(op.arg), len(places)
    groups = [values[k * count : (k + 1) * count] for k in range(len(values) // count)]
    rewriter.replace(op, stencil.ReturnOp([selection.chosen(g, places) for g in groups]))
    return True


class RollReturn(RewritePattern):
    """The return of an unrolled apply returns one cell; a return that cannot gets a remark."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: stencil.ReturnOp, rewriter: PatternRewriter, /) -> None:
        if op.unroll is None:
            return
        factors = tuple(op.unroll)
        if roll(op, factors, rewriter) or select(op, factors, rewriter):
            return
        remark(
            op,
            "the returned cells are not one cell, moved, and the stores do not begin at one "
            "place; the apply stays unrolled",
        )


class RollReturnsPass(ModulePass):
    """Compute one cell for each apply; see the module's documentation."""

    name = "roll-returns"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rewrite_once(list(op.walk()), {stencil.ReturnOp: RollReturn()})
