"""share-subexpressions: equal expressions of a cell are computed once.

Before:                                  After:
```
%d = arith.subf %x, %y : f64             %d = arith.subf %x, %y : f64
%e = arith.subf %x, %y : f64
%p = arith.mulf %d, %e : f64             %p = arith.mulf %d, %d : f64
```
xDSL's common subexpression elimination does the work, on the cell functions. The pass runs after
contraction: a product fused by two sums costs nothing, and one product for both would cost an
operation.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.transforms.common_subexpression_elimination import cse

from timetile.passes.analysis.cells.cell_functions import cell_functions


class ShareSubexpressionsPass(ModulePass):
    """Share subexpressions in all cell functions; see the module's documentation."""

    name = "share-subexpressions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in cell_functions(op):
            cse(function.body)
