"""
Points in lines along the stream: which lists a kernel keeps traces of.

Receivers in a line along the stream have entries in every plane of a column of tiles. Code of
points in each step would wait for entries each time. Instead a thread with cells on a line keeps
the cells of every level in memory, in each step of any loop: a store without a branch. At the end
of its chunk a warp notes the entries of the chunk's planes (`point_traces.py`).
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from timetile.dialects import simt
from timetile.dialects.boxes import CellBox
from timetile.dialects.cell_types import CELL_BYTES
from timetile.dialects.point_lists import LINE_WORDS
from timetile.dialects.syntax import element_type
from timetile.dialects.temporal import PointKind, PointSet
from timetile.dialects.tile import ApplyOp, KernelOp
from timetile.lowering.tile_to_gpu.code import KernelCode
from timetile.lowering.tile_to_gpu.point_numbers import table_number
from timetile.lowering.tile_to_gpu.scopes import VariantScope, once
from timetile.passes.analysis.point_stages import stages_with_points

WORD_BYTES = 4


def has_planes_of_points(kernel: KernelOp) -> bool:
    """
    Whether the stream goes along the axis of the lists' rows of buckets, a plane each: steps
    without a plane with points are known ahead, and run without points.
    """
    lists = [made for stage in stages_with_points(kernel) for made in stage.point_sets]
    planes = all(made.layout.buckets[0] == 1 for made in lists)
    return bool(lists) and kernel.stream_axis == 0 and planes


def words_of_thread(code: KernelCode, made: PointSet) -> int:
    """The words of a thread's cells in a plane."""
    words = CELL_BYTES[element_type(made.weights)] // WORD_BYTES
    return words * len(code.geometry.thread_positions)


def traced_stages(code: KernelCode, made: PointSet) -> tuple[ApplyOp, ...]:
    """
    The stages whose cells are kept for a list along the stream, level by level; none if a kernel
    keeps no traces.
    """
    if made.kind is PointKind.INJECT or not made.layout.lines:
        return ()
    if not has_planes_of_points(code.kernel):
        return ()
    points = stages_with_points(code.kernel)
    users = [stage for stage in points if made in stage.point_sets]
    boxes = {CellBox.of(stage.box or code.kernel.bounds) for stage in users}
    once_each = all(stage.point_sets.count(made) == 1 for stage in users)
    fits = len(users) * words_of_thread(code, made) <= LINE_WORDS
    sharing = {
        other for stage in points for other in stage.point_sets if shares_traces(other, made)
    }
    if len(boxes) > 1 or len(sharing) > 1 or not (once_each and fits):
        return ()
    return tuple(sorted(users, key=lambda stage: stage.lag))


def shares_traces(one: PointSet, other: PointSet) -> bool:
    """Whether cells of two sets would be kept in one list."""
    return one.kind is PointKind.SAMPLE and one.places is other.places


def traced_sets(code: KernelCode) -> list[PointSet]:
    """The lists with traces, each once."""
    sets = [made for stage in stages_with_points(code.kernel) for made in stage.point_sets]
    return [made for made in dict.fromkeys(sets) if traced_stages(code, made)]


@once
def line_count(variant: VariantScope, made: PointSet) -> SSAValue:
    """The lines of a list, equal in all lanes; 0 if the entries do not lie on lines."""
    emit = variant.emit
    places = variant.code.arguments[made.places]
    number = table_number(emit, places, made.layout.line_count, emit.int(0))
    return emit.add(simt.UniformOp(number)).result


@once
def has_traces(variant: VariantScope, made: PointSet) -> SSAValue:
    """The kernel keeps traces of the list: no step with points is needed."""
    return variant.emit.compare("ne", line_count(variant, made), 0)
