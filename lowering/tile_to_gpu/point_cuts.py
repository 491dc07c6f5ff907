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
from timetile.lowering.emitter import Emitter
from timetile.lowering.tile_to_gpu.chunks import Chunk, Stretch
from timetile.lowering.tile_to_gpu.message_buffers import messages
from timetile.lowering.tile_to_gpu.point_lines import (
    has_planes_of_points,
    stages_with_points,
    table_number,
)
from timetile.passes.analysis.geometry.kernel_geometry import Geometry


def chunk_around_points(
    emit: Emitter, geometry: Geometry, arguments: Mapping[SSAValue, SSAValue], chunk: Chunk
) -> Chunk:
    """A chunk between moved cuts."""
    if not moves_cuts(geometry):
        return chunk
    first, last = (moved(emit, geometry, arguments, cut) for cut in (chunk.first, chunk.last))
    return replace(chunk, first=first, last=last)


def stretch_around_points(
    emit: Emitter, geometry: Geometry, arguments: Mapping[SSAValue, SSAValue], stretch: Stretch
) -> Stretch:
    """A stretch between moved cuts."""
    if not moves_cuts(geometry):
        return stretch
    cuts = (stretch.first, stretch.last, stretch.low, stretch.high)
    first, last, low, high = (moved(emit, geometry, arguments, cut) for cut in cuts)
    return replace(stretch, first=first, last=last, low=low, high=high)


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
