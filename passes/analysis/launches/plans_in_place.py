"""Plans of launches that read and write the buffers that the unfused program does, a step at a time."""

from __future__ import annotations

from timetile.passes.analysis.launches.launch_planning import Launch, Plan
from timetile.passes.analysis.launches.rotation import Rotation


def plan_in_place(rotation: Rotation, steps: int) -> Plan:
    """
    The launches of single steps that read and write the buffers that the unfused program does. Every kernel of a step
    stores nothing that another of its threads reads, or a step is wrong.
    """
    period, roles = rotation.order, range(len(rotation.rotate))
    repeats, rest = divmod(steps, period)

    def launch(time: int) -> Launch:
        sources = {role: rotation.own(role, time) for role in roles}
        targets = {role: rotation.own(role, time + 1) for role in roles}
        return Launch(1, True, time, sources, targets)

    if repeats < 2:
        return Plan((), tuple(map(launch, range(steps))), ())
    launches = tuple(map(launch, range(period + rest)))
    return Plan((), launches, (), 0, period, repeats)
