"""The part of a schedule that decides the stages of a trial's kernel. Layouts of one form share a
kernel.
"""

from __future__ import annotations

from dataclasses import dataclass

from timetile.dialects.tile.kinds import Form
from timetile.dialects.tile.schedule import Schedule
from timetile.passes.targets.hardware import LEAST_COPY


@dataclass(frozen=True, kw_only=True)
class KernelForm:
    """
    All parts of a schedule read by `TrialKernels.build`, for a loop that reads `far` cells away
    along each in-plane axis.
    """

    depth: int
    sums: Form
    is_resident: bool
    split: bool
    """Warps arrive, and wait later."""
    every: int
    delay: int
    copies: bool
    """Whether planes are fetched ahead: asynchronous copies serve readers."""
    words: bool
    """Whether a thread's row has the bytes of one asynchronous copy or more, in each field."""
    crossing: tuple[bool, ...]
    """For each in-plane axis, whether tiles have several warps along the axis."""
    edges: tuple[bool, ...]
    """
    For each in-plane axis, whether a warp has at least as many cells as the step reads far: edges
    serve neighbours.
    """
    tall: bool
    """A thread has several rows."""

    @staticmethod
    def of(schedule: Schedule, depth: int, far: tuple[int, ...], narrowest: int) -> KernelForm:
        """
        The form of a schedule's kernel of a depth, with fields of `narrowest` bytes a cell or more.
        """
        axes = schedule.layout().axis_layouts
        beside = far[-len(axes) :]
        return KernelForm(
            depth=depth,
            sums=schedule.form,
            is_resident=schedule.resident,
            split=schedule.splits,
            every=schedule.steps_between_barriers,
            delay=schedule.delay,
            copies=schedule.ahead > 0,
            words=axes[-1].cells * narrowest % LEAST_COPY == 0,
            crossing=tuple(axis.tile_warps > 1 for axis in axes),
            edges=tuple(reach <= axis.cells * axis.lanes for reach, axis in zip(beside, axes)),
            tall=any(axis.cells > 1 for axis in axes[:-1]),
        )
