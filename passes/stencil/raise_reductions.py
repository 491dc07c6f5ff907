"""
raise-reductions: a parallel loop over cells that ends with a number becomes a nest and a
`temporal.reduce`.

Before:
```
%r = scf.parallel (%i) = (%c1) to (%c9) step (%c1) init (%zero) -> f64 {
  %a = memref.load %A[%i] : memref<10xf64>
  %s = arith.mulf %a, %a : f64
  scf.reduce(%s : f64) {
  ^bb0(%x: f64, %y: f64):
    %t = arith.addf %x, %y : f64
    scf.reduce.return %t : f64
  }
}
```
After:
```
%S = memref.alloc() : memref<9xf64>  // at the function's beginning
scf.parallel (%i) = (%c1) to (%c9) step (%c1) {
  %a = memref.load %A[%i] : memref<10xf64>
  %s = arith.mulf %a, %a : f64
  memref.store %s, %S[%i] : memref<9xf64>
}
%F = stencil.external_load %S : memref<9xf64> -> !stencil.field<[0,9]xf64>
%t = temporal.reduce total %F in <[1], [9]> : !stencil.field<[0,9]xf64> -> f64
%r = arith.addf %zero, %t : f64
```
1. Sums, greatest and least numbers of f32 and f64 are taken. Bounds are constants from 0 on, with
   a step of 1.
2. A parallel loop leaves the order open, and `temporal.reduce` fixes the order.

Other parallel loops with results stay unchanged, and so do sums in loops of `scf.for`, as the order
there is fixed.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, memref, scf, stencil
from xdsl.dialects.builtin import MemRefType, ModuleOp, f32, f64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from timetile.dialects.temporal import ReduceOp, Reduction
from timetile.passes.analysis.cells.constants import integer_constant
from timetile.passes.raising.boxes import box_of
from timetile.passes.stencil.nests.nest import MOST_AXES, gives_number

KINDS: dict[type[Operation], Reduction] = {
    arith.AddfOp: Reduction.TOTAL,
    arith.MaximumfOp: Reduction.MAXIMUM,
    arith.MinimumfOp: Reduction.MINIMUM,
}
"""Operations on two numbers, and the reduction of all numbers."""


@dataclass(frozen=True)
class Reduced:
    """One result of a parallel loop: first value, value of a cell, and operation."""

    first: SSAValue
    cell: SSAValue
    op: type[arith.AddfOp] | type[arith.MaximumfOp] | type[arith.MinimumfOp]


def reductions_of(loop: scf.ParallelOp) -> list[Reduced] | None:
    """The reductions of a loop; None for another form."""
    end = loop.body.block.last_op
    if not isinstance(end, scf.ReduceOp):
        return None
    found: list[Reduced] = []
    for first, cell, region in zip(loop.initVals, end.args, end.reductions):
        op, *rest = region.block.ops
        operands = set(op.operands)
        is_plain = len(rest) == 1 and rest[0].operands[0] in op.results
        if not is_plain or operands != set(region.block.args) or cell.type not in (f32, f64):
            return None
        if not isinstance(op, arith.AddfOp | arith.MaximumfOp | arith.MinimumfOp):
            return None
        found.append(Reduced(first, cell, type(op)))
    return found


def box_of_loop(loop: scf.ParallelOp) -> stencil.StencilBoundsAttr | None:
    """The cells of a loop; None for other bounds than constants from 0 on, and for no cells."""
    low = [integer_constant(value) for value in loop.lowerBound]
    high = [integer_constant(value) for value in loop.upperBound]
    known = [(a, b) for a, b in zip(low, high) if a is not None and b is not None and 0 <= a < b]
    steps = {integer_constant(value) for value in loop.step}
    if steps != {1} or len(known) < len(low) or len(low) > MOST_AXES:
        return None
    return box_of([a for a, _ in known], [b for _, b in known])


def raise_reduction(loop: scf.ParallelOp, function: FuncOp) -> None:
    """Replace a parallel loop with results in a function, if the form is known."""
    box, results = box_of_loop(loop), reductions_of(loop)
    cells = list(loop.body.block.ops)[:-1]
    if box is None or not results or not all(gives_number(op) for op in cells):
        return
    shape = tuple(box.ub)
    memories = [memref.AllocOp.get(each.cell.type, None, shape) for each in results]
    kept = loop.detach_region(loop.body)
    end = kept.block.last_op
    assert end is not None
    numbers = list(kept.block.args)
    for each, memory in zip(results, memories):
        store = memref.StoreOp.get(each.cell, memory.memref, numbers)
        store.location = loop.location
        Rewriter.insert_op(store, InsertPoint.before(end))
    Rewriter.replace_op(end, scf.ReduceOp())
    nest = scf.ParallelOp(loop.lowerBound, loop.upperBound, loop.step, kept)
    made: list[Operation] = [nest]
    values: list[SSAValue] = []
    for each, memory in zip(results, memories):
        assert isinstance(memory.memref.type, MemRefType)
        whole = stencil.FieldType(box_of([0] * len(shape), shape), each.cell.type)
        field = stencil.ExternalLoadOp(memory.memref, whole)
        number = ReduceOp(KINDS[each.op], field.result, box)
        joined = each.op(each.first, number.result)
        made += [field, number, joined]
        values.append(joined.result)
    for op in (*memories, *made):
        op.location = loop.location
    Rewriter.insert_op(memories, InsertPoint.at_start(function.body.blocks[0]))
    Rewriter.replace_op(loop, made, values)


class RaiseReductionsPass(ModulePass):
    """Parallel loops with results; see the module's documentation."""

    name = "raise-reductions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in [each for each in op.ops if isinstance(each, FuncOp)]:
            for loop in [inner for inner in function.walk() if isinstance(inner, scf.ParallelOp)]:
                if loop.results:
                    raise_reduction(loop, function)
