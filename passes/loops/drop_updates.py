"""drop-updates: updates without a reader are left out.

Before:
```
%S = temporal.scratch : !field
temporal.loop %n (%u = %U, %v = %V, %s = %S) rotate [1, 0, 2] {
  temporal.update %s = @mean(%u[-1], %u[1]) in <[1], [63]>
  temporal.update %v = @add(%u[0], %s[0]) in <[1], [63]>
  temporal.update %v = @sum(%u[-1], %u[1]) in <[1], [63]>
}
```
After:
```
temporal.loop %n (%u = %U, %v = %V) rotate [1, 0] {
  temporal.update %v = @sum(%u[-1], %u[1]) in <[1], [63]>
}
```
Two patterns of the temporal dialect (`dialects/temporal/canonicalize.py`) run without the others.
An update is left out

1. if later updates of the step write the same cells again before a read: a copy of old cells, made
   for cells that a region leaves alone, where the next region takes all cells; or
2. if all targets are scratch of the loop without a reader.

Scratch without an update is left out, too. Steps of more than MOST_UPDATES updates stay: the cost
is a comparison for each pair of updates.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import GreedyRewritePatternApplier, PatternRewriteWalker

from timetile.dialects.temporal import LoopOp, ScratchOp
from timetile.dialects.temporal.canonicalize import DropIdleBuffers, EraseOverwritten, EraseUnread
from timetile.dialects.temporal.footprints import MOST_UPDATES


@dataclass(frozen=True)
class DropUpdatesPass(ModulePass):
    """Drop updates without a reader; see the module's documentation."""

    name = "drop-updates"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        erase = PatternRewriteWalker(
            GreedyRewritePatternApplier([EraseOverwritten(), EraseUnread()]), walk_reverse=True
        )
        loops = [inner for inner in op.walk() if isinstance(inner, LoopOp)]
        erased = [
            erase.rewrite_region(loop.body) for loop in loops if len(loop.updates) <= MOST_UPDATES
        ]
        if not any(erased):
            return
        PatternRewriteWalker(DropIdleBuffers()).rewrite_module(op)
        for scratch in [inner for inner in op.walk() if isinstance(inner, ScratchOp)]:
            if scratch.field.first_use is None:
                scratch.detach()
                scratch.erase()
