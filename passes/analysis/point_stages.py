"""The stages of a kernel that use lists of points."""

from __future__ import annotations

from timetile.dialects.tile import ApplyOp, KernelOp


def stages_with_points(kernel: KernelOp) -> list[ApplyOp]:
    """The stages that use lists of points."""
    return [s for s in kernel.stages if isinstance(s, ApplyOp) and s.points]
