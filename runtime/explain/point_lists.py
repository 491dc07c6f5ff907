"""What lists of points cost in the launches of a kernel, in a sentence."""

from __future__ import annotations

from timetile.dialects.temporal import PointKind
from timetile.dialects.temporal.points import cells_of_line
from timetile.dialects.tile import KernelOp
from timetile.lowering.tile_to_gpu.point_lines import has_planes_of_points, stages_with_points
from timetile.runtime.arithmetic.points import STEP_WITH_POINTS
from timetile.runtime.explain.summary_facts import plural


def points_text(kernel: KernelOp) -> str | None:
    """The lists of points of a kernel, and the steps that use them; None without points."""
    stages = stages_with_points(kernel)
    if not stages:
        return None
    sets = {made.places: made for stage in stages for made in stage.point_sets}.values()
    added = sum(made.kind is PointKind.INJECT for made in sets)
    room = ", ".join(str(cells_of_line(made.weights)) for made in sets)
    lists = (
        f"{plural(len(sets), 'list')} ({added} added, {len(sets) - added} noted) with room for "
        f"{room} entries"
    )
    if not has_planes_of_points(kernel):
        return (
            f"{lists}; each level of each step looks for entries, as the kernel does not go "
            "through planes along axis 0"
        )
    lags = [stage.lag for stage in stages]
    steps = max(lags) - min(lags) + 1
    return (
        f"{lists}; a plane with entries makes {plural(steps, 'step')} of its chunk take about "
        f"{STEP_WITH_POINTS:.0f} times as long, and the chunk has fewer planes for that"
    )
