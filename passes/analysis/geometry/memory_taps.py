"""The taps of kernels that read memory: where tests are needed, and the order of tiles."""

from __future__ import annotations

from timetile.dialects.boxes import CellBox
from timetile.dialects.cell_types import CELL_BYTES
from timetile.dialects.syntax import element_type, field_bounds
from timetile.dialects.tile import ApplyOp, KernelOp, LoadOp, StoreOp
from timetile.passes.analysis.geometry.axis_tiling import AxisTiling

SLAB_BYTES = 16 << 20
"""
Bytes of the planes that later tiles of a slab read again: a third of a second-level cache with two
halves, as both halves hold cells read from both.
"""


def loads_of_kernel(kernel: KernelOp) -> list[LoadOp]:
    """The loads of a kernel."""
    return [stage for stage in kernel.stages if isinstance(stage, LoadOp)]


def taps_stay_inside(kernel: KernelOp) -> bool:
    """Whether the taps of all cells of a kernel's bounds lie in the fields."""
    bounds = CellBox.of(kernel.bounds)
    loads = loads_of_kernel(kernel)
    return all(load.cells_read(bounds) in CellBox.of(field_bounds(load.field)) for load in loads)


def untested_cells(kernel: KernelOp, axis: int) -> tuple[int, int]:
    """
    The first cell of the bounds along an axis, and the cell after the last, whose taps lie in the
    fields, which all stores write, and which lie in the boxes of all stages.
    """
    low, high = readable_cells(kernel, axis)
    for stage in kernel.stages:
        if isinstance(stage, StoreOp):
            low, high = max(low, stage.cells.lower[axis]), min(high, stage.cells.upper[axis])
        elif isinstance(stage, ApplyOp) and stage.box is not None:
            low, high = max(low, tuple(stage.box.lb)[axis]), min(high, tuple(stage.box.ub)[axis])
    return low, high


def readable_cells(kernel: KernelOp, axis: int) -> tuple[int, int]:
    """
    The first cell of the bounds along an axis, and the cell after the last, whose taps lie in the
    fields. Fields of fewer axes may lack the axis.
    """
    low, high = tuple(kernel.bounds.lb)[axis], tuple(kernel.bounds.ub)[axis]
    for load in loads_of_kernel(kernel):
        axes = tuple(range(kernel.rank)) if load.axes is None else load.axes
        if axis not in axes:
            continue
        field, number = CellBox.of(field_bounds(load.field)), axes.index(axis)
        far = 0 if load.offset is None else load.offset[axis]
        low, high = max(low, field.lower[number] - far), min(high, field.upper[number] - far)
    return low, high


def slab_of(kernel: KernelOp, tiling: AxisTiling) -> int | None:
    """
    Tiles along the second axis taken together, from the first axis' first tile to the last, in a
    kernel of three axes: planes read again lie in the second-level cache. None if all tiles along
    the second axis are taken together.
    """
    loads = loads_of_kernel(kernel)
    far = [offset[0] for load in loads if (offset := load.offset) is not None]
    again = max(far, default=0) - min(far, default=0)
    if not again:
        return None
    fields = {load.field for load in loads if load.axes is None}
    fields |= {stage.field for stage in kernel.stages if isinstance(stage, StoreOp)}
    cell = sum(CELL_BYTES[element_type(field)] for field in fields)
    columns = tuple(kernel.bounds.ub)[-1] - tuple(kernel.bounds.lb)[-1]
    tiles = max(1, SLAB_BYTES // (cell * columns * tiling.layout.extent * again))
    return tiles if tiles < tiling.count else None
