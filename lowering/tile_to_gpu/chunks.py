"""Which planes of which column of tiles a thread advances."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from timetile.dialects.tile import VariantAttr
from timetile.lowering.emitter import Emitter
from timetile.passes.analysis.geometry.kernel_geometry import Geometry


@dataclass(frozen=True)
class Chunk:
    """A column of tiles, and the planes from `first` to before `last`, in program coordinates."""

    column: SSAValue
    first: SSAValue
    last: SSAValue


@dataclass(frozen=True)
class Stretch:
    """
    What a tile advances where columns are joined: from plane `first` of a column to before plane
    `last` of another, or of the same, and between those the joined planes of every column, from
    `low` to before `high`, in program coordinates.
    """

    column: SSAValue
    """The first one, among those of its kind."""
    columns_end: SSAValue
    """The one after the last."""
    first: SSAValue
    last: SSAValue
    low: SSAValue
    high: SSAValue
    inside: SSAValue
    """1 where the columns lie inside the rim, else 0."""


Place = Callable[[SSAValue, int, VariantAttr], tuple[SSAValue, ...]]
"""
What a tile is, by its number among those of a variant, the columns of the same kind that come
before the variant's, and the variant.
"""


def by_variant(emit: Emitter, geometry: Geometry, tile: SSAValue, place: Place) -> list[SSAValue]:
    """
    What `place` says of a tile: the tiles of the kernel's variants follow each other, and so do the
    columns of either kind, those on the rim and those inside it.
    """
    variants = geometry.used_variants
    before, passed = 0, {False: 0, True: 0}
    # Tiles of earlier variants have negative numbers here; nobody takes what follows from them.
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
    assert geometry.kernel.layout is not None
    masks: list[SSAValue] = []
    before = 0
    for variant, numbers in zip(geometry.used_variants, geometry.variant_numbers, strict=True):
        tiles = geometry.variant_tiles(variant)
        if tiles < numbers:
            none = emit.add_int(number, -before - tiles)
            masks.append(emit.compare("uge", none, numbers - tiles))
        before += numbers
    if before % geometry.kernel.layout.pack.data:
        masks.append(emit.compare("ult", number, before))
    return emit.all_of(masks)


def place_chunk(emit: Emitter, geometry: Geometry, tile: SSAValue) -> Chunk:
    """The chunk that a tile number stands for, where no columns are joined."""
    kernel = geometry.kernel
    if kernel.stream_axis is None:
        return Chunk(tile, emit.int(0), emit.int(1))
    low, high = geometry.lower[kernel.stream_axis], geometry.upper[kernel.stream_axis]

    def place(number: SSAValue, before: int, variant: VariantAttr) -> tuple[SSAValue, ...]:
        planes = variant.planes.data
        column, chunk = emit.split(number, geometry.columns(variant))
        column = emit.add_int(column, before)
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
    The stretch that a tile number stands for: of a variant's tiles first come those that lie in one
    column, then those of joined planes. These lie in the middle of the columns, so that their
    chunks have no guards along the stream.
    """
    assert geometry.kernel.stream_axis is not None
    lower = geometry.lower[geometry.kernel.stream_axis]
    upper = geometry.upper[geometry.kernel.stream_axis]

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
    Of the chunk of this number among those of a variant's joined planes: its first column and the
    one after its last, and its first plane and the one after its last, counted from the first that
    is joined. From one column to the next it is a restart longer than the planes are; nothing is
    left beyond the last chunk.
    """
    joined, restart = variant.joined.data, geometry.restart
    pitch = joined + restart
    begin = emit.mul_int(number, variant.planes.data)
    end = emit.add_int(begin, variant.planes.data)
    # The restart behind the last column is no chunk's. Without it taken away the last chunk would
    # end in the same column, and its last plane is the last joined one in either case.
    end = emit.binary(arith.MinSIOp, end, emit.int(columns * pitch - restart))
    _, column = emit.split(emit.add_int(begin, restart), pitch)
    _, after = emit.split(emit.add_int(end, pitch - 1), pitch)
    first = emit.sub_int(begin, emit.mul_int(column, pitch))
    last = emit.sub_int(end, emit.mul_int(emit.add_int(after, -1), pitch))
    first = emit.binary(arith.MaxSIOp, first, emit.int(0))
    return column, after, first, emit.binary(arith.MinSIOp, last, emit.int(joined))


def chunk_of(emit: Emitter, geometry: Geometry, stretch: Stretch, number: SSAValue) -> Chunk:
    """The part of a stretch that lies in one of its columns."""
    is_first = emit.compare("eq", number, stretch.column)
    is_last = emit.compare("eq", emit.add_int(number, 1), stretch.columns_end)
    first = emit.select(is_first, stretch.first, stretch.low)
    last = emit.select(is_last, stretch.last, stretch.high)
    column = number
    if geometry.has_both_kinds:
        inner, rim = (numbered(emit, geometry, number, inside=kind) for kind in (True, False))
        column = emit.select(emit.compare("eq", stretch.inside, 1), inner, rim)
    return Chunk(column, first, last)


def numbered(emit: Emitter, geometry: Geometry, number: SSAValue, *, inside: bool) -> SSAValue:
    """The column that a number among those of a kind stands for."""
    counts = [axis.count for axis in geometry.axes]
    return (inner_column if inside else rim_column)(emit, number, counts)


def rim_column(emit: Emitter, number: SSAValue, counts: list[int]) -> SSAValue:
    """
    The column that a number among those of the rim stands for: with one axis its two ends, with two
    the first row, the last row, then the two ends of the rows between.
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
    """The column that a number among those inside the rim stands for."""
    if len(counts) == 1:
        return emit.add_int(number, 1)
    column, row = emit.split(number, counts[1] - 2)
    moved = emit.mul_int(emit.add_int(row, 1), counts[1])
    return emit.add_int(emit.add_int(moved, column), 1)
