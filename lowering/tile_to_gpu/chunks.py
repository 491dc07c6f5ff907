"""The planes and the column of tiles of a thread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from timetile.dialects.tile import VariantAttr
from timetile.lowering.emitter import Emitter
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.analysis.placed import layout_of


@dataclass(frozen=True)
class Chunk:
    """A column of tiles, and the planes from `first` to before `last`, in program coordinates."""

    column: SSAValue
    first: SSAValue
    last: SSAValue
    is_first: SSAValue | None = None
    """The chunk is the first of its tile; None if no columns are joined."""


@dataclass(frozen=True)
class Stretch:
    """
    The planes of a tile if columns are joined: from plane `first` of a column to before plane
    `last` of the last column. Between both ends lie the joined planes of every column, from `low`
    to before `high`. Planes are in program coordinates; first and last column may be equal.
    """

    column: SSAValue
    """Number of the first column in its kind."""
    columns_end: SSAValue
    """Number after the last column."""
    first: SSAValue
    last: SSAValue
    low: SSAValue
    high: SSAValue
    inside: SSAValue
    """1 where the columns lie inside the rim, else 0."""


TileValues = Callable[[SSAValue, int, VariantAttr], tuple[SSAValue, ...]]
"""
Computes values of a tile from its number in a variant, the columns of equal kind in earlier
variants (a number), and the variant.
"""


def by_variant(
    emit: Emitter, geometry: Geometry, tile: SSAValue, place: TileValues
) -> list[SSAValue]:
    """
    The values of `place` for a tile. Tiles of the kernel's variants follow each other, and so do
    the columns of each kind: on the rim, and inside the rim.
    """
    variants = geometry.used_variants
    before, passed = 0, {False: 0, True: 0}
    # Numbers of tiles of earlier variants are negative here, and the select below discards the
    # values.
    found = list(place(tile, 0, variants[0]))
    for numbers, (former, variant) in zip(geometry.variant_numbers, pairwise(variants)):
        before += numbers
        passed[former.is_interior] += geometry.columns(former)
        is_before = emit.compare("ult", tile, before)
        later = place(emit.add_int(tile, -before), passed[variant.is_interior], variant)
        found = [emit.select(is_before, *values) for values in zip(found, later, strict=True)]
    return found


def is_tile(emit: Emitter, geometry: Geometry, number: SSAValue) -> SSAValue | None:
    """The number stands for a tile; None where all do, in whole blocks."""
    masks: list[SSAValue] = []
    before = 0
    for variant, numbers in zip(geometry.used_variants, geometry.variant_numbers, strict=True):
        tiles = geometry.variant_tiles(variant)
        if tiles < numbers:
            none = emit.add_int(number, -before - tiles)
            masks.append(emit.compare("uge", none, numbers - tiles))
        before += numbers
    if before % layout_of(geometry.kernel).pack.data:
        masks.append(emit.compare("ult", number, before))
    return emit.all_of(masks)


def place_chunk(emit: Emitter, geometry: Geometry, tile: SSAValue) -> Chunk:
    """The chunk of a tile number, if no columns are joined."""
    if geometry.kernel.stream_axis is None:
        return Chunk(tile, emit.int(0), emit.int(1))
    low, high = geometry.cut_planes.start, geometry.cut_planes.stop

    def place(number: SSAValue, before: int, variant: VariantAttr) -> tuple[SSAValue, ...]:
        planes = variant.planes.data
        column, chunk = emit.split(number, geometry.columns(variant))
        column = emit.add_int(column, before)
        if geometry.begins_with_last_chunk:
            last = geometry.chunks(planes) - 1
            is_first = emit.compare("eq", chunk, 0)
            chunk = emit.select(is_first, emit.int(last), emit.add_int(chunk, -1))
        if geometry.has_both_kinds:
            column = numbered(emit, geometry, column, inside=variant.is_interior)
        missing = geometry.missing(planes) // 2
        start = emit.add_int(emit.mul_int(chunk, planes), low - missing)
        end = emit.add_int(start, planes)
        if missing:
            start = emit.binary(arith.MaxSIOp, start, emit.int(low))
        return column, start, end

    column, start, end = by_variant(emit, geometry, tile, place)
    return Chunk(column, start, emit.binary(arith.MinSIOp, end, emit.int(high)))


def place_stretch(emit: Emitter, geometry: Geometry, tile: SSAValue) -> Stretch:
    """
    The stretch of a tile number. A variant has first the tiles within a single column, then the
    tiles of joined planes. Joined planes lie in the middle of the columns, and so need no guards
    along the stream.
    """
    lower, upper = geometry.cut_planes.start, geometry.cut_planes.stop

    def place(number: SSAValue, before: int, variant: VariantAttr) -> tuple[SSAValue, ...]:
        columns, planes, joined = (
            geometry.columns(variant),
            variant.planes.data,
            variant.joined.data,
        )
        chunks = geometry.chunks(planes, joined)
        half = chunks // 2
        missing = geometry.missing(planes, joined) // 2
        low = lower - missing + half * planes
        column, chunk = emit.split(number, columns)
        passed = emit.compare("sge", chunk, half)
        skipped = emit.select(passed, emit.int(joined), emit.int(0))
        first = emit.add_int(emit.add_int(emit.mul_int(chunk, planes), skipped), lower - missing)
        last = emit.binary(arith.MinSIOp, emit.add_int(first, planes), emit.int(upper))
        first = emit.binary(arith.MaxSIOp, first, emit.int(lower))
        found = (column, emit.add_int(column, 1), first, last)
        if joined:
            beyond = emit.add_int(number, -columns * chunks)
            across = joined_part(emit, geometry, beyond, columns, variant)
            across = (*across[:2], *(emit.add_int(plane, low) for plane in across[2:]))
            is_alone = emit.compare("ult", number, columns * chunks)
            found = tuple(emit.select(is_alone, *values) for values in zip(found, across))
        column, end, first, last = found
        places = (emit.add_int(column, before), emit.add_int(end, before), first, last)
        return *places, emit.int(low), emit.int(low + joined), emit.int(int(variant.is_interior))

    return Stretch(*by_variant(emit, geometry, tile, place))


def joined_part(
    emit: Emitter, geometry: Geometry, number: SSAValue, columns: int, variant: VariantAttr
) -> tuple[SSAValue, SSAValue, SSAValue, SSAValue]:
    """
    The extent of a chunk of joined planes: first column, end of columns, first plane, end of
    planes. Planes count from the first joined plane. Successive columns begin `joined + restart`
    planes apart in this numbering; beyond the last chunk nothing is left.
    """
    joined, restart = variant.joined.data, geometry.restart
    pitch = joined + restart
    begin = emit.mul_int(number, variant.planes.data)
    end = emit.add_int(begin, variant.planes.data)
    # The end is cut to the last joined plane: no chunk owns the restart after the last column.
    # (Without the cut, the last chunk would end in the last column as well.)
    end = emit.binary(arith.MinSIOp, end, emit.int(columns * pitch - restart))
    _, column = emit.split(emit.add_int(begin, restart), pitch)
    _, after = emit.split(emit.add_int(end, pitch - 1), pitch)
    first = emit.sub_int(begin, emit.mul_int(column, pitch))
    last = emit.sub_int(end, emit.mul_int(emit.add_int(after, -1), pitch))
    first = emit.binary(arith.MaxSIOp, first, emit.int(0))
    return column, after, first, emit.binary(arith.MinSIOp, last, emit.int(joined))


def chunk_of(emit: Emitter, geometry: Geometry, stretch: Stretch, number: SSAValue) -> Chunk:
    """The part of a stretch in one column."""
    is_first = emit.compare("eq", number, stretch.column)
    is_last = emit.compare("eq", emit.add_int(number, 1), stretch.columns_end)
    first = emit.select(is_first, stretch.first, stretch.low)
    last = emit.select(is_last, stretch.last, stretch.high)
    column = number
    if geometry.has_both_kinds:
        inner, rim = (numbered(emit, geometry, number, inside=kind) for kind in (True, False))
        column = emit.select(emit.compare("eq", stretch.inside, 1), inner, rim)
    return Chunk(column, first, last, is_first)


def numbered(emit: Emitter, geometry: Geometry, number: SSAValue, *, inside: bool) -> SSAValue:
    """The column of a number in a kind."""
    counts = [axis.count for axis in geometry.axes]
    return (inner_column if inside else rim_column)(emit, number, counts)


def rim_column(emit: Emitter, number: SSAValue, counts: list[int]) -> SSAValue:
    """
    The column of a number on the rim: with one axis the two ends; with two axes the first row, the
    last row, then both ends of the rows between.
    """
    if len(counts) == 1:
        return emit.mul_int(number, counts[0] - 1)
    rows, columns = counts
    side, row = emit.split(emit.add_int(number, -2 * columns), 2)
    between = emit.mul_int(emit.add_int(row, 1), columns)
    between = emit.add_int(between, emit.mul_int(side, columns - 1))
    last = emit.add_int(number, (rows - 2) * columns)
    in_last = emit.compare("ult", number, 2 * columns)
    beyond = emit.select(in_last, last, between)
    return emit.select(emit.compare("ult", number, columns), number, beyond)


def inner_column(emit: Emitter, number: SSAValue, counts: list[int]) -> SSAValue:
    """The column of a number inside the rim."""
    if len(counts) == 1:
        return emit.add_int(number, 1)
    column, row = emit.split(number, counts[1] - 2)
    moved = emit.mul_int(emit.add_int(row, 1), counts[1])
    return emit.add_int(emit.add_int(moved, column), 1)
