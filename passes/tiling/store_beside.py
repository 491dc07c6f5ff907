"""store-beside: let kernels store some boxes a second time, to the memory of other devices.

Before:
```
tile.kernel @heat_d2(%src: !field, %dst: !field) roles [source 0, target 0] steps 2 stream 0
    bounds <[0, 0], [64, 64]> layout ... {
  ...
  tile.store %u2 to %dst in <[4, 0], [60, 64]>
}
```
After `store-beside{lower=4,0,52,0 upper=12,64,60,64}`, with a field for each box:
```
tile.kernel @heat_d2(%src: !field, %dst: !field, %beside: !field, %beside_1: !field)
    roles [source 0, target 0, target 0, target 0] steps 2 stream 0
    bounds <[0, 0], [64, 64]> layout ... {
  ...
  tile.store %u2 to %dst in <[4, 0], [60, 64]>
  tile.store %u2 to %beside in <[4, 0], [12, 64]>
  tile.store %u2 to %beside_1 in <[52, 0], [60, 64]>
}
```
Each store gets a store for each box, in order, to a further argument of the store's type. A launch
passes the ghost zone of a neighbour's field, addressed as the kernel's own field: ghosts are fresh
at the end of the launch, without a copy. The pass follows device-tiling and store-box. A kernel is
left unchanged, with a remark, if fields go on outside the bounds, or if a store has no cell of a
box. A store of fewer cells than a box stores these beside: no launch changes the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp
from xdsl.passes import ModulePass

from timetile.dialects.boxes import CellBox
from timetile.dialects.tile import KernelOp, StoreOp
from timetile.dialects.tile.roles import made_role
from timetile.passes.diagnostics import CompileError, remark
from timetile.passes.not_raised import remark_without_loops


def why_not_beside(kernel: KernelOp, boxes: list[CellBox]) -> str | None:
    """Why a kernel stores nothing beside; None if the kernel can."""
    if kernel.beyond is not None:
        return "fields go on outside the bounds"
    stores = [stage for stage in kernel.stages if isinstance(stage, StoreOp)]
    if any((box & stage.cells).is_empty for stage in stores for box in boxes):
        return "a store has no cell of a box"
    return None


def stores_beside(kernel: KernelOp, boxes: list[CellBox]) -> None:
    """Let each store of a kernel store the cells of some boxes to further arguments."""
    block, roles = kernel.body.block, list(kernel.roles.data)
    for stage in [each for each in kernel.stages if isinstance(each, StoreOp)]:
        role = kernel.argument_role(stage.field)
        last = stage
        for box in boxes:
            field = block.insert_arg(stage.field.type, len(block.args))
            field.name_hint = "beside"
            roles.append(made_role(*role.role))
            made = StoreOp(stage.queue, field, (box & stage.cells).bounds())
            block.insert_op_after(made, last)
            last = made
    kernel.roles = ArrayAttr(roles)


@dataclass(frozen=True)
class StoreBesidePass(ModulePass):
    """Let kernels store cells of some boxes beside; see the module's documentation."""

    name = "store-beside"

    lower: tuple[int, ...] = ()
    upper: tuple[int, ...] = ()

    def boxes(self, rank: int) -> Iterator[CellBox]:
        """The boxes, of `rank` numbers each."""
        if len(self.lower) != len(self.upper) or len(self.lower) % rank:
            raise CompileError(
                f"{self.name}: lower and upper have {rank} numbers for each box, got "
                f"{list(self.lower)} and {list(self.upper)}"
            )
        for first in range(0, len(self.lower), rank):
            yield CellBox(self.lower[first : first + rank], self.upper[first : first + rank])

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        remark_without_loops(self, op, "raise-time-loop,device-tiling")
        for kernel in [each for each in op.ops if isinstance(each, KernelOp)]:
            boxes = list(self.boxes(kernel.rank))
            if (why := why_not_beside(kernel, boxes)) is not None:
                remark(kernel, f"{why}: no cell is stored beside")
                continue
            stores_beside(kernel, boxes)
