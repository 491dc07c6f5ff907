"""The stages of a kernel that use lists of points."""

from __future__ import annotations

from timetile.dialects.temporal import PointKind
from timetile.dialects.tile import ApplyOp, KernelOp
from timetile.passes.analysis.placed import layout_of


def stages_with_points(kernel: KernelOp) -> list[ApplyOp]:
    """The stages that use lists of points."""
    return [s for s in kernel.stages if isinstance(s, ApplyOp) and s.points]


def takes_spot(kernel: KernelOp) -> bool:
    """
    A launch has a block for the spot of points that add values: strips of a plate along the lists'
    rows of buckets, several to a block.
    """
    layout = layout_of(kernel)
    if kernel.stream_axis != 0 or layout.pack.data == 1 or len(layout.axis_layouts) != 1:
        return False
    lists = [made for stage in stages_with_points(kernel) for made in stage.point_sets]
    return any(made.kind is PointKind.INJECT for made in lists)
