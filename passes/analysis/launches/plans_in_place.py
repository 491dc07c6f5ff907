"""Plans of launches that read and write the buffers of the unfused program, a step at a time."""

from __future__ import annotations

from timetile.passes.analysis.launches.launch_planning import LaunchPlan, PlannedLaunch
from timetile.passes.analysis.launches.rotation import Rotation


def plan_in_place(rotation: Rotation, steps: int) -> LaunchPlan:
    """
    The plan of single steps on the buffers of the unfused program. The caller guarantees: no thread
    of a step's kernel reads a cell stored by another thread of the kernel.
    """
    period, roles = rotation.order, range(len(rotation.rotate))
    repeats, rest = divmod(steps, period)

    def launch(time: int) -> PlannedLaunch:
        sources = {role: rotation.own(role, time) for role in roles}
        targets = {role: rotation.own(role, time + 1) for role in roles}
        return PlannedLaunch(1, True, time, sources, targets)

    if repeats < 2:
        return LaunchPlan((), tuple(map(launch, range(steps))), ())
    launches = tuple(map(launch, range(period + rest)))
    return LaunchPlan((), launches, (), 0, period, repeats)


def period_in_place(rotation: Rotation) -> tuple[int, int]:
    """
    `(first, period)`, in steps: from `first` steps on, a plan in place is the plan for `period`
    fewer steps with one more repeat.
    """
    return 3 * rotation.order, rotation.order
