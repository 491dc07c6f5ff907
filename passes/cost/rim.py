"""
The rim: which tiles run a copy of the code with guards for cells outside the bounds, and what a
step of it costs.
"""

from __future__ import annotations

from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.analysis.geometry.plane_geometry import is_word
from timetile.passes.schedule import Guards
from timetile.passes.targets.parameters import Rim


def has_copies(geometry: Geometry, guards: Guards) -> bool:
    """Tiles inside the bounds have a copy of their own."""
    if geometry.kernel.reads_memory:
        # Threads of cells that are not stored read for others: no copy is without guards.
        return False
    if geometry.kernel.stream_axis is None or geometry.reads_halos:
        return True
    return geometry.replaces_cells and guards == "rim"


def weighs_spills(geometry: Geometry, planes: int) -> bool:
    """
    The weight of the rim's steps counts that registers are spilled there, as levels keep so many
    planes of FP64. (The weight of other buffers' halos does, too: j2d9pt is fastest at six levels,
    with half a kilobyte of spills.)
    """
    return len(geometry.axes) == 1 and planes > 2 and not is_word(geometry.stored_fields[0])


def edge_weight(
    geometry: Geometry, guards: Guards, weights: Rim, *, sums: bool, planes: int
) -> float | None:
    """
    What a step of the guarded copy costs more than one of the tiles inside the bounds, for a kernel
    that keeps `sums` or none, and so many `planes` of a level; None where it is the only one.
    """
    if not has_copies(geometry, guards):
        return None
    if geometry.kernel.stream_axis is None:
        return 1.0
    axes = len(geometry.axes)
    if geometry.reads_halos:
        return weights.halos[axes]
    if weighs_spills(geometry, planes):
        return weights.wide
    words = is_word(geometry.stored_fields[0])
    if sums and axes == 1 and words and not geometry.has_narrow_accesses:
        return weights.word_sums
    return weights.sums if sums and axes == 2 and not words else weights.guards[axes]
