"""
copy-edges: a step of copies writes the edge cells of all buffers.

Before, after any number of steps with continued fields:
```
temporal.loop %n (%a = %A, %b = %B, %s = %S) rotate [1, 0, 2] {
  temporal.update %b = @cell(%a[-1], %a[1]) in <[1], [65]>
  temporal.update %s = @copy(%b[64]) in <[0], [1]>
  temporal.update %b = @copy(%s[0]) in <[0], [1]>
}
```
After:
```
temporal.loop %n (%a = %A, %b = %B, %s = %S) rotate [0, 1, 2] {
  temporal.update %s = @copy(%a[64]) in <[0], [1]>
  temporal.update %a = @copy(%s[0]) in <[0], [1]>
  temporal.update %s = @copy(%b[64]) in <[0], [1]>
  temporal.update %b = @copy(%s[0]) in <[0], [1]>
}
```
1. Copies of edge cells are repeated for each buffer whose edge cells are images after a step, as
   written by this or an earlier step (`passes/analysis/edge_copies.py`).
2. Other updates are left out, and no buffer changes places.

The step follows the loop that `drop-edge-copies` makes of the loop. Other loops stay as they are.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from timetile.dialects.syntax import encode_integers
from timetile.dialects.temporal import LoopOp
from timetile.passes.analysis.edge_copies import EdgeSteps, NoImagesError, edge_steps


def copy_edges(loop: LoopOp, steps: EdgeSteps) -> None:
    """Leave the copies of edge cells in a loop, for each buffer."""
    args, updates = list(loop.body.block.args), list(loop.updates)
    for role, (other, numbers) in steps.fills.items():
        mapping: dict[SSAValue, SSAValue] = {args[other]: args[role]}
        for number in numbers:
            loop.body.block.add_op(updates[number].clone(mapping))
    for update in updates:
        Rewriter.erase_op(update)
    loop.rotate = encode_integers(range(len(args)))


class CopyEdgesPass(ModulePass):
    """Write edge cells; see the module's documentation."""

    name = "copy-edges"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for loop in [inner for inner in op.walk() if isinstance(inner, LoopOp)]:
            try:
                steps = edge_steps(loop) if loop.schedule is None else None
            except NoImagesError:
                continue
            if steps is not None:
                copy_edges(loop, steps)
