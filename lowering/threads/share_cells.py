"""
share-cells: a value computed by one cell of a thread is not computed again for another cell, or a
turn of the loop later.

Before, for two cells of a row:                  After:
```
%d = arith.subf %a, %b : f64                     %d = arith.subf %a, %b : f64
%p = math.fma %d, %d, %s : f64                   %p = math.fma %d, %d, %s : f64
%e = arith.subf %b, %a : f64                     %q = math.fma %d, %d, %t : f64
%q = math.fma %e, %e, %t : f64
```
Differences, fluxes and the like belong to a face, and both cells of the face compute them.

1. Operations on equal numbers in one block share a result: those of cells side by side in a thread,
   and those of cells meeting along the stream, in an unrolled loop.
2. A difference serves for its opposite if only squares and magnitudes are made of both: no bit
   changes, except perhaps of a NaN, all of which are equally good.
3. The pass follows the order of the code: shared values are computed at their first use.

The pass is a walk and no rewrite pattern: it numbers the values of a whole block.
"""

from __future__ import annotations

from collections.abc import Hashable

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass

from timetile.lowering.threads.rewriting import functions_of, replace_results
from timetile.passes.analysis.cells.sharing import find_key, is_shared, key_of
from timetile.passes.not_raised import BEFORE_THREADS, remark_without_loops


def share_block(block: Block) -> None:
    """Share equal operations of a block, and of each block inside."""
    seen: dict[Hashable, Operation] = {}
    for op in list(block.ops):
        for region in op.regions:
            for inner in region.blocks:
                share_block(inner)
        if not is_shared(op):
            continue
        operands = [*op.operands]
        key = key_of(op, operands)
        first = find_key(seen, key, op, operands)
        if first is None:
            seen[key] = op
            continue
        replace_results(op, *first.results)


class ShareCellsPass(ModulePass):
    """Share equal operations of a thread's cells; see the module's documentation."""

    name = "share-cells"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        remark_without_loops(self, op, BEFORE_THREADS)
        for function in functions_of(op):
            share_block(function.body.block)
