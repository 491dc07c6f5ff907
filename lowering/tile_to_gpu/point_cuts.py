"""
Cuts between chunks, moved for planes with points.

A launch ends with its slowest chunk, and steps with points take longer. A list of points knows
where a cut between equal chunks goes, so that chunks with points have fewer planes: the time is
spread over all chunks of a column. The map from cuts to cuts never falls, and keeps the first and
the last: each plane still has one chunk.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from timetile.dialects.boxes import CellBox
from timetile.dialects.point_lists import gap_above
from timetile.dialects.temporal import PointKind, PointSet
from timetile.lowering.emitter import Emitter
from timetile.lowering.tile_to_gpu.chunks import Chunk
from timetile.lowering.tile_to_gpu.message_buffers import messages
from timetile.lowering.tile_to_gpu.point_lines import has_planes_of_points
from timetile.lowering.tile_to_gpu.point_numbers import clamped, table_number
from timetile.lowering.tile_to_gpu.thread import tile_numbers
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.analysis.point_stages import stages_with_points


def chunk_around_points(
    emit: Emitter, geometry: Geometry, arguments: Mapping[SSAValue, SSAValue], chunk: Chunk
) -> Chunk:
    """A chunk between moved cuts."""
    if not moves_cuts(geometry):
        return chunk
    has_points = column_has_points(emit, geometry, arguments, chunk.column)
    first, last = (
        emit.select(has_points, moved(emit, geometry, arguments, cut), cut)
        for cut in (chunk.first, chunk.last)
    )
    return replace(chunk, first=first, last=last)


def column_has_points(
    emit: Emitter, geometry: Geometry, arguments: Mapping[SSAValue, SSAValue], column: SSAValue
) -> SSAValue:
    """
    The tiles of a column have entries that make steps with points: all other columns keep equal
    chunks.
    """
    numbers = tile_numbers(emit, geometry, column)
    spans = {
        tiling.axis: (
            emit.add_int(emit.mul_int(number, tiling.useful), tiling.origin),
            tiling.layout.extent,
        )
        for tiling, number in zip(reversed(geometry.axes), numbers, strict=True)
    }
    sets = (made for stage in stages_with_points(geometry.kernel) for made in stage.point_sets)
    return emit.any_of(
        [has_entries(emit, made, arguments[made.places], spans) for made in dict.fromkeys(sets)]
    )


def has_entries(
    emit: Emitter, made: PointSet, places: SSAValue, spans: Mapping[int, tuple[SSAValue, int]]
) -> SSAValue:
    """
    A list has entries in a column of tiles, between a first cell and so many cells behind it along
    each in-plane axis; not in lines, of which kernels keep traces.
    """
    layout, stacks = made.layout, [emit.int(0)]
    for axis in range(1, len(layout.shape)):
        first, count = buckets_of_tile(emit, made, axis, *spans[axis])
        stacks = [
            emit.add_int(stack, emit.mul_int(emit.add_int(first, number), layout.strides[axis]))
            for stack in stacks
            for number in range(count)
        ]
    rows = [table_number(emit, places, layout.following, stack) for stack in stacks]
    found = emit.any_of([emit.compare("slt", row, layout.counts[0]) for row in rows])
    if made.kind is PointKind.INJECT or not layout.lines:
        return found
    lines = table_number(emit, places, layout.line_count, emit.int(0))
    return emit.binary(arith.AndIOp, found, emit.compare("eq", lines, 0))


def buckets_of_tile(
    emit: Emitter, made: PointSet, axis: int, start: SSAValue, extent: int
) -> tuple[SSAValue, int]:
    """The first bucket of a tile along an axis, and the most buckets."""
    cells, buckets = made.layout.buckets[axis], made.layout.counts[axis]
    count = min((extent + cells - 2) // cells + 1, buckets)
    start = emit.add_int(start, -CellBox.of(made.bounds).lower[axis])
    first = emit.binary(arith.ShRSIOp, start, emit.int(cells.bit_length() - 1))
    return clamped(emit, first, buckets - count), count


def moves_cuts(geometry: Geometry) -> bool:
    """Lists of points move cuts: of tiles without messages between blocks."""
    return has_planes_of_points(geometry.kernel) and not messages(geometry.kernel)


def moved(
    emit: Emitter, geometry: Geometry, arguments: Mapping[SSAValue, SSAValue], cut: SSAValue
) -> SSAValue:
    """
    The place of a cut, as known to the kernel's first list. The lists that a run makes know of each
    other.
    """
    stages = stages_with_points(geometry.kernel)
    made = stages[0].point_sets[0]
    first, planes = CellBox.of(made.bounds).lower[0], geometry.cut_planes
    lags = [stage.lag for stage in stages]
    gap = gap_above(max(lags) - min(lags) + geometry.period)
    row = emit.add_int(cut, -first)
    row = emit.binary(arith.MinSIOp, row, emit.int(planes.stop - first))
    row = emit.binary(arith.MaxSIOp, row, emit.int(planes.start - first))
    found = table_number(emit, arguments[made.places], made.layout.cuts(gap), row)
    found = emit.add_int(found, first)
    found = emit.binary(arith.MinSIOp, found, emit.int(planes.stop))
    found = emit.binary(arith.MaxSIOp, found, emit.int(planes.start))
    is_first = emit.compare("sle", cut, planes.start)
    is_last = emit.compare("sge", cut, planes.stop)
    found = emit.select(is_first, emit.int(planes.start), found)
    return emit.select(is_last, emit.int(planes.stop), found)
