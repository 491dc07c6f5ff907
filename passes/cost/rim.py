"""The rim: tiles with guarded code for cells outside the bounds, and the cost of a guarded step."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from timetile.dialects.temporal.boundary import Kind
from timetile.dialects.tile import ApplyOp
from timetile.dialects.tile.kinds import Guards
from timetile.passes.analysis.cells.instructions import ends_in_quotient
from timetile.passes.analysis.geometry.images import bounds_width, image_width
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.analysis.geometry.plane_geometry import is_word
from timetile.passes.analysis.geometry.tile_shape import TileShape
from timetile.passes.analysis.point_stages import stages_with_points
from timetile.passes.analysis.queues.lags import lanes_meet_between_levels
from timetile.passes.targets.parameters import RimParameters


def why_guards_are_fixed(geometry: Geometry) -> str | None:
    """Why the schedule's `guards` change nothing in a kernel; None if they do."""
    if geometry.outline.reads_memory:
        return "every tap is read from memory, and guards only test for cells outside the fields"
    if geometry.kernel.stream_axis is None:
        return "nothing is streamed, and tiles inside the bounds have code of their own"
    if geometry.continues_in_plane:
        return "fields go on outside the bounds, and tiles inside have code of their own"
    if geometry.reads_halos:
        return "halos differ between buffers, and tiles inside the bounds have code of their own"
    if not geometry.has_guards:
        return "no cell is replaced outside the bounds, and all code has guards"
    return None


def has_copies(geometry: Geometry, guards: Guards) -> bool:
    """Whether tiles inside the bounds have code of their own."""
    if why_guards_are_fixed(geometry) is None:
        return guards is Guards.RIM
    if geometry.outline.reads_memory:
        # A thread of a single cell that is not stored reads for another cell instead.
        several = len(geometry.thread_positions) > 1 or not geometry.taps_stay_inside
        return several and not geometry.continues_in_plane
    unstreamed = geometry.kernel.stream_axis is None or geometry.reads_halos
    return unstreamed or geometry.continues_in_plane


def rim_counts_spills(geometry: Geometry, planes: int) -> bool:
    """
    Whether the weight of the rim's steps includes spills, because levels keep many planes of FP64.
    (The weight for halos apart includes spills, too: j2d9pt is fastest at six levels, with half a
    kilobyte of spills.)
    """
    has_rows = TileShape.of(geometry.kernel).has_rows
    return not has_rows and planes > 2 and not is_word(geometry.stored_fields[0])


def continued_weight(geometry: Geometry, weights: RimParameters) -> float:
    """
    The cost of a step on the rim where fields go on: cells beyond are computed like cells inside,
    apart from selects, and from vectors with a bound inside.
    """
    axes = [axis for axis in geometry.kernel.continued_axes if axis in geometry.kernel.plane_axes]
    sides = {side for axis in axes for side in geometry.kernel.sides(axis)}
    weight = weights.images
    if sides - {Kind.PERIODIC}:
        words = 1 if is_word(geometry.stored_fields[0]) else 2
        weight += weights.selects[words * len(geometry.axes)]
    if geometry.axes[-1].axis not in axes:
        return weight
    for field in geometry.stored_fields:
        width = geometry.access_width(field)
        if bounds_width(geometry, width) < width:
            weight += weights.cut_vectors
        weight += weights.divided * (width / image_width(geometry, field) - 1)
    return weight


def edge_weight(
    geometry: Geometry, guards: Guards, weights: RimParameters, *, sums: bool, planes: int
) -> float | None:
    """
    The cost of a guarded step relative to a step inside the bounds. `sums`: the kernel keeps sums.
    `planes`: planes of a level. None if all code is guarded.
    """
    if not has_copies(geometry, guards):
        return None
    shape = TileShape.of(geometry.kernel)
    if not shape.streams:
        return 1.0
    if geometry.reads_halos:
        return weights.halos[shape.axes]
    if geometry.continues_in_plane:
        return continued_weight(geometry, weights)
    if rim_counts_spills(geometry, planes):
        return weights.wide
    words = is_word(geometry.stored_fields[0])
    if sums and shape is TileShape.STRIP and words and not geometry.has_narrow_accesses:
        return weights.word_sums
    return (
        weights.sums
        if sums and shape is TileShape.PENCIL and not words
        else weights.guards[shape.axes]
    )


def weight_of_chunks(
    geometry: Geometry, module: ModuleOp, weight: float, weights: RimParameters, *, sums: bool
) -> float:
    """
    The cost of a guarded step by which chunks are cut: the weight of the rim, and what lists of
    points and quotients add. These have no part in the choice of a schedule. `sums`: the kernel
    keeps sums.
    """
    kernel, shape = geometry.kernel, TileShape.of(geometry.kernel)
    if not shape.streams:
        return weight
    if stages_with_points(kernel):
        weight *= weights.points[shape.axes]
    applies = (stage for stage in kernel.stages if isinstance(stage, ApplyOp))
    several = kernel.steps.data > 1 and not is_word(geometry.stored_fields[0])
    late = several and (sums or not lanes_meet_between_levels(kernel))
    if late and any(ends_in_quotient(module, stage) for stage in applies):
        weight += weights.dividing[shape.axes]
    return weight
