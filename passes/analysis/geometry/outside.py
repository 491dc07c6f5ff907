"""Cells outside the bounds at the tile level: the source of these cells, their readers, and the
stages that compute them.

| stage | cells outside |
|---|---|
| load of data with the halo around | cells of the field |
| load of data and of a halo | cells of the halo |
| load of a halo | cells of the halo; there are no others |
| apply with `else` | cells of the `else` queue, outside the box or else the bounds |
| apply without `else` | computed like cells inside, within the reach of readers |
| any, along axes that go on (`beyond`) | the image of a cell inside: loaded there, or computed |

`else` is the boundary `keep`. Other boundaries of updates became updates before
(`passes/loops/expand_boundaries.py`). `lowering/tile_to_gpu/halos.py` emits the cells of a thread,
and `runtime/executors/planes.py` computes the cells of whole planes.
"""

from __future__ import annotations

from xdsl.dialects.stencil import StencilBoundsAttr
from xdsl.ir import SSAValue

from timetile.dialects.boxes import CellBox
from timetile.dialects.tile import ApplyOp, KernelOp, LoadOp, StageOp, taps_of
from timetile.passes.analysis.geometry.extents import extents
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.analysis.geometry.plane_geometry import FieldShape


def halo_spans(geometry: Geometry, shape: FieldShape, axis: int) -> tuple[range, range]:
    """
    The cells of a field outside the bounds along an axis, below and above; either may be empty.
    Along an axis that goes on no cell outside is read.
    """
    if axis in geometry.kernel.continued_axes:
        return range(0), range(0)
    low, high = geometry.lower[axis], geometry.upper[axis]
    below = range(shape.lower[axis], min(low, shape.upper[axis]))
    return below, range(max(high, shape.lower[axis]), shape.upper[axis])


def guarding_field(queue: SSAValue) -> SSAValue | None:
    """
    The field supplying a queue's cells outside the bounds; None if no such cell is read from
    memory.
    """
    stage = queue.owner
    if isinstance(stage, LoadOp):
        return stage.halo
    if not isinstance(stage, ApplyOp) or not stage.outside:
        return None
    results: list[SSAValue] = list(stage.res)
    older = stage.outside[results.index(queue)]
    if (field := guarding_field(older)) is not None:
        return field
    # Data at home has a halo. A stage with a box reads cells outside of the box from the older
    # level.
    load = older.owner
    return load.data if stage.box is None and isinstance(load, LoadOp) else None


def halo_field(queue: SSAValue) -> SSAValue | None:
    """
    The field from which a queue takes cells outside the bounds, if read from memory; otherwise
    None.
    """
    load = queue.owner
    return load.halo if isinstance(load, LoadOp) and load.data is None else None


def is_unread_halo(stage: StageOp) -> bool:
    """Whether the stage loads cells outside the bounds without a reader."""
    return isinstance(stage, LoadOp) and stage.data is None and stage.result.first_use is None


def is_read_outside(queue: SSAValue) -> bool:
    """
    Whether a stage may read a cell of the queue outside the bounds: a neighbour, or a replacement
    for a cell outside the stage's box.
    """
    return feeds_outside(queue) or any(any(tap.offset) for _, tap in taps_of(queue))


def feeds_outside(queue: SSAValue) -> bool:
    """Whether a stage takes cells outside its box from the queue."""
    return any(
        isinstance(use.operation, ApplyOp) and queue in use.operation.outside for use in queue.uses
    )


def computed_boxes(kernel: KernelOp) -> dict[ApplyOp, StencilBoundsAttr]:
    """
    The cells computed by each stage: the stage's own box, or the bounds; without other cells
    outside, as far beyond the bounds as readers need.
    """
    beyond = extents(kernel, outside=True)
    boxes: dict[ApplyOp, StencilBoundsAttr] = {}
    for stage in kernel.stages:
        if not isinstance(stage, ApplyOp):
            continue
        box = boxes[stage] = kernel.bounds if stage.box is None else stage.box
        found = [beyond[result] for result in stage.res if result in beyond]
        if stage.outside:
            axes = (axis in kernel.continued_axes for axis in range(kernel.rank))
            goes_on = [(both, both) for both in axes]
            found = [extent.at_sides(goes_on) for extent in found]
        for extent in found:
            spans = zip(box.lb, box.ub, extent.low, extent.high)
            grown = [(low - max(a, 0), high + max(b, 0)) for low, high, a, b in spans]
            boxes[stage] = (CellBox.of(boxes[stage]) | CellBox(*zip(*grown))).bounds()
    return boxes
