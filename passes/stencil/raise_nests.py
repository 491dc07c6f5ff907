"""
raise-nests: loops over cells of memrefs become the stencil dialect.

Before:
```
scf.for %t = %c0 to %n step %c1 iter_args(%a = %A, %b = %B) -> (!m, !m) {
  scf.for %i = %c1 to %c9 step %c1 {
    %w = arith.subi %i, %c1 : index
    %v = memref.load %a[%w] : memref<10xf64>
    memref.store %v, %b[%i] : memref<10xf64>
  }
  scf.yield %b, %a : !m, !m
}
```
After:
```
%fA = stencil.external_load %A : !m -> !stencil.field<[0,10]xf64>
%fB = stencil.external_load %B : !m -> !stencil.field<[0,10]xf64>
scf.for %t = %c0 to %n step %c1 iter_args(%a = %fA, %b = %fB) -> (!f, !f) {
  %u = stencil.load %a : !f -> !t
  %v = stencil.apply(%x = %u : !t) -> (!t) { ... stencil.access %x[-1] ... }
  stencil.store %v to %b(<[1], [9]>) : !t to !f
  scf.yield %b, %a : !f, !f
}
```
1. A nest is a perfect nest of `scf.for` and `scf.parallel` with steps of 1, and with bounds known
   from constants and extents (`memref.dim`).
   The place of every store has each loop's number once, plus a constant, and constants along other
   axes.
2. Loads at constant distances become accesses; loads of numbers equal for all cells move in front
   of the nest; the number of a loop becomes `stencil.index`.
3. A load of a memref written by the nest reads old cells (a snapshot) or new cells (of an earlier
   store), by the order of the loops (`nests/order.py`). A nest in the order of Gauss-Seidel, which
   is no order of whole sweeps, stays for the host, with a remark.
4. Loops carry fields in place of the memrefs. An open extent (`memref<?x12xf64>`) is the number of
   cells reached by nests.

Functions with operations of the stencil dialect keep their nests: there, the host reads and writes
single cells between the applies.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.context import Context
from xdsl.dialects import memref, scf
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from timetile.dialects.verified import block_of
from timetile.passes.diagnostics import remark
from timetile.passes.patterns import rewrite_once
from timetile.passes.raising.errors import CannotRaiseError
from timetile.passes.stencil.nests.applies import NestApplies
from timetile.passes.stencil.nests.fields import NestFields
from timetile.passes.stencil.nests.nest import LoopNest, is_of_stencils, nest_of
from timetile.passes.stencil.nests.order import Order, order_of
from timetile.passes.stencil.unroll_loops import Unroll


def nests_in(block: Block) -> Iterator[tuple[LoopNest, Order]]:
    """The nests of a block and of the loops and branches in it, from the outside in."""
    for op in list(block.ops):
        try:
            if (nest := nest_of(op)) is not None:
                yield nest, order_of(nest)
                continue
        except CannotRaiseError as error:
            remark(error.op, f"the host runs the nest cell by cell: {error.reason}")
            continue
        for region in op.regions:
            for inner in region.blocks:
                yield from nests_in(inner)


def unroll_in_cells(function: FuncOp) -> None:
    """Unroll loops with constant bounds that give a number, from the inside out."""
    known: list[Operation] = []
    while (loops := number_loops(function)) and loops != known:
        known = loops
        rewrite_once(loops, {scf.ForOp: Unroll()})


def number_loops(function: FuncOp) -> list[Operation]:
    """The loops that carry numbers alone, beside a store of a cell, inner loops first."""
    return [
        op
        for op in function.walk(reverse=True)
        if isinstance(op, scf.ForOp)
        and op.results
        and not any(isinstance(result.type, MemRefType) for result in op.results)
        and any(isinstance(other, memref.StoreOp) for other in block_of(op).ops)
    ]


def drop_unused_numbers(function: FuncOp) -> None:
    """Erase arithmetic without a reader: a time loop with such arithmetic is work for the host."""
    for op in function.walk(reverse=True):
        unused = all(result.first_use is None for result in op.results)
        if op.name.startswith("arith.") and not op.regions and unused:
            Rewriter.erase_op(op)


class RaiseNestsPass(ModulePass):
    """Nests over memrefs become applies; see the module's documentation."""

    name = "raise-nests"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in [each for each in op.ops if isinstance(each, FuncOp)]:
            if function.is_declaration or is_of_stencils(function):
                continue
            unroll_in_cells(function)
            nests = [each for block in function.body.blocks for each in nests_in(block)]
            fields = NestFields(function, nests)
            fields.carry()
            for nest, order in nests:
                NestApplies(nest, order, fields.field).build()
            fields.drop_unused_casts()
            if nests:
                drop_unused_numbers(function)
