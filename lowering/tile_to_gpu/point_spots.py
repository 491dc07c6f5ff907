"""
The spot: a chunk of its own around points that make steps with points.

A step with points takes as long as several steps without, and a launch ends with the slowest chunk.
Where all such points lie within a few cells, a list knows their spot. The first block of a launch
has tiles for the planes near the spot, one for each column of tiles with cells of the spot, alone
on a multiprocessor. All remaining planes of these columns are cut evenly, and their chunks have no
step with points. Without a spot the block has no tile, and chunks are cut as for lists without.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from timetile.dialects.boxes import CellBox
from timetile.dialects.tile import VariantAttr
from timetile.lowering.emitter import Emitter
from timetile.lowering.tile_to_gpu.chunks import Chunk, by_variant
from timetile.lowering.tile_to_gpu.point_numbers import table_number
from timetile.lowering.tile_to_gpu.thread import ThreadSeat
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.analysis.point_stages import stages_with_points


@dataclass(frozen=True)
class Spot:
    """
    The planes and the in-plane cells of the spot, in program coordinates: `low` to before `high`,
    with all planes near the spot, and `first` to before `last`. `is_there`: the list has a spot.
    """

    low: SSAValue
    high: SSAValue
    first: SSAValue
    last: SSAValue
    is_there: SSAValue


def find_spot(emit: Emitter, geometry: Geometry, arguments: Mapping[SSAValue, SSAValue]) -> Spot:
    """The spot, as known to the kernel's first list: all lists of a run have equal spots."""
    made = stages_with_points(geometry.kernel)[0].point_sets[0]
    plane, cell = CellBox.of(made.bounds).lower
    layout, places, none = made.layout, arguments[made.places], emit.int(0)
    rows, ends, first, last = (
        table_number(emit, places, layout.spot + part, none) for part in range(4)
    )
    # Chunks of whole turns compute planes before their first, and behind their last.
    low = nearest_cut(emit, geometry, emit.add_int(rows, plane - geometry.drain - geometry.period))
    high = nearest_cut(emit, geometry, emit.add_int(ends, plane + geometry.fill))
    is_there = emit.compare("slt", rows, ends)
    is_there = emit.binary(arith.AndIOp, is_there, emit.compare("slt", low, high))
    return Spot(low, high, emit.add_int(first, cell), emit.add_int(last, cell), is_there)


def nearest_cut(emit: Emitter, geometry: Geometry, plane: SSAValue) -> SSAValue:
    """The nearest plane of the cut ones, or their end."""
    planes = geometry.cut_planes
    plane = emit.binary(arith.MaxSIOp, plane, emit.int(planes.start))
    return emit.binary(arith.MinSIOp, plane, emit.int(planes.stop))


def sees_spot(emit: Emitter, geometry: Geometry, spot: Spot, column: SSAValue) -> SSAValue:
    """A column of tiles computes cells of the spot."""
    (tiling,) = geometry.axes
    start = emit.add_int(emit.mul_int(column, tiling.useful), tiling.origin)
    begins = emit.compare("slt", start, spot.last)
    ends = emit.compare("sgt", emit.add_int(start, tiling.layout.extent), spot.first)
    return emit.binary(arith.AndIOp, begins, ends)


def chunk_beside_spot(
    emit: Emitter,
    geometry: Geometry,
    arguments: Mapping[SSAValue, SSAValue],
    seat: ThreadSeat,
    chunk: Chunk,
) -> tuple[ThreadSeat, Chunk]:
    """
    The seat and the chunk of a thread. Tiles of the spot have negative numbers: -1 is the first
    column with cells of the spot.
    """
    tile = seat.tile
    spot, (tiling,) = find_spot(emit, geometry, arguments), geometry.axes
    beyond = emit.add_int(spot.first, tiling.useful - tiling.origin - tiling.layout.extent)
    beyond = emit.binary(arith.MaxSIOp, beyond, emit.int(0))
    _, first = emit.split(beyond, tiling.useful)
    number = emit.add_int(emit.sub_int(first, tile), -1)
    column = emit.binary(arith.MinSIOp, number, emit.int(tiling.count - 1))
    is_spot = emit.compare("slt", tile, 0)
    column = emit.select(is_spot, column, chunk.column)
    sees = emit.binary(arith.AndIOp, spot.is_there, sees_spot(emit, geometry, spot, column))
    begin, end = cut_beside(emit, geometry, spot, tile)
    ends = ((spot.low, begin, chunk.first), (spot.high, end, chunk.last))
    low, high = (
        emit.select(is_spot, own, emit.select(sees, cut, equal)) for own, cut, equal in ends
    )
    is_column = emit.compare("slt", number, tiling.count)
    has_tile = emit.binary(arith.AndIOp, sees, is_column)
    valid = emit.select(is_spot, has_tile, emit.value_of(seat.valid))
    return replace(seat, valid=valid), Chunk(column, low, high)


def cut_beside(
    emit: Emitter, geometry: Geometry, spot: Spot, tile: SSAValue
) -> tuple[SSAValue, SSAValue]:
    """
    The planes of a tile if the spot is left out: the planes on both sides of the spot share the
    chunks of the column. First and last chunk of a column have fewer planes, as without a spot.
    """
    low, high = geometry.cut_planes.start, geometry.cut_planes.stop
    place, count, missing = by_variant(
        emit, geometry, tile, partial(place_in_column, emit, geometry)
    )
    before = emit.add_int(emit.add_int(spot.low, -low), missing)
    behind = emit.add_int(emit.sub_int(emit.int(high), spot.high), missing)
    total = emit.binary(arith.MaxSIOp, emit.add_int(before, behind), emit.int(1))
    half = emit.binary(arith.ShRUIOp, total, emit.int(1))
    share = emit.add_int(emit.binary(arith.MuliOp, count, before), half)
    share = emit.binary(arith.DivUIOp, share, total)
    # Each side with planes has a chunk.
    some = emit.select(emit.compare("sgt", spot.low, low), emit.int(1), emit.int(0))
    rest = emit.select(emit.compare("slt", spot.high, high), emit.int(1), emit.int(0))
    share = emit.binary(arith.MaxSIOp, share, some)
    share = emit.binary(arith.MinSIOp, share, emit.sub_int(count, rest))
    is_before = emit.compare("slt", place, share)
    number = emit.select(is_before, place, emit.sub_int(place, share))
    parts = emit.select(is_before, share, emit.sub_int(count, share))
    parts = emit.binary(arith.MaxSIOp, parts, emit.int(1))
    planes = emit.select(is_before, before, behind)
    base = emit.select(is_before, emit.sub_int(emit.int(low), missing), spot.high)
    cuts = [
        emit.add_int(base, emit.binary(arith.DivUIOp, emit.binary(arith.MuliOp, k, planes), parts))
        for k in (number, emit.add_int(number, 1))
    ]
    begin, end = (nearest_cut(emit, geometry, cut) for cut in cuts)
    return begin, end


def place_in_column(
    emit: Emitter, geometry: Geometry, number: SSAValue, _before: int, variant: VariantAttr
) -> tuple[SSAValue, ...]:
    """
    The number of a tile's chunk in the column, the number of chunks, and the planes by which the
    first and the last chunk are shorter.
    """
    planes = variant.planes.data
    _, chunk = emit.split(number, geometry.columns(variant))
    missing = geometry.missing(planes) // 2
    return chunk, emit.int(geometry.chunks(planes)), emit.int(missing)
