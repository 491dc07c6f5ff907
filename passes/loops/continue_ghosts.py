"""
continue-ghosts: kernels continue fields whose ghosts are copies, and write no ghost.

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
      beyond [#temporal.boundary<periodic>] ghosts
}
```
1. `passes/analysis/ghost_updates.py` finds the boundary that copies state, whether rows are copied
   before or after the update of the box, and proves that each cell is read as continued.
2. Copies are left out, and taps beyond the box read the fields as continued. Fields without copies
   are kept.

The pass is a promise of the caller, as `common-halos`: ghosts of the first step are images, and
ghosts are written after the loop (`fill-ghosts`). A run makes some steps as written before, and
after (`GhostSteps`). A loop whose copies are no ghosts of a boundary, or whose kernels cannot
continue the fields, stays as it is, with a remark.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from timetile.dialects.temporal import LoopOp, UpdateOp
from timetile.dialects.temporal.boundary import BoundaryAttr, Kind
from timetile.passes.analysis.edges import continues_in_kernels
from timetile.passes.analysis.ghost_updates import GhostSteps, NoGhostsError, ghost_steps
from timetile.passes.diagnostics import remark


def continue_ghosts(loop: LoopOp, steps: GhostSteps) -> None:
    """Leave the copies of a loop out, and continue its fields."""
    args, keep = list(loop.body.block.args), BoundaryAttr(Kind.KEEP)
    for number, update in enumerate(list(loop.updates)):
        if number in steps.updates:
            own = [
                source in args and args.index(source) in steps.ghosted for source in update.sources
            ]
            new = UpdateOp(
                update.targets, update.cell, update.sources, update.tap_list, update.box,
                update.scalars, update.index_axes,
                beyond=[steps.boundary if each else keep for each in own], ghosts=True,
            )  # fmt: skip
            new.attributes.update(update.attributes)
            new.location = update.location
            Rewriter.insert_op(new, InsertPoint.before(update))
        Rewriter.erase_op(update)
    if Kind.KEEP not in steps.boundary.kinds:
        # No kernel reads a halo.
        loop.common_halos = UnitAttr()


def continued_ghosts(loop: LoopOp) -> GhostSteps | None:
    """
    Continue the fields of a loop with ghosts, and return the steps of its runs. None, with a remark
    if updates copy cells beside the box, for a loop that stays as it is.
    """
    try:
        steps = ghost_steps(loop)
    except NoGhostsError as error:
        remark(
            loop,
            f"cells beside the box are copied step by step: {error}; copy the cells of the newest "
            "level at the image's distance, or give the field a boundary",
        )
        return None
    if steps is None:
        return None
    continue_ghosts(trial := loop.clone(), steps)
    if not continues_in_kernels(trial):
        remark(
            loop,
            "cells beside the box are copied step by step: kernels do not continue these fields by "
            f"{steps.boundary}; read fields alike on both sides of a cell, and give all fields one "
            "boundary",
        )
        return None
    continue_ghosts(loop, steps)
    return steps


class ContinueGhostsPass(ModulePass):
    """Continue fields with ghosts; see the module's documentation."""

    name = "continue-ghosts"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for loop in [inner for inner in op.walk() if isinstance(inner, LoopOp)]:
            if loop.schedule is None and not loop.kernel_names:
                continued_ghosts(loop)
