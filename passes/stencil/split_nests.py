"""
split-nests: a nest that stores to one memref several times becomes a nest for each store.

Before, rows beside the cells of a step, copied from the other end:
```
scf.for %j = %c1 to %c9 step %c1 {
  %x = memref.load %u[%c8, %j] : memref<10x10xf64>
  memref.store %x, %u[%c0, %j] : memref<10x10xf64>
  %y = memref.load %u[%c1, %j] : memref<10x10xf64>
  memref.store %y, %u[%c9, %j] : memref<10x10xf64>
}
```
After:
```
scf.for %j = %c1 to %c9 step %c1 {
  %x = memref.load %u[%c8, %j] : memref<10x10xf64>
  memref.store %x, %u[%c0, %j] : memref<10x10xf64>
}
scf.for %j = %c1 to %c9 step %c1 {
  %y = memref.load %u[%c1, %j] : memref<10x10xf64>
  memref.store %y, %u[%c9, %j] : memref<10x10xf64>
}
```
1. The cells of a store are the cells written, and the cells of all loads behind the stored value.
2. No store may write a cell of another store: every order of the stores then has one result.
   Nests of other stores stay, and `raise-nests` has the remark.

The pass is a walk and no rewrite pattern: a nest is found from the outside in, and inner loops of
the nest are no nests.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations

from xdsl.context import Context
from xdsl.dialects import memref
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from timetile.dialects.boxes import CellBox
from timetile.passes.raising.errors import CannotRaiseError
from timetile.passes.raising.memory import may_be_one, memory_of
from timetile.passes.stencil.nests.nest import LoopNest, Written, is_of_stencils, nest_of
from timetile.passes.stencil.nests.order import Order, check_memrefs, operations_behind
from timetile.passes.stencil.nests.places import NestPlace, places_of

TouchedCells = tuple[SSAValue, CellBox | None]
"""A memory, and the cells touched; None for unknown cells."""


def cells_over_turns(places: Sequence[NestPlace], nest: LoopNest) -> CellBox:
    """The cells of an access, over all turns of the loops."""
    spans = [
        (place.shift, place.shift + 1)
        if place.loop is None
        else (nest.loops[place.loop].low + place.shift, nest.loops[place.loop].high + place.shift)
        for place in places
    ]
    return CellBox(*zip(*spans))


def cells_behind(store: Written, nest: LoopNest) -> Iterator[TouchedCells]:
    """The cells of the loads behind the value of a store."""
    for op in operations_behind([store.op.value], nest, Order()):
        if isinstance(op, memref.LoadOp):
            places = places_of(op.indices, nest.numbers)
            box = None if places is None else cells_over_turns(places, nest)
            yield memory_of(op.memref), box


def may_touch(one: TouchedCells, other: TouchedCells) -> bool:
    """Whether two accesses may touch a cell in common."""
    if one[0] is not other[0]:
        return may_be_one(one[0], other[0])
    return one[1] is None or other[1] is None or not (one[1] & other[1]).is_empty


def are_apart(nest: LoopNest) -> bool:
    """Whether no store writes a cell that another store reads or writes."""
    for store, other in permutations(nest.stores, 2):
        written = store.memory, cells_over_turns(store.places, nest)
        touched = *cells_behind(other, nest), (other.memory, cells_over_turns(other.places, nest))
        if any(may_touch(written, cells) for cells in touched):
            return False
    return True


def keep_store(root: Operation, number: int) -> None:
    """Erase all stores of a nest but one, by number, and operations without a reader."""
    stores = [op for op in root.walk() if isinstance(op, memref.StoreOp)]
    for k, store in enumerate(stores):
        if k != number:
            Rewriter.erase_op(store)
    for op in root.walk(reverse=True):
        if op is not root and op.results and all(r.first_use is None for r in op.results):
            Rewriter.erase_op(op)


def split_in(block: Block) -> None:
    """Split the nests of a block, and of the loops and branches in the block."""
    for op in list(block.ops):
        try:
            nest = nest_of(op)
            if nest is not None:
                check_memrefs(nest)
        except CannotRaiseError:
            # Raising nests reports the error.
            continue
        if nest is None:
            for inner in (inner for region in op.regions for inner in region.blocks):
                split_in(inner)
            continue
        memories = [store.memory for store in nest.stores]
        if len(set(memories)) == len(memories) or not are_apart(nest):
            continue
        for number in range(len(nest.stores)):
            keep_store(made := op.clone(), number)
            Rewriter.insert_op(made, InsertPoint.before(op))
        Rewriter.erase_op(op)


class SplitNestsPass(ModulePass):
    """A nest for each store; see the module's documentation."""

    name = "split-nests"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in [each for each in op.ops if isinstance(each, FuncOp)]:
            if function.is_declaration or is_of_stencils(function):
                continue
            for block in function.body.blocks:
                split_in(block)
