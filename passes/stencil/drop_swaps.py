"""
drop-swaps: a `dmp.swap` that exchanges nothing is erased.

Before:
```
"dmp.swap"(%a) {strategy = #dmp.grid_slice_2d<#dmp.topo<1x1>, false>, swaps = []} : (!f) -> ()
%u = stencil.load %a : !f -> !t
```
After:
```
%u = stencil.load %a : !f -> !t
```
A swap of several ranks stays unchanged: `join-parts` makes one domain of the ranks' parts.
"""

from __future__ import annotations

from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.experimental import dmp
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter


def exchanges_nothing(swap: dmp.SwapOp) -> bool:
    """Whether a swap is of one rank."""
    return prod(swap.strategy.comm_layout().as_tuple()) == 1


class DropSwapsPass(ModulePass):
    """Erase swaps that exchange nothing; see the module's documentation."""

    name = "drop-swaps"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            if isinstance(inner, dmp.SwapOp) and exchanges_nothing(inner):
                if inner.swapped_values is not None:
                    inner.swapped_values.replace_all_uses_with(inner.input_stencil)
                Rewriter.erase_op(inner)
