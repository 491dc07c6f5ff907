"""The temporal dialect: a time loop over rotating buffers, each step a list of updates.

The dialect says what a program computes, and nothing about how: buffers, the rotation at the end of
a step, and updates by a scalar cell function over a box. `depths` lists the numbers of steps per
kernel.
"""

from __future__ import annotations

from xdsl.ir import Dialect

from timetile.dialects.temporal.boundary import BoundaryAttr, BoundaryKindAttr
from timetile.dialects.temporal.fields import BroadcastOp, GatherOp, ScratchOp
from timetile.dialects.temporal.loop import MOST_DEPTH, LoopOp
from timetile.dialects.temporal.part import PartAttr
from timetile.dialects.temporal.point_run import PointListAttr, PointRunOp, point_run_before
from timetile.dialects.temporal.points import (
    InjectOp,
    PointKind,
    PointKindAttr,
    PointOp,
    PointsAttr,
    PointSet,
    SampleOp,
)
from timetile.dialects.temporal.reduce import ReduceOp, Reduction, ReductionAttr
from timetile.dialects.temporal.round import RoundOp
from timetile.dialects.temporal.sweep import Direction, DirectionAttr, SweepOp
from timetile.dialects.temporal.update import UpdateOp

Temporal = Dialect(
    "temporal",
    [
        LoopOp, UpdateOp, ScratchOp, BroadcastOp, GatherOp, ReduceOp, RoundOp, SweepOp, InjectOp,
        SampleOp, PointRunOp,
    ],
    [
        BoundaryAttr, BoundaryKindAttr, DirectionAttr, PartAttr, PointKindAttr, PointListAttr,
        PointsAttr, ReductionAttr,
    ],
)  # fmt: skip

__all__ = [
    "MOST_DEPTH",
    "BoundaryAttr",
    "BroadcastOp",
    "Direction",
    "GatherOp",
    "InjectOp",
    "LoopOp",
    "PartAttr",
    "PointKind",
    "PointListAttr",
    "PointOp",
    "PointRunOp",
    "PointSet",
    "PointsAttr",
    "ReduceOp",
    "Reduction",
    "ReductionAttr",
    "RoundOp",
    "SampleOp",
    "ScratchOp",
    "SweepOp",
    "Temporal",
    "UpdateOp",
    "point_run_before",
]
