"""store-box: let kernels store the cells of a box only, and compute no others than these need.

Before:
```
tile.kernel @heat_d2(...) roles [...] steps 2 stream 0 bounds <[0, 0], [64, 64]> layout ... {
  ...
  tile.store %u2 to %dst
}
```
After `store-box{lower=0,0 upper=8,64}`:
```
tile.kernel @heat_d2(...) roles [...] steps 2 stream 0 bounds <[0, 0], [64, 64]> layout ... {
  ...
  tile.store %u2 to %dst in <[0, 0], [8, 64]>
}
```
1. A store has the cells of the box, inside the cells stored before. Chunks are of the box's planes
   along the stream.
2. Along other axes the bounds shrink to the cells from which stored cells are computed: the box,
   and the kernel's extents around the box. Cells outside the new bounds keep their old values in
   every level; a stored cell depends on none of these. The box of an update shrinks to the new
   bounds.

Kernels of several boxes that share no cell, launched in any order on equal fields, store what the
kernel before the pass stores. The pass stands between device-tiling and the passes that place
queues and cut columns. A kernel is left unchanged, with a remark, if fields go on outside the
bounds, or if an update has no cell in the new bounds.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from timetile.dialects.boxes import CellBox
from timetile.dialects.tile import ApplyOp, KernelOp, StoreOp
from timetile.passes.analysis.geometry.extents import extents
from timetile.passes.diagnostics import CompileError, refuse, remark
from timetile.passes.not_raised import remark_without_loops


def why_not(kernel: KernelOp, box: CellBox) -> str | None:
    """Why a kernel keeps its boxes; None if the kernel can store the cells of a box only."""
    if kernel.beyond is not None:
        return "fields go on outside the bounds"
    kept = bounds_for(kernel, box)
    if any((CellBox.of(each.box) & kept).is_empty for each in boxed_updates(kernel) if each.box):
        return "an update has no cell near the box"
    return None


def boxed_updates(kernel: KernelOp) -> list[ApplyOp]:
    """The updates with a box of their own."""
    return [each for each in kernel.stages if isinstance(each, ApplyOp) and each.box is not None]


def bounds_for(kernel: KernelOp, box: CellBox) -> CellBox:
    """
    The bounds of a kernel that stores a box: along the stream as before, along other axes the box
    and the cells around the box from which the kernel computes the box.
    """
    lower, upper = list(box.lower), list(box.upper)
    for extent in extents(kernel).values():
        lower = [min(cell, low - far) for cell, low, far in zip(lower, box.lower, extent.low)]
        upper = [max(cell, high + far) for cell, high, far in zip(upper, box.upper, extent.high)]
    bounds = CellBox.of(kernel.bounds)
    kept = CellBox(tuple(lower), tuple(upper)) & bounds
    if (stream := kernel.stream_axis) is None:
        return kept
    lower, upper = list(kept.lower), list(kept.upper)
    lower[stream], upper[stream] = bounds.lower[stream], bounds.upper[stream]
    return CellBox(tuple(lower), tuple(upper))


def store_in(kernel: KernelOp, box: CellBox) -> None:
    """Restrict a kernel's stores to a box. Refuses a box that no store touches."""
    kept = bounds_for(kernel, box)
    for stage in kernel.stages:
        if isinstance(stage, StoreOp):
            cells = stage.cells & box
            if cells.is_empty:
                refuse(kernel, f"the box {box} has no cell of {stage.cells}; give another box")
            stage.box = cells.bounds()
    for update in boxed_updates(kernel):
        assert update.box is not None
        update.box = (CellBox.of(update.box) & kept).bounds()
    kernel.bounds = kept.bounds()


@dataclass(frozen=True)
class StoreBoxPass(ModulePass):
    """Let kernels store the cells of a box only; see the module's documentation."""

    name = "store-box"

    lower: tuple[int, ...] = ()
    upper: tuple[int, ...] = ()

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        remark_without_loops(self, op, "raise-time-loop,device-tiling")
        for kernel in [each for each in op.ops if isinstance(each, KernelOp)]:
            if not len(self.lower) == len(self.upper) == kernel.rank:
                raise CompileError(
                    f"{self.name}: lower and upper have a number for each of {kernel.rank} axes, "
                    f"got {list(self.lower)} and {list(self.upper)}"
                )
            box = CellBox(self.lower, self.upper)
            if (why := why_not(kernel, box)) is not None:
                remark(kernel, f"{why}: all cells are stored")
                continue
            store_in(kernel, box)
