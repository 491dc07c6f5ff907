"""
drop-edge-copies: kernels continue fields whose edge cells are copies, and write no edge cell.

Before:
```
temporal.loop %n (%a = %A, %b = %B, %s = %S) rotate [1, 0, 2] {
  temporal.update %b = @cell(%a[-1], %a[1]) in <[1], [65]>
  temporal.update %s = @copy(%b[64]) in <[0], [1]>
  temporal.update %b = @copy(%s[0]) in <[0], [1]>
  temporal.update %s = @copy(%b[-64]) in <[65], [66]>
  temporal.update %b = @copy(%s[0]) in <[65], [66]>
}
```
After:
```
temporal.loop %n (%a = %A, %b = %B, %s = %S) rotate [1, 0, 2] {
  temporal.update %b = @cell(%a[-1], %a[1]) in <[1], [65]>
      beyond [#temporal.boundary<periodic>] inner
}
```
1. `passes/analysis/edge_copies.py` finds the boundary stated by copies before or after the update
   of the box, and proves each read equal to a read of the continued field.
2. Copies are left out, and taps beyond the box read the fields as continued. Fields without copies
   are kept.

The pass is a promise of the caller, as `common-halos`: edge cells of the first step are images, and
edge cells are written after the loop (`copy-edges`). A run makes some steps as written before and
after (`EdgeSteps`). Other loops stay unchanged, with a remark if updates copy cells there.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from timetile.dialects.temporal import LoopOp, UpdateOp
from timetile.dialects.temporal.boundary import Kind, keeping
from timetile.passes.analysis.edge_copies import EdgeSteps, NoImagesError, edge_steps
from timetile.passes.analysis.edges import continues_in_kernels
from timetile.passes.diagnostics import remark

COPIED = "cells beside the box are copied step by step"
"""The beginning of reasons for an unchanged loop."""


def drop_edge_copies(loop: LoopOp, steps: EdgeSteps) -> None:
    """Leave the copies of a loop out, and continue its fields."""
    keep = keeping()
    continued = {arg for role, arg in enumerate(loop.body.block.args) if role in steps.continued}
    for number, update in enumerate(list(loop.updates)):
        if number in steps.updates:
            beyond = [steps.boundary if each in continued else keep for each in update.sources]
            new = UpdateOp(
                update.targets, update.cell, update.sources, update.tap_list, update.box,
                update.scalars, update.index_axes,
                beyond=beyond, inner=True,
            )  # fmt: skip
            new.attributes.update(update.attributes)
            new.location = update.location
            Rewriter.insert_op(new, InsertPoint.before(update))
        Rewriter.erase_op(update)
    if Kind.KEEP not in steps.boundary.kinds:
        # No kernel reads a halo.
        loop.common_halos = UnitAttr()


def without_edge_copies(loop: LoopOp) -> EdgeSteps | str | None:
    """
    Continue the fields of a loop with edge cells, and return the steps of runs. An unchanged loop
    gives the reason, if updates copy cells beside the box; otherwise None.
    """
    try:
        steps = edge_steps(loop)
    except NoImagesError as error:
        return (
            f"{COPIED}: {error}; copy cells of the newest level at the distance of the image, or "
            "give the field a boundary"
        )
    if steps is None:
        return None
    drop_edge_copies(trial := loop.clone(), steps)
    if not continues_in_kernels(trial):
        return (
            f"{COPIED}: kernels do not continue these fields by {steps.boundary}; read fields "
            "alike on both sides of a cell, and give all fields one boundary"
        )
    drop_edge_copies(loop, steps)
    return steps


class DropEdgeCopiesPass(ModulePass):
    """Continue fields with edge cells; see the module's documentation."""

    name = "drop-edge-copies"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for loop in [inner for inner in op.walk() if isinstance(inner, LoopOp)]:
            if loop.schedule is not None or loop.kernel_names:
                continue
            found = without_edge_copies(loop)
            if isinstance(found, str):
                remark(loop, found)
