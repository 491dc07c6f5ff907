"""Where the cells of a part lie in the coordinates of a kernel of the part."""

from __future__ import annotations

from dataclasses import dataclass

from timetile.dialects.boxes import CellBox
from timetile.dialects.syntax import field_bounds
from timetile.dialects.temporal import LoopOp, PartAttr
from timetile.dialects.tile import KernelOp
from timetile.passes.loops.cut_domain import held_box


@dataclass(frozen=True)
class PartInKernel:
    """
    The cells of a part, and the bounds of a kernel, in the kernel's coordinates; `whole`: the field
    before it was cut, and `distance` from its coordinates to the kernel's.
    """

    cells: CellBox
    bounds: CellBox
    whole: CellBox
    distance: list[int]

    @staticmethod
    def of(loop: LoopOp, own: LoopOp, part: PartAttr, kernel: KernelOp) -> PartInKernel | None:
        """
        The part in a kernel; None if the kernel stores some of the cells not at all. `own`: the
        program's `loop`, cut and moved.
        """
        whole = CellBox.of(field_bounds(loop.body.block.args[0]))
        held = held_box(whole, part)
        moved = CellBox.of(field_bounds(own.body.block.args[0]))
        distance = [to - at for to, at in zip(moved.lower, held.lower)]
        bounds = CellBox.of(kernel.bounds)
        cells = part.decomposition.part(part.rank.data).moved(distance)
        return PartInKernel(cells, bounds, whole, distance) if cells in bounds else None
