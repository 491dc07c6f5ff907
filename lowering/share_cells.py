"""share-cells: what one cell of a thread computes is not computed again for another, nor a turn of the loop later.

Before, for two cells of a row:                  After:
```
%d = arith.subf %a, %b : f64                     %d = arith.subf %a, %b : f64
%p = math.fma %d, %d, %s : f64                   %p = math.fma %d, %d, %s : f64
%e = arith.subf %b, %a : f64                     %q = math.fma %d, %d, %t : f64
%q = math.fma %e, %e, %t : f64
```
Differences, fluxes and the like belong to a face, and both its cells compute them.

1. Operations on the same numbers in one block share a result: those of cells that a thread holds side by side, and
   those that meet along the stream, where the loop is unrolled.
2. A difference serves for its opposite where nothing but squares and magnitudes are made of it: no bit changes, but
   perhaps of a NaN, one of which is as good as another.
3. It comes in the order in which the code runs: what is shared is computed where it is first needed.
"""

from __future__ import annotations

from collections.abc import Hashable

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass

from timetile.lowering.rewriting import functions_of, replace
from timetile.passes.analysis.cells.sharing import find, is_shared, key_of


def share_block(block: Block) -> None:
    """Share what is computed twice in a block, and in each block inside it."""
    seen: dict[Hashable, Operation] = {}
    for op in list(block.ops):
        for region in op.regions:
            for inner in region.blocks:
                share_block(inner)
        if not is_shared(op):
            continue
        first = find(seen, op, op.operands)
        if first is None:
            seen[key_of(op, op.operands)] = op
            continue
        replace(op, *first.results)


class ShareCellsPass(ModulePass):
    """Share what the cells of a thread compute in common; see the module's documentation."""

    name = "share-cells"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions_of(op):
            share_block(function.body.block)
