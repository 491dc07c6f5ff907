"""What of a schedule decides the stages of a trial's kernel; layouts of one form share a kernel."""

from __future__ import annotations

from dataclasses import dataclass

from timetile.passes.schedule import Form, Schedule


@dataclass(frozen=True)
class KernelForm:
    """All that `Trials.build` reads of a schedule, for a loop whose step looks `far` along each in-plane axis."""

    depth: int
    sums: Form
    stays: bool
    split: bool
    """Warps arrive, and wait later."""
    every: int
    delay: int
    copies: bool
    """Planes are fetched ahead, so that copies serve who reads them."""
    crossing: tuple[bool, ...]
    """Per in-plane axis: tiles have several warps along it."""
    edges: tuple[bool, ...]
    """Per in-plane axis: a warp's cells are as many as the step looks far, so that edges serve its neighbours."""
    tall: bool
    """A thread has several rows."""

    @staticmethod
    def of(schedule: Schedule, depth: int, far: tuple[int, ...]) -> KernelForm:
        """The form of a schedule's kernel of a depth."""
        axes = schedule.layout().axis_layouts
        beside = far[-len(axes) :]
        return KernelForm(
            depth,
            schedule.form,
            schedule.stays,
            schedule.sync != "barrier" and not schedule.stays,
            schedule.every,
            schedule.delay,
            schedule.ahead > 0,
            tuple(axis.tile_warps > 1 for axis in axes),
            tuple(reach <= axis.cells * axis.lanes for reach, axis in zip(beside, axes)),
            any(axis.cells > 1 for axis in axes[:-1]),
        )
